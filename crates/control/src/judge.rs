//! From the record of a flow to its steady part, its ceilings and its verdict.
//!
//! Gathers the evidence; formulas and rules are in `linerate_theory`.

mod curve;
mod doubts;
mod gather;
mod known;

use linerate_model::{Body, CaveatKind, FlowRecord, RunRecord, Side, Steady, TestSpec};
use linerate_proto::FlowOrder;
use linerate_theory::stats::until;
use linerate_theory::{diagnose, ramp, reconcile};
use linerate_units::{Bitrate, Ratio, Span};

pub use gather::evidence;

use crate::log::Log;

/// A mean of fewer intervals is that of single reads.
const STEADY_INTERVALS: usize = 10;

/// Adds what theory says of a flow that has ended to the log.
pub(crate) fn judge(flow: u16, log: &mut Log<'_>) {
    if log.record().start.as_ref().is_some_and(|start| start.spec.sweep.is_some()) {
        // A series has no rate of its own that a rule could explain.
        let ceiling = curve::ceiling(log.record(), flow);
        if let Some(curve) = curve::of(log.record(), flow, ceiling.as_ref()) {
            log.note(Body::Curve { flow, curve });
        }
        if let Some(link) = ceiling {
            log.note(Body::Ceilings { flow, ladder: vec![link.clone()], ceiling: Some(link) });
        }
        return;
    }
    if log.record().start.as_ref().is_some_and(|start| start.spec.host.unwatched) {
        // Counts and rates only: whoever asked wants to know what the rest costs.
        return reconcile_counts(flow, log);
    }
    let steady = log.record().flow(flow).and_then(steady);
    if let Some(steady) = steady {
        log.note(Body::Steady { flow, steady });
    }
    reconcile_counts(flow, log);
    let uncertainty = log.record().flow(flow).and_then(|found| known::uncertainty(log.record(), found));
    if let Some(uncertainty) = uncertainty {
        log.note(Body::Uncertainty { flow, uncertainty });
    }
    let Some(evidence) = evidence(log.record(), flow) else { return };
    let diagnosis = diagnose(&evidence);
    let doubts =
        log.record().flow(flow).map(|record| doubts::doubts(log.record(), record, &evidence, &diagnosis));
    for doubt in doubts.unwrap_or_default() {
        log.warn(Some(flow), doubt.kind, doubt.text);
    }
    for doubt in doubts::outdated(log.record()) {
        let said = log.record().caveats.contains(&doubt);
        if !said {
            log.warn(None, doubt.kind, doubt.text);
        }
    }
    log.note(Body::Ceilings { flow, ladder: diagnosis.ladder, ceiling: diagnosis.expected });
    log.note(Body::Verdict { flow, verdict: diagnosis.primary, also: diagnosis.also });
}

/// The books down to the wire; a place whose count is not explained weakens the result.
fn reconcile_counts(flow: u16, log: &mut Log<'_>) {
    let steps =
        log.record().flow(flow).map(|found| reconcile::steps(log.record(), found)).unwrap_or_default();
    if steps.is_empty() {
        return;
    }
    let said = reconcile::said(&steps);
    log.note(Body::Reconciled { flow, steps });
    if let Some(text) = said {
        log.warn(Some(flow), CaveatKind::BooksOpen, text);
    }
}

/// The receiver's intervals inside the window, as bit rates.
pub(crate) fn intervals(flow: &FlowRecord) -> Vec<f64> {
    flow.samples_of(Side::Receiver)
        .filter(|sample| !sample.outside)
        .filter_map(|sample| sample.bitrate().map(Bitrate::bps))
        .collect()
}

/// The steady intervals: without the ramp, and without the last one, which the end of the window cuts.
fn steady_intervals(flow: &FlowRecord) -> (usize, Vec<f64>) {
    let mut all = intervals(flow);
    let whole =
        flow.samples_of(Side::Receiver).filter(|s| !s.outside).map(|s| s.span().as_ns()).max().unwrap_or(0);
    let last = flow.samples_of(Side::Receiver).filter(|s| !s.outside).last().map_or(0, |s| s.span().as_ns());
    // An interval a tenth shorter than the others is the rest of the window.
    if last * 10 < whole * 9 {
        all.pop();
    }
    let ramp = ramp::find(&all).map_or(0, |found| found.intervals);
    let steady = all.split_off(ramp.min(all.len()));
    (ramp, steady)
}

/// The steady part of a flow; absent when there are too few intervals to tell.
fn steady(flow: &FlowRecord) -> Option<Steady> {
    let (ramp, rates) = steady_intervals(flow);
    if rates.len() < STEADY_INTERVALS {
        return None;
    }
    let samples: Vec<_> = flow.samples_of(Side::Receiver).filter(|s| !s.outside).collect();
    let ramp_ns = samples.iter().take(ramp).fold(Span::ZERO, |sum, sample| sum + sample.span());
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    // Any target serves: only the width is wanted.
    let half_width = until::achieved(&rates, 1.0).and_then(|p| Ratio::new(p.relative_half_width));
    Some(Steady { ramp_ns, bitrate: Bitrate::from_bps(mean)?, half_width })
}

/// Whether the mean of every flow of the phase is known as well as `--until` asks.
pub(crate) fn known_well_enough(record: &RunRecord, orders: &[FlowOrder], spec: &TestSpec) -> bool {
    let Some(target) = spec.traffic.until else { return false };
    orders.iter().all(|order| {
        record.flow(order.flow()).is_some_and(|flow| {
            let (_, rates) = steady_intervals(flow);
            until::look(&rates, target.get()).is_some_and(|precision| precision.reached)
        })
    })
}
