//! Recorded control connections between two ends of iperf3 3.12.

use linerate_units::Span;

use super::world::{SERVER, client, new_world, server};
use crate::iperf3::argv::{Iperf3Command, parse};
use crate::iperf3::json::Iperf3Json;
use crate::iperf3::params::Params;
use crate::iperf3::results::Iperf3Results;
use crate::iperf3::settings::Iperf3Settings;
use crate::iperf3::wire::{COOKIE_BYTES, take_message};

const RECORDS: [&str; 4] = [
    include_str!("../../../../../fixtures/transcripts/iperf3/control-tcp-3.12.txt"),
    include_str!("../../../../../fixtures/transcripts/iperf3/control-tcp-reverse-3.12.txt"),
    include_str!("../../../../../fixtures/transcripts/iperf3/control-udp-bidir-3.12.txt"),
    include_str!("../../../../../fixtures/transcripts/iperf3/control-tcp-blocks-3.12.txt"),
];

/// A recording: the arguments of the client, and the bytes of both ends in the order of sending.
struct RecordedSession {
    args: Vec<String>,
    messages: Vec<(bool, Vec<u8>)>,
}

fn read(text: &str) -> RecordedSession {
    let (head, lines) = text.split_once('\n').unwrap();
    let (_, args) = head.split_once("127.0.0.1 ").unwrap();
    let messages = lines.lines().map(|line| {
        let (who, hex) = line.split_once(' ').unwrap();
        let pairs = (0..hex.len()).step_by(2);
        (who == ">", pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect())
    });
    RecordedSession { args: args.split(' ').map(str::to_owned).collect(), messages: messages.collect() }
}

fn of(record: &RecordedSession, client: bool) -> Vec<u8> {
    record.messages.iter().filter(|(who, _)| *who == client).flat_map(|(_, bytes)| bytes.clone()).collect()
}

/// The client's messages: cookie, parameters, TEST_END, results, IPERF_DONE.
fn client_words(record: &RecordedSession) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut bytes = of(record, true);
    let cookie = bytes.drain(..COOKIE_BYTES).collect();
    let params = take_message(&mut bytes, 8192).unwrap().unwrap();
    assert_eq!(bytes.remove(0), 4);
    let results = take_message(&mut bytes, 8192).unwrap().unwrap();
    assert_eq!(bytes, [16]);
    (cookie, params, results)
}

fn settings(record: &RecordedSession) -> Iperf3Settings {
    let args: Vec<String> =
        ["-c", "server"].map(str::to_owned).into_iter().chain(record.args.clone()).collect();
    match parse(&args) {
        Ok(Iperf3Command::Client(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

fn keys(message: &[u8]) -> Vec<String> {
    let Some(Iperf3Json::Object(entries)) = Iperf3Json::parse(message) else { panic!("no object") };
    entries.into_iter().map(|(key, _)| key).collect()
}

#[test]
fn the_parameters_are_those_of_the_real_client() {
    for text in RECORDS {
        let record = read(text);
        let (_, real, _) = client_words(&record);
        let params = Params::of(&settings(&record), settings(&record).client.length.unwrap(), None);
        // 3.21 has GSO and GRO, which 3.12 does not know.
        let ours: Vec<String> = keys(&params.write())
            .into_iter()
            .filter(|key| !key.starts_with('g') || key.starts_with("get"))
            .collect();
        assert_eq!(ours, keys(&real), "same keys in the same order");
        let read = Params::read(&real).unwrap();
        let client_version = read.client_version.clone();
        let bundles = params.udp.then(|| read.bundles.unwrap());
        assert_eq!(read, Params { client_version, bundles, ..params }, "same values");
    }
}

#[test]
fn the_server_says_what_the_real_one_says() {
    for text in RECORDS {
        let record = read(text);
        let (cookie, params, results) = client_words(&record);
        let asked = Params::read(&params).unwrap();
        let mut world = new_world(server(Iperf3Settings::default()), vec![]);
        let end = world.add_host();
        world.dial(end, 1);
        world.send_as(end, 1, &cookie);
        world.send_as(end, 1, &super::world::message(std::str::from_utf8(&params).unwrap()));
        world.pass(Span::from_ms(100));
        for link in (2..).take(asked.streams()) {
            if asked.udp {
                world.hello(end, link);
            } else {
                world.dial(end, link);
                world.send_as(end, link, &cookie);
            }
            world.pass(Span::from_ms(100));
        }
        world.pass(Span::from_secs(2));
        world.send_as(end, 1, &[4]);
        world.pass(Span::from_secs(2));
        world.send_as(end, 1, &super::world::message(std::str::from_utf8(&results).unwrap()));
        world.pass(Span::from_ms(100));
        world.send_as(end, 1, &[16]);
        world.hang_up(end, 1);
        world.pass(Span::from_ms(100));
        assert_eq!(world.hosts[SERVER].runs, [None], "{}", world.hosts[SERVER].err);
        compare_servers(world.received(end, 1), &of(&record, false));
    }
}

/// The states are equal and the results have the same keys (3.14 and later also report the omitted part).
fn compare_servers(ours: &[u8], real: &[u8]) {
    let parts = |bytes: &[u8]| {
        let (states, rest) = bytes.split_at(5);
        let mut rest = rest.to_vec();
        let results = take_message(&mut rest, 1 << 20).unwrap().unwrap();
        (states.to_vec(), results, rest)
    };
    let ((ours, our_results, our_end), (real, real_results, real_end)) = (parts(ours), parts(real));
    assert_eq!((ours, our_end), (real, real_end));
    assert_eq!(keys(&our_results), keys(&real_results));
    let read = |message: &[u8]| Iperf3Results::read(message, Span::ZERO).unwrap();
    let (ours, real) = (read(&our_results), read(&real_results));
    let ids = |results: &Iperf3Results| results.streams.iter().map(|stream| stream.id).collect::<Vec<_>>();
    assert_eq!(ids(&ours), ids(&real));
    assert_eq!(ours.knows_retransmits, real.knows_retransmits);
    assert!(ours.streams.iter().all(|stream| stream.omitted.is_some()));
}

#[test]
fn the_real_results_are_read_at_both_ends() {
    let blocks = read(RECORDS[3]);
    let (_, _, results) = client_words(&blocks);
    let results = Iperf3Results::read(&results, Span::ZERO).unwrap();
    assert_eq!((results.streams[0].bytes, results.knows_retransmits), (10_000, Some(true)));
    let udp = read(RECORDS[2]);
    let mut bytes = of(&udp, false).split_off(5);
    let theirs = Iperf3Results::read(&take_message(&mut bytes, 8192).unwrap().unwrap(), Span::ZERO).unwrap();
    assert_eq!(theirs.stream(3).unwrap().packets, 126);
    assert_eq!(theirs.knows_retransmits, Some(false), "a sender that does not know says 0");
    assert!(theirs.output.is_some());
}

#[test]
fn the_real_command_lines_run_between_our_two_ends() {
    for text in RECORDS {
        let mut world = new_world(server(Iperf3Settings::default()), vec![client(settings(&read(text)))]);
        world.pass(Span::from_secs(10));
        assert_eq!(world.hosts[1].exit, Some(0), "{}", world.hosts[1].err);
        assert!(world.hosts[1].out.ends_with("iperf Done.\n"));
    }
}
