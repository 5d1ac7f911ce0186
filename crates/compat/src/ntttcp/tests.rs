//! Comparison with output and messages of the real program, and several ends in virtual time.

mod documents;
mod serving;
mod windows;
mod world;

use std::ffi::OsString;

use crate::stand_in::{Input, Link, Opened, Output, RunId, StandIn};
use linerate_units::{Span, Timestamp};

pub(super) use self::world::{NtttcpObserved, NtttcpWorld};
use super::*;

const WIRE: &str = include_str!("../../../../fixtures/transcripts/ntttcp/wire-sync.txt");
const VERBOSE: &str = include_str!("../../../../fixtures/transcripts/ntttcp/verbose-warmup-cooldown.txt");

pub(super) fn options(line: &str) -> NtttcpOptions {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    parse(&arguments).unwrap_or_else(|usage| panic!("{line}: {usage:?}"))
}

pub(super) fn refused(line: &str) -> NtttcpEarlyExit {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    parse(&arguments).unwrap_err()
}

/// A receiver, and senders that start 0.1 s after each other.
fn world(receiver: &str, senders: &[&str]) -> NtttcpWorld {
    let mut world = NtttcpWorld::new();
    // 19:07:32, as in the captures.
    let day = Span::from_secs(19 * 3600 + 7 * 60 + 32);
    world.add(NtttcpReceiver::new(options(receiver), false, day), Timestamp::START);
    for (at, sender) in senders.iter().enumerate() {
        let begins = Timestamp::START + Span::from_ms(100 * (at as u64 + 1));
        world.add(NtttcpSender::new(options(sender), day), begins);
    }
    world
}

fn minute() -> Span {
    Span::from_secs(60)
}

/// The numbers that an end sent on its sync connection.
fn numbers(seen: &NtttcpObserved) -> Vec<i32> {
    seen.sent
        .iter()
        .filter(|(port, _)| *port == 5000)
        .map(|(_, bytes)| i32::from_be_bytes(bytes.as_slice().try_into().unwrap()))
        .collect()
}

/// The numbers of one direction in a section of the capture.
fn captured(section: &str, direction: &str) -> Vec<i32> {
    let lines = WIRE.lines().skip_while(|line| !line.contains(section)).skip(1);
    lines
        .take_while(|line| line.contains("bytes:"))
        .filter(|line| line.contains(direction))
        .map(|line| i32::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap())
        .collect()
}

const TO_RECEIVER: &str = "client->server";
const TO_SENDER: &str = "server->client";

#[test]
fn the_dialogue_is_that_of_the_capture() {
    let seen = world("-r -m 2,*,127.0.0.1 -t 2", &["-s -m 2,*,127.0.0.1 -t 2"]).run(minute());
    assert_eq!(numbers(&seen[1]), captured("-t 2 both sides", TO_RECEIVER));
    assert_eq!(numbers(&seen[0]), captured("-t 2 both sides", TO_SENDER));
    assert_eq!((seen[0].exit, seen[1].exit), (Some(0), Some(0)), "{seen:?}");
    assert_eq!(seen[0].ports, [5000, 5001, 5002]);
    assert_eq!(seen[1].ports, [5000, 5001, 5002]);
    assert_eq!(seen[1].tasks[0].links.len(), 2);
}

#[test]
fn bytes_of_the_measured_time_are_counted_at_both_ends() {
    let mut world = world("-r -P 2 -W 1 -t 2 -C 1 -V", &["-s 127.0.0.1 -P 2 -n 2 -l 2 -W 1 -t 2 -C 1 -V"]);
    world.rate = 3_000_000;
    let seen = world.run(minute());
    // 8 connections at 3 MB/s for 2 s.
    for end in &seen {
        assert_eq!(end.exit, Some(0), "{end:?}");
        assert!(end.printed.contains("INFO: test duration\t:2.00 seconds\n"), "{}", end.printed);
        assert!(end.printed.contains("INFO: total bytes\t:48000000\n"), "{}", end.printed);
        assert!(end.printed.contains("INFO: \t throughput\t:192.00Mbps\n"), "{}", end.printed);
        assert!(!end.printed.contains("ERR "), "{}", end.printed);
    }
    assert!(seen[0].printed.contains("INFO: \t1\t 2.00\t 96.00Mbps\n"), "{}", seen[0].printed);
    assert!(seen[1].printed.contains("INFO: \t3\t 2.00\t 48.00Mbps\n"), "{}", seen[1].printed);
    assert!(seen[1].printed.contains("INFO: tcpi rtt\t\t:150 us\n"));
    // The process used a tenth of a core, and half of all CPU time was idle.
    assert!(seen[1].printed.contains("INFO: cpu busy (all)\t:10.00%\n"));
    assert!(seen[1].printed.contains("INFO: \t idle\t\t:50.00%\n"));
    // 2000 MHz * 2 cores * 2 s * 50 % / 48 MB
    assert!(seen[1].printed.contains("INFO: \t cycles/byte\t:83.33\n"));
    assert_eq!(numbers(&seen[1]), captured("-W 1 -t 2 -C 1", TO_RECEIVER)[..3], "no needless end");
    assert_eq!(numbers(&seen[0]), captured("-W 1 -t 2 -C 1", TO_SENDER));
}

/// The lines of a role in the sample without parts that differ from run to run.
fn shape(text: &str) -> Vec<String> {
    let known = |line: &&str| {
        !line.contains("DBG :")
            && !line.starts_with("Real-time")
            && !line.contains("ERR ")
            && !line.is_empty()
    };
    let without = |line: &str| {
        let words: String = line.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        words.replace("Mbps", "bps").replace("Kbps", "bps").replace('.', "")
    };
    text.lines().filter(known).map(without).collect()
}

#[test]
fn the_console_reads_like_the_capture() {
    let mut sections = VERBOSE.split("$ ntttcp ").skip(1).map(|section| {
        section.lines().skip(1).take_while(|line| !line.starts_with("[exit")).map(|line| format!("{line}\n"))
    });
    let receiver: String = sections.next().unwrap().collect();
    let sender: String = sections.next().unwrap().collect();
    let seen = world("-r -P 2 -W 1 -t 2 -C 1 -V", &["-s 127.0.0.1 -P 2 -n 2 -l 2 -W 1 -t 2 -C 1 -V"]);
    let seen = seen.run(minute());
    assert_eq!(shape(&seen[0].printed), shape(&receiver));
    assert_eq!(shape(&seen[1].printed), shape(&sender));
    let first = seen[0].printed.lines().find(|line| line.contains("INFO")).unwrap();
    assert_eq!(first, "19:07:32 INFO: 3 threads created");
}

#[test]
fn the_longer_time_holds_and_the_rest_is_cooldown() {
    let seen = world("-r -P 1 -t 3", &["-s 127.0.0.1 -P 1 -n 1 -t 1"]).run(minute());
    assert_eq!(numbers(&seen[0]), captured("sender -t 1, receiver -t 3", TO_SENDER));
    assert!(seen[1].printed.contains("Test cycle time negotiated is: 3 seconds"));
    assert!(seen[1].printed.contains("Test cooldown is in progress..."));
    assert!(seen[1].printed.contains("test duration\t:1.00 seconds"));
    // The receiver starts 0.1 ms before the first bytes arrive.
    assert!(seen[0].printed.contains("total bytes\t:2999900\n"));
    assert!(seen[1].printed.contains("total bytes\t:1000000\n"));
    let lasted = seen[1].exit_at.since(Timestamp::START);
    assert!(lasted > Span::from_secs(3) && lasted < Span::from_secs(4), "{lasted}");
}

#[test]
fn times_that_a_receiver_could_mistake_are_avoided_and_understood() {
    let seen = world("-r -P 1 -t 1", &["-s 127.0.0.1 -P 1 -n 1 -t 82"]).run(Span::from_secs(200));
    assert_eq!(numbers(&seen[1])[1], 83);
    assert!(seen[1].printed.contains("test duration\t:82.00 seconds"), "{}", seen[1].printed);
    // A sender that does not avoid this value.
    let mut receiver = NtttcpReceiver::new(options("-r -P 1 -t 1"), false, Span::ZERO);
    let answers = ask(&mut receiver, &[b'X'.into(), 82]);
    assert_eq!(answers, [11, 82], "82 is a time here and starts nothing");
}

/// The receiver's answers to these numbers on one sync connection.
fn ask(receiver: &mut NtttcpReceiver, numbers: &[i32]) -> Vec<i32> {
    let now = Timestamp::START;
    receiver.input(now, Input::Begin);
    let opened = Opened::new(([127, 0, 0, 1], 5000).into(), None);
    receiver.input(now, Input::Accepted { listener: Link(0), link: Link::FIRST_ACCEPTED, opened });
    for number in numbers {
        receiver.input(now, Input::Bytes { link: Link::FIRST_ACCEPTED, bytes: &number.to_be_bytes() });
    }
    let outputs = std::iter::from_fn(|| receiver.output());
    outputs
        .filter_map(|output| match output {
            Output::Send { bytes, .. } => Some(i32::from_be_bytes(bytes.try_into().unwrap())),
            _ => None,
        })
        .collect()
}

#[test]
fn who_asks_after_the_test_hears_that_it_is_over() {
    let mut receiver = NtttcpReceiver::new(options("-r -P 1 -t 1"), false, Span::ZERO);
    assert_eq!(ask(&mut receiver, &[b'X'.into(), 1, b'R'.into()]), [11, 1]);
    receiver.input(Timestamp::START, Input::Admitted { run: RunId(0) });
    let mut now = Timestamp::START;
    let mut outputs = Vec::new();
    while let Some(deadline) = receiver.deadline() {
        // From the end of the test until the end of the second in which senders may still query.
        if deadline >= Timestamp::START + Span::from_ms(1_500) {
            for number in [b'E', b'X'] {
                let bytes = i32::from(number).to_be_bytes();
                receiver.input(now, Input::Bytes { link: Link::FIRST_ACCEPTED, bytes: &bytes });
            }
        }
        now = now.max(deadline);
        receiver.input(now, Input::Tick);
        outputs.extend(std::iter::from_fn(|| receiver.output()));
    }
    let numbers = outputs.iter().filter_map(|output| match output {
        Output::Send { bytes, .. } => bytes.last().copied(),
        _ => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [b'R', 13, 13]);
    assert!(matches!(outputs.last(), Some(Output::Exit(0))));
}

#[test]
fn a_second_sender_gets_the_message_that_the_receiver_is_busy() {
    let sender = "-s 127.0.0.1 -P 1 -n 1 -t 2";
    let seen = world("-r -P 1 -t 2", &[sender, sender]).run(minute());
    assert_eq!((seen[0].exit, seen[1].exit, seen[2].exit), (Some(0), Some(0), Some(24)));
    assert!(seen[2].printed.contains("ERR : receiver is busy with an existing test running"));
    assert!(seen[0].printed.contains("total bytes\t:1999900\n"), "{}", seen[0].printed);
}

#[test]
fn several_senders_wait_for_the_last() {
    let seen = world(
        "-r -M -P 1 -t 2 -e",
        &["-s 127.0.0.1 -P 1 -n 1 -t 9", "-s 127.0.0.1 -P 1 -n 1 -t 9", "-s 127.0.0.1 -P 1 -n 1 -t 9 -L"],
    )
    .run(minute());
    assert!(seen.iter().all(|end| end.exit == Some(0)), "{seen:?}");
    assert!(seen[1].printed.contains("waiting for the last client to join the test"));
    assert!(!seen[3].printed.contains("waiting"));
    assert!(seen[0].printed.contains("total bytes\t:5999700\n"), "{}", seen[0].printed);
    for sender in &seen[1..] {
        assert!(sender.printed.contains("Test cycle time negotiated is: 2 seconds"));
        assert!(sender.printed.contains("total bytes\t:2000000\n"), "{}", sender.printed);
    }
    // X, the time, W and later R: the first sender was answered like this in the capture.
    let sample = captured("first sender, then last sender", TO_SENDER);
    assert_eq!(numbers(&seen[0])[..3], sample[..3]);
}

#[test]
fn without_sync_both_begin_with_the_connections() {
    let seen = world("-r -N -P 2 -t 2", &["-s 127.0.0.1 -N -P 2 -n 1 -t 2"]).run(minute());
    assert_eq!((seen[0].exit, seen[1].exit), (Some(0), Some(0)), "{seen:?}");
    assert!(!seen[0].ports.contains(&5000) && !seen[1].ports.contains(&5000));
    assert!(seen[1].printed.contains("INFO: Starting sender activity (no sync) ...\n"));
    assert!(seen[1].printed.contains("total bytes\t:4000000\n"));
    // The receiver starts 50 ms later and ends with its peer before its own time is over.
    assert!(seen[0].printed.contains("Test cycle finished."), "{}", seen[0].printed);
}

#[test]
fn sync_on_one_side_only_is_reported() {
    let seen = world("-r -N -P 1 -t 2", &["-s 127.0.0.1 -P 1 -n 1 -t 2"]).run(minute());
    assert_eq!(seen[1].exit, Some(24));
    assert!(
        seen[1]
            .printed
            .contains("ERR : failed to connect to receiver: 127.0.0.1:5000 on socket: 3. errno = 111\n")
    );
    assert!(seen[1].printed.contains("ERR : sender: failed to create sync socket\n"));
    let mut receiver = NtttcpReceiver::new(options("-r -P 1"), false, Span::ZERO);
    let errors = data_unasked(&mut receiver);
    assert!(
        errors.contains("ERR : data came before any sender asked for a test: give -N to both"),
        "{errors}"
    );
}

/// The output of a receiver when data arrive on a data connection before the start.
fn data_unasked(receiver: &mut NtttcpReceiver) -> String {
    ask(receiver, &[]);
    let link = Link(Link::FIRST_ACCEPTED.0 + 1);
    let opened = Opened::new(([127, 0, 0, 1], 5001).into(), None);
    receiver.input(Timestamp::START, Input::Accepted { listener: Link(1), link, opened });
    receiver.input(Timestamp::START, Input::Bytes { link, bytes: b"AAAA" });
    let outputs = std::iter::from_fn(|| receiver.output());
    outputs.filter_map(|output| if let Output::Print(text) = output { Some(text) } else { None }).collect()
}

#[test]
fn datagrams_are_counted_on_the_ports_and_nobody_waits_after_the_end() {
    let seen =
        world("-r -u -P 1 -t 2 -b 1400", &["-s 127.0.0.1 -u -P 1 -n 1 -t 2 -b 1400 -B 20M"]).run(minute());
    assert_eq!((seen[0].exit, seen[1].exit), (Some(0), Some(0)));
    assert!(seen[1].printed.contains("Warning! '-B' is specified and the network bandwidth may be limited"));
    let task = &seen[1].tasks[0];
    assert_eq!((task.length.get(), task.offered.unwrap().bps()), (1400, 20e6));
    assert!(seen[0].printed.contains("total bytes\t:1999900\n"), "{}", seen[0].printed);
    assert!(!seen[0].printed.contains("retrans"), "not for datagrams");
    assert!(seen[0].exit_at.since(Timestamp::START) < Span::from_secs(4));
}

#[test]
fn a_peer_that_vanishes_ends_the_test() {
    let second = Timestamp::START + Span::from_secs(1);
    for who in [0, 1] {
        let mut world = world("-r -P 1 -t 20", &["-s 127.0.0.1 -P 1 -n 2 -t 20"]);
        world.dies = Some((who, second));
        let seen = world.run(minute());
        let other = &seen[1 - who];
        assert_eq!(other.exit, Some(24), "{}", other.printed);
        assert!(other.printed.contains("has closed the connection before the end of the test"));
        // 0.9 s at 2 MB/s, minus the time of the dialogue.
        assert!(other.printed.contains("total bytes\t:179"), "{}", other.printed);
        assert!(other.exit_at.since(second) < Span::from_secs(3));
    }
}

#[test]
fn an_interrupted_sender_informs_the_receiver() {
    let mut world = world("-r -P 1 -t 20", &["-s 127.0.0.1 -P 1 -n 1 -t 20"]);
    world.signal = Some((1, Timestamp::START + Span::from_secs(2)));
    let seen = world.run(minute());
    assert!(seen[0].printed.contains("INFO: test exited because sender side was interrupted\n"));
    assert_eq!(numbers(&seen[1]).last(), Some(&i32::from(b'E')));
    assert_eq!(seen[1].exit, Some(1));
    assert!(seen[0].printed.contains("total bytes\t:1"), "{}", seen[0].printed);
}

#[test]
fn a_server_takes_one_sender_after_the_other() {
    let mut world = NtttcpWorld::new();
    let config = EmbeddedServerConfig::at(5000);
    world.add(embedded_server(&config), Timestamp::START);
    for at in [1, 10] {
        let sender = NtttcpSender::new(options("-s 127.0.0.1 -t 3"), Span::ZERO);
        world.add(sender, Timestamp::START + Span::from_secs(at));
    }
    let seen = world.run(minute());
    assert_eq!((seen[0].exit, seen[1].exit, seen[2].exit), (None, Some(0), Some(0)), "{}", seen[2].printed);
    // The defaults of a sender: 16 ports, 64 connections. The receiver uses the sender's duration.
    assert_eq!(seen[0].ports, (5000..=5016).collect::<Vec<_>>());
    assert_eq!(seen[0].printed.matches("total bytes\t:191993600\n").count(), 2, "{}", seen[0].printed);
}

#[test]
fn command_lines_are_read_in_their_order() {
    let seen = options("-s10.0.0.1 -m 8,*,10.0.0.2 -n 2");
    assert_eq!((seen.ports, seen.threads, seen.connections), (8, 2, 1));
    assert_eq!(seen.address.as_deref(), Some("10.0.0.2"));
    let seen = options("-n 2 -m 8,3,10.0.0.2 -s");
    assert_eq!((seen.threads, seen.affinity, seen.role), (1, Some(3), NtttcpRole::Sender));
    assert_eq!(options("-r").streams(), 64);
    assert_eq!(options("-r 10.0.0.9 -u").address.as_deref(), Some("10.0.0.9"));
    assert_eq!(options("-s x -b 1M").block(), 1 << 20);
    assert_eq!(options("-s x -u").block(), 65_507);
    assert_eq!(options("-s x -B 1.5G").rate.unwrap().bps(), 1.5e9);
    assert_eq!(options("-s x -f").source_port, Some(25_001));
    assert_eq!(options("-s x -f30000 -N").source_port, Some(30_000));
    for wrong in [
        "-r -p 1",
        "-r -p 65530",
        "-r -t x",
        "-m 1,2",
        "-s x -P 512 -n 64",
        "-r -b 1X",
        "-r stray more",
        "-r -t 4000000000",
        // What 1.4.3 refuses.
        "-r -s x",
        "-s x -M",
        "-r -L",
        "-r -a 10.0.0.1",
        "-r -u --no-delay",
        "-r -D",
    ] {
        let usage = refused(wrong);
        assert_eq!(usage.code, 255, "{wrong}");
        assert!(usage.error.starts_with("ntttcp: "), "{usage:?}");
    }
    assert_eq!(refused("-h").code, 23);
    for (line, error) in [
        ("-r -z", "ntttcp: invalid option -- 'z'\n"),
        ("-r -t", "ntttcp: option requires an argument -- 't'\n"),
        ("--nosuch", "ntttcp: unrecognized option '--nosuch'\n"),
    ] {
        let usage = refused(line);
        assert_eq!((usage.code, usage.error.as_str()), (23, error));
        assert!(usage.output.starts_with("Usage: ntttcp "), "{}", usage.output);
    }
}

/// With the notes of 1.4.3.
#[test]
fn a_sender_without_an_address_means_this_host_and_numbers_out_of_range_are_limited() {
    let address = |line: &str| options(line).address;
    assert_eq!((address("-s"), address("-s -6")), (Some("0.0.0.0".to_owned()), Some("::".to_owned())));
    assert_eq!((address("-r"), address("-s -m 2,*,10.0.0.2")), (None, Some("10.0.0.2".to_owned())));
    let seen = options("-r -P 100000 -n 0");
    assert_eq!(
        (seen.ports, seen.notes.join("\n").as_str()),
        (512, "too many number-of-server-ports. use the max value")
    );
    let seen = options("-s x -P -3 -n 0 -l 5000");
    assert_eq!((seen.ports, seen.threads, seen.connections), (1, 1, 1000));
    let notes = [
        "too many connections-per-thread. use the max value",
        "invalid number-of-server-ports provided. use 1",
        "invalid threads-per-server-port provided. use 1",
    ];
    assert_eq!(seen.notes, notes);
}

/// As in 1.4.3; and the long options of 1.3.
#[test]
fn optional_values_and_other_spellings_are_those_of_the_tool() {
    let seen = options("-t 1");
    assert_eq!(
        (seen.role, seen.notes.as_slice()),
        (NtttcpRole::Receiver, &["no role specified. use receiver role".to_owned()][..])
    );
    let seen = options("-r -x -j -O -V");
    let names = ["xml", "json", "log"].map(|ending| Some(format!("ntttcp-for-linux-log.{ending}")));
    assert_eq!([seen.xml, seen.json, seen.log], names);
    assert!(seen.verbose);
    let seen = options("-r -x a.xml -jb.json -O c.log");
    assert_eq!(
        [seen.xml, seen.json, seen.log],
        ["a.xml", "b.json", "c.log"].map(|name| Some(name.to_owned()))
    );
    assert_eq!(options("-s x -f 30000").source_port, Some(30_000));
    let long = "--sender=x --nports 2 --nthread 3 --nconnections 1 --base-dst-port 6001 --duration 4 --warmup 1 \
                --cooldown 2 --buffer 1K --no-synch --verbose --show-retrans --save-xml=a";
    assert_eq!(options(long), options("-sx -P 2 -n 3 -l 1 -p 6001 -t 4 -W 1 -C 2 -b 1K -N -V -R -xa"));
    assert_eq!(
        options("-r -K eth0 -I mlx4"),
        options("-r --show-nic-packets eth0 --show-dev-interrupts mlx4")
    );
    let seen = options("-s x -B 1G --fq-rate-limit 1G");
    assert_eq!((seen.fq_rate, seen.notes.len()), (None, 3));
    // The tool ignores them on the other side.
    assert_eq!(options("-r -B 1G --fq-rate-limit 1G -f"), options("-r"));
    assert_eq!(options("-s x -H -e"), options("-s x"));
}

/// As printed by 1.4.3.
#[test]
fn the_settings_are_those_of_the_real_program() {
    let settings = |line: &str| {
        let options = options(line);
        (options.notes.join("\n"), report::settings(&options))
    };
    let (notes, text) = settings("-r -e -H -M -N -V -t 0 -P 2");
    assert_eq!(notes, "running test in continuous mode. please monitor throughput by other tools");
    let real = "*** receiver role\n*** use epoll()\n*** hold receiver always running\nmultiple clients:\t\t yes\n\
                *** no sender/receiver synch\nports:\t\t\t\t 2\ncpu affinity:\t\t\t *\n\
                server address:\t\t\t 0.0.0.0\ndomain:\t\t\t\t IPv4\nprotocol:\t\t\t TCP\n\
                server port starting at:\t 5001\nreceiver socket buffer (bytes):\t 65536\ntcp nodelay:\t no\n\
                test warm-up (sec):\t\t no\ntest duration (sec):\t\t continuous\n\
                test cool-down (sec):\t\t no\nshow system tcp retransmit:\t no\n\
                quiet mode:\t\t\t disabled\nverbose mode:\t\t\t enabled\n";
    assert_eq!(text, real);
    let (notes, text) = settings("-s127.0.0.1 -L -f -B 1G -V -P 2 -p 7001");
    assert_eq!(notes, "Warning! '-B' is specified and the network bandwidth may be limited");
    let real = "*** sender role\nlast client:\t\t\t yes\nconnections:\t\t\t 2 X 4 X 1\ncpu affinity:\t\t\t *\n\
                server address:\t\t\t 127.0.0.1\nclient address:\t\t\t 0.0.0.0\ndomain:\t\t\t\t IPv4\n\
                protocol:\t\t\t TCP\nserver port starting at:\t 7001\nclient source port starting at:\t 25001\n\
                sender socket buffer (bytes):\t 131072\nbandwidth limit (bits/sec):\t 1000000000\n\
                tcp nodelay:\t no\n";
    assert!(text.starts_with(real), "{text}");
    let (_, text) = settings("-s127.0.0.1 --fq-rate-limit 1G -V");
    assert!(
        text.contains("(bytes):\t 131072\nfq rate limit (bits/sec):\t 1000000000\ntcp nodelay"),
        "{text}"
    );
}

#[test]
fn a_port_that_others_share_is_recognised() {
    assert_eq!(sniff(b"\0\0\0X"), Match::Yes);
    assert_eq!(sniff(b"\0\0"), Match::More);
    assert_eq!(sniff(b"AAAAAAAA"), Match::Yes);
    assert_eq!(sniff(b""), Match::More);
    for other in [b"SyncMe".as_slice(), b"HELO", b"\0\0\0\0", b"0123"] {
        assert_eq!(sniff(other), Match::No);
    }
}
