//! When the next bytes are due: absolute deadlines, so that a late wake-up does not delay later writes.

use std::time::Duration;

use linerate_sock::Mono;
use linerate_units::{Bitrate, Span};

/// Smallest chunk, bytes; with smaller ones the system calls would cost more than the smoothing gains.
const MIN_CHUNK: u64 = 1024;
/// Writes per second that are smooth enough.
const CHUNKS_PER_SECOND: f64 = 200.0;
/// Number of fraction bits in `per_byte`.
const FRACTION: u32 = 32;

/// Schedule of a stream: byte k is due at start + k * 8 / rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacingSchedule {
    start: Mono,
    /// Nanoseconds per byte in fixed point, so that the pump computes in integers.
    per_byte: u128,
    /// Deadlines are rounded down to a multiple of this, ns; 1 for no rounding.
    tick_ns: u64,
}

impl PacingSchedule {
    /// A schedule from `start` on; absent for rate zero, at which nothing would ever be due.
    pub(crate) fn new(start: Mono, rate: Bitrate) -> Option<Self> {
        let per_byte = 8e9 / rate.bps() * (1u64 << FRACTION) as f64;
        per_byte.is_finite().then_some(Self { start, per_byte: per_byte.round() as u128, tick_ns: 1 })
    }

    /// Rounds every deadline down to the start of its tick, so that one wake-up serves all bytes of a tick.
    /// Over whole ticks the number of bytes stays the same.
    pub(crate) fn in_ticks(self, tick: Option<Span>) -> Self {
        Self { tick_ns: tick.map_or(1, |tick| tick.as_ns().max(1)), ..self }
    }

    /// When the next bytes are due after `sent` bytes.
    #[inline]
    pub(crate) fn due(&self, sent: u64) -> Mono {
        let ns = u128::from(sent).saturating_mul(self.per_byte) >> FRACTION;
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        self.start + Duration::from_nanos(ns - ns % self.tick_ns)
    }

    /// The bytes after `sent` that are due in the same tick, at least one; no limit without ticks.
    pub(crate) fn left_in_tick(&self, sent: u64) -> u64 {
        if self.tick_ns <= 1 {
            return u64::MAX;
        }
        let tick = u128::from(self.tick_ns);
        let ns = u128::from(sent).saturating_mul(self.per_byte) >> FRACTION;
        let end = (ns / tick + 1).saturating_mul(tick).saturating_mul(1 << FRACTION);
        let first_after = u64::try_from(end.div_ceil(self.per_byte.max(1))).unwrap_or(u64::MAX);
        first_after.saturating_sub(sent).max(1)
    }
}

/// Where a stream is in its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SchedulePosition {
    pub(crate) schedule: PacingSchedule,
    /// Bytes whose time has come: those that were written, and those that were left out.
    pub(crate) passed: u64,
}

impl SchedulePosition {
    /// When the bytes after the first `omitted` were due.
    pub(crate) fn due_after(&self, omitted: u64) -> Mono {
        self.schedule.due(omitted)
    }

    /// When the next bytes are due, which is when the slot of the last ones ends.
    pub(crate) fn next_due(&self) -> Mono {
        self.schedule.due(self.passed)
    }
}

/// Bytes to write at once at this rate, at most `block`.
pub(crate) fn chunk(rate: Bitrate, block: usize) -> usize {
    let smooth = (rate.bps() / 8.0 / CHUNKS_PER_SECOND).ceil() as u64;
    usize::try_from(smooth.max(MIN_CHUNK)).unwrap_or(block).min(block)
}

/// Kernel pacing rate for a rate that the program paces, bytes/s: 25 % higher, so that a chunk does not leave
/// at line rate and the program still sets the rate.
pub(crate) fn smoothing_rate(offered: Bitrate) -> u64 {
    (offered.bps() / 8.0 * 1.25).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(bps: f64) -> Bitrate {
        Bitrate::from_bps(bps).unwrap()
    }

    #[test]
    fn a_megabyte_at_eight_megabits_takes_a_second() {
        let schedule = PacingSchedule::new(Mono(500), rate(8e6)).unwrap();
        assert_eq!(schedule.due(0), Mono(500));
        assert_eq!(schedule.due(1_000_000), Mono(1_000_000_500));
        assert!(PacingSchedule::new(Mono(0), Bitrate::ZERO).is_none());
    }

    #[test]
    fn a_day_at_odd_rates_drifts_by_less_than_a_microsecond_per_second() {
        for bps in [3.0, 1e6 / 3.0, 941_482_444.733, 1e11] {
            let schedule = PacingSchedule::new(Mono(0), rate(bps)).unwrap();
            let bytes = (bps / 8.0 * 86_400.0) as u64;
            let exact = bytes as f64 * 8e9 / bps;
            let drift = (schedule.due(bytes).as_ns() as f64 - exact).abs();
            assert!(drift < 86_400_000.0, "{bps}: {drift} ns");
        }
    }

    #[test]
    fn what_is_due_within_a_tick_is_due_at_its_start() {
        let schedule = PacingSchedule::new(Mono(500), rate(8e6)).unwrap();
        let ticking = schedule.in_ticks(Some(Span::from_ms(1)));
        let due = |sent| ticking.due(sent).as_ns();
        assert_eq!([0, 999, 1000, 1999, 2000].map(due), [500, 500, 1_000_500, 1_000_500, 2_000_500]);
        for none in [None, Some(Span::ZERO)] {
            assert_eq!(schedule.in_ticks(none).due(999), schedule.due(999));
        }
    }

    #[test]
    fn a_tick_has_the_bytes_that_are_due_in_it() {
        let schedule = PacingSchedule::new(Mono(500), rate(8e6)).unwrap();
        assert_eq!(schedule.left_in_tick(7), u64::MAX);
        let ticking = schedule.in_ticks(Some(Span::from_ms(1)));
        assert_eq!([0, 1, 999, 1000, 1500].map(|sent| ticking.left_in_tick(sent)), [1000, 999, 1, 1000, 500]);
        let odd =
            PacingSchedule::new(Mono(0), rate(941_482_444.733)).unwrap().in_ticks(Some(Span::from_ms(3)));
        let first = odd.left_in_tick(0);
        assert_eq!((odd.due(first - 1), odd.due(first)), (Mono(0), Mono(3_000_000)));
    }

    #[test]
    fn ticks_change_when_datagrams_leave_and_not_how_many() {
        // 1448 bytes at 100 Mb/s take 115.84 µs. Ten seconds contain as many datagrams with ticks of 1 ms as
        // without.
        let exact = PacingSchedule::new(Mono(0), rate(100e6)).unwrap();
        let ticking = exact.in_ticks(Some(Span::from_ms(1)));
        let end = Mono(10_000_000_000);
        let until = |schedule: PacingSchedule| (0u64..).take_while(|n| schedule.due(n * 1448) < end).count();
        assert_eq!((until(exact), until(ticking)), (86_326, 86_326));
        let wakes: std::collections::BTreeSet<u64> =
            (0..86_326u64).map(|n| ticking.due(n * 1448).as_ns()).collect();
        assert_eq!(wakes.len(), 10_000, "one for each tick");
    }

    #[test]
    fn chunks_are_a_two_hundredth_of_a_second_between_a_kibibyte_and_the_block() {
        assert_eq!(chunk(rate(160e6), 131_072), 100_000);
        assert_eq!(chunk(rate(1e3), 131_072), 1024);
        assert_eq!(chunk(rate(1e12), 131_072), 131_072);
        assert_eq!(chunk(rate(1e3), 100), 100);
    }

    proptest! {
        #[test]
        fn deadlines_never_go_back(bps in 8.0f64..1e12, sent in 0u64..1 << 50, more in 0u64..1 << 30) {
            let schedule = PacingSchedule::new(Mono(7), rate(bps)).unwrap();
            prop_assert!(schedule.due(sent) <= schedule.due(sent + more));
            let ticking = schedule.in_ticks(Some(Span::from_ms(1)));
            let early = schedule.due(sent).since(ticking.due(sent));
            prop_assert!(ticking.due(sent) <= schedule.due(sent) && early < Duration::from_millis(1));
        }
    }
}
