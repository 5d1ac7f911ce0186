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
