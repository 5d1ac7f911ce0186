//! iperf3 tests with counts that are known in advance, however busy the machine is.
//!
//! Bursts 0.8 s apart in a test of 2 s are three, at 0, 0.8 and 1.6 s. The network is idle when the test ends,
//! so nothing is in flight, and both ends must have the same counts.

use serde_json::Value;

use super::{Iperf3, at_once, both_json, list, number, retried_when_busy};

/// TCP: three bursts of 100 blocks.
const TCP: [&str; 6] = ["-t", "2", "-l", "1000", "-b", "1M/100"];
/// UDP: three bursts of 25 datagrams, which any socket buffer holds.
const UDP: [&str; 7] = ["-u", "-t", "2", "-l", "1000", "-b", "250k/25"];
const TCP_BYTES: u64 = 3 * 100 * 1000;
const UDP_DATAGRAMS: u64 = 3 * 25;

/// Direction of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BurstDirection {
    Up,
    Down,
    Both,
}

impl BurstDirection {
    fn flag(self) -> Option<&'static str> {
        match self {
            Self::Up => None,
            Self::Down => Some("-R"),
            Self::Both => Some("--bidir"),
        }
    }

    /// Names of the sums of each direction: of intervals, of sent and of received data; and whether the client
    /// sends.
    fn sums(self) -> Vec<([&'static str; 3], bool)> {
        let first = ["sum", "sum_sent", "sum_received"];
        let second = ["sum_bidir_reverse", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"];
        match self {
            Self::Up => vec![(first, true)],
            Self::Down => vec![(first, false)],
            Self::Both => vec![(first, true), (second, false)],
        }
    }
}

/// TCP tests in all directions, in parallel.
pub(crate) fn tcp_all(client: Iperf3, server: Iperf3) {
    use BurstDirection::{Both, Down, Up};
    at_once([(Up, 1), (Up, 3), (Down, 1), (Down, 2), (Both, 2)], |(way, parallel)| {
        retried_when_busy(|| tcp(client, server, way, parallel));
    });
}

/// UDP tests in all directions, in parallel, with both sizes of the counters.
pub(crate) fn udp_all(client: Iperf3, server: Iperf3) {
    use BurstDirection::{Both, Down, Up};
    const LONG: &[&str] = &["--udp-counters-64bit"];
    let tests = [(Up, 1, &[][..]), (Up, 2, LONG), (Down, 1, &[]), (Down, 1, LONG), (Both, 2, &[])];
    at_once(tests, |(way, parallel, more)| {
        retried_when_busy(|| udp(client, server, way, parallel, more));
    });
}

/// Tests without a limit: both ends have the same figures.
pub(crate) fn unlimited(client: Iperf3, server: Iperf3) {
    retried_when_busy(|| check_unlimited(client, server));
}

fn check_unlimited(client: Iperf3, server: Iperf3) {
    let (near, far) = both_json(client, &["-t", "2", "-P", "2"], server);
    let received = number(&near, "/end/sum_received/bytes");
    assert!(received > 0 && received <= number(&near, "/end/sum_sent/bytes"), "{near}");
    assert_eq!(received, number(&far, "/end/sum_received/bytes"), "the server's own figure");
    // A late end makes a short third one.
    assert!((2..=3).contains(&list(&near, "/intervals").len()), "{near}");
    // The server may still read data that it had received when the client's end message arrived; the opposite
    // never happens.
    let (near, far) = both_json(client, &["-t", "2", "-R"], server);
    assert_eq!(number(&near, "/end/sum_sent/bytes"), number(&far, "/end/sum_sent/bytes"));
    let received = number(&near, "/end/sum_received/bytes");
    assert!(received > 0 && received <= number(&near, "/end/sum_sent/bytes"), "{near}");
}

/// Tests whose first second is omitted.
pub(crate) fn omitting(client: Iperf3, server: Iperf3) {
    retried_when_busy(|| check_omitting(client, server));
}

fn check_omitting(client: Iperf3, server: Iperf3) {
    // Bursts of 100 blocks at 0 and 1.6 s; the second one arrives after the first second, on a busy machine too.
    let (near, far) = both_json(client, &["-O", "1", "-t", "2", "-l", "1000", "-b", "500k/100"], server);
    for document in [&near, &far] {
        let omitted: Vec<&Value> =
            list(document, "/intervals").iter().map(|interval| &interval["sum"]["omitted"]).collect();
        assert_eq!((omitted[0], omitted.last().unwrap()), (&true.into(), &&false.into()), "{document}");
        assert_eq!(number(document, "/end/sum_received/bytes"), 100_000, "{document}");
    }
    assert_eq!(number(&near, "/end/sum_sent/bytes"), 100_000, "{near}");
    let args = ["-u", "-O", "1", "-t", "2", "-l", "1000", "-b", "250k/50"];
    for args in [&args[..], &[&args[..], &["-R"]].concat()] {
        let (near, far) = both_json(client, args, server);
        assert_eq!(number(&near, "/end/sum/packets"), 50, "{near}");
        assert_eq!(number(&near, "/end/sum/lost_packets"), 0, "{near}");
        assert_eq!(number(&far, "/end/sum/packets"), 50, "{far}");
    }
}

/// A TCP test in one direction with parallel streams.
pub(crate) fn tcp(client: Iperf3, server: Iperf3, way: BurstDirection, parallel: u64) {
    let streams = parallel.to_string();
    let args: Vec<&str> = TCP.iter().copied().chain(["-P", &streams]).chain(way.flag()).collect();
    let (near, far) = both_json(client, &args, server);
    for (names, client_sends) in way.sums() {
        let total = parallel * TCP_BYTES;
        for name in &names[1..] {
            assert_eq!(number(&near, &format!("/end/{name}/bytes")), total, "{name} of the client: {near}");
        }
        assert_eq!(intervals(&near, names[0], "bytes"), total, "the client's intervals: {near}");
        assert_eq!(intervals(&far, names[0], "bytes"), total, "the server's intervals: {far}");
        let by_server = if client_sends { names[2] } else { names[1] };
        assert_eq!(
            number(&far, &format!("/end/{by_server}/bytes")),
            total,
            "{by_server} of the server: {far}"
        );
        // Loopback loses nothing. The peer's count is present, and neither -1 nor 2^32-1.
        assert!(number(&near, &format!("/end/{}/retransmits", names[1])) < 1000, "{near}");
    }
    for stream in streams_of(&near, way, parallel) {
        assert_eq!(number(stream, "/sender/bytes"), TCP_BYTES, "{near}");
        assert_eq!(number(stream, "/receiver/bytes"), TCP_BYTES, "{near}");
    }
    assert_eq!(far["start"]["cookie"], near["start"]["cookie"]);
    consistent(&near);
    consistent(&far);
}

/// A UDP test in one direction with parallel streams and additional arguments.
pub(crate) fn udp(client: Iperf3, server: Iperf3, way: BurstDirection, parallel: u64, more: &[&str]) {
    let streams = parallel.to_string();
    let args: Vec<&str> = UDP.iter().chain(more).copied().chain(["-P", &streams]).chain(way.flag()).collect();
    let (near, far) = both_json(client, &args, server);
    let total = parallel * UDP_DATAGRAMS;
    for (names, client_sends) in way.sums() {
        for name in &names[1..] {
            let sum = &near["end"][name];
            assert_eq!(number(sum, "/packets"), total, "{name} of the client: {near}");
            assert_eq!(number(sum, "/bytes"), total * 1000, "{name} of the client: {near}");
            assert_eq!(number(sum, "/lost_packets"), 0, "{name} of the client: {near}");
        }
        assert_eq!(intervals(&near, names[0], "packets"), total, "the client's intervals: {near}");
        assert_eq!(intervals(&far, names[0], "packets"), total, "the server's intervals: {far}");
        let by_server = &far["end"][if client_sends { names[2] } else { names[1] }];
        assert_eq!(number(by_server, "/packets"), total, "{far}");
        assert_eq!(number(by_server, "/bytes"), total * 1000, "{far}");
        assert_eq!(number(by_server, "/lost_packets"), 0, "{far}");
    }
    for stream in streams_of(&near, way, parallel) {
        assert_eq!(number(stream, "/udp/packets"), UDP_DATAGRAMS, "{near}");
        assert_eq!(number(stream, "/udp/lost_packets"), 0, "{near}");
        assert_eq!(number(stream, "/udp/out_of_order"), 0, "{near}");
    }
    consistent(&near);
    consistent(&far);
}

/// A client's final figures of each stream, those of sending streams first.
fn streams_of(near: &Value, way: BurstDirection, parallel: u64) -> &[Value] {
    let streams = list(near, "/end/streams");
    let directions = way.sums().into_iter().map(|(_, client_sends)| client_sends);
    let expected: Vec<bool> =
        directions.flat_map(|sends| std::iter::repeat_n(sends, usize::try_from(parallel).unwrap())).collect();
    let found: Vec<bool> = streams
        .iter()
        .map(|stream| stream.get("udp").unwrap_or(&stream["sender"])["sender"] == true)
        .collect();
    assert_eq!(found, expected, "{near}");
    streams
}

/// Sum over the intervals of a document.
fn intervals(document: &Value, sum: &str, what: &str) -> u64 {
    let intervals = list(document, "/intervals");
    assert!(intervals.len() >= 2, "{document}");
    intervals.iter().map(|interval| number(interval, &format!("/{sum}/{what}"))).sum()
}

/// Checks that each rate in a document matches its bytes.
fn consistent(document: &Value) {
    for interval in list(document, "/intervals") {
        let records = list(interval, "/streams").iter().chain([&interval["sum"]]);
        for record in records {
            let rate = record["bits_per_second"].as_f64().unwrap();
            let expected = record["bytes"].as_f64().unwrap() * 8.0 / record["seconds"].as_f64().unwrap();
            // Durations are printed as 32-bit floats.
            assert!((rate - expected).abs() <= expected * 1e-5, "{rate}, {expected}: {record}");
        }
    }
}
