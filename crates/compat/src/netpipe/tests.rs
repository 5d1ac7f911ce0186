//! Comparison with output and messages of the real program, and two ends in virtual time.

mod world;

use std::ffi::OsString;

use proptest::prelude::*;

use self::world::{NetpipeObserved, NetpipeWorld};
use super::*;
use crate::stand_in::{Exchanged, Input, Opened, Output, RunId, StandIn};

const PINGPONG: &str = include_str!("../../../../fixtures/transcripts/netpipe/np-pingpong.out");
const PINGPONG_TEXT: &str = include_str!("../../../../fixtures/transcripts/netpipe/pingpong-default.txt");
const NEIGHBOURS: &str = include_str!("../../../../fixtures/transcripts/netpipe/np-n.out");
const STREAM: &str = include_str!("../../../../fixtures/transcripts/netpipe/np-stream.out");
const STREAM_TEXT: &str = include_str!("../../../../fixtures/transcripts/netpipe/stream.txt");
const BOTH: &str = include_str!("../../../../fixtures/transcripts/netpipe/np-bidir.out");
const INTEGRITY: &str = include_str!("../../../../fixtures/transcripts/netpipe/np-int.out");
const WIRE: &str = include_str!("../../../../fixtures/transcripts/netpipe/wire-control.txt");

fn column(text: &str, at: usize) -> Vec<f64> {
    text.lines().map(|line| line.split_whitespace().nth(at).unwrap().parse().unwrap()).collect()
}

fn sizes_of(text: &str) -> Vec<u64> {
    column(text, 0).into_iter().map(|size| size as u64).collect()
}

fn series(start: u64, upper: u64, perturbation: u64) -> Vec<u64> {
    let mut sizes = NetpipeSizes::new(start, upper, perturbation);
    std::iter::from_fn(|| sizes.next(0.0)).collect()
}

fn parse(line: &str) -> Result<NetpipeCommand, NetpipeEarlyExit> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    NetpipeCommand::parse(&arguments)
}

fn pair(options: &str) -> NetpipeWorld {
    pair_of(options, options)
}

fn pair_of(transmitter: &str, receiver: &str) -> NetpipeWorld {
    let options = |line| parse(line).unwrap().options;
    NetpipeWorld::new(
        NetpipeTransmitter::new("127.0.0.1", options(transmitter)),
        NetpipeReceiver::new(options(receiver), false),
    )
}

#[test]
fn sizes_are_those_of_the_real_program() {
    assert_eq!(series(1, 70_000, 3), sizes_of(PINGPONG));
    assert_eq!(series(50, 200, 1), sizes_of(NEIGHBOURS));
    assert_eq!(series(5, 40, 0), sizes_of(INTEGRITY));
    let stream = series(1, 20_000, 0);
    assert_eq!(stream[..25], sizes_of(STREAM), "the real run broke off after 25");
    let both: Vec<u64> = series(100, 262_144, 0).iter().map(|size| size * 2).collect();
    assert_eq!(both, sizes_of(BOTH));
    // NPtcp 3.7.2 -n 3 -l 17 -u 333 -p 10, and -l 10 -u 12, and -l 20 -u 60 -p 0
    let odd = [
        17, 25, 23, 33, 43, 39, 49, 59, 55, 65, 75, 87, 97, 107, 119, 129, 139, 183, 193, 203, 247, 257, 267,
    ];
    assert_eq!(series(17, 333, 10), odd);
    assert_eq!(series(10, 12, 3), [7, 10, 13]);
    assert_eq!(series(20, 60, 0), [20, 30, 40, 60]);
}

#[test]
fn repeats_are_those_of_the_real_program() {
    let step_before = |text: &str, start, upper, perturbation, times: Vec<f64>| {
        let counts: Vec<f64> = text
            .lines()
            .filter(|line| line.contains(" times -->") && line.contains("usec"))
            .map(|line| line.split_whitespace().nth(3).unwrap().parse().unwrap())
            .collect();
        let mut sizes = NetpipeSizes::new(start, upper, perturbation);
        let mut previous = sizes.next(0.0).unwrap();
        for (count, last) in counts.iter().skip(1).zip(times) {
            let size = sizes.next(0.0).unwrap();
            let ours = f64::from(repeats(previous, sizes.step(), last));
            // The file has a time resolution of 10 ns.
            let unsure = 1.0 + count * 0.5e-8 / last;
            assert!((ours - count).abs() <= unsure, "{size} after {previous}: {ours}, the real one {count}");
            previous = size;
        }
        counts.len()
    };
    assert_eq!(step_before(PINGPONG_TEXT, 1, 70_000, 3, column(PINGPONG, 2)), 82);
    assert_eq!(step_before(STREAM_TEXT, 1, 20_000, 0, column(STREAM, 2)), 25);
}

/// Lengths of the messages that one end sent in the capture.
fn captured(who: char) -> Vec<usize> {
    let line = WIRE.lines().find(|line| line.starts_with("T6 ")).unwrap();
    let mut lengths = Vec::new();
    let mut times = 1;
    for word in line.split_whitespace() {
        let (count, word) = word.split_once("x(").map_or((None, word), |(n, rest)| (Some(n), rest));
        times = count.map_or(times, |count| count.parse().unwrap());
        let message = word.trim_end_matches(')');
        if let Some(length) = message.strip_prefix(who) {
            lengths.extend(std::iter::repeat_n(length.parse::<usize>().unwrap(), times));
        }
        if word.ends_with(')') {
            times = 1;
        }
    }
    lengths
}

#[test]
fn the_wire_looks_like_the_capture() {
    let (transmitter, receiver) = pair("-n 10 -p 1 -l 50 -u 200").run();
    assert_eq!(transmitter.sent, captured('T'));
    assert_eq!(receiver.sent, captured('R'));
    assert_eq!((transmitter.exit, receiver.exit), (Some(0), Some(0)));
    assert_eq!(sizes_of(&transmitter.files["np.out"]), sizes_of(NEIGHBOURS));
}

#[test]
fn ping_pong_shows_half_the_round_trip() {
    let mut world = pair("-h x -n 4 -p 0 -l 1000 -u 1000 -o mine.out");
    (world.delay, world.ns_per_byte) = (linerate_units::Span::from_ns(10_000), 8);
    let (seen, receiver) = world.run();
    // 1000 bytes at 8 ns each, plus 10 us: 18 us; 8000 bits / 18 us / 2^20 = 423.855 "Mbps"
    assert_eq!(seen.files["mine.out"], "    1000 423.855252   0.00001800\n");
    let lines: Vec<&str> = seen.complained.lines().collect();
    assert_eq!(
        lines,
        [
            "Send and receive buffers are 16384 and 131072 bytes",
            "(A bug in Linux doubles the requested buffer sizes)",
            "Now starting the main loop",
            "  0:    1000 bytes      4 times -->    423.86 Mbps in      18.00 usec",
        ]
    );
    assert_eq!(receiver.complained.lines().collect::<Vec<_>>(), lines[..2]);
    assert_eq!(seen.points.len(), 1);
    assert_eq!(seen.points[0].best, linerate_units::Span::from_ns(18_000));
    // 8000 bits in 18 us. The receiver reports the same size by its own clock.
    let rate = seen.points[0].bitrate.unwrap().bps();
    assert!((rate - 8000.0 / 18e-6).abs() < 1.0, "{rate}");
    let (there, here) = (&receiver.points, &seen.points[0]);
    assert_eq!(
        (there.len(), there[0].message_bytes, there[0].repeats),
        (1, here.message_bytes, here.repeats)
    );
    assert_eq!(seen.connections, 1);
}

#[test]
fn a_stream_is_timed_by_its_receiver() {
    let mut world = pair("-s -n 50 -p 0 -l 100 -u 100");
    world.ns_per_byte = 80;
    let (seen, receiver) = world.run();
    assert_eq!((seen.exit, receiver.exit), (Some(0), Some(0)));
    let row: Vec<f64> = seen.files["np.out"].split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert_eq!(row[0], 100.0);
    // 8 us per message, plus a fiftieth of the delay of 2 us and of the time until the first message
    assert!((row[2] - 8e-6).abs() < 0.4e-6, "{row:?}");
    // One connection for the calibration and one for each of three trials, with a reset after each trial.
    assert_eq!(seen.connections, 5);
    // Only control messages and the calibration come back.
    assert_eq!(receiver.sent.iter().filter(|length| **length == 100).count(), 100);
    assert_eq!(receiver.sent.iter().filter(|length| **length == 4).count(), 1);
}

#[test]
fn both_at_once_counts_twice_and_fits_the_buffers() {
    let (seen, receiver) = pair("-2 -n 3 -p 0 -l 100 -u 5000000").run();
    assert_eq!((seen.exit, receiver.exit), (Some(0), Some(0)));
    // Buffers of 16384 and 131072 bytes: nothing above 147456.
    let expected: Vec<u64> = series(100, 147_456, 0).iter().map(|size| size * 2).collect();
    assert_eq!(sizes_of(&seen.files["np.out"]), expected);
    assert_eq!(
        seen.printed,
        "The upper limit is being set to 147456 Bytes\ndue to socket buffer size limitations\n\n"
    );
    assert_eq!(receiver.printed, "");
}

#[test]
fn an_integrity_check_passes_or_names_what_differs() {
    let (seen, receiver) = pair("-i -n 7 -u 40").run();
    assert_eq!((seen.exit, receiver.exit), (Some(0), Some(0)));
    assert_eq!(sizes_of(&seen.files["np.out"]), sizes_of(INTEGRITY));
    assert!(seen.complained.contains("  0:       5 bytes      7 times -->  Integrity check passed\n"));
    let mut world = pair("-i -n 7 -u 40");
    // After the calibration (2 + 100 messages) come three synchronizations (the last one of a trial), then
    // blocks.
    world.damages = Some(100 + 2 + 2 + 3);
    let (seen, _) = world.run();
    assert_eq!(seen.exit, Some(255));
    let end = "--> Integrity check failed: Expecting 0 but received 64\n";
    assert!(seen.complained.ends_with(end), "{}", seen.complained);
}

#[test]
fn resets_go_on_with_new_connections_even_if_one_dies() {
    let (seen, receiver) = pair("-r -n 5 -p 0 -l 1000 -u 4000").run();
    assert_eq!((seen.exit, receiver.exit), (Some(0), Some(0)));
    // Five sizes with three trials each, and the calibration before them.
    assert_eq!(seen.connections, 17);
    for dies in 3..17 {
        let mut world = pair("-s -n 5 -p 0 -l 1000 -u 4000");
        world.resets = Some(dies);
        let (seen, receiver) = world.run();
        assert_eq!((seen.exit, receiver.exit), (Some(0), Some(0)), "{dies}: {}", seen.complained);
        assert_eq!(seen.connections, 18);
        assert_eq!(seen.files["np.out"].lines().count(), 5);
    }
}

#[test]
fn different_options_are_reported() {
    for (transmitter, receiver) in [
        ("-s", ""),
        ("", "-s"),
        ("-r", ""),
        ("", "-r"),
        ("-l 50", ""),
        ("", "-l 50"),
        ("-p 0", "-p 3"),
        ("-i", ""),
        ("", "-i"),
        ("-u 500", "-u 100"),
        ("-u 100", "-u 500 -s"),
    ] {
        let bound = |line: &str| if line.contains("-u") { line.to_owned() } else { format!("{line} -u 100") };
        let both = |line: &str| format!("{} -n 20", bound(line));
        let (one, other) = pair_of(&both(transmitter), &both(receiver)).run();
        let reported =
            |seen: &NetpipeObserved| seen.exit.is_some_and(|code| code != 0) && !seen.complained.is_empty();
        assert!(one.exit.is_some() && other.exit.is_some(), "{transmitter} and {receiver}");
        assert!(reported(&one) || reported(&other), "{transmitter} and {receiver}: {one:?} {other:?}");
        let text = format!("{}{}", one.complained, other.complained);
        assert!(text.contains("another mode"), "{transmitter} and {receiver}: {text}");
    }
}

#[test]
fn a_receiver_sees_that_the_transmitter_wants_resets() {
    let (_, receiver) = pair_of("-s -u 100", "-u 100").run();
    assert_eq!(receiver.exit, Some(3));
    assert!(receiver.complained.contains("another mode"), "{}", receiver.complained);
}

#[test]
fn the_best_of_three_trials_is_the_result() {
    let mut end = NetpipeTransmitter::new("there", parse("-n 5 -p 0 -l 1000 -u 1000").unwrap().options);
    let now = linerate_units::Timestamp::START;
    end.input(now, Input::Begin);
    let mut trials = [300_000, 100_000, 200_000].into_iter();
    let mut rows = String::new();
    let mut exit = None;
    while let Some(output) = end.output() {
        match output {
            Output::Listen { link, .. } | Output::Connect { link, .. } => {
                end.input(now, Input::Opened { link, opened: opened() });
            }
            Output::Exchange(exchange) => {
                let is_trial = exchange.repeats == 5;
                let ns = if is_trial { trials.next().unwrap() } else { 1_000 };
                let elapsed = linerate_units::Span::from_ns(ns);
                let mut last = exchange.head.clone();
                last.truncate(exchange.receive.get() as usize);
                let result = Ok(Exchanged { elapsed, last, ..Exchanged::default() });
                end.input(now, Input::Exchanged { link: exchange.link, result });
            }
            Output::WriteFile { text, .. } => rows.push_str(&text),
            Output::Exit(code) => exit = Some(code),
            _ => {}
        }
    }
    assert_eq!(exit, Some(0));
    // 100 us for five round trips are 10 us one way.
    assert_eq!(rows, "    1000 762.939453   0.00001000\n");
}

fn opened() -> Opened {
    crate::virtual_hosts::opened(([127, 0, 0, 1], 5002), ([127, 0, 0, 1], 40_000))
}

#[test]
fn a_peer_that_dies_leaves_what_was_measured() {
    let mut world = pair("-n 20 -u 100");
    world.dies_after = Some(500);
    let (seen, _) = world.run();
    assert!(matches!(seen.exit, Some(145 | 3)), "{seen:?}");
    let rows = seen.files["np.out"].lines().count();
    assert!((1..20).contains(&rows), "{rows}");
}

#[test]
fn a_second_for_a_message_ends_the_series() {
    // 100 us per byte: 12000 bytes take longer than a second, 10000 exactly one.
    let mut world = pair("-p 0 -l 1000 -u 10000000");
    world.ns_per_byte = 100_000;
    let (seen, receiver) = world.run();
    assert_eq!((seen.exit, receiver.exit), (Some(0), Some(0)));
    assert_eq!(sizes_of(&seen.files["np.out"]), series(1_000, 12_000, 0));
    let mut world = pair("-p 0 -l 10000 -u 10000000");
    world.ns_per_byte = 100_000;
    assert_eq!(world.run().0.files["np.out"], "", "the calibration took a second a message already");
}

#[test]
fn nobody_listens() {
    let mut end = NetpipeTransmitter::new("127.0.0.1", NetpipeOptions::default());
    let now = linerate_units::Timestamp::START;
    end.input(now, Input::Begin);
    let Some(Output::Listen { link, .. }) = end.output() else { panic!("no look at the buffers") };
    end.input(now, Input::Opened { link, opened: opened() });
    let link = loop {
        match end.output().unwrap() {
            Output::Connect { link, port: 5002, .. } => break link,
            Output::Connect { .. } => panic!("another port"),
            _ => {}
        }
    };
    let reason = crate::stand_in::SystemError { errno: 111, text: "Connection refused".to_owned() };
    end.input(now, Input::NotOpened { link, reason });
    assert!(
        matches!(end.output(), Some(Output::Print(text)) if text == "Client: Cannot Connect! errno=111\n")
    );
    assert!(matches!(end.output(), Some(Output::Exit(246))));
}

#[test]
fn a_server_goes_on_after_a_series_and_refuses_silently() {
    let mut server = NetpipeReceiver::new(NetpipeOptions::default(), true);
    let now = linerate_units::Timestamp::START;
    let drain =
        |server: &mut NetpipeReceiver| -> Vec<Output> { std::iter::from_fn(|| server.output()).collect() };
    server.input(now, Input::Begin);
    let listener = crate::stand_in::Link(0);
    for number in 0..3_u32 {
        let link = crate::stand_in::Link(crate::stand_in::Link::FIRST_ACCEPTED.0 + number);
        drain(&mut server);
        server.input(now, Input::Accepted { listener, link, opened: opened() });
        server.input(now, Input::Bytes { link, bytes: b"Sync" });
        let asked = drain(&mut server);
        assert!(matches!(&asked[0], Output::Ask(planned) if planned.run == RunId(number)), "{asked:?}");
        if number == 1 {
            server.input(now, Input::Refused { run: RunId(number), why: "busy".to_owned(), may_retry: true });
            assert!(drain(&mut server).iter().any(|output| matches!(output, Output::Close { .. })));
            continue;
        }
        server.input(now, Input::Admitted { run: RunId(number) });
        let outputs = drain(&mut server);
        let Output::Exchange(exchange) = &outputs[0] else { panic!("{outputs:?}") };
        assert_eq!(exchange.receive.get(), 2, "four bytes of the synchronization have come already");
        let last = b"xx".to_vec();
        let result = Ok(Exchanged { last, ..Default::default() });
        server.input(now, Input::Exchanged { link, result });
        let outputs = drain(&mut server);
        assert!(outputs.iter().any(|output| matches!(output, Output::RunOver { trouble: Some(_), .. })));
        assert!(!outputs.iter().any(|output| matches!(output, Output::Exit(_))));
    }
}

#[test]
fn command_lines_end_as_the_real_program_does() {
    let end = |line: &str| {
        let usage = parse(line).unwrap_err();
        (usage.code, usage.output + &usage.error)
    };
    assert_eq!(end("-h 127.0.0.1 -l 10 -u 5"), (36, "Start MUST be LESS than end\n".to_owned()));
    assert_eq!(end("-u 0"), (36, "Start MUST be LESS than end\n".to_owned()));
    assert_eq!(end("-l 0"), (0, "Need a starting value >= 1\n".to_owned()));
    let (code, text) = end("-s -2");
    assert_eq!(code, 0);
    assert!(text.starts_with("Streaming in one direction only.\n\nSockets are reset"));
    assert!(text.ends_with("test size.\n\nYou can't use -s and -2 together\n"), "{text}");
    for wrong in ["-z", "-a", "--help", "-h", "-l"] {
        let (code, text) = end(wrong);
        assert_eq!(code, 244, "{wrong}");
        assert!(text.contains("\n NETPIPE USAGE \n\n  NPtcp [OPTIONS]"), "{text}");
    }
    assert_eq!(end("-A").0, 252);
}

#[test]
fn banners_and_values_are_those_of_the_real_program() {
    let banner = |line: &str| parse(line).unwrap().banner;
    assert_eq!(banner("-n 10 -p 1"), "Using a perturbation value of 1\n\n");
    assert_eq!(banner("-p -1"), "Using no perturbations\n\n");
    assert_eq!(banner("-O 1"), "Transmit buffer offset: 1\nReceive buffer offset: 1\n");
    assert_eq!(banner("-O 1,3"), "Transmit buffer offset: 1\nReceive buffer offset: 3\n");
    assert_eq!(
        banner("-r -p0 -o np-r.out"),
        "Resetting connection after every trial\nUsing no perturbations\n\nSending output to np-r.out\n"
    );
    assert_eq!(banner("-I"), "Performance measured without cache effects\n\n");
    assert!(STREAM_TEXT.contains(&banner("-h 127.0.0.1 -s -p 0 -u 20000 -o np-stream.out")));
    let options = |line: &str| parse(line).unwrap().options;
    assert_eq!((options("-i").start, options("-i").perturbation), (5, 0));
    assert_eq!(options("-i -l 20").start, 20);
    assert_eq!(options("-l 20 -i").start, 5);
    assert_eq!(options("-i -p 1").perturbation, 1);
    assert_eq!(options("-n 0").repeats, None);
    assert_eq!(options("-b x").buffers, None);
    assert_eq!(options("-b65536").buffers, Some(65_536));
    assert_eq!(options("-P 5010 stray -u 7").upper, 7);
    assert_eq!(parse("-h there").unwrap().host.as_deref(), Some("there"));
}

#[test]
fn times_travel_in_steps_of_ten_nanoseconds() {
    assert_eq!(encode_time(2.56e-6), [0, 0, 1, 0]);
    assert_eq!(decode_time(&[0, 0, 1, 0]), Some(2.56e-6));
    assert_eq!(encode_time(100.0), [255; 4], "42.9 s at most");
    assert_eq!(decode_time(&[0, 0, 1]), None);
}

proptest! {
    #[test]
    fn every_series_ends_and_grows(start in 1_u64..5_000, more in 0_u64..100_000, around in 0_u64..60) {
        let sizes = series(start, start + more, around);
        prop_assert!(!sizes.is_empty() && sizes.len() <= 8_000);
        prop_assert!(sizes.iter().all(|size| *size >= 1 && *size <= start + more + around));
    }

    #[test]
    fn integrity_finds_the_damaged_word(length in 4_usize..200, at in 0_usize..200, bit in 0_u8..8) {
        let mut bytes = integrity(length);
        prop_assert_eq!(check_integrity(&bytes), Ok(()));
        let at = at % (length / 4 * 4);
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(check_integrity(&bytes).unwrap_err().0, (at / 4) as i32);
    }
}
