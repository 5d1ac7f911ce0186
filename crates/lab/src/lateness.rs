//! How late frames leave: a histogram that costs a few instructions per frame.

use hdrhistogram::Histogram;

/// The longest lateness that is distinguished.
const MAX_LATENESS_NS: u64 = 60_000_000_000;
/// Two digits: an error of 1 % of the value.
const DIGITS: u8 = 2;

/// How late frames left so far.
///
/// # Units
/// nanoseconds
#[derive(Debug, Default)]
pub(super) struct LatenessHistogram {
    /// Absent until the first frame; its bounds are constants that `hdrhistogram` accepts.
    seen: Option<Histogram<u64>>,
}

impl LatenessHistogram {
    pub(super) fn add(&mut self, late_ns: u64) {
        if self.seen.is_none() {
            self.seen = Histogram::new_with_bounds(1, MAX_LATENESS_NS, DIGITS).ok();
        }
        if let Some(seen) = &mut self.seen {
            seen.saturating_record(late_ns);
        }
    }

    /// The lateness that this share of the frames did not exceed; 0 before the first.
    pub(super) fn quantile(&self, share: f64) -> u64 {
        self.seen.as_ref().map_or(0, |seen| seen.value_at_quantile(share))
    }

    pub(super) fn worst(&self) -> u64 {
        self.seen.as_ref().map_or(0, Histogram::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_hundredth() {
        let mut lateness = LatenessHistogram::default();
        assert_eq!((lateness.quantile(0.99), lateness.worst()), (0, 0));
        for late in 1..=1000 {
            lateness.add(late * 1000);
        }
        for (share, expected) in [(0.5, 500_000.0), (0.99, 990_000.0)] {
            let found = lateness.quantile(share) as f64;
            assert!((found / expected - 1.0).abs() <= 0.01, "{share}: {found}");
        }
        assert!(lateness.worst().abs_diff(1_000_000) <= 10_000);
    }
}
