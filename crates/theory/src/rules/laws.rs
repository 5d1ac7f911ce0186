//! Properties that hold for every verdict, whatever the evidence. Tested on partly plausible, partly
//! nonsensical records.

use linerate_model::{Confidence, EvidenceKey, Finding, Limit, Rule};
use proptest::prelude::*;

use super::examples::{full_gigabit, long_path, loopback, lossy_path, policed, shaped};
use crate::diagnose::{Diagnosis, diagnose};
use crate::ethernet::STANDARD_RATES;
use crate::evidence::{Evidence, LinkSource};

/// One change of a record: which field, the exponent of a factor of ten, and a share.
type RecordChange = (u8, f64, f64);

/// The record of a well-understood test in which up to eight fields change by orders of magnitude.
fn record() -> impl Strategy<Value = Evidence> {
    let rates = prop::sample::select(vec![2e6, 3.7e6, 10e6, 33e6, 100e6, 170e6, 1e9, 2.5e9]);
    let change = (0_u8..28, -3.0_f64..3.0, 0.0_f64..1.0);
    (0_u8..6, rates, prop::collection::vec(change, 0..8)).prop_map(|(which, rate, changes)| {
        let mut evidence = match which {
            0 => full_gigabit(),
            1 => long_path(),
            2 => loopback(),
            3 => lossy_path(1e-3),
            4 => policed(),
            _ => shaped(rate),
        };
        changes.into_iter().for_each(|change| apply(&mut evidence, change));
        evidence
    })
}

fn apply(evidence: &mut Evidence, (which, exponent, share): RecordChange) {
    let factor = 10_f64.powf(exponent);
    let goodput = evidence.outcome.goodput_bps.unwrap_or(1e6);
    let scale = |value: &mut Option<f64>, by: f64| *value = value.map(|value| value * by);
    let windows = &mut evidence.windows;
    match which {
        0 => evidence.outcome.goodput_bps = Some(goodput * factor),
        1 => evidence.outcome.uncertainty_bps = Some(goodput * share * 0.1),
        2 => evidence.outcome.intervals_bps.iter_mut().step_by(3).for_each(|rate| *rate *= 1.0 - 0.3 * share),
        3 => evidence.outcome.intervals_bps = vec![goodput; 4 + (share * 30.0) as usize],
        4 => evidence.link.link_bps = Some(goodput * factor),
        5 => evidence.link.is_virtual = share < 0.5,
        6 => evidence.link.source = Some(LinkSource::User),
        7 => scale(&mut evidence.rtt.mean_s, factor),
        8 => scale(&mut evidence.rtt.loaded_p50_s, factor),
        9 => scale(&mut evidence.rtt.min_s, factor),
        10 => evidence.tcp.receiver_window_share = Some(share),
        11 => evidence.tcp.send_buffer_share = Some(share),
        12 => {
            let window = 1e5 * factor;
            windows.offered_min_bytes = Some(window * 0.99);
            (windows.offered_median_bytes, windows.offered_max_bytes) = (Some(window), Some(window));
        }
        13 => windows.snd_buf_bytes = Some(1e5 * factor),
        14 => windows.snd_buf_asked_bytes = Some(1e5),
        15 => windows.rcv_buf_asked_bytes = Some(1e5),
        16 => evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| sent * share * share * 0.05),
        17 => evidence.asked.max_pacing_bps = Some(goodput * (0.9 + 0.3 * share)),
        18 => evidence.asked.offered_bps = Some(goodput * (0.9 + 0.3 * share)),
        19 => evidence.asked.read_bps = Some(goodput * (0.9 + 0.3 * share)),
        20 => evidence.sender.thread_share = Some(share),
        21 => evidence.receiver.thread_share = Some(share),
        22 => evidence.tcp.unacked_bytes = Some(1e5 * factor),
        23 => evidence.rtt.smoothed_p10_s = evidence.rtt.mean_s.map(|mean| mean * share),
        // A link that is a little faster or slower than the rate, with losses and receive buffers that may have
        // held much data.
        25 => {
            evidence.link.link_bps = Some(goodput * (0.98 + 0.1 * share));
            (evidence.link.is_virtual, evidence.link.source) = (false, Some(LinkSource::Interface));
            (evidence.tcp.retransmits, windows.rcv_buf_bytes) = (Some(10.0), Some(1e9));
        }
        24 => windows.rcv_buf_bytes = Some(1e6 * factor),
        26 => evidence.sender.quota_throttled_share = Some(share),
        _ => evidence.timing.emulator_late = Some(share < 0.5),
    }
}

/// The round trips that a full window may have waited for, including the hosts' turnaround time.
fn round_trips(evidence: &Evidence) -> impl Iterator<Item = f64> {
    let slowest = evidence.base_rtt_s().map(|base| base + super::TURNAROUND_S);
    super::known_round_trips(evidence).chain(slowest)
}

/// The lowest rate that a window allows, as a multiple of the goodput.
fn room(evidence: &Evidence, window: f64, goodput: f64) -> f64 {
    let allowed = round_trips(evidence).map(|rtt| 8.0 * window / rtt * evidence.streams() / goodput);
    allowed.fold(f64::INFINITY, f64::min)
}

/// Payload rates of standard links, and of shapers that are set to the same rates.
fn standard_goodputs(evidence: &Evidence) -> Vec<(String, f64, f64)> {
    let packet = evidence.packet_bytes();
    let payload = packet - evidence.headers().total_bytes();
    let at = |bps: f64, counted: f64| bps * payload / counted;
    let pairs = STANDARD_RATES.iter().flat_map(|rate| {
        let link = at(rate.bps, packet + 38.0);
        let shaper = (at(rate.bps, packet + 18.0), at(rate.bps, packet));
        [(format!("link {}", rate.bps), link, link), (format!("shaper {}", rate.bps), shaper.0, shaper.1)]
    });
    pairs.collect()
}

fn number(finding: &Finding, key: &EvidenceKey) -> Option<f64> {
    finding.evidence.get(key).copied()
}

/// The verdict and the additional findings.
fn causes(found: &Diagnosis) -> impl Iterator<Item = &Finding> {
    std::iter::once(&found.primary).chain(&found.also)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn no_window_is_named_that_allows_more_than_the_rate(evidence in record()) {
        let goodput = evidence.outcome.goodput_bps.unwrap();
        for finding in causes(&diagnose(&evidence)) {
            if let Some(window) = number(finding, &EvidenceKey::WindowBytes).filter(|_| finding.rule == Rule::ReceiverWindow) {
                prop_assert!(room(&evidence, window, goodput) <= 1.5 + 1e-9, "{finding:?}");
                prop_assert!(number(finding, &EvidenceKey::CeilingBps).unwrap() <= 1.5 * goodput * (1.0 + 1e-9), "{finding:?}");
                prop_assert!(number(finding, &EvidenceKey::CeilingBps).unwrap() >= goodput / 1.16, "{finding:?}");
            }
            if let Some(buffer) = number(finding, &EvidenceKey::SndBufBytes).filter(|_| finding.rule == Rule::SendBuffer) {
                // Payload fills between 40 % and all of a buffer.
                prop_assert!(room(&evidence, 0.4 * buffer, goodput) <= 1.5 + 1e-9, "{finding:?}");
            }
        }
    }

    #[test]
    fn no_link_is_named_that_the_rate_exceeds(evidence in record()) {
        let sustained = evidence.sustained_bps().unwrap();
        for finding in causes(&diagnose(&evidence)).filter(|finding| finding.rule == Rule::LinkFull) {
            let ceiling = number(finding, &EvidenceKey::CeilingBps).unwrap();
            prop_assert!(sustained <= 1.006 * ceiling, "{sustained} of {ceiling}: {finding:?}");
        }
    }

    #[test]
    fn nothing_is_confirmed_while_the_interval_covers_another_candidate(evidence in record()) {
        let (low, high) = evidence.rate_range_bps().unwrap();
        let (_, other) = evidence.other_shares();
        for finding in causes(&diagnose(&evidence)) {
            let of_own_link = number(finding, &EvidenceKey::LinkBps) == evidence.line_rate_bps() || evidence.is_stated_link();
            if finding.confidence != Confidence::Confirmed || ![Rule::LinkFull, Rule::Shaper].contains(&finding.rule) || of_own_link {
                continue;
            }
            let named = match number(finding, &EvidenceKey::ShaperBps) {
                Some(rate) => format!("shaper {rate}"),
                None => format!("link {}", number(finding, &EvidenceKey::LinkBps).unwrap()),
            };
            for (name, least, most) in standard_goodputs(&evidence) {
                // The interval covers the whole range of a candidate. Touching its tolerance is not enough.
                let covers = low <= least && most <= high * (1.0 + other);
                prop_assert!(name == named || !covers, "{name} as well as {named}: {low} to {high}, {finding:?}");
            }
        }
    }

    #[test]
    fn no_rule_is_listed_twice(evidence in record()) {
        let found = diagnose(&evidence);
        let rules: Vec<&str> = causes(&found).map(|finding| finding.rule.name()).collect();
        let different: std::collections::BTreeSet<&str> = rules.iter().copied().collect();
        prop_assert_eq!(different.len(), rules.len(), "{:?}", rules);
    }

    #[test]
    fn the_verdict_and_the_ceilings_agree(evidence in record()) {
        let goodput = evidence.outcome.goodput_bps.unwrap();
        let found = diagnose(&evidence);
        let ceiling = |limit: Limit| crate::ceilings::of(&found.ceilings, &limit).map(|ceiling| ceiling.bitrate_bps);
        let named = match found.primary.rule {
            Rule::ReceiverWindow => number(&found.primary, &EvidenceKey::CeilingBps),
            Rule::SendBuffer => ceiling(Limit::SendBuffer),
            Rule::CpuSender => ceiling(Limit::CpuSender),
            Rule::CpuReceiver => ceiling(Limit::CpuReceiver),
            Rule::Pacing => ceiling(Limit::Pacing),
            _ => None,
        };
        let own = (found.primary.rule == Rule::Pacing).then_some(Limit::Pacing);
        for hard in [Limit::Link, Limit::Pacing, Limit::Application].into_iter().filter(|hard| Some(hard) != own.as_ref()) {
            if let (Some(named), Some(hard)) = (named, ceiling(hard).filter(|bps| *bps >= goodput)) {
                prop_assert!(hard >= 0.9 * named, "{hard} binds before {named}: {:?}", found.primary);
            }
        }
        if let Some(expected) = found.expected.filter(|ceiling| ceiling.limit == Limit::LinkInferred) {
            prop_assert!(expected.bitrate_bps >= goodput, "{expected:?}");
            prop_assert!(found.ceilings.contains(&expected));
        }
    }

    #[test]
    fn unknown_lists_only_ceilings_near_above_the_rate(evidence in record()) {
        let goodput = evidence.outcome.goodput_bps.unwrap();
        let finding = super::unexplained(&evidence, &diagnose(&evidence).ceilings);
        for (name, bps) in finding.evidence.iter().filter(|(key, _)| matches!(key, EvidenceKey::CeilingOf(_))) {
            prop_assert!((goodput..=4.0 * goodput).contains(bps), "{name} {bps} for {goodput}");
        }
        let pointed = finding.remedy.is_some();
        let near = finding.evidence.iter().any(|(key, bps)| matches!(key, EvidenceKey::CeilingOf(_)) && *bps <= 1.5 * goodput);
        prop_assert_eq!(pointed, near);
    }
}
