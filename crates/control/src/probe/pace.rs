//! The probe rate during a load: high enough to see a queue, and low enough not to add to the load.

use std::sync::atomic::{AtomicU64, Ordering};

use linerate_units::Span;

/// Interval between probes on an idle path and on fast paths: gives a 99th percentile within seconds.
pub(super) const GAP: Span = Span::from_ms(10);
/// Interval while the rate of the path is unknown.
const INITIAL_GAP: Span = Span::from_ms(100);
/// Longest interval between two probes.
const MAX_GAP: Span = Span::from_secs(10);
/// Bits of a probe on the path: 64 bytes in UDP, IPv6 and Ethernet.
const PROBE_BITS: f64 = (64 + 8 + 40 + 14) as f64 * 8.0;
/// Share of the path's rate used by probes.
const PATH_SHARE: f64 = 0.000_5;
/// The same on slow paths, where that would be too few probes, up to [`SLOW_PATH_PROBES_PER_S`] probes per
/// second.
const SLOW_PATH_SHARE: f64 = 0.000_75;
const SLOW_PATH_PROBES_PER_S: f64 = 5.0;

/// The interval between probes, shared with the thread that sends them.
#[derive(Debug)]
pub(crate) struct ProbePace(AtomicU64);

impl ProbePace {
    /// For an idle path.
    pub(super) const fn idle() -> Self {
        Self(AtomicU64::new(GAP.as_ns()))
    }

    /// For a load of unknown rate.
    pub(super) const fn under_load() -> Self {
        Self(AtomicU64::new(INITIAL_GAP.as_ns()))
    }

    /// Adapts to a load of this rate, bit/s.
    pub(super) fn follow(&self, path_bps: f64) {
        self.0.store(gap(path_bps).as_ns(), Ordering::Relaxed);
    }

    pub(super) fn gap(&self) -> Span {
        Span::from_ns(self.0.load(Ordering::Relaxed))
    }
}

/// The interval between probes during a load of this rate.
fn gap(path_bps: f64) -> Span {
    if path_bps.is_nan() {
        return MAX_GAP;
    }
    let allowed =
        (PATH_SHARE * path_bps).max((SLOW_PATH_SHARE * path_bps).min(SLOW_PATH_PROBES_PER_S * PROBE_BITS));
    let gap = Span::from_secs_f64(PROBE_BITS / allowed).unwrap_or(MAX_GAP);
    gap.clamp(GAP, MAX_GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_take_three_quarters_of_a_thousandth_of_a_path_at_most() {
        let mut last = MAX_GAP;
        for step in 0..=200 {
            // From 200 kb/s to 20 Gb/s.
            let path = 2e5 * 10_f64.powf(f64::from(step) / 40.0);
            let found = gap(path);
            let taken = PROBE_BITS / found.as_secs_f64() / path;
            assert!(taken <= 0.000_75 * (1.0 + 1e-6), "{path}: {taken}");
            assert!(found <= last, "never fewer on a faster path");
            last = found;
        }
        assert_eq!(gap(3e8), GAP);
        assert_eq!((gap(0.0), gap(f64::NAN)), (MAX_GAP, MAX_GAP));
        // 8 Mb/s: five per second, which is less than that.
        assert_eq!(gap(8e6), Span::from_ms(200));
    }

    #[test]
    fn the_thread_hears_of_the_load() {
        let pace = ProbePace::under_load();
        assert_eq!((pace.gap(), ProbePace::idle().gap()), (INITIAL_GAP, GAP));
        pace.follow(1e9);
        assert_eq!(pace.gap(), GAP);
    }
}
