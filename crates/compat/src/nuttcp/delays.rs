//! One-way delays of datagrams, as nuttcp reports them.

use crate::stand_in::TransitCounts;

/// One-way delays of datagrams by the wall clocks of both ends. Their error is the offset between the clocks,
/// which may make them negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OneWay {
    /// Number of timestamped datagrams.
    pub(super) datagrams: u64,
    /// Sum of the delays, microseconds.
    pub(super) sum_us: i64,
    /// The smallest, microseconds.
    pub(super) min_us: i64,
    /// The largest, microseconds.
    pub(super) max_us: i64,
}

impl OneWay {
    /// The delays of one stream.
    pub(super) fn of(counts: &TransitCounts) -> Self {
        let firsts = i64::try_from(counts.count).unwrap_or(i64::MAX).saturating_mul(counts.first_ns);
        Self {
            datagrams: counts.count,
            sum_us: firsts.saturating_add(counts.sum_ns) / 1000,
            min_us: counts.range_ns.0 / 1000,
            max_us: counts.range_ns.1 / 1000,
        }
    }

    /// Combines the delays of two streams.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            datagrams: self.datagrams.saturating_add(other.datagrams),
            sum_us: self.sum_us.saturating_add(other.sum_us),
            min_us: self.min_us.min(other.min_us),
            max_us: self.max_us.max(other.max_us),
        }
    }

    /// The mean, in milliseconds; absent without datagrams.
    pub(super) fn mean_ms(&self) -> Option<f64> {
        (self.datagrams > 0).then(|| self.sum_us as f64 / self.datagrams as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_that_of_the_delays_and_not_of_what_they_differ_by() {
        // 3 ms, 5 ms and 4 ms.
        let counts = TransitCounts {
            count: 3,
            first_ns: 3_000_000,
            sum_ns: 3_000_000,
            range_ns: (3_000_000, 5_000_000),
            ..TransitCounts::default()
        };
        let delays = OneWay::of(&counts);
        assert_eq!((delays.mean_ms(), delays.min_us, delays.max_us), (Some(4.0), 3000, 5000));
        let ahead = OneWay { datagrams: 1, sum_us: -8000, min_us: -8000, max_us: -8000 };
        assert_eq!(delays.with(ahead), OneWay { datagrams: 4, sum_us: 4000, min_us: -8000, max_us: 5000 });
        assert_eq!(OneWay::default().mean_ms(), None);
    }
}
