//! How well the rate of a flow is known, from what its receiver recorded.

use linerate_model::metrics::flow::CALLS;
use linerate_model::metrics::tcp::{BYTES_ACKED, DELIVERED, RETRANSMITS, SND_MSS};
use linerate_model::{CaveatKind, FlowRecord, RunRecord, Sample, Side, Uncertainty};
use linerate_theory::ramp;
use linerate_theory::uncertainty::{Observed, budget};
use linerate_units::{Bitrate, Bytes, Span};

use super::{after_ramp, received_from};

/// The uncertainty of the receiver's rate; absent where too little was measured to state one.
pub(super) fn uncertainty(record: &RunRecord, flow: &FlowRecord) -> Option<Uncertainty> {
    budget(&observed(record, flow)?)
}

fn observed(record: &RunRecord, flow: &FlowRecord) -> Option<Observed> {
    let tally = flow.receiver.as_ref()?;
    let delivered = delivered(flow);
    let (mut steady_bps, steady_s, ramp) = steady_part(flow, &delivered);
    // A receiver that is a program of others tells no intervals; what it acknowledged, our kernel knows.
    let acknowledged = steady_bps.is_empty().then(|| acknowledged(flow)).filter(|rates| !rates.is_empty());
    let by_sender = acknowledged.is_some();
    let ramp =
        acknowledged.as_ref().map_or(ramp, |rates| ramp::find(rates).map_or(0, |found| found.intervals));
    steady_bps.extend(acknowledged.into_iter().flat_map(|rates| rates.into_iter().skip(ramp)));
    let calls = tally.readings.get(CALLS).filter(|calls| *calls > 0);
    let limits = record.ends(flow).1.and_then(|host| host.limits());
    let calibrated = limits.and_then(|limits| limits.wake_up).map(|late| late.p99_ns);
    // What another program keeps back is missing from no books.
    let foreign = record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::ForeignPeer);
    Some(Observed {
        goodput_bps: flow.bitrate()?.bps(),
        elapsed_s: tally.elapsed.as_secs_f64(),
        streams: f64::from(flow.plan.streams),
        steady_bps,
        steady_s,
        delivered_bps: delivered.into_iter().skip(ramp).collect(),
        segment_bytes: segment(flow),
        by_sender,
        ramped: ramp > 0,
        read_bytes: calls.map(|calls| tally.bytes.get() as f64 / calls as f64),
        burst_bytes: burst(record, flow),
        unaccounted_bytes: flow.books.filter(|_| !foreign).map(|books| books.unaccounted_bytes.get() as f64),
        beside_bps: beside_bps(flow, tally.elapsed.as_secs_f64()),
        wake_up_s: calibrated.map(Span::as_secs_f64),
        clock_step_s: limits.and_then(|limits| {
            Some(limits.clock_resolution?.as_secs_f64() + limits.clock_read?.as_secs_f64())
        }),
    })
}

/// Rates and lengths of the receiver's intervals behind the ramp, and how many belong to that. Where segments were missing,
/// what could be read at the start says little of how the rate rose: what was delivered does.
fn steady_part(flow: &FlowRecord, delivered: &[f64]) -> (Vec<f64>, Vec<f64>, usize) {
    let (ramp, steady_bps, steady_s) = after_ramp(flow);
    let again =
        flow.measured_samples_of(Side::Sender).any(|sample| sample.readings.get(RETRANSMITS) > Some(0));
    let rose = again.then(|| ramp::find(delivered)).flatten().map_or(ramp, |found| found.intervals);
    if rose == ramp {
        return (steady_bps, steady_s, ramp);
    }
    let (steady_bps, steady_s) = received_from(flow, rose);
    (steady_bps, steady_s, rose)
}

/// Rates at which the sender saw full segments delivered, without the last interval.
fn delivered(flow: &FlowRecord) -> Vec<f64> {
    let rate = |sample: &Sample| {
        let (segments, segment) = (sample.readings.get(DELIVERED)?, sample.readings.get(SND_MSS)?);
        Some(Bitrate::of(Bytes::new(segments * segment.get()), sample.span())?.bps())
    };
    let mut rates: Vec<f64> = flow.measured_samples_of(Side::Sender).filter_map(rate).collect();
    rates.pop();
    rates
}

fn segment(flow: &FlowRecord) -> Option<f64> {
    let sizes = flow.measured_samples_of(Side::Sender).filter_map(|sample| sample.readings.get(SND_MSS));
    sizes.map(|size| size.get() as f64).reduce(f64::max)
}

/// Rates at which our kernel saw payload acknowledged, without the last interval, which the end cuts.
fn acknowledged(flow: &FlowRecord) -> Vec<f64> {
    let rate = |sample: &Sample| Some(Bitrate::of(sample.readings.get(BYTES_ACKED)?, sample.span())?.bps());
    let samples = flow.measured_samples_of(Side::Sender);
    let mut rates: Vec<f64> = samples.filter_map(rate).collect();
    rates.pop();
    rates
}

/// A sender that offers a rate waits between its blocks, and one that saturates does not.
fn burst(record: &RunRecord, flow: &FlowRecord) -> Option<f64> {
    record.start.as_ref()?.spec.traffic.offered()?;
    let settings = flow.sender_settings.as_ref()?;
    Some(settings.length.get() as f64)
}

/// What probes and the dialogue put on the path in the direction of the flow, bit/s.
fn beside_bps(flow: &FlowRecord, elapsed_s: f64) -> Option<f64> {
    /// A probe with the headers of Ethernet, IP and UDP; IPv6 has 20 bytes more.
    const PROBE: f64 = 64.0 + 14.0 + 28.0;
    /// Headers of a segment of the dialogue, with timestamps.
    const SEGMENT: f64 = 14.0 + 20.0 + 32.0;
    let probes = flow.loaded.as_ref().map(|report| report.sent as f64 * PROBE);
    let dialogue = flow.sender.as_ref().and_then(|tally| tally.kernel.as_ref()?.dialogue);
    let dialogue =
        dialogue.map(|counts| counts.sent_bytes.get() as f64 + counts.segments_out as f64 * SEGMENT);
    let bytes = probes.unwrap_or(0.0) + dialogue.unwrap_or(0.0);
    (elapsed_s > 0.0 && bytes > 0.0).then(|| bytes * 8.0 / elapsed_s)
}
