//! Complete evidence of well-understood tests, from which each rule's tests start.

use crate::evidence::{Evidence, LinkSource};
use crate::framing::IpVersion;

/// An ordinary TCP flow over IPv4 with timestamps: open windows, idle hosts, nothing lost.
fn quiet_flow(goodput_bps: f64) -> Evidence {
    let mut evidence = Evidence::default();
    let outcome = &mut evidence.outcome;
    outcome.goodput_bps = Some(goodput_bps);
    outcome.measured_s = Some(9.0);
    outcome.asked_s = Some(10.0);
    outcome.ramp_s = Some(0.2);
    outcome.omitted_s = Some(1.0);
    outcome.streams = Some(1);
    outcome.interval_s = Some(0.1);
    // 0.1 % up and down.
    outcome.intervals_bps = (0..90).map(|i| goodput_bps * if i % 2 == 0 { 0.999 } else { 1.001 }).collect();
    outcome.last_over_previous = Some(1.0);
    outcome.early_over_steady = Some(0.7);
    let link = &mut evidence.link;
    link.mtu_bytes = Some(1500.0);
    link.ip_version = Some(IpVersion::V4);
    link.mss_bytes = Some(1448.0);
    link.timestamps = Some(true);
    link.window_scaling = Some(true);
    let tcp = &mut evidence.tcp;
    tcp.congestion = Some("cubic".to_owned());
    tcp.busy_share = Some(0.999);
    tcp.receiver_window_share = Some(0.01);
    tcp.send_buffer_share = Some(0.02);
    tcp.app_limited_share = Some(0.0);
    tcp.not_sent_bytes = Some(300e3);
    tcp.cwnd_growth_per_s = Some(0.0);
    tcp.ssthresh_infinite = Some(false);
    tcp.retransmits = Some(0.0);
    tcp.segments_sent = Some(goodput_bps * 9.0 / 8.0 / 1448.0);
    tcp.timeouts = Some(0.0);
    evidence.windows.offered_min_bytes = Some(2.9e6);
    evidence.windows.offered_median_bytes = Some(3e6);
    evidence.windows.offered_max_bytes = Some(3.1e6);
    evidence.windows.queue_median_share = Some(0.02);
    evidence.windows.zero_windows = Some(0.0);
    evidence.windows.pruned = Some(0.0);
    evidence.sender.thread_share = Some(0.3);
    evidence.receiver.thread_share = Some(0.4);
    evidence.timing.expected_intervals = Some(100);
    evidence.timing.seen_intervals = Some(100);
    evidence.timing.gap_max_s = Some(0.002);
    evidence
}

/// Sets the base and loaded round trips, and bytes in flight that fit the rate.
fn with_rtt(mut evidence: Evidence, base_s: f64, loaded_s: f64) -> Evidence {
    evidence.rtt.min_s = Some(base_s);
    evidence.rtt.idle_p50_s = Some(base_s * 1.1);
    evidence.rtt.mean_s = Some(loaded_s);
    evidence.rtt.loaded_p50_s = Some(loaded_s);
    evidence.rtt.loaded_p95_s = Some(loaded_s * 1.05);
    let flight = evidence.outcome.goodput_bps.map(|rate| rate * loaded_s / 8.0);
    evidence.tcp.unacked_bytes = flight;
    evidence.tcp.cwnd_bytes = flight.map(|bytes| bytes * 1.1);
    evidence
}

/// Nine seconds of CUBIC over a full gigabit link on a LAN: a standing queue, nothing lost.
pub(crate) fn full_gigabit() -> Evidence {
    let mut evidence = with_rtt(quiet_flow(941.4e6), 0.0002, 0.0015);
    evidence.link.link_bps = Some(1e9);
    evidence.link.source = Some(LinkSource::Interface);
    evidence
}

/// Memory to memory on one machine: the sending thread has 98 % of a core.
pub(crate) fn loopback() -> Evidence {
    let mut evidence = with_rtt(quiet_flow(28e9), 0.000_012, 0.000_06);
    evidence.link.is_virtual = true;
    evidence.link.is_loopback = true;
    evidence.link.mtu_bytes = Some(65536.0);
    evidence.link.mss_bytes = Some(32768.0);
    evidence.outcome.intervals_bps = (0..90).map(|i| if i % 3 == 0 { 26e9 } else { 29e9 }).collect();
    evidence.tcp.busy_share = Some(0.7);
    evidence.tcp.app_limited_share = Some(0.6);
    evidence.tcp.not_sent_bytes = Some(0.0);
    evidence.sender.thread_share = Some(0.98);
    evidence.sender.copy_bps = Some(60e9);
    evidence.receiver.thread_share = Some(0.8);
    evidence.receiver.copy_bps = Some(60e9);
    evidence
}

/// A virtual link after a token bucket of `bps` that counts 1514 bytes per frame and queues for 50 ms.
pub(crate) fn shaped(bps: f64) -> Evidence {
    let mut evidence = with_rtt(quiet_flow(bps * 1448.0 / 1514.0), 0.0001, 0.050);
    evidence.link.is_virtual = true;
    evidence.link.link_bps = Some(10e9);
    evidence
}

/// A gigabit over 21 ms with a receive buffer of 128 KiB, which gives a window of 64 KiB.
pub(crate) fn long_path() -> Evidence {
    let mut evidence = with_rtt(quiet_flow(65536.0 * 8.0 / 0.021), 0.021, 0.021);
    evidence.link.link_bps = Some(1e9);
    evidence.windows.rcv_buf_asked_bytes = Some(65536.0);
    evidence.windows.rcv_buf_bytes = Some(131_072.0);
    evidence.windows.offered_min_bytes = Some(65_000.0);
    evidence.windows.offered_median_bytes = Some(65536.0);
    evidence.windows.offered_max_bytes = Some(65536.0);
    evidence.tcp.receiver_window_share = Some(0.92);
    evidence
}

/// A gigabit over 21 ms that loses the share `loss` of the segments without a queue. The rate is CUBIC's for
/// that loss.
pub(crate) fn lossy_path(loss: f64) -> Evidence {
    let rate = crate::tcp_rate::cubic_bps(crate::tcp_rate::CUBIC, 1448.0, 0.021, loss).unwrap();
    let mut evidence = with_rtt(quiet_flow(rate), 0.021, 0.0211);
    evidence.link.link_bps = Some(1e9);
    evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| sent * loss);
    evidence.outcome.intervals_bps = (0..90).map(|i| rate * if i % 2 == 0 { 0.8 } else { 1.2 }).collect();
    evidence.outcome.measured_s = Some(60.0);
    evidence
}

/// A policer on a long path: a burst at the start, then a constant rate, 0.2 % lost in bursts, no queue.
pub(crate) fn policed() -> Evidence {
    let mut evidence = lossy_path(2e-3);
    evidence.outcome.early_over_steady = Some(3.0);
    // Three times the loss model's rate: the losses come in bursts.
    evidence.outcome.goodput_bps = Some(45e6);
    evidence.outcome.intervals_bps = [44e6, 46e6].repeat(45);
    evidence
}
