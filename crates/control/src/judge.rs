//! Computes the steady part, the ceilings and the verdict of a flow from its record.
//!
//! This module gathers the evidence; formulas and rules are in `linerate_theory`.

#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, reason = "counts come from the peer and may be absurd")
)]

mod caveats;
mod curve;
mod gather;
mod series;
mod uncertainty;

use std::collections::BTreeMap;

use linerate_model::flow::FlowId;
use linerate_model::metrics::flow::{BYTES, LAST_DATA};
use linerate_model::metrics::queue::RCV_HELD;
use linerate_model::{
    Body, Caveat, CaveatKind, FlowRecord, RunRecord, Sample, Side, Steady, TestSpec, Transport,
};
use linerate_theory::stats::series::weighted_batch_means;
use linerate_theory::stats::until::StoppingRule;
use linerate_theory::{accounting, diagnose, ramp};
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};

pub use gather::evidence;
pub(crate) use series::ReceivedSeries;

use crate::log::Log;

/// A mean over fewer intervals would depend on single reads.
const MIN_STEADY_INTERVALS: usize = 10;
/// Most intervals that are merged because a segment is missing at their ends: with frequent losses one always is.
const MAX_MERGED: usize = 5;
/// Coverage probability of the interval of the steady mean.
const COVERAGE: f64 = 0.95;

/// Adds the results of theory for a flow that has ended to the log.
pub(crate) fn judge(flow: FlowId, log: &mut Log<'_>) {
    if log.record().start.as_ref().is_some_and(|start| start.spec.sweep.is_some()) {
        // A sweep has no single rate that a rule could explain.
        let ceiling = curve::ceiling(log.record(), flow);
        if let Some(curve) = curve::of(log.record(), flow, ceiling.as_ref()) {
            log.note(Body::Curve { flow, curve });
        }
        if let Some(link) = ceiling {
            log.note(Body::Ceilings { flow, ceilings: vec![link.clone()], ceiling: Some(link) });
        }
        return;
    }
    if log.record().start.as_ref().is_some_and(|start| start.spec.transactions.are_made()) {
        // Requests wait for responses: their times are the result, and no rate of bytes has a limit to explain.
        let Some(evidence) = evidence(log.record(), flow) else { return };
        let busy = log.record().flow(flow).and_then(|found| caveats::busy(log.record(), found, &evidence));
        if let Some(busy) = busy {
            log.warn(Some(flow), busy.kind, busy.text.into());
        }
        return;
    }
    if log.record().start.as_ref().is_some_and(|start| start.spec.host.no_sampling) {
        // Counts and rates only: the user disabled sampling in order to measure its cost.
        return reconcile_counts(flow, log);
    }
    let steady = log.record().flow(flow).and_then(steady);
    if let Some(steady) = steady {
        log.note(Body::Steady { flow, steady });
    }
    if let Some(missed) = log.record().flow(flow).and_then(|found| missed(log.record(), found)) {
        log.warn(Some(flow), missed.kind, missed.text.into());
    }
    reconcile_counts(flow, log);
    let uncertainty = log.record().flow(flow).and_then(|found| uncertainty::uncertainty(log.record(), found));
    if let Some(uncertainty) = uncertainty {
        log.note(Body::Uncertainty { flow, uncertainty });
    }
    let Some(evidence) = evidence(log.record(), flow) else { return };
    let diagnosis = diagnose(&evidence);
    let caveats =
        log.record().flow(flow).map(|record| caveats::caveats(log.record(), record, &evidence, &diagnosis));
    for caveat in caveats.unwrap_or_default() {
        log.warn(Some(flow), caveat.kind, caveat.text.into());
    }
    for caveat in caveats::outdated(log.record()) {
        let known = log.record().caveats.contains(&caveat);
        if !known {
            log.warn(None, caveat.kind, caveat.text.into());
        }
    }
    log.note(Body::Ceilings { flow, ceilings: diagnosis.ceilings, ceiling: diagnosis.expected });
    log.note(Body::Verdict { flow, verdict: diagnosis.primary, also: diagnosis.also });
}

/// Reconciles the byte accounting down to the wire. A count that is not explained adds a caveat.
fn reconcile_counts(flow: FlowId, log: &mut Log<'_>) {
    let steps =
        log.record().flow(flow).map(|found| accounting::steps(log.record(), found)).unwrap_or_default();
    if steps.is_empty() {
        return;
    }
    let summary = accounting::summary(&steps);
    log.note(Body::Reconciled { flow, steps });
    if let Some(text) = summary {
        log.warn(Some(flow), CaveatKind::BytesUnaccounted, text);
    }
}

/// The receiver's intervals inside the measured part. Those at the end of a fixed amount of datagrams, in which it waited
/// for more although all were sent, are left out.
fn receiver_intervals(flow: &FlowRecord) -> Vec<&Sample> {
    let mut found: Vec<&Sample> = flow.measured_samples_of(Side::Receiver).collect();
    let datagrams = flow.plan.transport == Transport::Udp;
    let sender = flow.tally(Side::Sender).filter(|_| datagrams);
    let sent = sender.map(|tally| Timestamp::START + tally.elapsed);
    let only_waits =
        |sample: &&&Sample| sample.bytes().get() == 0 && sent.is_some_and(|sent| sample.start_ns >= sent);
    let waiting = found.iter().rev().take_while(only_waits).count();
    found.truncate(found.len().saturating_sub(waiting));
    found
}

/// The bit rates of the receiver's intervals inside the measured part.
pub(crate) fn intervals(flow: &FlowRecord) -> Vec<f64> {
    receiver_intervals(flow).iter().filter_map(|sample| sample.bitrate().map(Bitrate::bps)).collect()
}

/// The number of ramp intervals, and the rates of the intervals after the ramp, without a last interval that
/// the end of the measured part shortens. As the receiver's time, it ends with a read: what waits for a
/// retransmission then is read too late to count.
fn steady_intervals(flow: &FlowRecord) -> (usize, Vec<f64>) {
    let mut all = intervals(flow);
    let whole = flow.measured_samples_of(Side::Receiver).map(|s| s.span().as_ns()).max().unwrap_or(0);
    let last = receiver_intervals(flow).last().map_or(Span::ZERO, |sample| until_last_read(sample));
    // An interval more than a tenth shorter than the longest is the rest of the measured part.
    if (last.as_ns() as f64) < 0.9 * whole as f64 {
        all.pop();
    }
    let ramp = ramp::find(&all).unwrap_or(0);
    let steady = all.split_off(ramp.min(all.len()));
    (ramp, steady)
}

/// The length of a receiver's interval until its last read; its whole length if it has no time of a read.
fn until_last_read(sample: &Sample) -> Span {
    let idle = sample.readings.get(LAST_DATA).unwrap_or(Span::ZERO);
    Span::from_ns(sample.span().as_ns().saturating_sub(idle.as_ns()))
}

/// Everything after the ramp, including the rest at the end of the measured part: number of ramp intervals,
/// rates in bit/s, and the length of each in s.
fn after_ramp(flow: &FlowRecord) -> (usize, Vec<f64>, Vec<f64>) {
    let (ramp, _) = steady_intervals(flow);
    let (rates, lengths) = received_from(flow, ramp);
    (ramp, rates, lengths)
}

/// Rates of the receiver's intervals from `first` on, bit/s, and the length of each, s.
///
/// An interval lasts from the last read of the one before to its own last read, so that neither whole reads nor a
/// late tick change its rate. An interval without a read belongs to the next one, and so does one in which a single
/// slow stream still waits for a missing segment: its last read may be a retransmission, and what arrived before it
/// is not counted yet.
fn received_from(flow: &FlowRecord, first: usize) -> (Vec<f64>, Vec<f64>) {
    // The measured time begins with the first read.
    let mut excluded = flow.receiver.as_ref().map_or(0, |tally| tally.first_read_bytes.get());
    let (mut from, mut bytes_held) = (None, 0_u64);
    let mut found: Vec<Option<(f64, Span)>> = Vec::new();
    let single = flow.plan.streams == 1 && flow.receiver.as_ref().is_some_and(|tally| tally.arrival_times);
    let mut samples = flow.measured_samples_of(Side::Receiver).peekable();
    while let Some(sample) = samples.next() {
        let Some((bytes, idle)) = sample.readings.get(BYTES).zip(sample.readings.get(LAST_DATA)) else {
            found.push(sample.bitrate().map(|rate| (rate.bps(), sample.span())));
            continue;
        };
        let start = from.unwrap_or(sample.start_ns);
        let waits = single && sample.readings.get(RCV_HELD).is_some_and(|held| held.get() > 0);
        let merged = || found.iter().rev().take_while(|interval| interval.is_none()).count();
        if waits && samples.peek().is_some() && merged() < MAX_MERGED {
            bytes_held = bytes_held.saturating_add(bytes.get());
            from = Some(start);
            found.push(None);
            continue;
        }
        let end = Timestamp::from_ns(sample.end_ns.as_ns().saturating_sub(idle.as_ns())).max(start);
        bytes_held = bytes_held.saturating_add(bytes.get());
        let rate = Bitrate::of(Bytes::new(bytes_held.saturating_sub(excluded)), end.since(start));
        if rate.is_some() {
            (bytes_held, excluded) = (0, 0);
        }
        from = Some(end);
        found.push(rate.map(|rate| (rate.bps(), end.since(start))));
    }
    let known = found.into_iter().skip(first).flatten();
    known.map(|(rate, length)| (rate, length.as_secs_f64())).filter(|(_, length)| *length > 0.0).unzip()
}

/// The steady part of a flow; absent if there are too few intervals.
fn steady(flow: &FlowRecord) -> Option<Steady> {
    let (ramp, rates, lengths) = after_ramp(flow);
    if rates.len() < MIN_STEADY_INTERVALS {
        return None;
    }
    let samples: Vec<_> = flow.measured_samples_of(Side::Receiver).collect();
    let ramp_ns = samples.iter().take(ramp).fold(Span::ZERO, |sum, sample| sum + sample.span());
    let bits: f64 = rates.iter().zip(&lengths).map(|(rate, length)| rate * length).sum();
    let bitrate = Bitrate::from_bps(bits / lengths.iter().sum::<f64>())?;
    let found = weighted_batch_means(&rates, &lengths, COVERAGE);
    let half_width = found.and_then(|found| Ratio::new(found.half_width() / found.mean));
    Some(Steady { ramp_ns, bitrate, half_width })
}

/// Decides when a phase with `--until` is over.
pub(crate) struct Until(BTreeMap<FlowId, StoppingRule>);

impl Until {
    /// Rules for the flows of a phase; none without `--until`.
    pub(crate) fn new(flows: impl IntoIterator<Item = FlowId>, spec: &TestSpec) -> Self {
        let rule = |target: Ratio| StoppingRule::new(target.get());
        let target = spec.traffic.until;
        Self(flows.into_iter().filter_map(|flow| Some((flow, rule(target?)))).collect())
    }

    /// Whether the mean of every flow of the phase has the requested precision. The samples of a flow that the
    /// peer receives arrive only after the flow, so its progress reports are used instead.
    pub(crate) fn is_reached(
        &mut self,
        record: &RunRecord,
        series: &BTreeMap<FlowId, ReceivedSeries>,
    ) -> bool {
        let mut reached = !self.0.is_empty();
        // Each flow is checked, also after one that is not known yet.
        for (number, rule) in &mut self.0 {
            let steady = record.flow(*number).map(|flow| {
                let (_, rates) = steady_intervals(flow);
                if !rates.is_empty() {
                    return rates;
                }
                let mut rates = series.get(number).map(ReceivedSeries::rates).unwrap_or_default();
                let ramp = ramp::find(&rates).unwrap_or(0);
                rates.split_off(ramp.min(rates.len()))
            });
            reached &= steady.is_some_and(|steady| rule.is_reached(&steady));
        }
        reached
    }
}

/// The caveat of a flow that did not reach the precision of `--until` in its time.
fn missed(record: &RunRecord, flow: &FlowRecord) -> Option<Caveat> {
    let traffic = &record.start.as_ref()?.spec.traffic;
    let target = traffic.until?;
    let known = flow.steady.and_then(|steady| steady.half_width);
    if known.is_some_and(|known| known <= target) {
        return None;
    }
    let elapsed = flow.receiver.as_ref()?.elapsed;
    let measured = traffic.measured();
    // A test that is limited by bytes or blocks, or was interrupted, ends at another time.
    let limit = traffic.bytes.is_none()
        && traffic.blocks.is_none()
        && elapsed.as_secs_f64() >= 0.9 * measured.as_secs_f64();
    let ended = match limit {
        true => {
            format!("the test stopped at its time limit of {measured}, before --until {target} was reached")
        }
        false => format!("the test ended after {elapsed}, before --until {target} was reached"),
    };
    let known = match (known, after_ramp(flow).1.len()) {
        (Some(known), _) => format!("it had reached {known}"),
        (None, steady) if steady < MIN_STEADY_INTERVALS => {
            format!(
                "{steady} intervals after the ramp-up are too few for an uncertainty; \
                 {MIN_STEADY_INTERVALS} are needed"
            )
        }
        (None, _) => "the rate varies too much to determine the uncertainty of its mean".to_owned(),
    };
    // Without the limit, somebody has ended it, or the rule: what arrived after that can make the mean less certain again.
    let remedy = if limit { "give a longer -t" } else { "repeat the test" };
    let text = format!("{ended}: {known}; {remedy}");
    Some(Caveat { kind: CaveatKind::UntilMissed, text: text.into() })
}

#[cfg(test)]
mod tests;
