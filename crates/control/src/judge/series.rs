//! What a flow has received at several moments, as its receiver reports it.

use linerate_units::{Bytes, Span};

/// Most points kept. Beyond it, every second point is dropped.
const MAX_POINTS: usize = 2048;

/// Bytes received and time of the last read, at several moments of a flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ReceivedSeries {
    points: Vec<(Bytes, Span)>,
    /// One reported point in this number is kept.
    every: usize,
    reported: usize,
}

impl ReceivedSeries {
    /// Adds a report. One that is not later than the last one is ignored.
    pub(crate) fn note(&mut self, bytes: Bytes, elapsed: Span) {
        let later = self.points.last().is_none_or(|last| elapsed > last.1 && bytes >= last.0);
        if !later || elapsed == Span::ZERO {
            return;
        }
        self.reported = self.reported.saturating_add(1);
        if !self.reported.is_multiple_of(self.every.max(1)) {
            return;
        }
        self.points.push((bytes, elapsed));
        if self.points.len() > MAX_POINTS {
            let mut odd = false;
            self.points.retain(|_| {
                odd = !odd;
                odd
            });
            self.every = self.every.max(1).saturating_mul(2);
        }
    }

    /// Rates between consecutive points, bit/s.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let rate = |two: &[(Bytes, Span)]| {
            let (from, to) = (two.first()?, two.last()?);
            let bits = to.0.get().saturating_sub(from.0.get()) as f64 * 8.0;
            Some(bits / (to.1.as_secs_f64() - from.1.as_secs_f64()))
        };
        self.points.windows(2).filter_map(rate).collect()
    }

    /// A lower estimate of the path's rate, bit/s: the lower of the latest rate and the mean so far.
    pub(crate) fn path_bps(&self) -> Option<f64> {
        let (bytes, elapsed) = self.points.last()?;
        let whole = Some(bytes.get() as f64 * 8.0 / elapsed.as_secs_f64()).filter(|rate| rate.is_finite());
        let from = self.points.len().saturating_sub(2);
        let latest = Self { points: self.points[from..].to_vec(), ..Self::default() }.rates();
        whole.into_iter().chain(latest).reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_between_reports() {
        let mut series = ReceivedSeries::default();
        for (bytes, ms) in [(0, 0), (1000, 1), (1000, 1), (3000, 3), (2000, 4), (6000, 5)] {
            series.note(Bytes::new(bytes), Span::from_ms(ms));
        }
        // 2000 bytes in 2 ms, then 3000 in 2 ms. Points that are not later, or have fewer bytes, were ignored.
        assert_eq!(series.rates(), [8e6, 12e6]);
        // 6000 bytes in 5 ms.
        assert_eq!(series.path_bps(), Some(9.6e6));
        assert_eq!(ReceivedSeries::default().path_bps(), None);
    }

    #[test]
    fn a_long_flow_keeps_a_bounded_number_of_points() {
        let mut series = ReceivedSeries::default();
        for tick in 1..=50_000_u64 {
            series.note(Bytes::new(tick * 125), Span::from_ms(tick));
        }
        let rates = series.rates();
        assert!(rates.len() <= MAX_POINTS && rates.len() > MAX_POINTS / 4, "{}", rates.len());
        assert!(rates.iter().all(|rate| (rate - 1e6).abs() < 1.0));
    }
}
