//! Thins long lines without losing peaks.

use super::chart::{ChartLine, Rounded};

/// Number of parts of the axis: the horizontal resolution of a chart on a wide screen.
const AXIS_PARTS: usize = 1000;

/// Keeps the smallest and the largest value of each of 1000 parts of the axis, in their order. Lines with at
/// most twice that number of points are left unchanged.
pub(super) fn thin(line: ChartLine) -> ChartLine {
    let (Some(first), Some(last)) = (line.x.first(), line.x.last()) else { return line };
    let (from, wide) = (first.0, last.0 - first.0);
    if line.x.len() <= 2 * AXIS_PARTS || wide <= 0.0 {
        return line;
    }
    let part_of = |x: f64| (((x - from) / wide * AXIS_PARTS as f64) as usize).min(AXIS_PARTS - 1);
    let mut kept = Vec::with_capacity(2 * AXIS_PARTS);
    let mut at = 0;
    while at < line.x.len() {
        let part = part_of(line.x[at].0);
        let length = line.x[at..].iter().take_while(|x| part_of(x.0) == part).count().max(1);
        // The ends of an interval lie around its value, so the largest end is what thinning could lose.
        let largest = if line.high.is_empty() { &line.y } else { &line.high };
        let mut of_part = extremes(&line.y, at, at + length);
        of_part.extend(extremes(largest, at, at + length));
        of_part.sort_unstable();
        of_part.dedup();
        kept.extend(of_part);
        at += length;
    }
    let of = |values: &[Option<Rounded>]| kept.iter().filter_map(|at| values.get(*at).copied()).collect();
    ChartLine {
        x: kept.iter().map(|at| line.x[*at]).collect(),
        y: of(&line.y),
        low: of(&line.low),
        high: of(&line.high),
        thinned_from: Some(line.x.len()),
        ..line
    }
}

/// Indices of the smallest and the largest value in a range, in their order, and of a gap.
fn extremes(y: &[Option<Rounded>], from: usize, to: usize) -> Vec<usize> {
    let known = || (from..to).filter_map(|at| Some((at, y[at]?.0)));
    let low = known().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at);
    let high = known().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at);
    let gap = (from..to).find(|at| y[*at].is_none());
    let mut kept: Vec<usize> = low.into_iter().chain(high).chain(gap).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use super::super::chart::LineStyle;
    use super::*;
    use proptest::prelude::*;

    fn line(y: Vec<Option<f64>>) -> ChartLine {
        ChartLine::of("a", LineStyle::Line, y.into_iter().enumerate().map(|(at, y)| (at as f64, y)))
    }

    #[test]
    fn intervals_stay_with_their_values_and_the_largest_end_is_kept() {
        let mut long = line(vec![Some(1.0); 10_000]);
        (long.low, long.high) = (vec![Some(Rounded(0.5)); 10_000], vec![Some(Rounded(2.0)); 10_000]);
        long.high[5_432] = Some(Rounded(70.0));
        let thinned = thin(long);
        assert!(thinned.x.len() < 10_000);
        assert_eq!((thinned.low.len(), thinned.high.len()), (thinned.x.len(), thinned.x.len()));
        let at = thinned.high.iter().position(|high| *high == Some(Rounded(70.0))).unwrap();
        assert_eq!(thinned.x[at].0, 5_432.0);
    }

    #[test]
    fn a_short_line_stays_and_a_long_one_keeps_its_single_peak() {
        let short = line(vec![Some(1.0); 2000]);
        assert_eq!(thin(short.clone()), short);
        let mut y = vec![Some(1.0); 100_000];
        (y[77_777], y[77_801]) = (Some(9.0), None);
        let thinned = thin(line(y));
        assert_eq!(thinned.thinned_from, Some(100_000));
        assert!(thinned.x.len() <= 3 * AXIS_PARTS, "{}", thinned.x.len());
        let at = thinned.x.iter().position(|x| x.0 == 77_777.0).unwrap();
        assert_eq!(thinned.y[at].map(|y| y.0), Some(9.0));
        assert!(thinned.y.contains(&None));
    }

    proptest! {
        #[test]
        fn the_ends_of_the_values_survive(y in proptest::collection::vec(proptest::option::of(-1e9..1e9_f64), 2001..4000)) {
            let thinned = thin(line(y.clone()));
            let known: Vec<f64> = y.into_iter().flatten().collect();
            let left: Vec<f64> = thinned.y.iter().flatten().map(|y| y.0).collect();
            let ends = |values: &[f64]| (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(f64::MIN, f64::max));
            prop_assert_eq!(ends(&left), ends(&known));
            prop_assert!(thinned.x.is_sorted_by(|a, b| a.0 <= b.0));
        }
    }
}
