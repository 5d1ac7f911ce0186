//! A flow over time: rate, latency, retransmissions, windows, RTT, queues and processors on one time axis.

use std::collections::BTreeSet;

use linerate_model::metrics::{Metric, MetricType, flow, host, loss, port, queue, tcp};
use linerate_model::{FlowRecord, PortRecord, Readings, RunRecord, Sample, Side};
use linerate_units::Timestamp;

use super::chart::{
    Band, Chart, ChartAxis, ChartKind, ChartLine, Hue, Level, LineStyle, Panel, Rounded, folded,
};
use super::latency;
use super::streams;
use super::thin::thin;
use crate::figure::caveats;

/// Intervals shorter than this fraction of the longest one are slivers.
const SLIVER_DIVISOR: u64 = 10;
/// Largest number of ports of an emulated network in one panel: those with the largest queues.
const MAX_PORTS: usize = 4;

/// The panel of the rate, and that of the queues.
const RATE: &str = "bit rate of payload";
const WAITING: &str = "waiting data";

/// One line of a panel, by side and metric.
struct PanelLine {
    side: Side,
    metric: &'static str,
    label: &'static str,
    style: LineStyle,
}

const fn wanted<Q>(side: Side, metric: &Metric<Q>, label: &'static str, style: LineStyle) -> PanelLine
where
    Q: MetricType,
{
    PanelLine { side, metric: metric.name(), label, style }
}

/// A panel: quantity, unit, lines, which are drawn if measured, and the sentence for a panel in which all values
/// are 0.
type PanelRow = (&'static str, &'static str, Vec<PanelLine>, &'static str);

/// The panels from top to bottom.
fn layout() -> [PanelRow; 7] {
    use LineStyle::{Bars, Steps};
    use Side::{Receiver, Sender};
    let rate = vec![
        wanted(Receiver, &flow::BITRATE, "received", Steps),
        wanted(Sender, &flow::BITRATE, "written to the sender's socket", Steps),
    ];
    let repair = vec![wanted(Sender, &tcp::RETRANSMITS, "retransmitted", Bars)];
    let losses = vec![wanted(Receiver, &loss::LOST, "lost", Bars)];
    let windows = vec![
        wanted(Sender, &tcp::CWND, "cwnd, limit of bytes in flight", LineStyle::Line),
        wanted(Sender, &tcp::SND_WND, "rwnd, advertised by the receiver", LineStyle::Line),
    ];
    let times = vec![
        wanted(Sender, &tcp::SRTT, "smoothed round-trip time", LineStyle::Line),
        wanted(Sender, &tcp::MIN_RTT, "minimum so far", LineStyle::Line),
        wanted(Receiver, &loss::JITTER, "jitter", LineStyle::Line),
    ];
    let queues = vec![
        wanted(Sender, &queue::SND, "send queue", LineStyle::Line),
        wanted(Receiver, &queue::RCV, "receive queue", LineStyle::Line),
    ];
    let processors = vec![
        wanted(Sender, &host::THREAD_CPU, "busiest thread, sender", Steps),
        wanted(Receiver, &host::THREAD_CPU, "busiest thread, receiver", Steps),
        wanted(Sender, &host::BUSY, "all cores, sender", Steps),
        wanted(Receiver, &host::BUSY, "all cores, receiver", Steps),
    ];
    [
        (RATE, "bit/s", rate, "Nothing was received."),
        ("retransmitted segments in an interval", "1", repair, "No segment was retransmitted."),
        ("lost datagrams in an interval", "1", losses, "No datagram was lost."),
        ("windows", "bytes", windows, "No windows were reported."),
        ("round-trip time and jitter", "ns", times, "There was no jitter."),
        (WAITING, "bytes", queues, "No data waited in a queue."),
        ("busy share of the CPUs", "ratio", processors, "The CPUs were idle."),
    ]
}

/// All metrics of the charts, the bytes of an interval first.
pub(super) fn metrics() -> Vec<&'static str> {
    let mut names = vec![flow::BYTES.name()];
    for wanted in layout().iter().flat_map(|(_, _, lines, _)| lines) {
        if !names.contains(&wanted.metric) {
            names.push(wanted.metric);
        }
    }
    names
}

/// The chart of a flow; `None` without samples and without counts of its streams.
pub(super) fn chart(record: &RunRecord, flow: &FlowRecord) -> Option<Chart> {
    let known = known(flow);
    let panels = layout().into_iter().filter_map(|(label, unit, lines, none)| {
        let measured = lines.iter().filter(|wanted| known.contains(wanted.metric));
        let mut lines: Vec<ChartLine> = measured.filter_map(|wanted| line(flow, wanted)).collect();
        if label == WAITING {
            lines.extend(port_lines(record, flow));
        }
        let levels = if label == RATE { levels(flow) } else { Vec::new() };
        let y = ChartAxis::linear(label, unit);
        (!lines.is_empty()).then(|| (Panel { levels, ..Panel::of_lines(y, lines) }, none.to_owned()))
    });
    let (mut panels, notes) = folded(panels.collect());
    if let Some(latency) = latency::panel(record, flow) {
        // Below the rate: latency under load is the other half of the answer.
        let rate = panels.iter().position(|panel| panel.y.label == RATE);
        panels.insert(rate.map_or(0, |rate| rate + 1), latency);
    }
    panels.extend(streams::panel(flow));
    let x = ChartAxis::linear("time since each end's first byte", "s");
    let title = format!("{} over time", flow.plan.name);
    (!panels.is_empty()).then(|| Chart { kind: ChartKind::Time, title, x, panels, bands: bands(flow), notes })
}

/// All metrics in the samples of a flow, so that a long log is not searched for metrics that it does not have.
fn known(flow: &FlowRecord) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    let mut last: Vec<&str> = Vec::new();
    for sample in &flow.samples {
        // Consecutive intervals usually have the same names.
        if !sample.readings.iter().map(|(name, _)| name).eq(last.iter().copied()) {
            last = sample.readings.iter().map(|(name, _)| name).collect();
            known.extend(&last);
        }
    }
    known
}

/// A line of the received rate only, for several runs in one panel.
pub(super) fn received(flow: &FlowRecord, label: String) -> Option<ChartLine> {
    let wanted = wanted(Side::Receiver, &flow::BITRATE, "received", LineStyle::Steps);
    // Several runs in one panel have a colour each.
    Some(ChartLine { label, hue: None, ..line(flow, &wanted)? })
}

fn line(of: &FlowRecord, wanted: &PanelLine) -> Option<ChartLine> {
    let longest = of.samples_of(wanted.side).map(Sample::span).max().unwrap_or_default();
    // A rate over a very short interval, as after the end of a test, would be a meaningless spike.
    let whole = |sample: &&Sample| {
        wanted.style != LineStyle::Steps || sample.span().as_ns() >= longest.as_ns() / SLIVER_DIVISOR
    };
    let samples = || of.samples_of(wanted.side).filter(whole);
    samples().find(|sample| sample.readings.named(wanted.metric).is_some())?;
    let points = samples().map(|sample| (sample.end_ns, value(&sample.readings, wanted.metric)));
    let mut points: Vec<(f64, Option<f64>)> = points.map(|(end, value)| (seconds(end), value)).collect();
    // A step holds for the time before its point, so the first one needs its start.
    if let (LineStyle::Steps, Some(first)) = (wanted.style, samples().next()) {
        points.insert(0, (seconds(first.start_ns), value(&first.readings, wanted.metric)));
    }
    let line = thin(ChartLine::of(wanted.label, wanted.style, points));
    let style = if line.thinned_from.is_some() && wanted.style == LineStyle::Steps {
        LineStyle::Line
    } else {
        wanted.style
    };
    let received = wanted.side == Side::Receiver && wanted.metric == flow::BITRATE.name();
    let hue = received.then(|| Hue::from(of.plan.direction));
    Some(ChartLine { metric: Some(wanted.metric), style, hue, ..line })
}

fn value(readings: &Readings, name: &str) -> Option<f64> {
    readings.named(name).map(linerate_model::MetricValue::real)
}

fn seconds(at: Timestamp) -> f64 {
    at.as_ns() as f64 / 1e9
}

/// The largest queue per interval at the ports that this flow passed, the port with the largest queue first.
/// Times of a port count from the start of the run, so the time of the receiver's first read is subtracted.
fn port_lines(record: &RunRecord, flow: &FlowRecord) -> Vec<ChartLine> {
    let first = flow.first_read.map_or(0.0, seconds);
    let passed = record.ports.iter().filter(|ports| ports.flows.contains(&flow.plan.flow));
    let largest = |ports: &PortRecord| {
        ports.samples.iter().filter_map(|sample| sample.readings.get(port::QUEUE_MAX)).max()
    };
    let mut passed: Vec<(u64, &PortRecord)> = passed
        .filter_map(|ports| Some((largest(ports)?.get(), ports)))
        .filter(|(largest, _)| *largest > 0)
        .collect();
    passed.sort_by(|(a, _), (b, _)| b.cmp(a));
    let lines = passed.into_iter().take(MAX_PORTS).map(|(_, ports)| {
        let metric = port::QUEUE_MAX.name();
        let points = ports
            .samples
            .iter()
            .map(|sample| (seconds(sample.end_ns) - first, value(&sample.readings, metric)));
        let label = format!("largest queue at port {}", ports.port);
        ChartLine { metric: Some(metric), ..thin(ChartLine::of(label, LineStyle::Line, points)) }
    });
    lines.collect()
}

/// The ceiling and the steady mean as horizontal lines.
fn levels(flow: &FlowRecord) -> Vec<Level> {
    let ceiling = flow.ceiling.as_ref().filter(|ceiling| ceiling.bitrate_bps.is_finite());
    let ceiling = ceiling.map(|ceiling| Level {
        label: format!("ceiling ({})", ceiling.limit.words()),
        value: Rounded(ceiling.bitrate_bps),
    });
    ceiling.into_iter().collect()
}

/// Remarks on ranges of the time: parts outside of the result, the ramp, and caveats on the whole time.
fn bands(flow: &FlowRecord) -> Vec<Band> {
    let mut bands = outside(flow);
    if let Some(steady) = flow.steady.filter(|steady| steady.ramp_ns.as_ns() > 0) {
        let from = bands.iter().find(|band| band.from.is_none()).and_then(|band| band.to);
        // The axis may begin before the flow, with the latency before the load.
        let from = from.unwrap_or(Rounded(0.0));
        let to = Rounded(from.0 + steady.ramp_ns.as_secs_f64());
        let text = format!("ramp-up of {}, not in the steady mean", steady.ramp_ns);
        bands.push(Band { from: Some(from), to: Some(to), text, caveat: false });
    }
    bands.extend(caveats(flow).iter().map(|caveat| Band {
        from: None,
        to: None,
        text: caveat.text.to_string(),
        caveat: true,
    }));
    bands
}

/// The omitted start and the tail, as marked by the receiver's samples.
fn outside(flow: &FlowRecord) -> Vec<Band> {
    let samples: Vec<_> = flow.samples_of(Side::Receiver).collect();
    let Some(first) = samples.iter().find(|sample| !sample.outside) else { return Vec::new() };
    let last = samples.iter().rev().find(|sample| !sample.outside);
    let omitted = samples.first().is_some_and(|sample| sample.outside).then(|| Band {
        from: None,
        to: Some(Rounded(seconds(first.start_ns))),
        text: "omitted, not in the result".to_owned(),
        caveat: false,
    });
    let tail = samples.last().filter(|sample| sample.outside).zip(last).map(|(_, last)| Band {
        from: Some(Rounded(seconds(last.end_ns))),
        to: None,
        text: "after the measured time, not in the result".to_owned(),
        caveat: false,
    });
    omitted.into_iter().chain(tail).collect()
}
