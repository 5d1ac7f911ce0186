//! Compares results with the byte counters of the kernel's queues and interfaces.

use std::process::Command;
use std::time::Duration;

use linerate_sock::clock::{self, Mono};
use serde_json::Value;

use crate::support::{
    LinkSide, Net, Process, ServeProcess, TIMEOUT, caveats, flow, is_busy, pause, retried_when_busy,
    test_json,
};

/// Payload and frame of a full segment as a token bucket counts it: Ethernet header, no checksum, no preamble,
/// no gap.
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;

/// Bytes that passed the token bucket of a side.
fn shaped_bytes(net: &Net, side: LinkSide) -> u64 {
    let output = net.exec(side, "tc", &["-s", "-j", "qdisc", "show", "dev", "veth0"]).output().unwrap();
    let queues: Value = serde_json::from_slice(&output.stdout).unwrap();
    queues[0]["bytes"].as_u64().unwrap()
}

/// A test during which a token bucket was observed.
struct BucketComparison {
    document: Value,
    /// Goodput according to the bucket from second 1 to second 7.
    counted: f64,
    /// Goodput according to the receiver in the same seconds.
    received: f64,
    /// Tolerance: what either counts while the other gets no CPU.
    tolerance: f64,
}

/// Runs a test of 8 seconds and reads a token bucket's counters meanwhile.
fn against_bucket(net: &Net, command: Command) -> BucketComparison {
    let mut process = Process::start(command);
    let mut seen: Vec<(Mono, f64)> = Vec::new();
    while process.running() {
        // The counters belong to a moment between the two clock readings.
        let before = clock::now();
        let bytes = shaped_bytes(net, LinkSide::A) as f64;
        let after = clock::now();
        seen.push((before + after.since(before) / 2, bytes));
        pause(Duration::from_millis(5));
    }
    let done = process.finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    let start = seen.windows(2).find(|pair| pair[1].1 > pair[0].1 + 20_000.0).map(|pair| pair[0].0).unwrap();
    let bucket_at = |seconds: u64| {
        let at = start + Duration::from_secs(seconds);
        let after = seen.iter().position(|(time, _)| *time >= at).unwrap();
        let ((t0, b0), (t1, b1)) = (seen[after - 1], seen[after]);
        b0 + (b1 - b0) * at.since(t0).as_secs_f64() / t1.since(t0).as_secs_f64()
    };
    let counted = (bucket_at(7) - bucket_at(1)) * 8.0 / 6.0 * PAYLOAD_SHARE;
    let received = received_between(flow(&document, "upload"), 1.0, 7.0);
    // The longest time between two readings is the longest time that a thread had to wait for a CPU.
    let gaps = seen.windows(2).map(|pair| pair[1].0.since(pair[0].0).as_secs_f64());
    // On a busy machine the receiver waits too, as its interval says.
    let half_width = flow(&document, "upload")["uncertainty"]["expanded_bps"].as_f64().unwrap();
    let waits = if is_busy() { half_width / received } else { 0.0 };
    let tolerance = 0.001 + gaps.fold(0.0, f64::max) / 6.0 + waits;
    BucketComparison { document, counted, received, tolerance }
}

/// The receiver's goodput between two moments relative to its first byte, from its intervals.
fn received_between(flow: &Value, from_s: f64, to_s: f64) -> f64 {
    let samples = flow["samples"].as_array().unwrap();
    let bits = samples.iter().filter(|sample| sample["side"] == "receiver").map(|sample| {
        let at = |key: &str| sample[key].as_f64().unwrap() / 1e9;
        let (start, end) = (at("start_ns"), at("end_ns"));
        let inside = (end.min(to_s) - start.max(from_s)).max(0.0) / (end - start);
        let bytes = sample["readings"]["flow.bytes"].as_f64().or(sample["flow.bytes"].as_f64()).unwrap();
        bytes * 8.0 * inside
    });
    bits.sum::<f64>() / (to_s - from_s)
}

fn receiver_bps(document: &Value) -> f64 {
    flow(document, "upload")["receiver"]["bitrate_bps"].as_f64().unwrap()
}

fn near(found: f64, expected: f64, share: f64) {
    let error = found / expected - 1.0;
    assert!(error.abs() <= share, "{found} is {:.3} % off {expected}", error * 100.0);
}

// On a busy machine the bucket passes less than its rate, so only its own count is a reference.

#[test]
#[ignore = "needs root and network namespaces"]
fn goodput_through_100_megabit_is_what_the_bucket_counted() {
    retried_when_busy(|| {
        let net = Net::pair();
        net.tbf(LinkSide::A, "100mbit", "32kb", "50ms");
        let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
        let args = ["-t", "8", "--upload", "--json", "-C", "cubic", "--no-latency"];
        let compared = against_bucket(&net, net.test(LinkSide::A, server.port, &args));
        near(compared.received, compared.counted, compared.tolerance);
        let most = 1e8 * PAYLOAD_SHARE * (1.0 + compared.tolerance);
        assert!(compared.counted < most, "the bucket let {} through, more than its {most}", compared.counted);
        // The total agrees with the sum of the intervals, which were compared with the bucket.
        let whole = received_between(flow(&compared.document, "upload"), 0.0, 8.0);
        near(receiver_bps(&compared.document), whole, 0.002);
        // The bucket was read and is the ceiling, so that no ceiling is inferred.
        let upload = flow(&compared.document, "upload");
        assert_eq!(upload["ceiling"]["limit"], "qdisc", "{upload}");
        assert!(upload["ceiling"]["share"].as_f64().is_some_and(|share| share <= 1.0), "{upload}");
        assert!(!caveats(upload).contains(&"link_inferred".to_owned()), "{upload}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn goodput_through_1_gigabit_is_what_the_bucket_counted() {
    retried_when_busy(|| {
        let net = Net::pair();
        net.tbf(LinkSide::A, "1gbit", "512kb", "20ms");
        let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
        let args = ["-t", "8", "--upload", "--json", "-C", "cubic", "--no-latency"];
        let compared = against_bucket(&net, net.test(LinkSide::A, server.port, &args));
        near(compared.received, compared.counted, compared.tolerance);
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_large_send_buffer_does_not_flatter_a_slow_path() {
    retried_when_busy(|| {
        let net = Net::pair();
        net.tbf(LinkSide::A, "1mbit", "10kb", "400ms");
        let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
        let args = ["-t", "1", "--upload", "--json", "-w", "4M", "-C", "cubic", "--no-latency"];
        let document = test_json(net.test(LinkSide::A, server.port, &args));
        let upload = flow(&document, "upload");
        near(receiver_bps(&document), 1e6 * PAYLOAD_SHARE, 0.04);
        let sender_bps = upload["sender"]["bitrate_bps"].as_f64().unwrap();
        assert!(sender_bps > 10e6, "the plant did not work: the sender's count is {sender_bps}");
        let accounting = &upload["byte_accounting"];
        let (written, delivered) =
            (accounting["written_bytes"].as_u64().unwrap(), accounting["delivered_bytes"].as_u64().unwrap());
        assert_eq!(accounting["never_sent_bytes"].as_u64().unwrap(), written - delivered);
        assert_eq!(accounting["unaccounted_bytes"], 0);
        assert!(caveats(&document).contains(&"drain_cut".to_owned()), "{:?}", caveats(&document));
    });
}

/// Bytes and packets that an interface received.
fn received(net: &Net, side: LinkSide) -> (u64, u64) {
    let output = net.exec(side, "ip", &["-s", "-j", "link", "show", "veth0"]).output().unwrap();
    let links: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rx = &links[0]["stats64"]["rx"];
    (rx["bytes"].as_u64().unwrap(), rx["packets"].as_u64().unwrap())
}

#[test]
#[ignore = "needs root and network namespaces"]
fn bytes_reconcile_with_the_interface() {
    /// Headers of Ethernet, IPv4, and TCP with timestamps.
    const HEADERS: u64 = 14 + 20 + 32;
    let net = Net::pair();
    // One packet per segment: otherwise a GSO packet would have the headers of one.
    for side in [LinkSide::A, LinkSide::B] {
        let offloads = ["-K", "veth0", "tso", "off", "gso", "off", "gro", "off"];
        assert!(net.exec(side, "ethtool", &offloads).output().unwrap().status.success());
    }
    net.tbf(LinkSide::A, "200mbit", "64kb", "50ms");
    let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
    let before = received(&net, LinkSide::B);
    let args = ["-n", "32M", "--upload", "--json", "-C", "cubic", "--no-latency"];
    let document = test_json(net.test(LinkSide::A, server.port, &args));
    let after = received(&net, LinkSide::B);
    let upload = flow(&document, "upload");
    let total = upload["receiver"]["total_bytes"].as_u64().unwrap();
    assert_eq!(total, 32 << 20);
    assert_eq!(upload["receiver"]["bytes"].as_u64().unwrap(), total, "a test by bytes has no tail");
    assert_eq!(upload["byte_accounting"]["written_bytes"].as_u64().unwrap(), total);
    let repeated: u64 = samples_sum(upload, "sender", "tcp.bytes_retrans");
    let payload = (after.0 - before.0) - HEADERS * (after.1 - before.1);
    let other =
        payload.checked_sub(total + repeated).unwrap_or_else(|| panic!("{payload} < {total} + {repeated}"));
    // The control connection, and the longer headers of the handshake.
    assert!(other < 64 << 10, "{other} bytes on the cable that nobody accounts for");
}

fn samples_sum(flow: &Value, side: &str, metric: &str) -> u64 {
    let samples = flow["samples"].as_array().unwrap();
    let of_side = samples.iter().filter(|sample| sample["side"] == side);
    let readings =
        of_side.filter_map(|sample| sample["readings"][metric].as_u64().or(sample[metric].as_u64()));
    readings.sum()
}
