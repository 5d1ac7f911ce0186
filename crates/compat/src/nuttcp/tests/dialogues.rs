//! Our client and our server against each other, in virtual time.

use linerate_model::Side;
use linerate_units::{Span, Timestamp};

use crate::nuttcp::plan::Terms;
use crate::nuttcp::{
    NuttcpClient, NuttcpInvocation, NuttcpRequest, NuttcpServer, NuttcpServerOptions, invocation,
};
use crate::stand_in::{Input, Link, StandIn, StreamCounts, Transit};
use crate::virtual_hosts::{VirtualHost, VirtualHosts, VirtualLine, VirtualPath};
use linerate_model::flow::{BlockLength, SeqField, Spacing, TimeForm};

fn client(line: &str) -> Option<Box<dyn StandIn>> {
    let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    match invocation(&arguments) {
        (_, NuttcpInvocation::Client(options)) => Some(Box::new(NuttcpClient::new(*options))),
        other => panic!("{other:?}"),
    }
}

fn server(stdio: bool) -> Option<Box<dyn StandIn>> {
    Some(Box::new(NuttcpServer::new(NuttcpServerOptions {
        one_shot: true,
        stdio,
        ..NuttcpServerOptions::default()
    })))
}

/// A hundred blocks of 64 KiB a second.
fn path() -> VirtualPath {
    let tcp = StreamCounts { retransmits: Some(3), snd_cwnd: Some(247 * 1024), ..StreamCounts::default() };
    VirtualPath { rate: 100.0 * 65_536.0 * 8.0, tcp, ..VirtualPath::default() }
}

/// The client on host 0, the server on host 1.
fn world(line: &str) -> VirtualHosts {
    VirtualHosts::on(path(), 1, vec![client(line), server(false)])
}

fn run(line: &str) -> VirtualHosts {
    let mut world = world(line);
    world.run(100);
    let [client, server] = world.pair();
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)), "{line}: {}{}", client.out, client.err);
    assert_eq!(client.runs, [None]);
    assert_eq!(server.runs, [None]);
    world
}

/// What a server sent on the control connection.
fn control_text(server: &VirtualHost) -> String {
    let control = server.sent.iter().filter(|(link, _)| *link == Link::FIRST_ACCEPTED);
    control.map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect()
}

/// The datagrams that a tool sent itself, with their times in milliseconds.
fn marks(host: &VirtualHost) -> Vec<(u64, &str)> {
    let sent = host.sent_at.iter().zip(&host.sent).filter(|(_, (_, bytes))| bytes.len() == 4);
    sent.map(|(at, (_, bytes))| (at.as_ns() / 1_000_000, std::str::from_utf8(bytes).unwrap())).collect()
}

/// Three seconds carry 300 blocks. The last is sent 10 ms before their end, and a receiver counts from its
/// connection, up to one round trip of 2 ms before the first arrives: 157,286,400 bits in 2.992 s.
const THREE_SECONDS: u64 = 300 * 65_536;

#[test]
fn a_transmitting_client_prints_the_figures_of_the_server() {
    let world = run("-T3 h");
    let [client, server] = world.pair();
    let line = client.out.strip_suffix('\n').unwrap();
    assert_eq!(
        line,
        "   18.7500 MB /   2.99 sec =   52.5690 Mbps 1 %TX 1 %RX 3 retrans 247 KB-cwnd 0.04 msRTT"
    );
    assert!(
        control_text(server)
            .contains("nuttcp-r: 18.7500 MB in 2.99 real seconds = 6417.11 KB/sec = 52.5690 Mbps\n")
    );
    assert!(!control_text(server).contains("DONE"));
    assert_eq!(client.peer_bytes()[0], THREE_SECONDS);
    assert_eq!(client.tasks[0].side, Side::Sender);
    assert!(client.tasks[0].payload.head.is_empty());
}

#[test]
fn segments_that_are_retransmitted_after_the_last_write_are_counted() {
    let path = VirtualPath { late_retransmits: 4, ..path() };
    let mut world = VirtualHosts::on(path, 1, vec![client("-T3 h"), server(false)]);
    world.run(100);
    assert!(world.hosts[0].out.contains(" 7 retrans "), "{}", world.hosts[0].out);
}

#[test]
fn intervals_come_over_the_control_connection() {
    let world = run("-i1 -T3 h");
    let [client, server] = world.pair();
    let lines: Vec<&str> = client.out.lines().collect();
    assert_eq!(lines[0], "    6.2500 MB /   1.00 sec =   52.4288 Mbps     3 retrans    247 KB-cwnd");
    assert!(lines[1].ends_with("     0 retrans    247 KB-cwnd"), "{}", lines[1]);
    assert_eq!(lines[lines.len() - 2], "");
    assert!(control_text(server).contains("\nDONE\nnuttcp-r: "));
    // Zeros where a receiver looks for retransmission marks.
    let head = &client.tasks[0].payload.head;
    assert_eq!((&head[..3], &head[23..32]), (&b" !\""[..], &[b'7', 0, 0, 0, 0, 0, 0, 0, 0][..]));
}

#[test]
fn a_receiving_client_prints_its_own_figures() {
    let world = run("-r -i1 -T3 h");
    let [client, server] = world.pair();
    let lines: Vec<&str> = client.out.lines().collect();
    assert_eq!(lines[0], "    6.2500 MB /   1.00 sec =   52.4288 Mbps");
    let last = lines[lines.len() - 1];
    assert_eq!(
        last,
        "   18.7500 MB /   2.99 sec =   52.5690 Mbps 1 %TX 1 %RX 3 retrans 247 KB-cwnd 0.04 msRTT"
    );
    assert!(control_text(server).contains("nuttcp-t: retrans = 3 cwnd = 247 KB\n"));
    assert!(
        !control_text(server).contains("DONE") && !control_text(server).contains(" MB /"),
        "{}",
        control_text(server)
    );
    assert_eq!(server.tasks[0].side, Side::Sender);
}

#[test]
fn flipping_changes_who_connects_and_nothing_else() {
    let forward = run("-F -T3 h");
    assert!(
        control_text(&forward.hosts[1]).contains("nuttcp-r: connect to 10.0.0.1 with RTT=0.037 ms af=inet\n")
    );
    assert!(forward.hosts[0].out.contains(" 18.7500 MB /   2.99 sec"));
    assert!(forward.hosts[0].out.contains("0.04 msRTT"));
    let reverse = run("-r -F -T3 h");
    assert!(
        control_text(&reverse.hosts[1]).contains("nuttcp-t: accept from 10.0.0.1 with mss=1448 af=inet\n")
    );
    assert!(reverse.hosts[0].out.contains(" 18.7500 MB /   2.99 sec"));
}

#[test]
fn streams_have_ports_in_a_row_and_share_the_rate() {
    let world = run("-N4 -R40m -n80 -T3 h");
    let [client, server] = world.pair();
    assert_eq!(client.tasks[0].links.len(), 4);
    assert_eq!(client.tasks[0].offered.unwrap().bps(), 10e6);
    assert_eq!(client.tasks[0].bytes.unwrap().get(), 80 * 65_536);
    assert!(control_text(server).contains("nbuf=80, nstream=4, port=5101 tcp\n"));
    // 20 blocks for each stream: 19 times 52.4288 ms, and the round trip.
    assert!(client.out.contains("    5.0000 MB /   1.00 sec =   42.0209 Mbps "), "{}", client.out);
}

#[test]
fn datagrams_are_opened_and_ended_by_marks() {
    let world = run("-u -R10m -l1000 -i1 -T3 h");
    let [client, server] = world.pair();
    let marks = marks(client);
    let first = marks[0].0;
    // The server ends at the second mark and reports; the further marks are not needed.
    let expected = [(0, "BOD0"), (250, "BOD1"), (3250, "EOD0"), (3750, "EOD1")];
    assert_eq!(marks.iter().map(|(at, mark)| (at - first, *mark)).collect::<Vec<_>>(), expected);
    assert_eq!(server.tasks[0].stamp.seq, SeqField::Bytes { at: 24, streams: 1 });
    let lines: Vec<&str> = client.out.lines().collect();
    assert_eq!(lines.len(), 5, "{}", client.out);
    // The datagram that arrives at the end of the first second belongs to it.
    assert_eq!(lines[0], "    1.1930 MB /   1.00 sec =   10.0080 Mbps     0 /  1251 ~drop/pkt  0.00 ~%loss");
    assert_eq!(lines[1], "    1.1921 MB /   1.00 sec =   10.0000 Mbps     0 /  1250 ~drop/pkt  0.00 ~%loss");
    // The last one is sent 0.8 ms before the end.
    assert_eq!(
        lines[4],
        "    3.5763 MB /   3.00 sec =   10.0027 Mbps 1 %TX 1 %RX 0 / 3750 drop/pkt 0.00 %loss"
    );
}

#[test]
fn lost_datagrams_are_counted() {
    let mut world = world("-u -R10m -l1000 -i1 -T2 -frunningtotal h");
    let mut sent = 0;
    world.loss = Box::new(move |_, datagram| {
        sent += u64::from(datagram.len() > 4);
        datagram.len() > 4 && sent % 10 == 5
    });
    world.run(100);
    let lines: Vec<&str> = world.hosts[0].out.lines().collect();
    assert!(lines[1].contains("   125 /  1249 ~drop/pkt 10.01 ~%loss Tot: "), "{}", lines[1]);
    assert!(lines[1].ends_with("   250 /  2500 ~drop/pkt 10.00 ~%loss"), "{}", lines[1]);
    assert!(lines[3].ends_with(" 250 / 2500 drop/pkt 10.00 %loss"), "{}", lines[3]);
}

#[test]
fn a_server_sends_datagrams_when_the_client_receives() {
    let world = run("-u -r -R10m -l1000 -o -T2 h");
    let [client, server] = world.pair();
    let marks = marks(server);
    assert_eq!((marks[0].1, marks[marks.len() - 1].1), ("BOD0", "EOD4"));
    assert_eq!(server.tasks[0].stamp.time.unwrap().form, TimeForm::Wall);
    assert!(client.out.contains("10.0040 Mbps 1 %TX 1 %RX 0 / 2500 drop/pkt 0.00 %loss\n"), "{}", client.out);
}

/// The client half-closes the control connection after the marks. Without both, the idle timeout ends the test.
#[test]
fn a_receiver_without_end_marks_ends_all_the_same() {
    let mut forward = world("-u -R1m -T2 h");
    forward.loss = Box::new(|_, datagram| datagram.starts_with(b"EOD"));
    // 0.3 s to begin, 2 s of data, 2 s of marks, 1 s of grace. 245 datagrams of 1 KiB, 8.192 ms apart.
    forward.run(6);
    assert_eq!(forward.hosts[0].exit, Some(0), "{}", forward.hosts[0].err);
    assert!(forward.hosts[0].out.contains(" 0 / 245 drop/pkt"), "{}", forward.hosts[0].out);
    let mut reverse = world("-u -r -R1m -T2 h");
    reverse.loss = Box::new(|_, datagram| datagram.starts_with(b"EOD"));
    reverse.run(100);
    assert_eq!(reverse.hosts[0].exit, Some(0), "{}", reverse.hosts[0].err);
}

#[test]
fn a_test_begins_with_the_first_data_when_the_marks_are_lost() {
    let mut world = world("-u -R10m -T2 h");
    world.loss = Box::new(|_, datagram| datagram.starts_with(b"BOD"));
    world.run(100);
    // 2442 datagrams of 1 KiB, 0.8192 ms apart.
    assert_eq!(world.hosts[1].exit, Some(0));
    assert!(
        control_text(&world.hosts[1]).contains("nuttcp-r: 2.3848 MB in 2.00 real "),
        "{}",
        control_text(&world.hosts[1])
    );
}

#[test]
fn a_receiver_without_data_gives_up_by_an_urgent_byte() {
    let mut world = world("-u -R10m -T60 h");
    world.loss = Box::new(|_, datagram| datagram.starts_with(b""));
    world.run(29);
    assert_eq!(world.hosts[1].urgent, b"");
    world.run(2);
    let [client, server] = world.pair();
    assert_eq!((server.urgent.as_slice(), server.exit), (&b"A"[..], Some(1)));
    assert_eq!(client.err, "Error: not receiving server info\n");
    assert_eq!(client.exit, Some(1));
}

#[test]
fn a_server_gives_up_when_no_data_connection_comes() {
    let mut world = world("-r -F -T1 h");
    world.closed = |port, _| port != 5000;
    world.run(100);
    let [client, server] = world.pair();
    assert_eq!(client.exit, Some(1));
    assert_eq!(client.err, "nuttcp-r: v8.2.2: Error: connect: Connection refused\nerrno=111\n");
    assert_eq!(server.exit, Some(1));
}

#[test]
fn a_refused_data_connection_is_tried_again() {
    let mut late = world("-N2 -T1 h");
    late.closed = |port, now| port != 5000 && now < Timestamp::START + Span::from_ms(500);
    late.run(100);
    assert_eq!(late.hosts[0].exit, Some(0), "{}", late.hosts[0].err);
    assert_eq!(late.hosts[0].tasks[0].links.len(), 2);
}

#[test]
fn short_intervals_end_with_the_data() {
    let world = run("-u -R10m -l1000 -i.1 -T1 h");
    let lines: Vec<&str> = world.hosts[0].out.lines().collect();
    assert_eq!((lines.len(), lines[10]), (12, ""), "{}", world.hosts[0].out);
}

#[test]
fn a_verbose_receiver_prints_its_own_report_first() {
    let printed = run("-r -i1 -v -T2 h").hosts[0].out.clone();
    let (ours, theirs) = printed.split_once("\n\n").unwrap();
    assert!(ours.lines().all(|line| line.starts_with("nuttcp-r: ") || line.starts_with("   ")), "{printed}");
    assert!(ours.contains(" real seconds = "), "{printed}");
    assert!(theirs.lines().all(|line| line.starts_with("nuttcp-t: ")), "{printed}");
}

#[test]
fn standard_input_comes_out_at_the_other_end() {
    let mut world = VirtualHosts::on(path(), 1, vec![client("-s h"), server(true)]);
    let blocks: Vec<Vec<u8>> = (0..30_u8).map(|number| vec![number; 10_000]).collect();
    world.hosts[0].input.extend(blocks.clone());
    world.run(100);
    let [client, server] = world.pair();
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)), "{}", client.err);
    assert!(server.written == blocks.concat(), "the content differs");
    assert!(client.out.starts_with("    0.2861 MB / "), "{}", client.out);
    assert!(client.plans.is_empty() && server.plans.is_empty());
}

#[test]
fn a_datagram_that_looks_like_a_mark_but_has_no_digit_is_ignored() {
    let mut world = world("-u -T1 h");
    // The server has said that it is ready, and the client waits a little before it begins.
    world.pass(Span::from_ms(20));
    assert!(control_text(&world.hosts[1]).contains("OK"));
    for bytes in [b"BOD/", b"EOD/", b"BOD\xff"] {
        world.inject(0, 40_000, 5101, bytes);
    }
    world.run(100);
    let [client, server] = world.pair();
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)), "{}", client.err);
    assert!(client.out.contains(" 0 / "), "{}", client.out);
}

/// The bytes of standard input that come out at the other end, of blocks of 10,000 bytes over 800 kbit/s.
fn piped(line: &str, blocks: usize) -> usize {
    let slow = VirtualLine { bps: 8e5, queue: Span::from_ms(10) };
    let mut world =
        VirtualHosts::on(VirtualPath { line: Some(slow), ..path() }, 1, vec![client(line), server(true)]);
    world.hosts[0].input.extend(vec![vec![7; 10_000]; blocks]);
    world.run(100);
    let [client, server] = world.pair();
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)), "{line}: {}", client.err);
    server.written.len()
}

#[test]
fn standard_input_ends_after_the_blocks_or_the_time_that_are_given() {
    assert_eq!(piped("-s -n3 -l1000 h", 1), 3000);
    assert_eq!(piped("-s h", 150), 1_500_000, "longer than ten seconds");
    let timed = piped("-s -T2 h", 150);
    assert!((150_000..=250_000).contains(&timed), "{timed}");
}

#[test]
fn without_a_server_the_classic_mode_is_tried() {
    let mut tcp = VirtualHosts::on(path(), 1, vec![client("-T2 h"), None]);
    tcp.run(100);
    let words = "\
nuttcp-t: Info: attempting to switch to deprecated \"classic\" mode
nuttcp-t: Info: will use less reliable transmitter side statistics
nuttcp-t: v8.2.2: Error: connect: Connection refused
errno=111
";
    assert_eq!((tcp.hosts[0].err.as_str(), tcp.hosts[0].exit), (words, Some(1)));
    let refused = |line: &str| {
        let mut world = VirtualHosts::on(path(), 1, vec![client(line), None]);
        world.run(100);
        assert_eq!((world.hosts[0].exit, world.hosts[0].out.as_str()), (Some(1), ""));
        world.hosts[0].err.clone()
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
    world.feed(0, Input::Signal(2));
    world.run(100);
    assert_eq!(world.hosts[0].exit, Some(0), "{}", world.hosts[0].err);
    assert!(world.hosts[0].out.contains(" MB / "), "{}", world.hosts[0].out);
}

#[test]
fn a_plan_says_what_is_measured() {
    let world = run("-u -R5m -N2 -n1000 -l1000 h");
    let (ours, theirs) = (&world.hosts[0].plans[0], &world.hosts[1].plans[0]);
    assert_eq!((ours.tool, ours.peer.as_deref(), ours.client), ("nuttcp", Some("nuttcp 8.2.2"), true));
    assert!(ours.spec.traffic.udp && ours.spec.traffic.upload && !ours.spec.traffic.download);
    assert_eq!(ours.spec.traffic.rate.unwrap().bps(), 2.5e6);
    // 8,000,000 bits at 5 Mbit/s.
    assert_eq!(ours.expected, Some(Span::from_ms(1600)));
    assert_eq!((theirs.client, &theirs.spec.traffic), (false, &ours.spec.traffic));
}

/// Of several streams, 8.2.2 shows losses of the sum and no retransmissions.
#[test]
fn intervals_of_several_streams_are_those_of_their_sum() {
    let udp = run("-u -N2 -R10m -l1000 -i1 -T3 h").hosts[0].out.clone();
    let lines: Vec<&str> = udp.lines().collect();
    assert!(lines[1].ends_with("     0 /  1250 ~drop/pkt  0.00 ~%loss"), "{udp}");
    let tcp = run("-N2 -R10m -i1 -T3 h").hosts[0].out.clone();
    assert!(tcp.lines().next().unwrap().ends_with(" Mbps"), "{tcp}");
}

#[test]
fn both_ends_agree_on_how_datagrams_are_spaced() {
    let world = run("-jo -R10m -N2 -l1000 -T2 h");
    // 1000 bytes at 5 Mbit/s.
    let expected = Spacing { gap: Span::from_ns(1_600_000), neighbours: true };
    assert_eq!(world.hosts[1].tasks[0].transit, Transit::Spaced(expected));
    assert_eq!(world.hosts[0].tasks[0].stamp.seq, SeqField::Bytes { at: 24, streams: 2 });
    let plain = run("-r -j -R10m -l1000 -T2 h");
    let Transit::Spaced(spacing) = &plain.hosts[0].tasks[0].transit else { panic!("not spaced") };
    assert!(!spacing.neighbours);
}

#[test]
fn blocks_carry_times_if_delays_are_wanted() {
    let world = run("-o -T1 h");
    for host in &world.hosts {
        let task = &host.tasks[0];
        let time = task.stamp.time.unwrap();
        assert_eq!((time.at, time.form, task.stamp.length), (8, TimeForm::Wall, 16));
        let Transit::Blocks(blocks) = &task.transit else { panic!("{:?}", task.transit) };
        assert_eq!(blocks.length, BlockLength::Fixed(65_536));
    }
    assert_eq!(run("-T1 h").hosts[1].tasks[0].transit, Transit::Uncounted);
}

#[test]
fn the_cpu_is_that_of_the_command_line_and_of_the_request() {
    let world = run("-xc0/1 -T1 h");
    assert_eq!([0, 1].map(|host: usize| world.hosts[host].tasks[0].affinity), [Some(0), Some(1)]);
}

/// A server of which a client wants what it cannot do says so.
#[test]
fn what_a_server_does_not_do_is_refused_by_name() {
    let request = |change: fn(&mut NuttcpRequest)| {
        let mut request =
            NuttcpRequest { udp: true, buflen: 1000, rate_kbps: Some(1000), ..NuttcpRequest::default() };
        change(&mut request);
        Terms::of_request(&request, 5000).err()
    };
    assert_eq!(request(|_| ()), None);
    let refused = |change| request(change).unwrap_or_default();
    assert!(refused(|r| r.smoothed_start = true).contains("smoothed slow start"));
    assert!(refused(|r| (r.do_jitter, r.udp) = (4, false)).contains("not supported for TCP"));
    assert!(refused(|r| r.do_jitter = 4).contains("requires instantaneous"));
    assert!(refused(|r| (r.do_jitter, r.irate, r.rate_kbps) = (4, true, None)).contains("unlimited rate"));
    assert_eq!(refused(|r| r.srcport = 80), "invalid srcport\nsrcport = 80");
    assert_eq!(request(|r| r.timeout = Span::from_secs(30 * 86_400)), None, "a month is no day");
    let forever = refused(|r| r.timeout = Span::from_secs(1 << 31));
    assert_eq!(forever, "invalid timeout\ntimeout = 2147483648.000000");
    // A server that receives listens on all its addresses.
    assert_eq!(request(|r| r.several_paths = true), None);
    assert!(refused(|r| (r.several_paths, r.trans) = (true, false)).contains("several paths"));
}

/// With --single-threaded the second client is served when the first one has its report.
#[test]
fn clients_wait_for_each_other_if_the_server_has_the_option() {
    let server = NuttcpServer::new(NuttcpServerOptions { single: true, ..NuttcpServerOptions::default() });
    let mut second = client("-p5201 -T1 h");
    let mut world = VirtualHosts::on(path(), 2, vec![client("-T2 h"), second.take(), Some(Box::new(server))]);
    world.run(100);
    for host in &world.hosts[..2] {
        assert_eq!(host.exit, Some(0), "{}{}", host.out, host.err);
    }
    let began = |host: usize| world.hosts[host].sent_at[1];
    let [first, second] = [0, 1].map(began);
    assert!(first.max(second).since(first.min(second)) >= Span::from_secs(1), "{first:?} {second:?}");
}
