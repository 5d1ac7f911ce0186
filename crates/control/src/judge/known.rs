//! How well the rate of a flow is known, from what its receiver recorded.

use linerate_model::metrics::flow::CALLS;
use linerate_model::metrics::tcp::{BYTES_ACKED, DELIVERED, RETRANSMITS, SND_MSS};
use linerate_model::{CaveatKind, FlowRecord, RunRecord, Sample, Side, Uncertainty};
use linerate_theory::ramp;
use linerate_theory::uncertainty::{Observed, budget};
use linerate_units::{Bitrate, Bytes, Span};

use super::after_ramp;

/// The uncertainty of the receiver's rate; absent where too little was measured to state one.
pub(super) fn uncertainty(record: &RunRecord, flow: &FlowRecord) -> Option<Uncertainty> {
    budget(&observed(record, flow)?)
}

fn observed(record: &RunRecord, flow: &FlowRecord) -> Option<Observed> {
    let tally = flow.receiver.as_ref()?;
    let (ramp, mut steady_bps, steady_s) = after_ramp(flow);
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
        delivered_bps: delivered(flow, ramp),
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

/// Rates at which the sender saw full segments delivered, behind the ramp and without the last interval, where some were
/// sent again: then the receiver's intervals show when holes were filled.
fn delivered(flow: &FlowRecord, ramp: usize) -> Vec<f64> {
    let samples: Vec<&Sample> = flow.measured_samples_of(Side::Sender).collect();
    let again: u64 = samples.iter().filter_map(|sample| sample.readings.get(RETRANSMITS)).sum();
    if again == 0 {
        return Vec::new();
    }
    let rate = |sample: &&Sample| {
        let (segments, segment) = (sample.readings.get(DELIVERED)?, sample.readings.get(SND_MSS)?);
        Some(Bitrate::of(Bytes::new(segments * segment.get()), sample.span())?.bps())
    };
    let rates: Vec<f64> = samples.iter().skip(ramp).filter_map(rate).collect();
    rates[..rates.len().saturating_sub(1)].to_vec()
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
