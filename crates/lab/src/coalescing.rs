//! Fewer polls: a busy switch sleeps between two of them, as a NIC under load raises fewer interrupts.
//!
//! A wake-up costs about as much as forwarding a full GSO frame. Frames that arrive meanwhile are read
//! together, as if they had arrived when the sleep began, and those due meanwhile leave at its end: a single
//! frame may be early or late by one sleep, and the average over many is neither.

use linerate_sock::clock::Mono;

/// The longest sleep. Together with the wake-up latency, it stays below the 100 us by which a frame may be off.
const MAX_NS: u64 = 64_000;
/// A sleep may add at most this fraction (its inverse) of the time that a frame was in flight.
const DELAY_DIVISOR: u64 = 50;
/// A shorter sleep saves nothing.
const MIN_NS: u64 = 20_000;
/// Decisions are based on the last complete window and on the current one.
const WINDOW_NS: u64 = 100_000_000;
/// This many polls in a window, 4000 a second, are a few hundredths of a core: below that there is nothing to
/// save.
const BUSY_POLLS: u32 = 400;

/// Computes how long the switch may sleep between two polls.
#[derive(Debug)]
pub(super) struct Rest {
    began: Mono,
    current: Spell,
    last: Spell,
}

/// The events of one window.
#[derive(Debug, Clone, Copy, Default)]
struct Spell {
    looks: u32,
    /// The shortest time that a frame was in flight; absent if none arrived.
    least_ns: Option<u64>,
}

impl Rest {
    /// Nothing is known yet, so there is no sleep.
    pub(super) fn new(now: Mono) -> Self {
        Self { began: now, current: Spell::default(), last: Spell::default() }
    }

    /// A frame has arrived after `way_ns` in flight: short times end all sleep immediately.
    pub(super) fn met(&mut self, way_ns: u64) {
        self.current.least_ns = Some(self.current.least_ns.map_or(way_ns, |least| least.min(way_ns)));
    }

    /// The switch has polled. It need not poll again before the time returned.
    pub(super) fn polled(&mut self, now: Mono) -> Mono {
        let passed = now.as_ns().saturating_sub(self.began.as_ns());
        if passed >= WINDOW_NS {
            self.last = if passed < 2 * WINDOW_NS { self.current } else { Spell::default() };
            (self.began, self.current) = (now, Spell::default());
        }
        self.current.looks += 1;
        Mono(now.as_ns().saturating_add(self.length_ns()))
    }

    fn length_ns(&self) -> u64 {
        if self.last.looks.max(self.current.looks) < BUSY_POLLS {
            return 0;
        }
        let least = [self.last, self.current].iter().filter_map(|spell| spell.least_ns).min();
        let length = least.map_or(0, |least| (least / DELAY_DIVISOR).min(MAX_NS));
        if length < MIN_NS { 0 } else { length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A switch that polls `looks` times at equal intervals for three and a half windows, and delivers a frame
    /// at each poll.
    fn after(looks: u64, way_ns: u64) -> (Rest, u64) {
        let (mut rest, mut now) = (Rest::new(Mono(0)), 0);
        for _ in 0..3 * looks + looks / 2 {
            now += WINDOW_NS / looks;
            rest.met(way_ns);
            rest.polled(Mono(now));
        }
        (rest, now)
    }

    fn length((mut rest, now): (Rest, u64)) -> u64 {
        rest.polled(Mono(now)).as_ns() - now
    }

    #[test]
    fn only_a_busy_switch_on_long_ways_rests() {
        assert_eq!(length(after(1000, 25 * MS)), 64_000);
        assert_eq!(length(after(1000, 2 * MS)), 40_000, "a fiftieth of the way");
        assert_eq!(length(after(1000, MS)), 20_000);
        assert_eq!(length(after(1000, MS - 50)), 0, "too short to be worth it");
        assert_eq!(length(after(300, 25 * MS)), 0, "little to do");
        let (mut silent, now) = (Rest::new(Mono(0)), WINDOW_NS / 2);
        (0..2 * BUSY_POLLS).for_each(|_| assert_eq!(silent.polled(Mono(now)), Mono(now), "nothing arrives"));
    }

    #[test]
    fn a_frame_on_a_short_way_ends_all_rest_for_a_spell_and_more() {
        let (mut rest, mut now) = after(1000, 25 * MS);
        rest.met(10_000);
        let mut ended = 0;
        for _ in 0..3000 {
            now += WINDOW_NS / 1000;
            rest.met(25 * MS);
            ended += u32::from(rest.polled(Mono(now)).as_ns() == now);
        }
        assert!((1000..=2000).contains(&ended), "{ended} of 3000 tenths of a millisecond");
        assert_eq!(length((rest, now)), 64_000, "and it comes back");
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let (mut rest, now) = after(1000, 25 * MS);
        let now = now + 2 * WINDOW_NS;
        assert_eq!(rest.polled(Mono(now)), Mono(now));
    }
}
