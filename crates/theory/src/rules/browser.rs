//! V29: the browser at one end does not move more.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, any_core_is_full, rate_was_asked_for};
use crate::evidence::{BrowserEvidence, Evidence};
use crate::format;

/// From this share of the busy time, a closed window is the limit.
const HELD_SHARE: f64 = 0.25;
/// From this share of the time, it is so for sure.
const SURE_SHARE: f64 = 0.5;

/// A receiver that at times accepts less than this share of its most reads late.
const CLOSED_SHARE: f64 = 0.25;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let browser = evidence.browser.as_ref()?;
    let busy = if browser.receives { receives(evidence) } else { sends(browser) }?;
    // A queue on the path fills only if more is sent than it carries, and a full core of this host comes first.
    if queue_stands(evidence) || any_core_is_full(evidence) || rate_was_asked_for(evidence) {
        return None;
    }
    let sure = if busy >= SURE_SHARE { Confidence::Confirmed } else { Confidence::Probable };
    let share = format::percent(busy);
    let mut text = if browser.receives {
        format!("For {share} of the time the browser accepted no more data: it reads no faster.")
    } else {
        format!("For {share} of the time the page had nothing ready to send: the browser sends no faster.")
    };
    if browser.hidden {
        text.push_str(" The page was hidden for a while, in which browsers slow it down.");
    }
    FindingBuilder::new(Rule::Browser, sure, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::ReceiverWindowShare, evidence.tcp.receiver_window_share.filter(|_| browser.receives))
        .with(EvidenceKey::PageStarvedShare, browser.starved_share)
        .with_time(EvidenceKey::PageLagNs, browser.longest_lag_s)
        .share(Some(busy))
        .remedy(
            "Keep the page in sight and close other programs, or measure with linerate test on the browser's host: it \
             moves more than any browser.",
        )
        .finish()
}

/// Whether there is a standing queue on the path. Probes of another connection tell it from a browser that reads late: the
/// flow's own round trips then include the wait for the reader. Without probes, a receive window that closes does.
fn queue_stands(evidence: &Evidence) -> bool {
    match (evidence.rtt.loaded_p50_s, evidence.rtt.idle_p50_s) {
        (Some(loaded), Some(idle)) => Evidence::is_queue(loaded - idle, idle),
        _ => evidence.has_standing_queue() && !closes(evidence),
    }
}

/// Whether the receiver accepts much less at some times than at others.
fn closes(evidence: &Evidence) -> bool {
    let offered = evidence.windows.offered_min_bytes.zip(evidence.windows.offered_max_bytes);
    offered.is_some_and(|(least, most)| least < CLOSED_SHARE * most)
}

/// The share of the time in which the network waited for the browser to read.
fn receives(evidence: &Evidence) -> Option<f64> {
    let held = evidence.tcp.receiver_window_share.filter(|share| *share > HELD_SHARE)?;
    evidence.tcp.send_buffer_share.is_none_or(|other| held >= other).then_some(held)
}

/// The share of the time in which the network waited for the page to send.
fn sends(browser: &BrowserEvidence) -> Option<f64> {
    browser.starved_share.filter(|share| *share > HELD_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, long_path, shaped};
    use linerate_model::Cause;

    fn reader(share: f64) -> Evidence {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(300e6);
        evidence.browser = Some(BrowserEvidence { receives: true, ..BrowserEvidence::default() });
        evidence.tcp.receiver_window_share = Some(share);
        (evidence.rtt.mean_s, evidence.rtt.loaded_p50_s) = (Some(0.0003), Some(0.0003));
        evidence
    }

    fn sender(share: f64) -> Evidence {
        let mut evidence = reader(0.0);
        evidence.tcp.receiver_window_share = None;
        let starved_share = Some(share);
        evidence.browser = Some(BrowserEvidence { starved_share, ..BrowserEvidence::default() });
        evidence
    }

    #[test]
    fn a_closed_window_of_a_browser_is_the_browser() {
        for (share, sure) in
            [(0.9, Some(Confidence::Confirmed)), (0.3, Some(Confidence::Probable)), (0.2, None)]
        {
            assert_eq!(rule(&reader(share)).map(|finding| finding.confidence), sure, "{share}");
            assert_eq!(rule(&sender(share)).map(|finding| finding.confidence), sure, "{share}");
        }
        assert_eq!(diagnose(&reader(0.9)).primary.cause, Cause::Browser);
        let mut native = reader(0.9);
        native.browser = None;
        assert_ne!(diagnose(&native).primary.cause, Cause::Browser);
    }

    #[test]
    fn a_full_link_a_queue_and_a_full_core_come_first() {
        let mut full = full_gigabit();
        full.browser = reader(0.9).browser;
        full.tcp.receiver_window_share = Some(0.4);
        assert_eq!(diagnose(&full).primary.rule, Rule::LinkFull);
        let mut queue = shaped(100e6);
        queue.browser = reader(0.9).browser;
        queue.tcp.receiver_window_share = Some(0.3);
        assert_ne!(diagnose(&queue).primary.cause, Cause::Browser);
        let mut core = reader(0.9);
        core.sender.thread_share = Some(0.99);
        assert_eq!(rule(&core), None);
    }

    #[test]
    fn a_late_reader_is_told_from_a_queue_by_probes_or_by_its_closing_window() {
        let mut late = reader(0.9);
        (late.rtt.mean_s, late.rtt.smoothed_p90_s) = (Some(0.02), Some(0.02));
        (late.rtt.loaded_p50_s, late.rtt.idle_p50_s) = (Some(0.0003), Some(0.0002));
        assert!(rule(&late).is_some(), "probes see no queue");
        late.rtt.loaded_p50_s = Some(0.02);
        assert_eq!(rule(&late), None, "probes wait in it too");
        late.rtt.loaded_p50_s = None;
        assert!(late.has_standing_queue());
        assert_eq!(rule(&late), None);
        (late.windows.offered_min_bytes, late.windows.offered_max_bytes) = (Some(3e6), Some(4e6));
        assert_eq!(rule(&late), None, "a full window behind a long queue");
        late.windows.offered_min_bytes = Some(0.0);
        assert!(rule(&late).is_some());
    }

    #[test]
    fn a_page_that_is_hidden_is_said_and_an_open_window_is_not_the_browser() {
        let mut hidden = sender(0.9);
        if let Some(browser) = &mut hidden.browser {
            browser.hidden = true;
        }
        assert!(rule(&hidden).unwrap().text.as_str().contains("hidden"));
        let mut long = long_path();
        long.tcp.receiver_window_share = Some(0.1);
        long.browser = reader(0.1).browser;
        assert_eq!(rule(&long), None);
    }
}
