//! The uncertainty of a flow's rate, from the receiver's record.

use linerate_model::metrics::flow::CALLS;
use linerate_model::metrics::tcp::{BYTES_ACKED, DELIVERED, RETRANSMITS, SND_MSS};
use linerate_model::{CaveatKind, FlowRecord, RunRecord, Sample, Side, Uncertainty};
use linerate_theory::ramp;
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
    let (mut steady_bps, steady_s, ramp) = steady_part(flow, &delivered, tally.elapsed.as_secs_f64());
    // A foreign receiver reports no intervals, but our kernel knows what it acknowledged.
    let acknowledged = steady_bps.is_empty().then(|| acknowledged(flow)).filter(|rates| !rates.is_empty());
    let by_sender = acknowledged.is_some();
    let ramp = acknowledged.as_ref().map_or(ramp, |rates| ramp::find(rates).unwrap_or(0));
    steady_bps.extend(acknowledged.into_iter().flat_map(|rates| rates.into_iter().skip(ramp)));
    let calls = tally.readings.get(CALLS).filter(|calls| *calls > 0);
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
        by_sender,
        ramped: ramp > 0,
        read_bytes: calls.map(|calls| tally.bytes.get() as f64 / calls as f64),
        burst_bytes: burst(record, flow),
        unaccounted_bytes: flow
            .byte_accounting
            .filter(|_| !foreign)
            .map(|bytes| bytes.unaccounted_bytes.get() as f64),
        overhead_bps: overhead_bps(flow, tally.elapsed.as_secs_f64()),
        wake_up_s: calibrated.map(Span::as_secs_f64),
        clock_step_s: limits.and_then(|limits| {
            Some(limits.clock_resolution?.as_secs_f64() + limits.clock_read?.as_secs_f64())
        }),
    })
}

/// Rates and lengths of the receiver's intervals after the ramp, and the number of intervals of the ramp. After
/// losses, the rate of the reads at the start says little about the ramp, so the sender's delivery rate is
/// used.
fn steady_part(flow: &FlowRecord, delivered: &[f64], elapsed_s: f64) -> (Vec<f64>, Vec<f64>, usize) {
    let (ramp, ..) = after_ramp(flow);
    let again = flow
        .measured_samples_of(Side::Sender)
        .any(|sample| sample.readings.get(RETRANSMITS).is_some_and(|segments| segments > 0));
    let rose = again.then(|| ramp::find(delivered)).flatten().unwrap_or(ramp);
    let before = flow.measured_samples_of(Side::Receiver).take(rose);
    let before_s: f64 = before.map(|sample| sample.span().as_secs_f64()).sum();
    let (steady_bps, steady_s) = received_from(flow, rose);
    let (steady_bps, steady_s) = until_last_read(steady_bps, steady_s, elapsed_s - before_s);
    (steady_bps, steady_s, rose)
}

/// Shortens the intervals to end with the last read: nothing arrived after it, and that time is not part of the
/// receiver's. Their mean then equals the stated rate.
fn until_last_read(mut rates: Vec<f64>, mut lengths: Vec<f64>, time_s: f64) -> (Vec<f64>, Vec<f64>) {
    let surplus = lengths.iter().sum::<f64>() - time_s;
    // If less than half of the last interval is left, it is merged with the one before.
    while let ([.., before, last], [.., bits_before, bits]) = (&mut lengths[..], &mut rates[..])
        && surplus > 0.0
    {
        if *last >= 2.0 * surplus {
            *bits *= *last / (*last - surplus);
            *last -= surplus;
            break;
        }
        let together = *before + *last;
        *bits_before = (*bits_before * *before + *bits * *last) / together;
        *before = together;
        lengths.pop();
        rates.pop();
    }
    (rates, lengths)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_the_last_read_is_no_part_of_the_time() {
        let of = |time| until_last_read(vec![100.0, 100.0, 60.0], vec![0.1; 3], time);
        // The last read came after three fifths, or almost nothing, of the last interval.
        let (rates, lengths) = of(0.26);
        assert!((rates[2] - 100.0).abs() < 1e-9 && (lengths[2] - 0.06).abs() < 1e-9, "{rates:?} {lengths:?}");
        let (rates, lengths) = until_last_read(vec![100.0, 100.0, 1.0], vec![0.1; 3], 0.201);
        assert_eq!(rates.len(), 2);
        assert!(
            (rates[1] - 100.0).abs() < 1e-6 && (lengths[1] - 0.101).abs() < 1e-9,
            "{rates:?} {lengths:?}"
        );
        // Nothing to remove; nothing left.
        assert_eq!(of(0.4), (vec![100.0, 100.0, 60.0], vec![0.1; 3]));
        assert_eq!(of(-1.0).0.len(), 1);
        assert_eq!(until_last_read(Vec::new(), Vec::new(), 1.0), (Vec::new(), Vec::new()));
    }
}
