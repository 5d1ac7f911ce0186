//! Where the fully prepared pumps of a flow wait for the start.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use linerate_sock::priority::Urgent;
use linerate_sock::{Mono, clock};

use crate::control::PumpControl;

/// A sleeping thread wakes up late, so it wakes this long before the start and spins. This value applies with
/// real-time priority, [`SPIN_TIME`] without it.
const SPIN_TIME_URGENT: Duration = Duration::from_micros(200);
/// As [`SPIN_TIME_URGENT`], for a thread that may have to wait for a CPU.
const SPIN_TIME: Duration = Duration::from_millis(1);

/// A gate that opens once, at an instant.
#[derive(Debug, Default)]
pub(crate) struct StartGate {
    /// Start time; absent until [`StartGate::open_at`].
    opens: Mutex<Option<Mono>>,
    changed: Condvar,
    passed: AtomicUsize,
    last: AtomicU64,
}

impl StartGate {
    /// Lets all pumps through at `at`; only the first call counts.
    pub(crate) fn open_at(&self, at: Mono) {
        let mut opens = self.opens.lock().unwrap_or_else(PoisonError::into_inner);
        opens.get_or_insert(at);
        self.changed.notify_all();
    }

    /// Makes waiting pumps check whether the flow is aborted.
    pub(crate) fn wake(&self) {
        let _waiting = self.opens.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }

    /// When the last of `pumps` passed; absent while one waits.
    pub(crate) fn all_passed(&self, pumps: usize) -> Option<Mono> {
        let all = self.passed.load(Ordering::Acquire) >= pumps;
        all.then(|| Mono(self.last.load(Ordering::Acquire)))
    }

    /// Waits for a start time; absent if the flow is aborted first.
    fn wait_for_start(&self, control: &PumpControl) -> Option<Mono> {
        let mut opens = self.opens.lock().unwrap_or_else(PoisonError::into_inner);
        while opens.is_none() && !control.aborted() {
            opens = self.changed.wait(opens).unwrap_or_else(PoisonError::into_inner);
        }
        opens.filter(|_| !control.aborted())
    }

    fn pass(&self) {
        self.last.fetch_max(clock::now().as_ns(), Ordering::AcqRel);
        self.passed.fetch_add(1, Ordering::AcqRel);
    }
}

impl PumpControl {
    /// Waits for the start. Returns early if the flow is aborted; the pump checks that itself.
    pub(crate) fn wait_at_gate(&self) {
        let Some(at) = self.gate.wait_for_start(self) else { return };
        if !at.has_passed() {
            let urgent = Urgent::claim().ok();
            let awake = if urgent.is_some() { SPIN_TIME_URGENT } else { SPIN_TIME };
            let close = Mono(at.as_ns().saturating_sub(awake.as_nanos() as u64));
            if self.sleep_until(close, |control| !control.aborted()) {
                while !at.has_passed() {
                    std::hint::spin_loop();
                }
            }
        }
        // After `Urgent::claim`, so that the recorded time includes any delay by other threads.
        self.gate.pass();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::MAX_PUMP_WAIT;

    fn control() -> PumpControl {
        PumpControl::new(2, true, MAX_PUMP_WAIT).unwrap()
    }

    #[test]
    fn nobody_passes_before_the_instant_and_the_last_one_says_when_all_had() {
        let control = control();
        std::thread::scope(|scope| {
            let pumps: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        control.wait_at_gate();
                        clock::now()
                    })
                })
                .collect();
            assert_eq!(control.gate.all_passed(2), None);
            let at = clock::now() + Duration::from_millis(20);
            control.gate.open_at(at);
            control.gate.open_at(Mono(0));
            let left: Vec<Mono> = pumps.into_iter().map(|pump| pump.join().unwrap()).collect();
            let passed = control.gate.all_passed(2).unwrap();
            assert!(left.iter().all(|left| *left >= at) && passed >= at, "{left:?} {passed:?} {at:?}");
            assert!(left.iter().any(|left| *left >= passed), "{left:?} {passed:?}");
        });
    }

    #[test]
    fn an_aborted_flow_holds_nobody_and_has_not_begun() {
        let control = control();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| control.wait_at_gate());
            control.abort();
            waiting.join().unwrap();
        });
        assert_eq!(control.gate.all_passed(1), None);
        let late = clock::now() + Duration::from_secs(3600);
        control.gate.open_at(late);
        // A start time after the abort changes nothing.
        control.wait_at_gate();
        assert!(!late.has_passed());
    }
}
