//! The effective window of a flow and the rate that it allows, from its record.

use linerate_model::metrics::{Metric, Side, tcp};
use linerate_model::{FlowRecord, Limit, RunRecord};
use linerate_theory::bdp;
use linerate_theory::stats::order::median;
use linerate_units::Bytes;

/// Bytes in flight (sent and not acknowledged) of all streams, averaged over the measured part.
///
/// This is the effective size of a configured window. Part of a buffer is overhead, a receiver announces the
/// room that it expects to have, and a writer with a full buffer sleeps until a third is free. The kernel
/// counts packets, some of which are not full; together they fit the announced window. Source: Linux
/// `tcpi_unacked`, RFC 9293 §3.8.6.
pub(super) fn in_flight_bytes(flow: &FlowRecord) -> Option<f64> {
    let samples = flow.measured_samples_of(Side::Sender);
    let of = |sample: &linerate_model::Sample| {
        let in_flight = sample.readings.get(tcp::UNACKED)?.get();
        Some(sample.readings.get(tcp::SND_WND).map_or(in_flight, |announced| in_flight.min(announced.get())))
    };
    let all: Vec<f64> = samples.filter_map(of).map(|bytes| bytes as f64).collect();
    mean(&all).filter(|bytes| *bytes > 0.0)
}

/// The window that the receiver announced, of all streams, as the sender received it: the median of the
/// measured part.
pub(super) fn announced_bytes(flow: &FlowRecord) -> Option<f64> {
    median(&measured(flow, tcp::SND_WND))
}

fn measured(flow: &FlowRecord, metric: Metric<Bytes>) -> Vec<f64> {
    let samples = flow.measured_samples_of(Side::Sender);
    samples.filter_map(|sample| Some(sample.readings.get(metric)?.get() as f64)).collect()
}

fn mean(all: &[f64]) -> Option<f64> {
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// The RTT without a queue, ns: the median of the probes before the load; without probes, the smallest RTT that
/// the flow's kernel saw.
pub(super) fn base_rtt_ns(run: &RunRecord, flow: &FlowRecord) -> Option<f64> {
    let idle = run.idle.as_ref().filter(|idle| idle.rtt.count > 0).map(|idle| idle.rtt.p50_ns as f64);
    let seen = || {
        let of = flow.samples_of(Side::Sender).filter_map(|sample| sample.readings.get(tcp::MIN_RTT));
        of.map(|rtt| rtt.as_ns() as f64).reduce(f64::min)
    };
    idle.or_else(seen).filter(|rtt| *rtt > 0.0)
}

/// The rate that the effective window allows at the RTT without a queue, at most the ceiling, bit/s.
///
/// # Source
/// RFC 6349 §3.3.1
pub(super) fn rate_bps(run: &RunRecord, flow: &FlowRecord) -> Option<f64> {
    let in_flight = in_flight_bytes(flow)?;
    let (rtt_s, ceiling) = (base_rtt_ns(run, flow)? / 1e9, flow.ceiling.as_ref()?.bitrate_bps);
    bdp::windowed_goodput_bps(in_flight, rtt_s, ceiling)
}

/// The window that fills the path, of all streams together, bytes.
///
/// # Source
/// RFC 6349 §3.3.1
pub(super) fn needed_bytes(run: &RunRecord, flow: &FlowRecord) -> Option<f64> {
    bdp::bdp_bytes(link_bps(flow)?, base_rtt_ns(run, flow)? / 1e9)
}

/// Payload rate of the line; if the line is unknown, the ceiling that the flow is compared with.
fn link_bps(flow: &FlowRecord) -> Option<f64> {
    line_bps(flow).or_else(|| flow.ceiling.as_ref().map(|ceiling| ceiling.bitrate_bps))
}

/// Payload rate of the line, if it is known.
pub(super) fn line_bps(flow: &FlowRecord) -> Option<f64> {
    let link = flow.ceilings.iter().find(|ceiling| ceiling.limit == Limit::Link);
    link.map(|ceiling| ceiling.bitrate_bps)
}
