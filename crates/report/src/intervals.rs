//! Merges samples to the interval that is shown.

use std::collections::BTreeSet;

use linerate_model::metrics::{self, MetricKind, MetricType, flow, loss};
use linerate_model::{MetricValue, PortSample, Readings, RunRecord, Sample, Side};
use linerate_units::{Bitrate, Ratio, Span, Timestamp};

/// Readings of a flow or a port over an interval.
trait IntervalReadings: Clone {
    fn bounds(&self) -> (Timestamp, Timestamp);
    fn outside(&self) -> bool;
    fn readings(&self) -> &Readings;
    /// The same interval with another end and other readings.
    fn with(&self, end_ns: Timestamp, readings: Readings) -> Self;

    fn span(&self) -> Span {
        let (start, end) = self.bounds();
        end - start
    }
}

macro_rules! interval {
    ($type:ty) => {
        impl IntervalReadings for $type {
            fn bounds(&self) -> (Timestamp, Timestamp) {
                (self.start_ns, self.end_ns)
            }

            fn outside(&self) -> bool {
                self.outside
            }

            fn readings(&self) -> &Readings {
                &self.readings
            }

            fn with(&self, end_ns: Timestamp, readings: Readings) -> Self {
                Self { end_ns, readings, ..self.clone() }
            }
        }
    };
}

interval!(Sample);
interval!(PortSample);

/// The requested interval; one second if unknown.
#[must_use]
pub fn asked(record: &RunRecord) -> Span {
    record.start.as_ref().map_or(Span::from_secs(1), |start| start.spec.traffic.interval)
}

/// Merges adjacent samples of each side to `interval`, the sender's first.
///
/// Counters are added. Of the gauges, bit rate and loss ratio are quotients of sums, other shares are means
/// over time, maxima remain maxima, and everything else is the state at the end. Samples inside and outside the
/// measured window are not merged with each other.
#[must_use]
pub fn merged(samples: &[Sample], interval: Span) -> Vec<Sample> {
    let of = |side: Side| samples.iter().filter(move |sample| sample.side == side);
    [Side::Sender, Side::Receiver].into_iter().flat_map(|side| adjacent(of(side), interval)).collect()
}

/// Merges adjacent samples of one port to `interval`, like those of a flow.
#[must_use]
pub fn merged_port(samples: &[PortSample], interval: Span) -> Vec<PortSample> {
    adjacent(samples.iter(), interval)
}

/// Merges all samples of one port; `None` if there are none.
#[must_use]
pub(crate) fn whole_port<'a>(samples: impl Iterator<Item = &'a PortSample>) -> Option<PortSample> {
    merge(&samples.collect::<Vec<_>>())
}

fn adjacent<'a, S: IntervalReadings + 'a>(samples: impl Iterator<Item = &'a S>, interval: Span) -> Vec<S> {
    let mut merged = Vec::new();
    let mut group: Vec<&S> = Vec::new();
    for sample in samples {
        if group.last().is_some_and(|last| !belongs(*last, sample, interval)) {
            merged.extend(merge(&group));
            group.clear();
        }
        group.push(sample);
    }
    merged.extend(merge(&group));
    merged
}

fn belongs(last: &impl IntervalReadings, next: &impl IntervalReadings, interval: Span) -> bool {
    last.outside() == next.outside()
        && last.bounds().1 == next.bounds().0
        && bucket(last, interval) == bucket(next, interval)
}

/// Index of the interval that contains the middle of a sample, so that slightly late ticks do not matter.
fn bucket(sample: &impl IntervalReadings, interval: Span) -> u64 {
    let middle = sample.bounds().0 + Span::from_ns(sample.span().as_ns() / 2);
    middle.as_ns() / interval.as_ns().max(1)
}

fn merge<S: IntervalReadings>(group: &[&S]) -> Option<S> {
    let (first, last) = (group.first()?, group.last()?);
    if group.len() == 1 {
        return Some((*first).clone());
    }
    let names: BTreeSet<&str> =
        group.iter().flat_map(|sample| sample.readings().iter().map(|(name, _)| name)).collect();
    let values = names.into_iter().filter_map(|name| Some((name.to_owned(), merged_value(name, group)?)));
    let mut readings = readings(values);
    let end = last.bounds().1;
    if readings.get(flow::BITRATE).is_some() {
        let bytes = readings.get(flow::BYTES).unwrap_or_default();
        readings.put_some(flow::BITRATE, Bitrate::of(bytes, end - first.bounds().0));
    }
    readings.put_some(loss::LOSS_RATIO, loss_ratio(&readings));
    Some(first.with(end, readings))
}

fn merged_value(name: &str, group: &[&impl IntervalReadings]) -> Option<MetricValue> {
    let mut values = group.iter().filter_map(|s| Some((s.span().as_ns() as f64, s.readings().named(name)?)));
    match metrics::find(name) {
        Some(entry) if entry.kind == MetricKind::Counter => values.map(|(_, value)| value).reduce(add),
        Some(entry) if entry.kind == MetricKind::Peak => values.map(|(_, value)| value).reduce(larger),
        Some(entry) if entry.kind == MetricKind::Mean || entry.unit == Ratio::UNIT => mean_over_time(values),
        // Also used for metrics of a newer peer: the last state is at least a valid reading.
        _ => values.next_back().map(|(_, value)| value),
    }
}

fn add(a: MetricValue, b: MetricValue) -> MetricValue {
    match (a, b) {
        (MetricValue::Count(a), MetricValue::Count(b)) => MetricValue::Count(a.saturating_add(b)),
        (a, b) => MetricValue::Real(a.real() + b.real()),
    }
}

fn larger(a: MetricValue, b: MetricValue) -> MetricValue {
    if b.real() > a.real() { b } else { a }
}

fn mean_over_time(values: impl Iterator<Item = (f64, MetricValue)>) -> Option<MetricValue> {
    let (weighted, time) = values.fold((0.0, 0.0), |(sum, time), (ns, v)| (sum + v.real() * ns, time + ns));
    (time > 0.0).then_some(MetricValue::Real(weighted / time))
}

fn loss_ratio(readings: &Readings) -> Option<Ratio> {
    readings.get(loss::LOSS_RATIO)?;
    let (lost, packets) = (readings.get(loss::LOST)?, readings.get(loss::PACKETS)?);
    let received = packets.saturating_sub(readings.get(loss::DUPLICATES).unwrap_or_default());
    Ratio::new(lost as f64 / (lost.saturating_add(received)) as f64)
}

/// Readings by name, through their serialised form, because names from a log have no typed metrics.
fn readings(values: impl Iterator<Item = (String, MetricValue)>) -> Readings {
    let finite = values.filter(|(_, value)| value.real().is_finite());
    let map = finite.filter_map(|(name, value)| Some((name, serde_json::to_value(value).ok()?)));
    serde_json::from_value(map.collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use linerate_model::metrics::{host, port, tcp};
    use linerate_model::{Body, metrics::Metric};
    use linerate_units::Bytes;

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
    fn of_a_port_counts_add_the_largest_stays_and_the_rate_is_the_mean_over_time() {
        let fine = [runs::port_sample(0, 100, 1e9), runs::port_sample(100, 400, 0.2e9)];
        let merged = merged_port(&fine, Span::from_secs(1));
        assert_eq!(merged.len(), 1);
        let readings = &merged[0].readings;
        // 1538 bytes on the wire per packet: 8127.4 of them in 100 ms at 1 Gb/s, 4876.5 in 300 ms at 0.2 Gb/s.
        assert_eq!(readings.get(port::PACKETS), Some(8127 + 4876));
        assert_eq!(readings.get(port::QUEUE_MAX), Some(Bytes::new(500_000)));
        assert_eq!(readings.get(port::QUEUE), Some(Bytes::new(50_000)));
        // (1 x 100 + 0.2 x 300) / 400.
        assert!((readings.get(port::RATE).unwrap().bps() - 0.4e9).abs() < 1.0);
        assert!((readings.get(port::BUSY).unwrap().get() - 0.4).abs() < 1e-12);
        let mut apart = fine.to_vec();
        apart[0].outside = true;
        assert_eq!(merged_port(&apart, Span::from_secs(1)), apart);
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
        assert_eq!(merged[0].readings.named("new.metric"), Some(MetricValue::Count(300)));
    }
}
