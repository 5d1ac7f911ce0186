//! V06: the send buffer is too small for the path.

use linerate_model::{Cause, Confidence, Finding};

use super::{Draft, any_core_is_full, confidence};
use crate::evidence::Evidence;
use crate::{bdp, phrase};

/// Share of the busy time from which the buffer counts as the limit.
const HELD: f64 = 0.25;
/// Share of the granted buffer that holds payload: the kernel charges its own overhead, up to half.
const PAYLOAD_SHARE: std::ops::RangeInclusive<f64> = 0.4..=1.15;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let held = evidence.tcp.send_buffer_share;
    if held.is_some_and(|share| share <= HELD) || any_core_is_full(evidence) || evidence.queue_stands() {
        return None;
    }
    let buffer = evidence.windows.snd_buf_bytes?;
    let rtt = evidence.base_rtt_s()?;
    let per_connection = evidence.outcome.goodput_bps? / evidence.streams();
    let flights = [evidence.base_rtt_s(), evidence.rtt.mean_s]
        .into_iter()
        .flatten()
        .filter_map(|rtt| bdp::bdp_bytes(per_connection, rtt));
    let fits =
        flights.chain(evidence.tcp.unacked_bytes).any(|bytes| PAYLOAD_SHARE.contains(&(bytes / buffer)));
    let at_limit = evidence.windows.wmem_max_bytes.is_some_and(|limit| buffer >= 0.9 * limit);
    let fixed = evidence.windows.snd_buf_asked_bytes.is_some() || at_limit;
    let sure = match held {
        Some(_) => confidence(fits, fixed)?,
        None if fits && evidence.windows.snd_buf_asked_bytes.is_some() => Confidence::Probable,
        None => return None,
    };
    let text = format!(
        "The send buffer of {} is too small for a round trip of {}.",
        phrase::size(buffer),
        phrase::time(rtt)
    );
    let remedy = if evidence.windows.snd_buf_asked_bytes.is_some() {
        "Leave the send buffer to the kernel (no -w)."
    } else {
        "Raise tcp_wmem[2] on the sender."
    };
    Draft::new(Cause::SenderWindow, "V06", sure, text)
        .with("goodput_bps", evidence.outcome.goodput_bps)
        .with("snd_buf_bytes", Some(buffer))
        .with("unacked_bytes", evidence.tcp.unacked_bytes)
        .with_time("rtt_ns", Some(rtt))
        .with("send_buffer_share", held)
        .share(held)
        .remedy(remedy)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, loopback};

    /// 64 KiB asked, 128 KiB granted, at 21 ms: between 25 and 50 Mbit/s.
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
}
