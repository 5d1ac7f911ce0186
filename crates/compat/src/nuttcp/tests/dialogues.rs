//! Our client and our server against each other, in virtual time.

use linerate_model::Side;
use linerate_units::{Span, Timestamp};

use super::world::World;
use crate::nuttcp::{Invocation, NuttcpClient, NuttcpServer, ServerOptions, invocation};
use crate::stand_in::StandIn;
use linerate_model::flow::{SeqField, TimeForm};

fn client(line: &str) -> Box<dyn StandIn> {
    let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    match invocation(&arguments) {
        (_, Invocation::Client(options)) => Box::new(NuttcpClient::new(*options)),
        other => panic!("{other:?}"),
    }
}

fn server() -> Box<dyn StandIn> {
    Box::new(NuttcpServer::new(ServerOptions { one_shot: true, ..ServerOptions::default() }))
}

fn world(line: &str) -> World {
    World::new(Some(client(line)), Some(server()))
}

fn run(line: &str) -> World {
    let mut world = world(line);
    world.run(100);
    let [client, server] = &world.ends;
    assert_eq!(
        (client.exit, server.exit),
        (Some(0), Some(0)),
        "{line}: {}{}",
        client.printed,
        client.complained
    );
    assert_eq!(client.troubles, [None]);
    assert_eq!(server.troubles, [None]);
    world
}

/// At 200 Mbit/s, 3 s carry 1144 blocks of 64 KiB.
const THREE_SECONDS: u64 = 1144 * 65_536;

#[test]
fn a_transmitting_client_prints_the_figures_of_the_server() {
    let world = run("-T3 h");
    let [client, server] = &world.ends;
    let line = client.printed.strip_suffix('\n').unwrap();
    assert_eq!(
        line,
        "   71.5000 MB /   3.00 sec =  199.9285 Mbps 50 %TX 50 %RX 3 retrans 247 KB-cwnd 0.09 msRTT"
    );
    assert!(
        server.said.contains("nuttcp-r: 71.5000 MB in 3.00 real seconds = 24405.33 KB/sec = 199.9285 Mbps\n")
    );
    assert!(!server.said.contains("DONE"));
    assert_eq!(client.peer_counted[0].bytes.get(), THREE_SECONDS);
    assert_eq!(client.tasks[0].side, Side::Sender);
    assert!(client.tasks[0].payload.head.is_empty());
}

#[test]
fn intervals_come_over_the_control_connection() {
    let world = run("-i1 -T3 h");
    let [client, server] = &world.ends;
    let lines: Vec<&str> = client.printed.lines().collect();
    // 381 whole blocks in the first second, of 381.47.
    assert_eq!(lines[0], "   23.8125 MB /   1.00 sec =  199.7537 Mbps     3 retrans    247 KB-cwnd");
    assert!(lines[1].ends_with("     0 retrans    247 KB-cwnd"), "{}", lines[1]);
    assert_eq!(lines[lines.len() - 2], "");
    assert!(server.said.contains("\nDONE\nnuttcp-r: "));
    // Zeros where a receiver looks for retransmission marks.
    let head = &client.tasks[0].payload.head;
    assert_eq!((&head[..3], &head[23..32]), (&b" !\""[..], &[b'7', 0, 0, 0, 0, 0, 0, 0, 0][..]));
}

#[test]
fn a_receiving_client_prints_its_own_figures() {
    let world = run("-r -i1 -T3 h");
    let [client, server] = &world.ends;
    let lines: Vec<&str> = client.printed.lines().collect();
    assert_eq!(lines[0], "   23.8125 MB /   1.00 sec =  199.7537 Mbps");
    let last = lines[lines.len() - 1];
    assert_eq!(
        last,
        "   71.5000 MB /   3.00 sec =  199.9285 Mbps 50 %TX 50 %RX 3 retrans 247 KB-cwnd 0.09 msRTT"
    );
    assert!(server.said.contains("nuttcp-t: retrans = 3 cwnd = 247 KB\n"));
    assert!(!server.said.contains("DONE") && !server.said.contains(" MB /"), "{}", server.said);
    assert_eq!(server.tasks[0].side, Side::Sender);
}

#[test]
fn flipping_changes_who_connects_and_nothing_else() {
    let forward = run("-F -T3 h");
    assert!(forward.ends[1].said.contains("nuttcp-r: connect to 192.0.2.1 with RTT=0.090 ms af=inet\n"));
    assert!(forward.ends[0].printed.contains(" 71.5000 MB /   3.00 sec"));
    assert!(forward.ends[0].printed.contains("0.09 msRTT"));
    let reverse = run("-r -F -T3 h");
    assert!(reverse.ends[1].said.contains("nuttcp-t: accept from 192.0.2.1 with mss=1448 af=inet\n"));
    assert!(reverse.ends[0].printed.contains(" 71.5000 MB /   3.00 sec"));
}

#[test]
fn streams_have_ports_in_a_row_and_share_the_rate() {
    let world = run("-N4 -R40m -n80 -T3 h");
    let [client, server] = &world.ends;
    assert_eq!(client.tasks[0].links.len(), 4);
    assert_eq!(client.tasks[0].offered.unwrap().bps(), 10e6);
    assert_eq!(client.tasks[0].bytes.unwrap().get(), 80 * 65_536);
    assert!(server.said.contains("nbuf=80, nstream=4, port=5101 tcp\n"));
    assert!(client.printed.contains("    5.0000 MB /   1.05 sec =   40.0000 Mbps "), "{}", client.printed);
}

#[test]
fn datagrams_are_opened_and_ended_by_marks() {
    let world = run("-u -R10m -l1000 -i1 -T3 h");
    let [client, server] = &world.ends;
    let marks: Vec<(u64, &str)> =
        client.datagrams.iter().map(|(at, bytes)| (*at, std::str::from_utf8(bytes).unwrap())).collect();
    let first = marks[0].0;
    // The server ends at the second mark and reports; the further marks are not needed.
    let expected = [(0, "BOD0"), (250, "BOD1"), (3250, "EOD0"), (3750, "EOD1")];
    assert_eq!(marks.iter().map(|(at, mark)| (at - first, *mark)).collect::<Vec<_>>(), expected);
    assert_eq!(server.tasks[0].stamp.seq, SeqField::Bytes { at: 24 });
    let lines: Vec<&str> = client.printed.lines().collect();
    assert_eq!(lines.len(), 5, "{}", client.printed);
    assert_eq!(lines[2], "    1.1921 MB /   1.00 sec =   10.0000 Mbps     0 /  1250 ~drop/pkt  0.00 ~%loss");
    assert_eq!(
        lines[4],
        "    3.5763 MB /   3.00 sec =   10.0000 Mbps 50 %TX 58 %RX 0 / 3750 drop/pkt 0.00 %loss"
    );
}

#[test]
fn lost_datagrams_are_counted() {
    let mut world = world("-u -R10m -l1000 -i1 -T2 -frunningtotal h");
    world.lose_every = 10;
    world.run(100);
    let lines: Vec<&str> = world.ends[0].printed.lines().collect();
    assert!(lines[1].contains("   125 /  1250 ~drop/pkt 10.00 ~%loss Tot: "), "{}", lines[1]);
    assert!(lines[1].ends_with("   250 /  2500 ~drop/pkt 10.00 ~%loss"), "{}", lines[1]);
    assert!(lines[3].ends_with(" 250 / 2500 drop/pkt 10.00 %loss"), "{}", lines[3]);
}

#[test]
fn a_server_sends_datagrams_when_the_client_receives() {
    let world = run("-u -r -R10m -l1000 -o -T2 h");
    let [client, server] = &world.ends;
    assert_eq!(server.datagrams.first().unwrap().1, b"BOD0");
    assert_eq!(server.datagrams.last().unwrap().1, b"EOD4");
    assert_eq!(server.tasks[0].stamp.time.unwrap().form, TimeForm::Wall);
    assert!(
        client.printed.contains("10.0000 Mbps 50 %TX 62 %RX 0 / 2500 drop/pkt 0.00 %loss\n"),
        "{}",
        client.printed
    );
}

/// The client half-closes the control connection after the marks. Without both, the idle timeout ends the test.
#[test]
fn a_receiver_without_end_marks_ends_all_the_same() {
    let mut forward = world("-u -R1m -T2 h");
    forward.lose = Some(b"EOD");
    // 0.3 s to begin, 2 s of data, 2 s of marks, 1 s of grace.
    forward.run(6);
    assert_eq!(forward.ends[0].exit, Some(0), "{}", forward.ends[0].complained);
    assert!(forward.ends[0].printed.contains(" 0 / 244 drop/pkt"), "{}", forward.ends[0].printed);
    let mut reverse = world("-u -r -R1m -T2 h");
    reverse.lose = Some(b"EOD");
    reverse.run(100);
    assert_eq!(reverse.ends[0].exit, Some(0), "{}", reverse.ends[0].complained);
}

#[test]
fn a_test_begins_with_the_first_data_when_the_marks_are_lost() {
    let mut world = world("-u -R10m -T2 h");
    world.lose = Some(b"BOD");
    world.run(100);
    // The engine of this world delivers data only to flows, so the receiver has seen nothing but the end.
    assert_eq!(world.ends[1].exit, Some(0));
    assert!(world.ends[1].said.contains("nuttcp-r: 0.0000 MB in "), "{}", world.ends[1].said);
}

#[test]
fn a_receiver_without_data_gives_up_by_an_urgent_byte() {
    let mut world = world("-u -R10m -T60 h");
    world.lose = Some(b"");
    world.run(29);
    assert_eq!(world.ends[1].urgent, b"");
    world.run_on(31);
    let [client, server] = &world.ends;
    assert_eq!((server.urgent.as_slice(), server.exit), (&b"A"[..], Some(1)));
    assert_eq!(client.complained, "Error: not receiving server info\n");
    assert_eq!(client.exit, Some(1));
}

#[test]
fn a_server_gives_up_when_no_data_connection_comes() {
    let mut world = world("-r -F -T1 h");
    world.no_data_before = Timestamp::START + Span::from_secs(99);
    world.run(100);
    let [client, server] = &world.ends;
    assert_eq!(client.exit, Some(1));
    assert_eq!(client.complained, "nuttcp-r: v8.2.2: Error: connect: Connection refused\nerrno=111\n");
    assert_eq!(server.exit, Some(1));
}

#[test]
fn a_refused_data_connection_is_tried_again() {
    let mut late = world("-N2 -T1 h");
    late.no_data_before = Timestamp::START + Span::from_ms(500);
    late.run(100);
    assert_eq!(late.ends[0].exit, Some(0), "{}", late.ends[0].complained);
    assert_eq!(late.ends[0].tasks[0].links.len(), 2);
}

#[test]
fn short_intervals_end_with_the_data() {
    let world = run("-u -R10m -l1000 -i.1 -T1 h");
    let lines: Vec<&str> = world.ends[0].printed.lines().collect();
    assert_eq!((lines.len(), lines[10]), (12, ""), "{}", world.ends[0].printed);
}

#[test]
fn a_verbose_receiver_prints_its_own_report_first() {
    let printed = run("-r -i1 -v -T2 h").ends[0].printed.clone();
    let (ours, theirs) = printed.split_once("\n\n").unwrap();
    assert!(ours.lines().all(|line| line.starts_with("nuttcp-r: ") || line.starts_with("   ")), "{printed}");
    assert!(ours.contains(" real seconds = "), "{printed}");
    assert!(theirs.lines().all(|line| line.starts_with("nuttcp-t: ")), "{printed}");
}

#[test]
fn standard_input_comes_out_at_the_other_end() {
    let options = ServerOptions { one_shot: true, stdio: true, ..ServerOptions::default() };
    let mut world = World::new(Some(client("-s h")), Some(Box::new(NuttcpServer::new(options))));
    let blocks: Vec<Vec<u8>> = (0..30_u8).map(|number| vec![number; 10_000]).collect();
    world.ends[0].input.extend(blocks.clone());
    world.run(100);
    let [client, server] = &world.ends;
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)), "{}", client.complained);
    assert!(server.written == blocks.concat(), "the content differs");
    assert!(client.printed.starts_with("    0.2861 MB / "), "{}", client.printed);
    assert!(client.asked.is_empty() && server.asked.is_empty());
}

#[test]
fn without_a_server_the_classic_mode_is_tried() {
    let mut tcp = World::new(Some(client("-T2 h")), None);
    tcp.run(100);
    let words = "\
nuttcp-t: Info: attempting to switch to deprecated \"classic\" mode
nuttcp-t: Info: will use less reliable transmitter side statistics
nuttcp-t: v8.2.2: Error: connect: Connection refused
errno=111
";
    assert_eq!((tcp.ends[0].complained.as_str(), tcp.ends[0].exit), (words, Some(1)));
    let refused = |line: &str| {
        let mut world = World::new(Some(client(line)), None);
        world.run(100);
        assert_eq!((world.ends[0].exit, world.ends[0].printed.as_str()), (Some(1), ""));
        world.ends[0].complained.clone()
    };
    assert_eq!(
        refused("-u -T2 h"),
        "connect failed: Connection refused\nUDP transfers only supported for client/server mode\n"
    );
    assert_eq!(
        refused("-i1 -T2 h"),
        "connect failed: Connection refused\ninterval option only supported for client/server mode\n"
    );
    assert_eq!(refused("-r -T2 h"), "nuttcp-r: v8.2.2: Error: connect: Connection refused\nerrno=111\n");
    assert_eq!(refused("-r -a -T2 h"), "nuttcp-r: v8.2.2: Error: connect: Connection refused\nerrno=111\n");
}

#[test]
fn an_interruption_ends_the_test_and_the_results_come() {
    let mut world = world("-T60 h");
    world.run(2);
    world.signal(0, 2);
    world.run_on(100);
    assert_eq!(world.ends[0].exit, Some(0), "{}", world.ends[0].complained);
    assert!(world.ends[0].printed.contains(" MB / "), "{}", world.ends[0].printed);
}

#[test]
fn a_plan_says_what_is_measured() {
    let world = run("-u -R5m -N2 -n1000 -l1000 h");
    let (ours, theirs) = (&world.ends[0].asked[0], &world.ends[1].asked[0]);
    assert_eq!((ours.tool, ours.peer.as_deref(), ours.client), ("nuttcp", Some("nuttcp 8.2.2"), true));
    assert!(ours.spec.traffic.udp && ours.spec.traffic.upload && !ours.spec.traffic.download);
    assert_eq!(ours.spec.traffic.rate.unwrap().bps(), 2.5e6);
    // 8,000,000 bits at 5 Mbit/s.
    assert_eq!(ours.expected, Some(Span::from_ms(1600)));
    assert_eq!((theirs.client, &theirs.spec.traffic), (false, &ours.spec.traffic));
}
