//! The offset of the peer's clock, from all probes of the run so far.
//!
//! A probe bounds the offset, because neither direction takes less than no time. A probe without queueing
//! bounds it closely. During a load there may be none for seconds, so probes from before the load are kept, and
//! their bounds widen by the possible drift since then.

use super::digest::ProbeExchange;
use crate::DRIFT_PPM;

/// Of about this number of probes, the one with the closest bounds is kept.
const BEST_OF: usize = 32;

/// The bounds of one probe for the reflector's clock minus ours, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffsetBounds {
    /// When it was sent, on our clock.
    at: u64,
    least: i64,
    most: i64,
}

impl OffsetBounds {
    fn of(exchange: &ProbeExchange) -> Self {
        let between = |later: u64, earlier: u64| (i128::from(later) - i128::from(earlier)) as i64;
        Self {
            at: exchange.left,
            least: between(exchange.reflector_out, exchange.back),
            most: between(exchange.reflector_in, exchange.left),
        }
    }

    fn width(&self) -> u64 {
        self.most.saturating_sub(self.least).max(0).unsigned_abs()
    }

    fn middle(&self) -> i64 {
        ((i128::from(self.least) + i128::from(self.most)) / 2) as i64
    }

    /// The same bounds at another time, widened by the possible drift.
    fn at(self, at: u64) -> Self {
        let drift = drift(at.abs_diff(self.at));
        Self { at, least: self.least.saturating_sub(drift), most: self.most.saturating_add(drift) }
    }
}

/// The largest drift between two clocks in a time, both in ns.
fn drift(ns: u64) -> i64 {
    i64::try_from(u128::from(ns) * u128::from(DRIFT_PPM) / 1_000_000 + 1).unwrap_or(i64::MAX)
}

/// The offset at one moment, and its largest error, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReflectorOffset {
    pub(super) ns: i64,
    pub(super) error: u64,
}

/// The bounds from the probes of a run so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct OffsetHistory {
    /// Sorted by time.
    bounds: Vec<OffsetBounds>,
}

/// The bounds at one moment from the probes before it, or from those after it.
#[derive(Debug, Clone, Copy)]
struct OffsetEstimate {
    /// The intersection of all bounds.
    within: OffsetBounds,
    /// The probe with the closest bounds.
    best: OffsetBounds,
}

impl OffsetEstimate {
    fn and(self, other: Self) -> Self {
        let other = Self { within: other.within.at(self.within.at), best: other.best.at(self.best.at) };
        let within = OffsetBounds {
            least: self.within.least.max(other.within.least),
            most: self.within.most.min(other.within.most),
            ..self.within
        };
        Self { within, best: if other.best.width() < self.best.width() { other.best } else { self.best } }
    }

    /// The offset by the best probe, moved into the bounds if these exclude it.
    fn offset(self) -> ReflectorOffset {
        let OffsetBounds { least, most, .. } = self.within;
        // Clocks that drift faster than assumed give contradicting bounds. The best probe alone counts then.
        let (least, most) = if least <= most { (least, most) } else { (self.best.least, self.best.most) };
        let ns = self.best.middle().max(least).min(most.max(least));
        let error = most.saturating_sub(ns).max(ns.saturating_sub(least)).max(0).unsigned_abs();
        ReflectorOffset { ns, error }
    }
}

impl OffsetHistory {
    /// Adds the probes of a finished phase.
    pub(super) fn learn(&mut self, exchanges: &[ProbeExchange]) {
        let mut all: Vec<OffsetBounds> = exchanges.iter().map(OffsetBounds::of).collect();
        all.sort_unstable_by_key(|bounds| bounds.at);
        for some in all.chunks(BEST_OF) {
            let kept = [
                some.iter().max_by_key(|bounds| bounds.least),
                some.iter().min_by_key(|bounds| bounds.most),
                some.iter().min_by_key(|bounds| bounds.width()),
            ];
            self.bounds.extend(kept.into_iter().flatten());
        }
        self.bounds.sort_unstable_by_key(|bounds| bounds.at);
        self.bounds.dedup();
    }

    /// The offset at the time of each exchange, in their order, from these and all earlier exchanges.
    pub(super) fn offsets(&self, exchanges: &[ProbeExchange]) -> Vec<ReflectorOffset> {
        let own = exchanges.iter().enumerate().map(|(at, exchange)| (OffsetBounds::of(exchange), Some(at)));
        let mut all: Vec<(OffsetBounds, Option<usize>)> =
            self.bounds.iter().map(|bounds| (*bounds, None)).chain(own).collect();
        all.sort_by_key(|(bounds, _)| bounds.at);
        let seen =
            |(bounds, _): &(OffsetBounds, Option<usize>)| OffsetEstimate { within: *bounds, best: *bounds };
        let step = |known: &mut Option<OffsetEstimate>, next: OffsetEstimate| {
            *known = Some(known.map_or(next, |known| next.and(known)));
            *known
        };
        let before: Vec<OffsetEstimate> = all.iter().map(seen).scan(None, step).collect();
        let mut after: Vec<OffsetEstimate> = all.iter().rev().map(seen).scan(None, step).collect();
        after.reverse();
        let mut offsets = vec![ReflectorOffset { ns: 0, error: u64::MAX }; exchanges.len()];
        for (((_, own), before), after) in all.iter().zip(before).zip(after) {
            if let Some(place) = own.and_then(|at| offsets.get_mut(at)) {
                *place = before.and(after).offset();
            }
        }
        offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe sent at a time with its two delays; the reflector's clock is `offset` ahead and drifts. All in
    /// ns.
    fn exchange(at: u64, up: u64, down: u64, offset: i64, ppm: i64) -> ProbeExchange {
        let ahead = |at: u64| {
            let drifted = i128::from(at) * i128::from(ppm) / 1_000_000;
            u64::try_from(i128::from(at) + i128::from(offset) + drifted).unwrap()
        };
        let arrived = at + up;
        let replied = arrived + 5_000;
        ProbeExchange {
            sent: at,
            left: at,
            reflector_in: ahead(arrived),
            reflector_out: ahead(replied),
            back: replied + down,
        }
    }

    const MS: u64 = 1_000_000;

    /// 20 us in each direction, plus a queue of 2 ms in one of them.
    fn loaded(from_ms: u64, count: u64) -> Vec<ProbeExchange> {
        (0..count)
            .map(|i| exchange((from_ms + 10 * i) * MS, 2 * MS + i % 7 * 1000, 20_000, 4_000_000, 0))
            .collect()
    }

    #[test]
    fn a_load_in_one_direction_does_not_move_the_clock() {
        let idle: Vec<ProbeExchange> =
            (0..50).map(|i| exchange((1 + 10 * i) * MS, 20_000, 20_000, 4_000_000, 0)).collect();
        let mut known = OffsetHistory::default();
        known.learn(&idle);
        let load = loaded(600, 100);
        for (exchange, offset) in load.iter().zip(known.offsets(&load)) {
            assert_eq!(offset.ns, 4_000_000, "{exchange:?}");
            // 20 us, and the drift of at most 1.5 s at 100 ppm.
            assert!((20_000..=175_000).contains(&offset.error), "{offset:?}");
        }
        // Without the earlier probes, half of the queueing delay would be mistaken for clock offset.
        let blind = OffsetHistory::default().offsets(&load);
        assert!(blind.iter().all(|offset| offset.ns.abs_diff(4_000_000) > 900_000), "{blind:?}");
        assert!(blind.iter().all(|offset| offset.error >= offset.ns.abs_diff(4_000_000)));
    }

    #[test]
    fn nothing_known_is_no_offset_and_absurd_times_make_no_panic() {
        assert!(OffsetHistory::default().offsets(&[]).is_empty());
        let absurd = ProbeExchange {
            sent: u64::MAX,
            left: 0,
            reflector_in: u64::MAX,
            reflector_out: 0,
            back: u64::MAX,
        };
        let mut known = OffsetHistory::default();
        known.learn(&[absurd, ProbeExchange { left: u64::MAX, ..absurd }]);
        assert_eq!(known.offsets(&[absurd]).len(), 1);
    }

    /// Pseudo-random numbers with a fixed seed (xorshift, Marsaglia 2003).
    struct Seeded(u64);

    impl Seeded {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }
    }

    #[test]
    fn whatever_the_queues_and_the_drift_the_truth_is_within_the_error() {
        let mut seeded = Seeded(0x9e37_79b9_7f4a_7c15);
        for _ in 0..200 {
            let ppm = seeded.below(181) as i64 - 90;
            let offset = seeded.below(1_000_000_000) as i64;
            let (deep_up, deep_down) = (1 + seeded.below(30 * MS), 1 + seeded.below(30 * MS));
            let mut probe = |i: u64| {
                let (up, down) = (10_000 + seeded.below(deep_up), 10_000 + seeded.below(deep_down));
                exchange(i * 10 * MS, up, down, offset, ppm)
            };
            let all: Vec<ProbeExchange> = (1..150).map(&mut probe).collect();
            let (before, load) = all.split_at(usize::try_from(seeded.below(100)).unwrap());
            let mut known = OffsetHistory::default();
            known.learn(before);
            for (exchange, found) in load.iter().zip(known.offsets(load)) {
                let truth = offset + (i128::from(exchange.left) * i128::from(ppm) / 1_000_000) as i64;
                // The clock also drifts while the probe is in transit: 60 ms at 90 ppm.
                assert!(found.ns.abs_diff(truth) <= found.error + 6_000, "{ppm} {found:?} {truth}");
            }
        }
    }
}
