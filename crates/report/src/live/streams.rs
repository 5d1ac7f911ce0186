//! What each stream of a flow moves over time, for a heat map.

use std::collections::BTreeMap;

use linerate_model::flow::FlowId;
use linerate_model::{Body, Event, MAX_LISTED_STREAMS};
use linerate_units::Timestamp;
use serde::Serialize;

/// With this number of moments, the least time between two of them grows to twice the mean.
const MAX_MOMENTS: usize = 240;
/// Part of that time after which a moment is not early.
const EARLY: f64 = 0.9;

/// What the streams of a flow had moved at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveStreamsMoment {
    /// The flow.
    pub flow: FlowId,
    /// Time since the start of the run.
    pub at_seconds: f64,
    /// Bytes of each stream since the start of the flow.
    pub bytes: Vec<u64>,
}

impl LiveStreamsMoment {
    /// The moment of an event, if it counts streams.
    #[must_use]
    pub fn of(event: &Event) -> Option<Self> {
        let Body::Streams { flow, bytes, .. } = &event.body else { return None };
        let bytes = bytes.iter().map(|bytes| bytes.get()).collect();
        Some(Self { flow: *flow, at_seconds: (event.at - Timestamp::START).as_secs_f64(), bytes })
    }
}

/// What the streams of a flow had moved, at moments that are further apart in a long flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveStreams {
    /// The flow.
    pub flow: FlowId,
    /// Times since the start of the run.
    pub at_seconds: Vec<f64>,
    /// Bytes of each stream since the start of the flow, at these times.
    pub bytes: Vec<Vec<u64>>,
    /// Least time between two moments, seconds.
    #[serde(skip)]
    gap: f64,
}

impl LiveStreams {
    /// Adds a later moment. One that is too early is left out, and so is one that does not belong to the others, as in
    /// a log that somebody has changed.
    pub fn push(&mut self, at_seconds: f64, bytes: Vec<u64>) {
        let last = self.at_seconds.last();
        let fits = (2..=MAX_LISTED_STREAMS).contains(&bytes.len())
            && self.bytes.last().is_none_or(|last| last.len() == bytes.len())
            && last.is_none_or(|last| at_seconds > *last && at_seconds >= last + EARLY * self.gap);
        if !fits {
            return;
        }
        if let Some(first) = self.at_seconds.first().filter(|_| self.at_seconds.len() >= MAX_MOMENTS) {
            self.gap = (at_seconds - first) * 2.0 / MAX_MOMENTS as f64;
            self.thin();
        }
        self.at_seconds.push(at_seconds);
        self.bytes.push(bytes);
    }

    /// Drops the moments that are too early.
    fn thin(&mut self) {
        let gap = EARLY * self.gap;
        let mut last = f64::NEG_INFINITY;
        let moments = std::mem::take(&mut self.at_seconds).into_iter().zip(std::mem::take(&mut self.bytes));
        let kept = moments.filter(|(at, _)| {
            let keep = *at >= last + gap;
            if keep {
                last = *at;
            }
            keep
        });
        (self.at_seconds, self.bytes) = kept.unzip();
    }

    /// The bit rate of each stream between each two moments.
    pub(crate) fn bitrates(&self) -> impl Iterator<Item = Vec<f64>> {
        let moments = self.at_seconds.iter().zip(&self.bytes);
        moments.clone().zip(moments.skip(1)).map(|((from, before), (to, after))| {
            let grown = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before) as f64);
            grown.map(|bytes| bytes * 8.0 / (to - from)).collect()
        })
    }
}

/// The streams of all flows of a run.
#[derive(Debug, Clone, Default)]
pub struct LiveStreamsHistory(BTreeMap<FlowId, LiveStreams>);

impl LiveStreamsHistory {
    /// Adds a moment.
    pub fn add(&mut self, moment: LiveStreamsMoment) {
        let LiveStreamsMoment { flow, at_seconds, bytes } = moment;
        let streams = self.0.entry(flow).or_insert_with(|| LiveStreams { flow, ..LiveStreams::default() });
        streams.push(at_seconds, bytes);
    }

    /// By the numbers of their flows.
    pub fn flows(&self) -> impl Iterator<Item = &LiveStreams> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_flow_keeps_its_whole_course_with_moments_equally_far_apart() {
        let mut streams = LiveStreams::default();
        // As the counts of a day: their distance doubles now and then.
        let (mut at, mut gap) = (0.0, 0.25);
        for number in 0..1400 {
            at += gap;
            gap *= if number >= 240 && number % 120 == 0 { 2.0 } else { 1.0 };
            streams.push(at, vec![(at * 1000.0) as u64, 0]);
        }
        let kept = &streams.at_seconds;
        assert!((MAX_MOMENTS / 4..=MAX_MOMENTS).contains(&kept.len()), "{}", kept.len());
        assert!(kept[0] < at / 60.0 && kept[kept.len() - 1] > at * 0.98, "{at}: {kept:?}");
        let widest = kept.windows(2).map(|ends| ends[1] - ends[0]).fold(0.0, f64::max);
        assert!(widest < at / 25.0, "a column of {widest} s in {at} s");
        let bitrates: Vec<_> = streams.bitrates().collect();
        assert_eq!(bitrates.len(), kept.len() - 1);
        for column in bitrates {
            assert!((column[0] / 8000.0 - 1.0).abs() < 0.01 && column[1] == 0.0, "{column:?}");
        }
    }

    #[test]
    fn moments_that_do_not_belong_to_the_others_are_left_out() {
        let mut streams = LiveStreams::default();
        for (at, bytes) in [
            (0.5, vec![]),
            (0.6, vec![1]),
            (0.7, vec![1; MAX_LISTED_STREAMS + 1]),
            (1.0, vec![1, 2]),
            (1.0, vec![3, 4]),
            (2.0, vec![5, 6, 7]),
            (3.0, vec![0, 12]),
        ] {
            streams.push(at, bytes);
        }
        assert_eq!(streams.at_seconds, [1.0, 3.0]);
        assert_eq!(streams.bitrates().collect::<Vec<_>>(), [[0.0, 40.0]], "none that falls is below zero");
    }
}
