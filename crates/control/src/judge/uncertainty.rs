//! The uncertainty of a flow's rate, from the receiver's record.

use linerate_model::metrics::flow::{CALLS, LAST_DATA};
use linerate_model::metrics::host::TICK_LATENESS;
use linerate_model::metrics::queue::RCV_HELD;
use linerate_model::metrics::tcp::{BYTES_ACKED, DELIVERED, RETRANSMITS, SND_MSS};
use linerate_model::{CaveatKind, FlowRecord, RunRecord, Sample, Side, Uncertainty};
use linerate_theory::ramp;
use linerate_theory::stats::order;
use linerate_theory::uncertainty::{Observed, budget};
use linerate_units::{Bitrate, Bytes, Span};

use super::{after_ramp, received_from};

/// The uncertainty of the receiver's rate; absent if too little was measured to compute one.
pub(super) fn uncertainty(record: &RunRecord, flow: &FlowRecord) -> Option<Uncertainty> {
    budget(&observed(record, flow)?)
}

fn observed(record: &RunRecord, flow: &FlowRecord) -> Option<Observed> {
    let tally = flow.receiver.as_ref()?;
    let delivered = delivered(flow);
    let (mut steady_bps, steady_s, ramp) = steady_part(flow, &delivered);
    // A foreign receiver reports no intervals, but our kernel knows what it acknowledged.
    let acknowledged = steady_bps.is_empty().then(|| acknowledged(flow)).filter(|rates| !rates.is_empty());
    let by_sender = acknowledged.is_some();
    let ramp = acknowledged.as_ref().map_or(ramp, |rates| ramp::find(rates).unwrap_or(0));
    steady_bps.extend(acknowledged.into_iter().flat_map(|rates| rates.into_iter().skip(ramp)));
    let limits = record.ends(flow).1.and_then(|host| host.limits());
    let calibrated = limits.and_then(|limits| limits.wake_up).map(|late| late.p99_ns);
    // Bytes that a foreign program does not report are not unaccounted.
    let foreign = record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::ForeignPeer);
    Some(Observed {
        goodput_bps: flow.bitrate()?.bps(),
        elapsed_s: tally.elapsed.as_secs_f64(),
        streams: f64::from(flow.plan.streams),
        steady_bps,
        steady_s,
        delivered_bps: delivered.into_iter().skip(ramp).collect(),
        segment_bytes: segment(flow),
        mean_read_bytes: mean_read_bytes(flow),
        by_sender,
        ramped: ramp > 0,
        unread_bytes: unread_bytes(flow, calibrated),
        arrival_times: has_arrival_times(flow),
        held_bytes: flow
            .measured_samples_of(Side::Receiver)
            .last()
            .and_then(|sample| Some(sample.readings.get(RCV_HELD)?.get() as f64)),
        burst_bytes: burst(record, flow),
        unaccounted_bytes: flow
            .byte_accounting
            .filter(|_| !foreign)
            .map(|bytes| bytes.unaccounted_bytes.get() as f64),
        overhead_bps: overhead_bps(flow, tally.elapsed.as_secs_f64()),
        wake_up_s: calibrated.map(Span::as_secs_f64).filter(|_| !begins_and_ends_with_reads(flow)),
        clock_step_s: limits.and_then(|limits| {
            Some(limits.clock_resolution?.as_secs_f64() + limits.clock_read?.as_secs_f64())
        }),
    })
}

/// Rates and lengths of the receiver's intervals after the ramp, and the number of intervals of the ramp. After
/// losses, the rate of the reads at the start says little about the ramp, so the sender's delivery rate is
/// used.
fn steady_part(flow: &FlowRecord, delivered: &[f64]) -> (Vec<f64>, Vec<f64>, usize) {
    let (ramp, ..) = after_ramp(flow);
    let again = flow
        .measured_samples_of(Side::Sender)
        .any(|sample| sample.readings.get(RETRANSMITS).is_some_and(|segments| segments > 0));
    let rose = again.then(|| ramp::find(delivered)).flatten().unwrap_or(ramp);
    let (steady_bps, steady_s) = received_from(flow, rose);
    (steady_bps, steady_s, rose)
}

/// Delivery rates of full segments as seen by the sender, without the last interval.
fn delivered(flow: &FlowRecord) -> Vec<f64> {
    let rate = |sample: &Sample| {
        let (segments, segment) = (sample.readings.get(DELIVERED)?, sample.readings.get(SND_MSS)?);
        Some(Bitrate::of(Bytes::new(segments.saturating_mul(segment.get())), sample.span())?.bps())
    };
    let mut rates: Vec<f64> = flow.measured_samples_of(Side::Sender).filter_map(rate).collect();
    rates.pop();
    rates
}

fn segment(flow: &FlowRecord) -> Option<f64> {
    let sizes = flow.measured_samples_of(Side::Sender).filter_map(|sample| sample.readings.get(SND_MSS));
    sizes.map(|size| size.get() as f64).reduce(f64::max)
}

/// Rates at which our kernel saw payload acknowledged, without the last interval, which the end of the flow
/// shortens.
fn acknowledged(flow: &FlowRecord) -> Vec<f64> {
    let rate = |sample: &Sample| Some(Bitrate::of(sample.readings.get(BYTES_ACKED)?, sample.span())?.bps());
    let samples = flow.measured_samples_of(Side::Sender);
    let mut rates: Vec<f64> = samples.filter_map(rate).collect();
    rates.pop();
    rates
}

/// Whether the receiver's time, and each of its intervals, begins and ends with a read: not with `-O`, and not if
/// its intervals have no times of reads.
fn begins_and_ends_with_reads(flow: &FlowRecord) -> bool {
    let first = flow.receiver.as_ref().is_some_and(|tally| tally.first_read_bytes.get() > 0);
    first && flow.measured_samples_of(Side::Receiver).all(|sample| sample.readings.get(LAST_DATA).is_some())
}

/// Whether these reads have the times at which the kernel received their bytes.
fn has_arrival_times(flow: &FlowRecord) -> bool {
    begins_and_ends_with_reads(flow) && flow.receiver.as_ref().is_some_and(|tally| tally.arrival_times)
}

fn mean_read_bytes(flow: &FlowRecord) -> Option<f64> {
    let tally = flow.receiver.as_ref()?;
    let calls = tally.readings.get(CALLS).filter(|calls| *calls > 0)?;
    Some(tally.bytes.get() as f64 / calls as f64)
}

/// Bytes that may have arrived unnoticed at the moments between which the receiver counts: a read. If these are
/// the kernel's times of arrival, there are none. If these are moments of reads, and the reads take all that has arrived, then it is only what arrives until a late thread
/// has read the clock.
fn unread_bytes(flow: &FlowRecord, calibrated: Option<Span>) -> Option<f64> {
    /// Reads that fill less of their buffer than this, on average, take all that has arrived.
    const FULL_SHARE: f64 = 0.5;
    if has_arrival_times(flow) {
        return None;
    }
    let read = mean_read_bytes(flow)?;
    let buffer = flow.receiver_settings.as_ref().map(|settings| settings.length.get() as f64);
    let takes_all = buffer.is_some_and(|buffer| read < FULL_SHARE * buffer);
    let late_s = lateness_s(flow).filter(|_| takes_all && begins_and_ends_with_reads(flow));
    let Some(late_s) = late_s else { return Some(read) };
    let late_s = late_s.max(calibrated.map_or(0.0, Span::as_secs_f64));
    let rate = flow.bitrate().map_or(0.0, Bitrate::bps);
    Some((late_s * rate / 8.0).min(read))
}

/// The lateness of the receiver's intervals that one in twenty exceeds, s: its reading threads are scheduled like
/// the one that ends the intervals. Absent if there are fewer than twenty.
fn lateness_s(flow: &FlowRecord) -> Option<f64> {
    let samples = flow.measured_samples_of(Side::Receiver);
    let late: Vec<f64> =
        samples.filter_map(|sample| Some(sample.readings.get(TICK_LATENESS)?.as_secs_f64())).collect();
    order::percentile(&late, 0.95).filter(|_| late.len() >= 20)
}

/// The block size of a sender with an offered rate, which waits between its blocks; absent for a saturating
/// sender.
fn burst(record: &RunRecord, flow: &FlowRecord) -> Option<f64> {
    record.start.as_ref()?.spec.traffic.offered()?;
    let settings = flow.sender_settings.as_ref()?;
    Some(settings.length.get() as f64)
}

/// The rate of probes and dialogue in the direction of the flow, bit/s.
fn overhead_bps(flow: &FlowRecord, elapsed_s: f64) -> Option<f64> {
    /// A probe with Ethernet, IPv4 and UDP headers; IPv6 adds 20 bytes.
    const PROBE_WIRE_BYTES: f64 = 64.0 + 14.0 + 28.0;
    /// Headers of a dialogue segment: Ethernet, IP, and TCP with timestamps.
    const DIALOGUE_HEADER_BYTES: f64 = 14.0 + 20.0 + 32.0;
    let probes = flow.loaded.as_ref().map(|report| report.sent as f64 * PROBE_WIRE_BYTES);
    let control = flow.sender.as_ref().and_then(|tally| tally.kernel.as_ref()?.control);
    let control = control
        .map(|counts| counts.sent_bytes.get() as f64 + counts.segments_out as f64 * DIALOGUE_HEADER_BYTES);
    let bytes = probes.unwrap_or(0.0) + control.unwrap_or(0.0);
    (elapsed_s > 0.0 && bytes > 0.0).then(|| bytes * 8.0 / elapsed_s)
}
