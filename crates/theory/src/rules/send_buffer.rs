//! V06: the send buffer is too small for the path.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{
    FindingBuilder, TINY_BUFFER_BYTES, any_core_is_full, confidence, rate_was_asked_for, window_allows_bps,
};
use crate::evidence::Evidence;
use crate::{bdp, format};

/// From this share of the busy time, the buffer is the limit.
const HELD_SHARE: f64 = 0.25;
/// Smallest share of the granted buffer that holds payload: the kernel charges its own overhead, up to half.
const MIN_PAYLOAD_SHARE: f64 = 0.4;
/// Largest such share; above 1 because the counts agree only roughly.
const MAX_PAYLOAD_SHARE: f64 = 1.15;
/// How far the kernel may overfill a buffer: it checks for room before it begins a super-packet, not while that
/// grows.
const SUPER_PACKET_BYTES: f64 = 65_536.0;
/// A window that is filled to less than this share is not the limit.
const OPEN_WINDOW_FILL: f64 = 0.9;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if evidence.has_standing_queue() || rate_was_asked_for(evidence) {
        return None;
    }
    smallest_window(evidence).or_else(|| limit_of_the_kernel(evidence))
}

/// The buffer is fixed, smaller than both the congestion window and the receive window, and either tiny or
/// always in flight. Then the buffer acts as the window. The kernel does not report this as `sndbuf_limited` if
/// one write fills the buffer.
fn smallest_window(evidence: &Evidence) -> Option<Finding> {
    let buffer = evidence.windows.snd_buf_bytes?;
    let smallest = buffer < evidence.tcp.cwnd_bytes? && buffer < evidence.windows.offered_median_bytes?;
    let in_flight = evidence.tcp.unacked_bytes.is_some_and(|bytes| holds_about(buffer, bytes));
    let is_the_window = buffer < TINY_BUFFER_BYTES || (in_flight && !any_core_is_full(evidence));
    if !is_the_window || !smallest || !is_fixed(evidence, buffer) || !may_hold(evidence, buffer) {
        return None;
    }
    let text = format!(
        "The send buffer of {} limits the flow: it is smaller than the congestion window of {} and the \
         receive window of {}.",
        format::size(buffer),
        format::size(evidence.tcp.cwnd_bytes?),
        format::size(evidence.windows.offered_median_bytes?)
    );
    finding(evidence, Confidence::Confirmed, text)
}

/// The kernel reported the flow as limited by the send buffer.
fn limit_of_the_kernel(evidence: &Evidence) -> Option<Finding> {
    let held = evidence.tcp.send_buffer_share;
    if held.is_some_and(|share| share <= HELD_SHARE) || any_core_is_full(evidence) {
        return None;
    }
    let buffer = evidence.windows.snd_buf_bytes?;
    let rtt = evidence.base_rtt_s()?;
    if !may_hold(evidence, buffer) {
        return None;
    }
    let per_connection = evidence.outcome.goodput_bps? / evidence.streams();
    let flights = [evidence.base_rtt_s(), evidence.rtt.mean_s]
        .into_iter()
        .flatten()
        .filter_map(|rtt| bdp::bdp_bytes(per_connection, rtt));
    let fits = flights.chain(evidence.tcp.unacked_bytes).any(|bytes| holds_about(buffer, bytes));
    let fixed = is_fixed(evidence, buffer);
    let sure = match held {
        Some(_) => confidence(fits, fixed)?,
        None if fits && evidence.windows.snd_buf_asked_bytes.is_some() => Confidence::Probable,
        None => return None,
    };
    let text = format!(
        "The send buffer of {} is too small for a round trip of {}.",
        format::size(buffer),
        format::time(rtt)
    );
    finding(evidence, sure, text)
}

/// Whether the payload that fits into the buffer allows about the goodput. A buffer that holds many times what
/// the path and its queues hold is full but not the limit.
fn may_hold(evidence: &Evidence, buffer: f64) -> bool {
    // With a buffer smaller than a super-packet, the data in flight jumps between nearly nothing and buffer
    // plus super-packet. A single sample then means little.
    let meaningful = buffer >= SUPER_PACKET_BYTES;
    let in_flight = evidence.tcp.unacked_bytes.filter(|bytes| meaningful && holds_about(buffer, *bytes));
    let allows = |window: f64| window_allows_bps(evidence, window).is_some();
    match in_flight {
        Some(bytes) => allows(bytes) || allows(buffer),
        // The steps are finer than the range of rates at which a window counts as the limit.
        None => {
            let most = most_payload(buffer);
            let steps = std::iter::successors(Some(MIN_PAYLOAD_SHARE * buffer), |bytes| Some(bytes * 1.25));
            let within = steps.take_while(|bytes| *bytes < most).chain([most]).any(allows);
            within || overfilled(evidence, buffer).is_some_and(allows)
        }
    }
}

/// Most payload that a buffer may hold, bytes: at least one super-packet more than its size.
fn most_payload(buffer: f64) -> f64 {
    (MAX_PAYLOAD_SHARE * buffer).max(buffer + SUPER_PACKET_BYTES)
}

fn holds_about(buffer: f64, bytes: f64) -> bool {
    (MIN_PAYLOAD_SHARE * buffer..=most_payload(buffer)).contains(&bytes)
}

/// Bytes in flight from an overfilled buffer: the kernel took several times the buffer's size, it reports that
/// the program waited for room, and neither of the other windows is full.
///
/// Linux charges a super-packet when it is begun. So a fast writer finds room several times between two
/// acknowledgements (seen: a buffer of 128 KiB with 550 kB in it).
fn overfilled(evidence: &Evidence, buffer: f64) -> Option<f64> {
    let bytes = evidence.tcp.unacked_bytes.filter(|bytes| *bytes > buffer)?;
    let windows = [evidence.tcp.cwnd_bytes?, evidence.windows.offered_median_bytes?];
    let waited = evidence.tcp.send_buffer_share.is_some_and(|share| share > HELD_SHARE);
    (waited && windows.into_iter().all(|window| bytes < OPEN_WINDOW_FILL * window)).then_some(bytes)
}

/// Whether the buffer cannot grow: it was requested, or it is as large as the kernel allows.
fn is_fixed(evidence: &Evidence, buffer: f64) -> bool {
    evidence.windows.snd_buf_asked_bytes.is_some()
        || evidence.windows.wmem_max_bytes.is_some_and(|limit| buffer >= 0.9 * limit)
}

fn finding(evidence: &Evidence, sure: Confidence, text: String) -> Option<Finding> {
    let held = evidence.tcp.send_buffer_share;
    let fixed = evidence.windows.snd_buf_bytes.is_some_and(|buffer| is_fixed(evidence, buffer));
    let remedy = if evidence.windows.snd_buf_asked_bytes.is_some() {
        "Let the kernel tune the send buffer (no -w)."
    } else if fixed || evidence.windows.wmem_max_bytes.is_none() {
        "Raise tcp_wmem[2] on the sender."
    } else {
        "The sender's kernel may still raise the buffer: test longer."
    };
    FindingBuilder::new(Rule::SendBuffer, sure, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::SndBufBytes, evidence.windows.snd_buf_bytes)
        .with(EvidenceKey::CwndBytes, evidence.tcp.cwnd_bytes)
        .with(EvidenceKey::UnackedBytes, evidence.tcp.unacked_bytes)
        .with_time(EvidenceKey::RttNs, evidence.base_rtt_s())
        .with(EvidenceKey::SendBufferShare, held)
        .share(held.filter(|share| *share > HELD_SHARE))
        .remedy(remedy)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, loopback};

    #[test]
    fn a_tiny_buffer_takes_a_super_packet_beyond_its_size() {
        // 8 KiB at 4 us are 16.4 Gbit/s; with the overfill of the last write, the rate was nearly twice that.
        let mut evidence = loopback();
        evidence.windows.snd_buf_asked_bytes = None;
        evidence.windows.snd_buf_bytes = Some(8192.0);
        evidence.windows.wmem_max_bytes = Some(8192.0);
        evidence.windows.offered_median_bytes = Some(3e6);
        evidence.tcp.cwnd_bytes = Some(650_000.0);
        evidence.tcp.unacked_bytes = None;
        evidence.tcp.send_buffer_share = Some(0.01);
        evidence.rtt.min_s = Some(4e-6);
        evidence.rtt.mean_s = Some(5e-6);
        evidence.rtt.loaded_p50_s = None;
        evidence.outcome.goodput_bps = Some(29.6e9);
        assert_eq!(rule(&evidence).map(|found| found.rule), Some(Rule::SendBuffer));
        // Sampled just after a super-packet left: this alone would allow 105 Gbit/s.
        evidence.tcp.unacked_bytes = Some(65_483.0);
        assert_eq!(rule(&evidence).map(|found| found.rule), Some(Rule::SendBuffer));
        // The buffer does not limit a flow at a hundredth of that rate.
        evidence.outcome.goodput_bps = Some(0.3e9);
        assert_eq!(rule(&evidence).map(|found| found.rule), None);
    }

    /// 64 KiB requested, 128 KiB granted, at 21 ms: between 25 and 50 Mbit/s.
    fn small_buffer() -> Evidence {
        let mut evidence = long_path();
        evidence.windows.rcv_buf_asked_bytes = None;
        evidence.windows.offered_median_bytes = Some(3e6);
        evidence.tcp.receiver_window_share = Some(0.0);
        evidence.tcp.send_buffer_share = Some(0.9);
        evidence.windows.snd_buf_asked_bytes = Some(65536.0);
        evidence.windows.snd_buf_bytes = Some(131_072.0);
        evidence
    }

    #[test]
    fn a_small_buffer_on_a_long_path_is_confirmed() {
        assert_eq!(rule(&small_buffer()).map(|finding| finding.confidence), Some(Confidence::Confirmed));
    }

    #[test]
    fn a_buffer_that_allows_many_times_the_rate_is_no_limit() {
        // 1 MB requested, smaller than both windows and in flight: 400 Mb/s at 21 ms, but 25 Mb/s arrived.
        let mut evidence = small_buffer();
        evidence.windows.snd_buf_bytes = Some(1_048_576.0);
        evidence.tcp.cwnd_bytes = Some(2e6);
        evidence.tcp.unacked_bytes = Some(1e6);
        assert_eq!(rule(&evidence), None);
        evidence.outcome.goodput_bps = Some(300e6);
        assert!(rule(&evidence).is_some());
        evidence.outcome.goodput_bps = Some(240e6);
        assert_eq!(rule(&evidence), None, "1.6 times the rate");
    }

    #[test]
    fn a_buffer_that_the_kernel_overfills_is_the_limit_all_the_same() {
        // 128 KiB at 21 ms are 50 Mb/s; the kernel took 448 KiB, and the program waited for room for 40 % of
        // the time.
        let mut evidence = small_buffer();
        evidence.windows.snd_buf_asked_bytes = None;
        evidence.windows.wmem_max_bytes = Some(131_072.0);
        evidence.tcp.send_buffer_share = Some(0.4);
        evidence.tcp.unacked_bytes = Some(458_752.0);
        evidence.tcp.cwnd_bytes = Some(700_000.0);
        evidence.outcome.goodput_bps = Some(458_752.0 * 8.0 / 0.021);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        let mut full = evidence.clone();
        full.tcp.cwnd_bytes = full.tcp.unacked_bytes;
        assert_eq!(rule(&full), None, "the congestion window is full");
        let mut growing = evidence.clone();
        growing.windows.wmem_max_bytes = Some(4e6);
        assert_eq!(rule(&growing), None, "the kernel may still raise the buffer");
        evidence.tcp.send_buffer_share = Some(0.1);
        assert_eq!(rule(&evidence), None, "the program hardly waited");
    }

    #[test]
    fn the_super_packet_that_was_begun_counts_for_buffers_of_every_size() {
        // 147 kB in flight from a buffer of 128 KiB, and 190 kB.
        for bytes in [147_000.0, 190_000.0] {
            let mut evidence = small_buffer();
            evidence.tcp.send_buffer_share = Some(0.05);
            evidence.tcp.unacked_bytes = Some(bytes);
            evidence.tcp.cwnd_bytes = Some(700_000.0);
            evidence.outcome.goodput_bps = Some(bytes * 8.0 / 0.021);
            assert!(rule(&evidence).is_some(), "{bytes}");
            evidence.tcp.unacked_bytes = Some(bytes + 65_536.0);
            evidence.outcome.goodput_bps = Some((bytes + 65_536.0) * 8.0 / 0.021);
            assert_eq!(rule(&evidence), None, "{bytes} and another one");
        }
    }

    #[test]
    fn a_buffer_at_the_kernels_limit_is_named_with_it() {
        let mut evidence = small_buffer();
        evidence.windows.snd_buf_asked_bytes = None;
        evidence.windows.wmem_max_bytes = Some(131_072.0);
        assert!(rule(&evidence).unwrap().remedy.unwrap().contains("tcp_wmem"));
    }

    #[test]
    fn a_buffer_that_holds_nothing_is_no_limit() {
        assert_eq!(rule(&full_gigabit()), None);
        assert_eq!(rule(&long_path()), None);
        let mut queue = small_buffer();
        queue.rtt.loaded_p50_s = Some(0.05);
        assert_eq!(rule(&queue), None, "the buffer is larger than the path");
        let mut busy = loopback();
        busy.tcp.send_buffer_share = Some(0.5);
        busy.windows.snd_buf_asked_bytes = Some(2e6);
        busy.windows.snd_buf_bytes = Some(4e6);
        assert_eq!(rule(&busy), None, "the core is the limit");
    }

    /// A send buffer of 8 KiB on a veth: one write fills it, so the kernel's own accounting shows nothing.
    fn tiny_buffer() -> Evidence {
        let mut evidence = loopback();
        evidence.outcome.goodput_bps = Some(500e6);
        evidence.tcp.send_buffer_share = Some(0.0);
        evidence.tcp.cwnd_bytes = Some(181_000.0);
        evidence.windows.offered_median_bytes = Some(30e6);
        evidence.windows.snd_buf_bytes = Some(8192.0);
        evidence.windows.wmem_max_bytes = Some(8192.0);
        evidence
    }

    #[test]
    fn the_smallest_of_three_windows_is_the_window() {
        assert_eq!(rule(&tiny_buffer()).map(|finding| finding.confidence), Some(Confidence::Confirmed));
        let mut receiver = tiny_buffer();
        receiver.windows.offered_median_bytes = Some(4224.0);
        assert_eq!(rule(&receiver), None, "the receiver's window is smaller");
        let mut congested = tiny_buffer();
        congested.tcp.cwnd_bytes = Some(4000.0);
        assert_eq!(rule(&congested), None, "the congestion window is smaller");
        let mut growing = tiny_buffer();
        growing.windows.wmem_max_bytes = Some(4e6);
        assert_eq!(rule(&growing), None, "the kernel may still raise it");
    }

    /// 64 KiB at 23 ms, filled by each write: 49 kB in flight, limited for 8 % of the time by the kernel's
    /// accounting.
    #[test]
    fn a_buffer_that_is_in_flight_all_the_time_is_the_window() {
        let mut evidence = small_buffer();
        evidence.windows.snd_buf_asked_bytes = None;
        evidence.windows.snd_buf_bytes = Some(65536.0);
        evidence.windows.wmem_max_bytes = Some(65536.0);
        evidence.tcp.send_buffer_share = Some(0.08);
        evidence.tcp.unacked_bytes = Some(49_232.0);
        evidence.tcp.cwnd_bytes = Some(383_720.0);
        assert!(rule(&evidence).is_some());
        evidence.tcp.unacked_bytes = Some(20_000.0);
        assert_eq!(rule(&evidence), None, "most of it is empty");
    }

    #[test]
    fn a_large_buffer_that_fills_on_a_short_path_is_no_limit() {
        let mut evidence = loopback();
        evidence.sender.thread_share = Some(0.5);
        evidence.receiver.thread_share = Some(0.5);
        evidence.tcp.send_buffer_share = Some(0.28);
        evidence.windows.snd_buf_bytes = Some(4e6);
        evidence.windows.wmem_max_bytes = Some(4e6);
        evidence.tcp.unacked_bytes = Some(3e6);
        assert_eq!(rule(&evidence), None);
    }
}
