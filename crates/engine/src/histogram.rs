//! A histogram of times with buckets of equal relative width, and the summary of what one thread counted in it.

use linerate_model::{DelayBucket, Digest};

/// Bits of a time that its bucket keeps: a bucket is as wide as at most 1/128 of its values.
const KEPT_BITS: u32 = 7;
/// Times above one minute count as one minute.
pub(crate) const LONGEST_NS: u64 = 60_000_000_000;
/// Number of buckets up to [`LONGEST_NS`].
pub(crate) const BUCKETS: usize = bucket_of(LONGEST_NS) + 1;

/// The bucket of a time. Up to 255 ns each nanosecond has one, then each octave has 128.
pub(crate) const fn bucket_of(ns: u64) -> usize {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(KEPT_BITS + 1);
    ((shift as usize) << KEPT_BITS) + (ns >> shift) as usize
}

/// The largest time of a bucket.
pub(crate) const fn end_of(bucket: usize) -> u64 {
    let shift = (bucket >> KEPT_BITS).saturating_sub(1);
    let first = (bucket - (shift << KEPT_BITS)) as u64;
    ((first + 1) << shift) - 1
}

/// The buckets that are not empty, ascending.
pub(crate) fn filled(counts: &[u64]) -> Vec<DelayBucket> {
    let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    filled.map(|(bucket, count)| DelayBucket { up_to_ns: end_of(bucket), count: *count }).collect()
}

/// Times that one thread counts and nobody reads meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct TimeHistogram {
    buckets: Vec<u64>,
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
}

impl TimeHistogram {
    pub(crate) fn new() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }

    /// Counts a time.
    #[inline]
    pub(crate) fn note(&mut self, ns: u64) {
        if let Some(bucket) = self.buckets.get_mut(bucket_of(ns.min(LONGEST_NS))) {
            *bucket += 1;
        }
        self.count += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Adds the times of another thread.
    pub(crate) fn merge(mut self, other: &Self) -> Self {
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += count;
        }
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self
    }

    /// Their summary; absent if none was counted.
    pub(crate) fn digest(&self) -> Option<Digest> {
        let mean_ns = self.sum_ns.checked_div(self.count)?;
        let buckets = filled(&self.buckets);
        let at = |share| {
            DelayBucket::quantile(&buckets, share).unwrap_or(self.max_ns).clamp(self.min_ns, self.max_ns)
        };
        Some(Digest {
            count: self.count,
            min_ns: self.min_ns,
            mean_ns,
            p50_ns: at(0.5),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            max_ns: self.max_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_those_of_the_latency_histogram() {
        assert_eq!(BUCKETS, 3808);
        for ns in [0, 1, 127, 128, 255] {
            assert_eq!((bucket_of(ns), end_of(bucket_of(ns))), (ns as usize, ns), "{ns}");
        }
        assert_eq!((bucket_of(256), end_of(256)), (256, 257));
        assert_eq!(bucket_of(258), 257);
    }

    #[test]
    fn the_times_of_several_threads_have_one_summary() {
        let (mut one, mut other) = (TimeHistogram::new(), TimeHistogram::new());
        assert_eq!(one.digest(), None);
        for ns in [100, 200, 250] {
            one.note(ns);
        }
        other.note(5_000_000);
        let digest = one.merge(&other).digest().unwrap();
        assert_eq!((digest.count, digest.min_ns, digest.max_ns), (4, 100, 5_000_000));
        assert_eq!((digest.p50_ns, digest.mean_ns), (200, 5_000_550 / 4));
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_and_is_at_most_a_128th_of_them_wide(ns in 0..=LONGEST_NS) {
            let bucket = bucket_of(ns);
            prop_assert!(bucket < BUCKETS);
            prop_assert!(end_of(bucket) >= ns);
            prop_assert!((end_of(bucket) - ns) as f64 <= ns as f64 / 128.0);
            prop_assert_eq!(bucket_of(end_of(bucket)), bucket);
            prop_assert_eq!(bucket_of(end_of(bucket) + 1), bucket + 1);
        }
    }
}
