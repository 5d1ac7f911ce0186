//! Getting up early: a processor that sleeps takes its time to wake, most of all in a virtual machine.

use linerate_sock::clock::Mono;

/// How long before a frame is due the switch gets up and waits awake.
const WAKE_EARLY_NS: u64 = 300_000;
/// One part in so many of the time may be spent awake for nothing.
const SPIN_DIVISOR: u64 = 20;
/// What may be saved up for frames that follow each other closely.
const MAX_SAVED_NS: u64 = 25 * WAKE_EARLY_NS;

/// The time that the switch may wait awake: a small share, saved up. A busy switch is awake anyway and has none to save.
#[derive(Debug)]
pub(super) struct SpinBudget {
    saved_ns: u64,
    counted: Mono,
}

impl SpinBudget {
    /// Begins with nothing saved.
    pub(super) const fn new(now: Mono) -> Self {
        Self { saved_ns: 0, counted: now }
    }

    /// When to get up for what is due then: earlier if there is time saved, and sleep to be cut short.
    pub(super) fn alarm(&mut self, now: Mono, due: Mono) -> Mono {
        let passed = now.as_ns().saturating_sub(self.counted.as_ns());
        self.saved_ns = (self.saved_ns + passed / SPIN_DIVISOR).min(MAX_SAVED_NS);
        self.counted = now;
        let early = due.as_ns().saturating_sub(WAKE_EARLY_NS);
        if self.saved_ns >= WAKE_EARLY_NS && early > now.as_ns() { Mono(early) } else { due }
    }

    /// So long was waited awake.
    pub(super) const fn spend(&mut self, ns: u64) {
        self.saved_ns = self.saved_ns.saturating_sub(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_twentieth_of_the_time_is_spent_awake_and_no_more() {
        let mut spin_budget = SpinBudget::new(Mono(0));
        assert_eq!(spin_budget.alarm(Mono(MS), Mono(2 * MS)), Mono(2 * MS), "nothing is saved yet");
        let (mut now, mut awake) = (MS, 0);
        for _ in 0..10_000 {
            now += MS;
            let due = now + MS / 2;
            let early = due - spin_budget.alarm(Mono(now), Mono(due)).as_ns();
            assert!(early == 0 || early == WAKE_EARLY_NS);
            spin_budget.spend(early);
            awake += early;
        }
        assert!(awake.abs_diff(now / SPIN_DIVISOR) <= MAX_SAVED_NS, "{awake} of {now}");
        // What is due within that time needs no alarm.
        assert_eq!(
            spin_budget.alarm(Mono(now + 100 * MS), Mono(now + 100 * MS + 1000)),
            Mono(now + 100 * MS + 1000)
        );
    }
}
