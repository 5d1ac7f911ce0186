//! iperf 2 with trip times and -e, in all pairings of ours and the real one: timestamps are found and
//! evaluated.

use crate::support::{self, Iperf2, Iperf2OutputLine, Iperf2Outputs, at_once, pair};

use Iperf2::{Ours, Real};

const PAIRINGS: [(Iperf2, Iperf2); 3] = [(Ours, Real), (Real, Ours), (Ours, Ours)];
const TCP: [&str; 7] = ["-t", "2", "-b", "10m", "-l", "10000", "--trip-times"];
/// Few enough datagrams for any socket buffer, however long a busy machine delays a program.
const UDP: [&str; 8] = ["-u", "-t", "2", "-b", "100k", "-l", "200", "--trip-times"];

/// Mean, minimum, maximum and deviation in milliseconds, as printed before `ms`.
fn delays(row: &Iperf2OutputLine) -> [f64; 4] {
    let found = row.rest.split_whitespace().find(|word| word.matches('/').count() == 3);
    let mut parts = found.unwrap_or_else(|| panic!("no delays: {row:?}")).split('/');
    let delays = [(); 4].map(|()| parts.next().and_then(|part| part.parse().ok()));
    delays.map(|delay| delay.unwrap_or_else(|| panic!("no delays: {row:?}")))
}

/// With one clock for both ends, delays are not negative and within the client's life, and the mean lies between
/// minimum and maximum. A busy receiver's own time may be shorter than a delay: it begins with its first read.
fn plausible(row: &Iperf2OutputLine, pair: &Iperf2Outputs) {
    let [mean, least, most, stdev] = delays(row);
    assert!(0.0 <= least && least <= mean && mean <= most && stdev >= 0.0, "{row:?}");
    assert!(most > 0.0 && most < pair.client.took.as_secs_f64() * 1e3, "{row:?}");
}

/// Number and length of the timed buffers.
fn buffers(row: &Iperf2OutputLine) -> (u64, u64) {
    let word = row.rest.split_whitespace().find_map(|word| word.strip_prefix('('));
    let (count, length) = word.and_then(|word| word.trim_end_matches(')').split_once('/')).unwrap();
    (count.parse().unwrap(), length.parse().unwrap())
}

fn same_bytes(pair: &Iperf2Outputs, near: &str, far: &str) -> (Iperf2OutputLine, Iperf2OutputLine) {
    let (client, server) = pair.whole(near, far);
    assert_eq!(client.bytes, server.bytes, "{pair:?}");
    (client, server)
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn every_buffer_over_tcp_is_timed() {
    at_once(PAIRINGS, |(client, server)| {
        let pair = pair(client, &TCP, (server, &[]), 1);
        let (_, row) = same_bytes(&pair, "1", "1");
        assert!(pair.server.stdout.contains("(trip-times)"), "{pair:?}");
        plausible(&row, &pair);
        // The header and whole buffers; the real server includes the header in the mean length.
        let (count, length) = buffers(&row);
        assert_eq!(row.bytes, 80 + count * 10_000, "{pair:?}");
        assert_eq!(length, 10_000, "{pair:?}");
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn intervals_have_delays_of_their_own() {
    at_once(PAIRINGS, |(client, server)| {
        let pair = pair(client, &[&TCP[..], &["-i", "1", "-e"]].concat(), (server, &["-i", "1", "-e"]), 1);
        let rows = support::rows(&pair.server.stdout);
        let (whole, single): (Vec<Iperf2OutputLine>, Vec<Iperf2OutputLine>) =
            rows.into_iter().partition(Iperf2OutputLine::is_whole);
        // A server that begins to read late has less than two seconds, and 2.1.8 sometimes leaves out the rest.
        assert!(!single.is_empty(), "{pair:?}");
        single.iter().chain(&whole).for_each(|row| plausible(row, &pair));
        let total = delays(&whole[0]);
        for row in &single {
            let [_, least, most, _] = delays(row);
            assert!(total[1] <= least && most <= total[2], "{pair:?}");
        }
        let counted: u64 = single.iter().map(|row| buffers(row).0).sum();
        assert!(counted <= buffers(&whole[0]).0, "{pair:?}");
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn amounts_and_parallel_streams_are_timed_in_whole_buffers() {
    at_once(PAIRINGS, |(client, server)| {
        let args = ["-n", "25000", "-l", "10000", "--trip-times", "-P", "2"];
        let pair = pair(client, &args, (server, &[]), 2);
        for label in ["1", "2"] {
            let (_, row) = pair.whole(label, label);
            assert_eq!((row.bytes, buffers(&row).0), (30_080, 3), "{pair:?}");
            plausible(&row, &pair);
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn buffers_that_come_back_on_the_same_connection_are_timed() {
    at_once(PAIRINGS, |(client, server)| {
        let reverse = pair(client, &[&TCP[..], &["-R"]].concat(), (server, &[]), 1);
        plausible(&same_bytes(&reverse, "*1", "1").0, &reverse);
        let both = pair(client, &[&TCP[..], &["--full-duplex"]].concat(), (server, &[]), 2);
        plausible(&same_bytes(&both, "1", "1").1, &both);
        plausible(&same_bytes(&both, "*1", "*1").0, &both);
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn datagrams_are_timed_and_both_ends_tell_the_same() {
    at_once(PAIRINGS, |(client, server)| {
        let pair = pair(client, &UDP, (server, &[]), 1);
        let (report, row) = same_bytes(&pair, "1", "1");
        plausible(&row, &pair);
        plausible(&report, &pair);
        // Reported delays have microseconds. The deviation comes from a sum of squares that overflows for long
        // ones.
        for (near, far) in delays(&report).into_iter().zip(delays(&row)).take(3) {
            assert!((near - far).abs() <= 0.0021, "{pair:?}");
        }
        assert_eq!((report.lost, report.lost.unwrap().0), (row.lost, 0), "{pair:?}");
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn datagrams_that_come_back_are_timed() {
    at_once(PAIRINGS, |(client, server)| {
        let pair = pair(client, &[&UDP[..], &["-R"]].concat(), (server, &[]), 1);
        let (row, _) = pair.whole("*1", "1");
        plausible(&row, &pair);
        assert!(!pair.client.stdout.contains("WARN"), "{pair:?}");
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn a_server_with_more_columns_times_datagrams_unasked() {
    at_once(PAIRINGS, |(client, server)| {
        let args = ["-u", "-t", "1", "-b", "100k", "-l", "200"];
        let pair = pair(client, &args, (server, &["-e"]), 1);
        let (report, row) = pair.whole("1", "1");
        plausible(&row, &pair);
        plausible(&report, &pair);
    });
}
