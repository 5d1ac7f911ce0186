//! Latency over time, on the time axis of the rate: round-trip times of probes by interval, idle and under load.

use linerate_model::{FlowRecord, LatencyInterval, LatencyReport, RunRecord};
use linerate_theory::stats::order::median;
use linerate_units::Timestamp;

use super::chart::{ChartAxis, ChartLine, Hue, Level, LineStyle, Panel, Rounded};
use super::thin::thin;

/// Probes before the load are drawn if they ended at most this long before the flow's first byte: the time axis
/// of a later flow would otherwise begin with a gap.
const MAX_PAUSE_NS: u64 = 1_000_000_000;

/// The panel of a flow; `None` if the log has no latency by interval under its load.
pub(super) fn panel(record: &RunRecord, flow: &FlowRecord) -> Option<Panel> {
    let loaded = flow.loaded.as_ref().filter(|report| !report.intervals.is_empty())?;
    // Times of probes count from the start of the run, those of a flow from its first byte.
    let origin = flow.first_read.unwrap_or_default();
    let idle = record.idle.as_ref();
    let before = idle.filter(|idle| ends_shortly_before(idle, origin));
    let before = before.map(|idle| line("before the load", &idle.intervals, origin, None));
    let under_load = line("under load", &loaded.intervals, origin, Some(Hue::Latency));
    let levels = idle.and_then(before_the_load);
    let label = format!("round-trip time of probes, {}", words(&loaded.intervals));
    let lines = std::iter::once(under_load).chain(before).collect();
    let panel = Panel::of_lines(ChartAxis::linear(label, "ns"), lines);
    Some(Panel { levels: levels.into_iter().collect(), ..panel })
}

/// The round trip before the load, from the driver as in the intervals. Logs of earlier versions have it only with
/// the time in the host's own queue.
fn before_the_load(idle: &LatencyReport) -> Option<Level> {
    let medians: Vec<f64> =
        idle.intervals.iter().filter_map(|interval| Some(interval.p50_ns? as f64)).collect();
    if let Some(median) = median(&medians) {
        return Some(Level { label: "median before the load".to_owned(), value: Rounded(median) });
    }
    let label = "median before the load, with the host's queue".to_owned();
    (idle.rtt.count > 0).then_some(Level { label, value: Rounded(idle.rtt.p50_ns as f64) })
}

fn ends_shortly_before(idle: &LatencyReport, origin: Timestamp) -> bool {
    let end = idle.intervals.last().map(|interval| interval.end_ns.as_ns());
    end.is_some_and(|end| end.saturating_add(MAX_PAUSE_NS) >= origin.as_ns())
}

/// What the value of an interval is. Logs of earlier versions have no median.
fn words(intervals: &[LatencyInterval]) -> &'static str {
    if intervals.iter().any(|interval| interval.p50_ns.is_some()) {
        "median and range"
    } else {
        "third largest and range"
    }
}

/// A value in the middle of each interval, with the smallest and the largest round trip as its range.
fn line(label: &str, intervals: &[LatencyInterval], origin: Timestamp, hue: Option<Hue>) -> ChartLine {
    let seconds = |ns: u64| (i128::from(ns) - i128::from(origin.as_ns())) as f64 / 1e9;
    let mut line = ChartLine { hue, ..ChartLine::of(label, LineStyle::Line, []) };
    let mut push = |at: f64, value: Option<[u64; 3]>| {
        line.x.push(Rounded(at));
        let [low, y, high] = value.map_or([None; 3], |ends| ends.map(|ns| Some(Rounded(ns as f64))));
        line.low.push(low);
        line.y.push(y);
        line.high.push(high);
    };
    let mut last: Option<u64> = None;
    for interval in intervals {
        let (start, end) = (interval.start_ns.as_ns(), interval.end_ns.as_ns());
        if last.is_some_and(|last| end <= last) {
            continue;
        }
        // A line is not drawn across intervals without an answer.
        if let Some(last) = last.filter(|last| *last < start) {
            push(seconds(last.midpoint(start)), None);
        }
        let value = interval.p50_ns.unwrap_or(interval.high_ns);
        push(seconds(start.midpoint(end)), Some([interval.min_ns, value, interval.max_ns]));
        last = Some(end);
    }
    thin(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::flow::FlowId;
    use linerate_model::{Direction, Transport};

    use crate::samples_of_runs as runs;

    const MS: u64 = 1_000_000;

    fn interval(start_ms: u64, rtt_ms: u64) -> LatencyInterval {
        LatencyInterval {
            start_ns: Timestamp::from_ns(start_ms * MS),
            end_ns: Timestamp::from_ns((start_ms + 100) * MS),
            count: 10,
            min_ns: rtt_ms * MS,
            p50_ns: Some((rtt_ms + 1) * MS),
            high_ns: (rtt_ms + 2) * MS,
            max_ns: (rtt_ms + 3) * MS,
        }
    }

    /// Probes from 0.5 s to 1 s without load; a flow whose first byte comes at 1.1 s; no answers from 1.3 s to
    /// 1.5 s.
    fn record() -> RunRecord {
        let mut record = RunRecord::fold(&runs::log(vec![
            runs::probes(None, 210),
            runs::planned(0, Direction::Upload, Transport::Tcp),
            runs::probes(Some(FlowId(0)), 900),
        ]));
        record.idle.as_mut().unwrap().intervals = (5..10).map(|at| interval(at * 100, 2)).collect();
        let flow = &mut record.flows[0];
        flow.first_read = Some(Timestamp::from_ns(1100 * MS));
        flow.loaded.as_mut().unwrap().intervals = [1100, 1200, 1500].map(|at| interval(at, 40)).to_vec();
        record
    }

    fn values(values: &[Option<Rounded>]) -> Vec<Option<f64>> {
        values.iter().map(|value| value.map(|value| value.0 / MS as f64)).collect()
    }

    #[test]
    fn latency_is_on_the_time_axis_of_the_rate_with_a_gap_where_nothing_came_back() {
        let record = record();
        let panel = panel(&record, &record.flows[0]).unwrap();
        assert_eq!(panel.y.label, "round-trip time of probes, median and range");
        let [loaded, idle] = panel.lines.as_slice() else { panic!("{:?}", panel.lines) };
        let x: Vec<f64> = loaded.x.iter().map(|x| x.0).collect();
        assert_eq!(x, [0.05, 0.15, 0.3, 0.45]);
        assert_eq!(values(&loaded.y), [Some(41.0), Some(41.0), None, Some(41.0)]);
        assert_eq!(values(&loaded.low)[3], Some(40.0));
        assert_eq!(values(&loaded.high)[3], Some(43.0));
        assert_eq!((idle.x[0].0, idle.x.len()), (-0.55, 5));
        assert_eq!(
            (panel.levels[0].label.as_str(), panel.levels[0].value.0),
            ("median before the load", 3_000_000.0)
        );
    }

    #[test]
    fn a_later_flow_has_the_median_before_the_load_as_a_level_only() {
        let mut record = record();
        record.flows[0].first_read = Some(Timestamp::from_ns(12_000 * MS));
        let panel = panel(&record, &record.flows[0]).unwrap();
        assert_eq!((panel.lines.len(), panel.levels.len()), (1, 1));
    }

    #[test]
    fn a_log_of_an_earlier_version_has_the_third_largest() {
        let mut record = record();
        let intervals = &mut record.flows[0].loaded.as_mut().unwrap().intervals;
        intervals.iter_mut().for_each(|interval| interval.p50_ns = None);
        let panel = panel(&record, &record.flows[0]).unwrap();
        assert_eq!(panel.y.label, "round-trip time of probes, third largest and range");
        assert_eq!(values(&panel.lines[0].y)[0], Some(42.0));
    }
}
