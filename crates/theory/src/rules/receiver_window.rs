//! V04: the receive window is too small for the path.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{
    FindingBuilder, TINY_BUFFER_BYTES, confidence, core_is_full, hosts_have_room, known_round_trips, near,
    slow_reader, window_allows_bps,
};
use crate::evidence::Evidence;
use crate::{bdp, ceilings, format};

/// From this share of the busy time, the window is the limit.
const HELD_SHARE: f64 = 0.25;
/// A thread with at least this share of a core may itself be the limit.
const BUSY_THREAD_SHARE: f64 = 0.85;
/// Largest relative difference between the goodput and window over round trip.
const RATE_TOLERANCE: f64 = 0.15;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let held = evidence.tcp.receiver_window_share;
    let more_than_send_buffer =
        held.zip(evidence.tcp.send_buffer_share).is_none_or(|(own, other)| own >= other);
    if held.is_some_and(|share| share <= HELD_SHARE)
        || !more_than_send_buffer
        || slow_reader::queue_is_full(evidence)
        || slow_reader::read_rate_holds(evidence)
        || (core_is_full(&evidence.receiver) && !is_tiny(evidence))
        || evidence.has_standing_queue()
    {
        return None;
    }
    let window = evidence.windows.offered_median_bytes?;
    // The round trip that the window had to wait for is the one at which it explains the rate.
    let (ceiling, rtt) = window_allows_bps(evidence, window)?;
    let fits = fits(evidence, window);
    let fixed = is_fixed(evidence);
    if !fits && !hosts_have_room(evidence, BUSY_THREAD_SHARE) && !is_tiny(evidence) {
        return None; // The threads limit the rate; the window only fills meanwhile.
    }
    let sure = match held {
        Some(_) => confidence(fits, fixed)?,
        // Without the kernel's own accounting both other signs are needed.
        None if fits && fixed => Confidence::Probable,
        None => return None,
    };
    let was_measured = known_round_trips(evidence).any(|known| known.to_bits() == rtt.to_bits());
    let measured = if was_measured { rtt } else { evidence.base_rtt_s()? };
    // The hosts' own time was not measured. It follows from the rate and is listed separately.
    let hosts = (!was_measured).then_some(rtt - measured);
    let time = hosts.map_or_else(String::new, |time| {
        format!(" and {} of processing time in the hosts", format::time(time))
    });
    let text = format!(
        "The receive window of {} at a round trip of {}{time} allows {}.",
        format::size(window),
        format::time(measured),
        format::rate(ceiling)
    );
    FindingBuilder::new(Rule::ReceiverWindow, sure, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::CeilingBps, Some(ceiling))
        .with(EvidenceKey::WindowBytes, Some(window))
        .with_time(EvidenceKey::RttNs, Some(measured))
        .with_time(EvidenceKey::HostsNs, hosts)
        .with(EvidenceKey::ReceiverWindowShare, held)
        .with(EvidenceKey::RcvBufBytes, evidence.windows.rcv_buf_bytes)
        .share(held)
        .remedy(remedy(evidence, rtt))
        .finish()
}

/// Whether the window is fixed at so small a size that the sender almost always waits for it. Waiting and
/// waking every few segments also fills the processors. That is a consequence and not the cause.
fn is_tiny(evidence: &Evidence) -> bool {
    const ALMOST_ALWAYS_SHARE: f64 = 0.8;
    evidence.windows.offered_max_bytes.is_some_and(|window| window < TINY_BUFFER_BYTES)
        && evidence.tcp.receiver_window_share.is_some_and(|held| held > ALMOST_ALWAYS_SHARE)
        && is_fixed(evidence)
}

/// Whether window over round trip gives the goodput, at the base or at the mean round trip.
fn fits(evidence: &Evidence, window: f64) -> bool {
    let round_trips = [evidence.base_rtt_s(), evidence.rtt.mean_s];
    round_trips.into_iter().flatten().any(|rtt| fits_at(evidence, window, rtt))
}

fn fits_at(evidence: &Evidence, window: f64, rtt: f64) -> bool {
    let allowed = bdp::window_rate_bps(window, rtt).map(|rate| rate * evidence.streams());
    evidence.outcome.goodput_bps.is_some_and(|goodput| near(goodput, allowed, RATE_TOLERANCE))
}

/// Whether the window could not grow: it is constant, requested, unscaled, or as large as the kernel allows.
fn is_fixed(evidence: &Evidence) -> bool {
    is_constant(evidence)
        || is_at_limit(evidence) == Some(true)
        || evidence.windows.rcv_buf_asked_bytes.is_some()
        || evidence.link.window_scaling == Some(false)
}

fn is_constant(evidence: &Evidence) -> bool {
    let windows = &evidence.windows;
    match (windows.offered_min_bytes, windows.offered_median_bytes, windows.offered_max_bytes) {
        (Some(min), Some(median), Some(max)) => (max - min) / median < 0.05,
        _ => false,
    }
}

/// Whether the window is as large as the receiver's kernel allows; `None` if that is unknown.
fn is_at_limit(evidence: &Evidence) -> Option<bool> {
    let windows = &evidence.windows;
    let (window, limit) = windows.offered_max_bytes.zip(windows.rmem_max_bytes)?;
    Some(window >= 0.9 * limit / 2.0)
}

/// Whether the window stays constant, far below what the receiver's buffers allow: something clamps it.
fn is_clamped(evidence: &Evidence) -> bool {
    let windows = &evidence.windows;
    let below = |buffer: Option<f64>| {
        windows.offered_max_bytes.zip(buffer).is_some_and(|(window, buffer)| window < 0.5 * buffer / 2.0)
    };
    is_constant(evidence)
        && windows.rcv_buf_asked_bytes.is_none()
        && is_at_limit(evidence) == Some(false)
        && (below(windows.rcv_buf_bytes) || below(windows.rmem_max_bytes))
}

fn remedy(evidence: &Evidence, rtt: f64) -> String {
    if evidence.link.window_scaling == Some(false) {
        return "Window scaling is off, or a middlebox removes the option: enable it at both ends."
            .to_owned();
    }
    let how = if evidence.windows.rcv_buf_asked_bytes.is_some() {
        "Let the kernel tune the window (no -w)"
    } else if is_clamped(evidence) {
        "tcp_rmem on the receiver allows more: look for `window` on its route (ip route get), or a program \
         that clamps the window (TCP_WINDOW_CLAMP)"
    } else if is_at_limit(evidence) == Some(false) {
        "The receiver's kernel may still raise the window: test longer"
    } else {
        "Raise tcp_rmem[2] on the receiver"
    };
    let needed = evidence
        .line_rate_bps()
        .and_then(|link| ceilings::link_goodput_bps(evidence, link))
        .and_then(|goodput| bdp::bdp_bytes(goodput / evidence.streams(), rtt));
    needed.map_or_else(
        || format!("{how}."),
        |bytes| format!("{how}; a full link needs {} per connection.", format::size(bytes)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, lossy_path};

    #[test]
    fn a_fixed_window_that_gives_the_rate_is_confirmed() {
        let finding = rule(&long_path()).unwrap();
        assert_eq!(finding.confidence, Confidence::Confirmed);
        assert!((finding.evidence[&EvidenceKey::CeilingBps] - 24.966e6).abs() < 1e3);
        assert!(finding.remedy.unwrap().contains("2.357 MiB"));
    }

    #[test]
    fn a_full_queue_at_the_receiver_is_the_readers_fault() {
        let mut evidence = long_path();
        evidence.windows.queue_median_share = Some(0.8);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn a_window_that_holds_nothing_is_no_limit() {
        assert_eq!(rule(&full_gigabit()), None);
        assert_eq!(rule(&lossy_path(1e-4)), None);
        let mut evidence = long_path();
        evidence.tcp.send_buffer_share = Some(0.95);
        assert_eq!(rule(&evidence), None, "the send buffer holds it more");
    }

    #[test]
    fn a_window_that_only_bounds_a_queue_or_waits_for_a_thread_is_no_limit() {
        let mut evidence = long_path();
        evidence.rtt.loaded_p50_s = Some(0.040);
        assert_eq!(rule(&evidence), None);
        let mut evidence = long_path();
        evidence.outcome.goodput_bps = Some(19e6);
        assert!(rule(&evidence).is_some());
        evidence.sender.thread_share = Some(0.9);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn stripped_window_scaling_is_named() {
        let mut evidence = long_path();
        evidence.windows.rcv_buf_asked_bytes = None;
        evidence.link.window_scaling = Some(false);
        assert!(rule(&evidence).unwrap().remedy.unwrap().contains("Window scaling"));
    }

    #[test]
    fn a_window_that_allows_many_times_the_rate_is_no_limit() {
        // The kernel reports a fixed window that the sender waited for, but 3 MB at 21 ms allow 1.1 Gb/s.
        for (window, named) in [(3e6, false), (110e3, false), (95e3, true), (65536.0, true), (50e3, false)] {
            let mut evidence = long_path();
            evidence.windows.offered_min_bytes = Some(window);
            evidence.windows.offered_median_bytes = Some(window);
            evidence.windows.offered_max_bytes = Some(window);
            assert_eq!(rule(&evidence).is_some(), named, "{window}");
        }
    }

    #[test]
    fn between_neighbours_a_window_waits_for_the_hosts_too() {
        // 4.25 KiB at 5 us are 7 Gbit/s, but a window opens only after the receiver has woken up and read.
        for (rtt, goodput, named) in [(5e-6, 2.37e9, true), (5e-6, 0.3e9, false), (5e-4, 20e6, false)] {
            let mut evidence = long_path();
            let window = Some(4352.0);
            let windows = &mut evidence.windows;
            (windows.offered_min_bytes, windows.offered_median_bytes) = (window, window);
            windows.offered_max_bytes = window;
            evidence.rtt =
                crate::evidence::RoundTrip { min_s: Some(rtt), mean_s: Some(rtt), ..Default::default() };
            evidence.outcome.goodput_bps = Some(goodput);
            let found = rule(&evidence);
            assert_eq!(found.is_some(), named, "{rtt} s, {goodput} bit/s");
            if let Some(found) = found {
                assert_eq!(
                    (found.evidence[&EvidenceKey::RttNs], found.evidence[&EvidenceKey::HostsNs]),
                    (5000.0, 9690.0)
                );
                assert_eq!(found.confidence, Confidence::Probable);
            }
        }
        assert!(!rule(&long_path()).unwrap().evidence.contains_key(&EvidenceKey::HostsNs));
    }

    #[test]
    fn the_remedy_is_what_holds_the_window() {
        let mut evidence = long_path();
        evidence.windows.rcv_buf_asked_bytes = None;
        let remedy = |evidence: &Evidence| rule(evidence).unwrap().remedy.unwrap();
        evidence.windows.rmem_max_bytes = Some(131_072.0);
        assert!(remedy(&evidence).contains("Raise tcp_rmem"), "at its limit");
        // A route's `window` option: constantly 64 KiB although the buffer would allow megabytes.
        evidence.windows.rmem_max_bytes = Some(33_554_432.0);
        evidence.windows.rcv_buf_bytes = Some(2_174_083.0);
        evidence.windows.offered_min_bytes = Some(65_536.0);
        let clamped = remedy(&evidence);
        assert!(clamped.contains("ip route") && !clamped.contains("Raise"), "{clamped}");
        evidence.windows.offered_min_bytes = Some(30_000.0);
        assert!(remedy(&evidence).contains("may still raise"), "it grows");
    }

    #[test]
    fn without_the_kernels_account_both_other_signs_are_needed() {
        let mut evidence = long_path();
        evidence.tcp.receiver_window_share = None;
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        evidence.outcome.goodput_bps = Some(10e6);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn a_tiny_window_is_the_cause_even_of_busy_processors() {
        let mut evidence = crate::rules::examples::loopback();
        evidence.outcome.goodput_bps = Some(500e6);
        evidence.receiver.thread_share = Some(0.97);
        evidence.tcp.receiver_window_share = Some(1.0);
        evidence.windows.offered_min_bytes = Some(4224.0);
        evidence.windows.offered_median_bytes = Some(4224.0);
        evidence.windows.offered_max_bytes = Some(4224.0);
        assert!(rule(&evidence).is_some());
        evidence.windows.offered_max_bytes = Some(3e6);
        evidence.windows.offered_median_bytes = Some(3e6);
        evidence.windows.offered_min_bytes = Some(3e6);
        assert_eq!(rule(&evidence), None, "a large window and a full core");
    }
}
