//! Early wake-up: a sleeping CPU takes time to wake up, especially in a virtual machine.

use linerate_sock::clock::Mono;

/// How long before a frame is due the switch wakes up and spins.
const WAKE_EARLY_NS: u64 = 300_000;
/// The inverse of the share of time that may be spent spinning in vain.
const SPIN_DIVISOR: u64 = 20;
/// Most time that can be saved for frames in quick succession.
const MAX_SAVED_NS: u64 = 25 * WAKE_EARLY_NS;

/// The time that the switch may spin: a small share, which accumulates. A busy switch is awake anyway and does
/// not need it.
#[derive(Debug)]
pub(super) struct SpinBudget {
    saved_ns: u64,
    counted: Mono,
}

impl SpinBudget {
    /// Starts with nothing saved.
    pub(super) const fn new(now: Mono) -> Self {
        Self { saved_ns: 0, counted: now }
    }

    /// When to wake up for an event at `due`: earlier if there is time saved, and sleep to be shortened.
    pub(super) fn alarm(&mut self, now: Mono, due: Mono) -> Mono {
        let passed = now.as_ns().saturating_sub(self.counted.as_ns());
        self.saved_ns = (self.saved_ns + passed / SPIN_DIVISOR).min(MAX_SAVED_NS);
        self.counted = now;
        let early = due.as_ns().saturating_sub(WAKE_EARLY_NS);
        if self.saved_ns >= WAKE_EARLY_NS && early > now.as_ns() { Mono(early) } else { due }
    }

    /// Accounts for `ns` spent spinning.
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
        // Events due within that time need no early wake-up.
        assert_eq!(
            spin_budget.alarm(Mono(now + 100 * MS), Mono(now + 100 * MS + 1000)),
            Mono(now + 100 * MS + 1000)
        );
    }
}
