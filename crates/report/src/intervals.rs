//! Samples merged to the interval that is shown.

use std::collections::BTreeSet;

use linerate_model::metrics::{self, Kind, Quantity, flow, loss};
use linerate_model::{Readings, RunRecord, Sample, Side, Value};
use linerate_units::{Ratio, Span};

/// The interval asked for, one second where that is not known.
#[must_use]
pub fn asked(record: &RunRecord) -> Span {
    record.start.as_ref().map_or(Span::from_secs(1), |start| start.spec.traffic.interval)
}

/// Adjacent samples of each side merged to `interval`, the sender's first.
///
/// Counters add. Of the gauges, bit rate and loss ratio are the quotients of the sums, other shares are means over
/// time, and everything else is the state at the end. Samples inside and outside the measured window stay apart.
#[must_use]
pub fn merged(samples: &[Sample], interval: Span) -> Vec<Sample> {
    let mut merged: Vec<Sample> = Vec::new();
    for side in [Side::Sender, Side::Receiver] {
        let mut group: Vec<&Sample> = Vec::new();
        for sample in samples.iter().filter(|sample| sample.side == side) {
            if group.last().is_some_and(|last| !belongs(last, sample, interval)) {
                merged.extend(merge(&group));
                group.clear();
            }
            group.push(sample);
        }
        merged.extend(merge(&group));
    }
    merged
}

fn belongs(last: &Sample, next: &Sample, interval: Span) -> bool {
    last.outside == next.outside
        && last.end_ns == next.start_ns
        && bucket(last, interval) == bucket(next, interval)
}

/// Number of the interval that holds the middle of a sample: ticks that are a little late do not change it.
fn bucket(sample: &Sample, interval: Span) -> u64 {
    let middle = sample.start_ns.as_ns() + sample.span().as_ns() / 2;
    middle / interval.as_ns().max(1)
}

fn merge(group: &[&Sample]) -> Option<Sample> {
    let (first, last) = (group.first()?, group.last()?);
    if group.len() == 1 {
        return Some((*first).clone());
    }
    let names: BTreeSet<&str> = group.iter().flat_map(|s| s.readings.iter().map(|(name, _)| name)).collect();
    let values = names.into_iter().filter_map(|name| Some((name.to_owned(), merged_value(name, group)?)));
    let mut sample = Sample { end_ns: last.end_ns, readings: readings(values), ..(*first).clone() };
    if sample.readings.get(flow::BITRATE).is_some() {
        sample.readings.put_some(flow::BITRATE, sample.bitrate());
    }
    sample.readings.put_some(loss::LOSS_RATIO, loss_ratio(&sample.readings));
    Some(sample)
}

fn merged_value(name: &str, group: &[&Sample]) -> Option<Value> {
    let mut values = group.iter().filter_map(|s| Some((s.span().as_ns() as f64, s.readings.named(name)?)));
    match metrics::find(name) {
        Some(entry) if entry.kind == Kind::Counter => values.map(|(_, value)| value).reduce(add),
        Some(entry) if entry.unit == Ratio::UNIT => mean_over_time(values),
        // Also for metrics of a newer peer: the last state is at least something that was read.
        _ => values.next_back().map(|(_, value)| value),
    }
}

fn add(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Count(a), Value::Count(b)) => Value::Count(a.saturating_add(b)),
        (a, b) => Value::Real(a.real() + b.real()),
    }
}

fn mean_over_time(values: impl Iterator<Item = (f64, Value)>) -> Option<Value> {
    let (weighted, time) = values.fold((0.0, 0.0), |(sum, time), (ns, v)| (sum + v.real() * ns, time + ns));
    (time > 0.0).then_some(Value::Real(weighted / time))
}

fn loss_ratio(readings: &Readings) -> Option<Ratio> {
    readings.get(loss::LOSS_RATIO)?;
    let (lost, packets) = (readings.get(loss::LOST)?, readings.get(loss::PACKETS)?);
    let received = packets.saturating_sub(readings.get(loss::DUPLICATES).unwrap_or_default());
    Ratio::new(lost as f64 / (lost.saturating_add(received)) as f64)
}

/// Readings by name, through their serialised form: typed metrics do not exist for names found in a log.
fn readings(values: impl Iterator<Item = (String, Value)>) -> Readings {
    let finite = values.filter(|(_, value)| value.real().is_finite());
    let map = finite.filter_map(|(name, value)| Some((name, serde_json::to_value(value).ok()?)));
    serde_json::from_value(map.collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use linerate_model::metrics::{host, tcp};
    use linerate_model::{Body, metrics::Metric};
    use linerate_units::{Bytes, Timestamp};

    fn samples(side: Side, ticks: &[(u64, u64, u64)]) -> Vec<Sample> {
        let bodies = ticks.iter().map(|(from, to, bytes)| runs::sample(0, side, *from, *to, *bytes).1);
        let samples = bodies.filter_map(|body| match body {
            Body::Sample { sample, .. } => Some(sample),
            _ => None,
        });
        samples.collect()
    }

    fn bounds(samples: &[Sample]) -> Vec<(u64, u64)> {
        let ms = |at: Timestamp| at.as_ns() / 1_000_000;
        samples.iter().map(|sample| (ms(sample.start_ns), ms(sample.end_ns))).collect()
    }

    #[test]
    fn counters_add_rates_are_quotients_shares_are_means_and_states_are_the_last() {
        let fine = samples(Side::Sender, &[(0, 400, 1000), (400, 500, 4000), (500, 1000, 5000)]);
        let merged = merged(&fine, Span::from_secs(1));
        assert_eq!(bounds(&merged), [(0, 1000)]);
        let readings = &merged[0].readings;
        assert_eq!(readings.get(flow::BYTES), Some(Bytes::new(10_000)));
        assert_eq!(readings.get(flow::BITRATE).unwrap().bps(), 80_000.0);
        assert_eq!(readings.get(tcp::RETRANSMITS), Some(9));
        assert_eq!(readings.get(tcp::CWND), Some(Bytes::new(1_000_000)));
        // Busy 0, 0.04 and 0.05 for 400, 100 and 500 ms.
        assert!((readings.get(host::BUSY).unwrap().get() - 0.029).abs() < 1e-12);
    }

    #[test]
    fn late_ticks_gaps_the_window_and_the_side_are_kept_apart() {
        let late = samples(Side::Receiver, &[(0, 501, 1), (501, 1003, 1), (1003, 1502, 1), (1502, 1999, 1)]);
        assert_eq!(bounds(&merged(&late, Span::from_secs(1))), [(0, 1003), (1003, 1999)]);
        let gap = samples(Side::Receiver, &[(0, 300, 1), (400, 800, 1)]);
        assert_eq!(merged(&gap, Span::from_secs(1)), gap);
        let mut omitted = samples(Side::Receiver, &[(0, 500, 1), (500, 1000, 1)]);
        omitted[0].outside = true;
        assert_eq!(merged(&omitted, Span::from_secs(1)), omitted);
        let mut both = samples(Side::Receiver, &[(0, 500, 1)]);
        both.extend(samples(Side::Sender, &[(500, 1000, 1)]));
        assert_eq!(bounds(&merged(&both, Span::from_secs(1))), [(500, 1000), (0, 500)]);
        assert_eq!(merged(&late, Span::ZERO), late);
    }

    #[test]
    fn loss_is_the_quotient_of_the_sums_and_unknown_metrics_survive() {
        let mut fine = samples(Side::Receiver, &[(0, 500, 1), (500, 1000, 1)]);
        for (sample, (packets, lost)) in fine.iter_mut().zip([(90, 10), (300, 0)]) {
            sample.readings.put(loss::PACKETS, packets);
            sample.readings.put(loss::LOST, lost);
            sample.readings.put_some(loss::LOSS_RATIO, Ratio::new(lost as f64 / (packets + lost) as f64));
            sample.readings.put(Metric::<u64>::new("new.metric"), packets);
        }
        let merged = merged(&fine, Span::from_secs(1));
        assert_eq!(merged[0].readings.get(loss::LOSS_RATIO).unwrap().get(), 0.025);
        assert_eq!(merged[0].readings.named("new.metric"), Some(Value::Count(300)));
    }
}
