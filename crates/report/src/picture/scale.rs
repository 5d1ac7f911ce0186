//! The scale of an axis: positions of values and ticks.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

use crate::html::ChartAxis;
use crate::quantity::in_unit;

/// Largest number of ticks on an axis.
const MAX_TICKS: usize = 9;
/// Largest number of places that an axis names.
const MAX_MARKS: usize = 14;
/// Approximate number of ticks on a linear scale.
const TARGET_TICKS: f64 = 6.0;

/// Range of values, linear or logarithmic.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    log: bool,
    pub(super) low: f64,
    pub(super) high: f64,
    ticks: Vec<f64>,
    unit: String,
    /// The places that the axis names, instead of those of the scale.
    marks: Vec<(f64, String)>,
}

impl Scale {
    /// The scale of an axis around these values. A linear scale starts at `from` if that is lower than all
    /// values.
    pub(super) fn of(axis: &ChartAxis, values: impl Iterator<Item = f64>, from: Option<f64>) -> Self {
        let fits = |value: &f64| value.is_finite() && (!axis.log || *value > 0.0);
        let (low, high) = values
            .filter(fits)
            .chain(from.filter(|_| !axis.log))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let scale = if axis.log {
            Self::logarithmic(axis, low, high)
        } else {
            Self::linear(axis, low, high, from.is_some())
        };
        scale.with_marks(axis)
    }

    /// The scale of rows numbered from 1, each of which reaches half a number to both sides.
    pub(super) fn of_rows(rows: usize) -> Self {
        let high = rows as f64 + 0.5;
        let step = even_step((rows as f64 / TARGET_TICKS).max(1.0), false);
        let ticks = std::iter::successors(Some(step), |tick| Some(tick + step));
        let ticks = ticks.take_while(|tick| *tick < high).collect();
        Self { log: false, low: 0.5, high, ticks, unit: "1".to_owned(), marks: Vec::new() }
    }

    /// What the axis names are its ticks. Of many of them some are left out, but not the last one.
    fn with_marks(mut self, axis: &ChartAxis) -> Self {
        let every = axis.marks.len().div_ceil(MAX_MARKS).max(1);
        let marks = axis.marks.iter().rev().step_by(every);
        self.marks = marks.map(|mark| (mark.at.0, mark.label.clone())).collect();
        if !self.marks.is_empty() {
            self.ticks = self.marks.iter().rev().map(|(at, _)| *at).collect();
        }
        self
    }

    fn logarithmic(axis: &ChartAxis, low: f64, high: f64) -> Self {
        let base = if axis.unit == "bytes" { 2_f64 } else { 10.0 };
        let (first, last) = (low.log(base).floor(), high.log(base).ceil());
        let last = if last > first { last } else { first + 1.0 };
        let step = ((last - first) / MAX_TICKS as f64).ceil().max(1.0);
        let count = ((last - first) / step).floor() as usize;
        let ticks = (0..=count).map(|number| base.powf(first + number as f64 * step)).collect();
        Self {
            log: true,
            low: base.powf(first),
            high: base.powf(last),
            ticks,
            unit: axis.unit.clone(),
            marks: Vec::new(),
        }
    }

    /// `whole`: extend to the next tick, so that the largest value does not touch the edge.
    fn linear(axis: &ChartAxis, low: f64, high: f64, whole: bool) -> Self {
        let span = if high > low { high - low } else { high.abs().max(1.0) };
        let step = even_step(span / TARGET_TICKS, axis.unit == "bytes");
        let high = match whole {
            true => ((low + span) / step).ceil() * step,
            false => low + span,
        };
        let first = (low / step).ceil();
        let count = ((high / step - first) + 1e-9).floor().clamp(0.0, 4.0 * MAX_TICKS as f64) as usize;
        let ticks = (0..=count).map(|number| (first + number as f64) * step).collect();
        Self { log: false, low, high, ticks, unit: axis.unit.clone(), marks: Vec::new() }
    }

    /// A round value as the text of a tick, without trailing zeros.
    pub(super) fn tick(&self, value: f64) -> String {
        if let Some((_, word)) = self.marks.iter().find(|(at, _)| *at == value) {
            return word.clone();
        }
        let text = in_unit(Some(&self.unit), value);
        let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
        let short = match number.contains('.') {
            true => number.trim_end_matches('0').trim_end_matches('.'),
            false => number,
        };
        format!("{short} {unit}").trim_end().to_owned()
    }

    /// Whether a value can be shown on the scale.
    pub(super) fn holds(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }
}

/// The smallest step of at least `least`: 1, 2 or 5 times a power of ten, or for bytes a power of two.
fn even_step(least: f64, bytes: bool) -> f64 {
    if bytes {
        return 2_f64.powf(least.log2().ceil());
    }
    let power = 10_f64.powf(least.log10().floor());
    let fits = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= least * (1.0 - 1e-9));
    fits.unwrap_or(10.0) * power
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let part = match self.log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        from + (f64::from(to - from) * part.clamp(0.0, 1.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(unit: &str, log: bool) -> ChartAxis {
        ChartAxis { log, ..ChartAxis::linear("", unit) }
    }

    #[test]
    fn ticks_stand_at_round_values_around_all_that_is_drawn() {
        let rates = Scale::of(&axis("bit/s", false), [940e6, 100e6].into_iter(), Some(0.0));
        assert_eq!((rates.low, rates.high), (0.0, 1e9));
        assert_eq!(rates.ticks, [0.0, 200e6, 400e6, 600e6, 800e6, 1e9]);
        assert_eq!(rates.tick(200e6), "200 Mb/s");
        let sizes = Scale::of(&axis("bytes", true), [1.0, 8_388_608.0, 0.0].into_iter(), None);
        assert_eq!((sizes.low, sizes.high), (1.0, 8_388_608.0));
        assert_eq!(sizes.ticks, [1.0, 8.0, 64.0, 512.0, 4096.0, 32_768.0, 262_144.0, 2_097_152.0]);
        let times = Scale::of(&axis("s", false), [0.0, 10.0].into_iter(), None);
        assert_eq!((times.high, times.ticks.as_slice()), (10.0, &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0][..]));
    }

    #[test]
    fn rows_have_whole_numbers() {
        assert_eq!(Scale::of_rows(2).ticks, [1.0, 2.0]);
        assert_eq!(Scale::of_rows(128).ticks, [50.0, 100.0]);
        assert_eq!(Scale::of_rows(16).map(&0.5, (160, 0)), 160, "the foot of the first row");
    }

    #[test]
    fn values_lie_where_the_axis_says() {
        let rates = Scale::of(&axis("bit/s", false), [100.0].into_iter(), Some(0.0));
        assert_eq!((rates.map(&0.0, (300, 100)), rates.map(&rates.high, (300, 100))), (300, 100));
        let log = Scale::of(&axis("ns", true), [10.0, 1000.0].into_iter(), None);
        assert_eq!(log.map(&100.0, (0, 200)), 100);
        assert_eq!(log.map(&0.0, (0, 200)), 0, "below the axis is at its end");
    }

    #[test]
    fn nothing_and_one_value_have_a_scale_too() {
        for log in [false, true] {
            for values in [vec![], vec![5.0], vec![f64::NAN], vec![0.0]] {
                let scale = Scale::of(&axis("1", log), values.clone().into_iter(), None);
                assert!(scale.low < scale.high && !scale.ticks.is_empty(), "{log} {values:?}: {scale:?}");
            }
        }
    }
}
