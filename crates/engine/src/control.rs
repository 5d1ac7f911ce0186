//! Orders and notifications between the driver's thread, the pumps and the sampler.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_sock::poll::EventFd;
use linerate_sock::thread::locked;
use linerate_sock::{Mono, SockError, clock};

use crate::start_gate::StartGate;

/// Longest time that a pump waits before it checks for orders.
pub(crate) const MAX_PUMP_WAIT: Duration = Duration::from_millis(100);
/// The same where the dialogue of another tool waits until the pumps have ended.
pub(crate) const MAX_BORROWED_PUMP_WAIT: Duration = Duration::from_millis(20);

/// Most bytes that wait to be inserted; a peer that takes nothing gets no more.
const MAX_INSERTED_BYTES: usize = 64 << 10;

/// Orders to the pumps, and notifications that they have ended.
#[derive(Debug)]
pub(crate) struct PumpControl {
    stop_writing: AtomicBool,
    at_once: AtomicBool,
    abort: AtomicBool,
    read_until: AtomicU64,
    /// When writing was ordered to stop.
    stopped_at: AtomicU64,
    /// What to write between two blocks, and whether there is anything.
    inserts: Mutex<Vec<u8>>,
    has_inserts: AtomicBool,
    failed: AtomicBool,
    writing: AtomicUsize,
    running: AtomicUsize,
    timeout: Duration,
    /// Where the pumps wait for the start.
    pub(crate) gate: StartGate,
    /// Wakes the driver when writing has finished or everything has ended.
    pub(crate) driver: EventFd,
    /// Others that are woken like the driver.
    observers: Mutex<Vec<Arc<EventFd>>>,
    /// Wakes the sampler at the first byte, at the end of writing and when everything has ended.
    pub(crate) sampler: EventFd,
}

impl PumpControl {
    /// `pumps` is their number and `timeout` their longest wait; `writing` says whether they write.
    pub(crate) fn new(pumps: usize, writing: bool, timeout: Duration) -> Result<Self, SockError> {
        Ok(Self {
            stop_writing: AtomicBool::new(false),
            at_once: AtomicBool::new(false),
            abort: AtomicBool::new(false),
            read_until: AtomicU64::new(Mono::FAR.as_ns()),
            stopped_at: AtomicU64::new(Mono::FAR.as_ns()),
            inserts: Mutex::default(),
            has_inserts: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            writing: AtomicUsize::new(if writing { pumps } else { 0 }),
            running: AtomicUsize::new(pumps),
            timeout,
            gate: StartGate::default(),
            driver: EventFd::new()?,
            observers: Mutex::default(),
            sampler: EventFd::new()?,
        })
    }

    pub(crate) fn stop_writing(&self) {
        self.note_stop();
        self.stop_writing.store(true, Ordering::Release);
    }

    fn note_stop(&self) {
        self.stopped_at.fetch_min(clock::now().as_ns(), Ordering::Relaxed);
    }

    /// When writing was first ordered to stop; [`Mono::FAR`] without an order.
    pub(crate) fn stopped_at(&self) -> Mono {
        Mono(self.stopped_at.load(Ordering::Relaxed))
    }

    pub(crate) fn stop_reading(&self, deadline: Mono) {
        self.read_until.store(deadline.as_ns(), Ordering::Release);
    }

    /// Requests that the pump writes these bytes before its next block.
    pub(crate) fn insert(&self, bytes: &[u8]) {
        let mut inserts = locked(&self.inserts);
        if inserts.len().saturating_add(bytes.len()) <= MAX_INSERTED_BYTES {
            inserts.extend_from_slice(bytes);
            self.has_inserts.store(true, Ordering::Release);
        }
    }

    /// What was inserted since the last call; `None` without taking a lock if that is nothing.
    #[inline]
    pub(crate) fn inserted(&self) -> Option<Vec<u8>> {
        if !self.has_inserts.load(Ordering::Acquire) {
            return None;
        }
        let mut inserts = locked(&self.inserts);
        self.has_inserts.store(false, Ordering::Release);
        Some(std::mem::take(&mut *inserts))
    }

    /// Ends writing and reading, and leaves the connections as they are.
    pub(crate) fn stop_at_once(&self) {
        self.at_once.store(true, Ordering::Release);
        self.stop_writing();
        self.stop_reading(Mono(0));
    }

    /// Whether [`PumpControl::stop_at_once`] was called.
    pub(crate) fn stopped_at_once(&self) -> bool {
        self.at_once.load(Ordering::Acquire)
    }

    /// Whether writing has to stop, for any reason.
    pub(crate) fn stop_requested(&self) -> bool {
        !self.may_write()
    }

    pub(crate) fn abort(&self) {
        self.note_stop();
        self.abort.store(true, Ordering::Release);
        self.gate.wake();
        self.sampler.wake();
    }

    /// Aborts, and counts pumps that never started as ended, so that nothing waits for them.
    pub(crate) fn abort_unstarted(&self, pumps: usize) {
        self.abort();
        self.running.fetch_sub(pumps, Ordering::AcqRel);
        self.sampler.wake();
    }

    /// Whether a pump may continue to write.
    #[inline]
    pub(crate) fn may_write(&self) -> bool {
        !self.stop_writing.load(Ordering::Acquire) && !self.aborted()
    }

    #[inline]
    pub(crate) fn aborted(&self) -> bool {
        self.abort.load(Ordering::Acquire)
    }

    /// Deadline for reading; [`Mono::FAR`] until [`PumpControl::stop_reading`].
    #[inline]
    pub(crate) fn read_until(&self) -> Mono {
        Mono(self.read_until.load(Ordering::Acquire))
    }

    /// Whether a receiver has to end. It then reads everything that has arrived, even if its read rate is
    /// limited: otherwise these bytes would be missing from the byte accounting.
    #[inline]
    pub(crate) fn reads_out(&self) -> bool {
        self.read_until() != Mono::FAR
    }

    /// Whether a pump may continue to read at `now`.
    #[inline]
    pub(crate) fn may_read(&self, now: Mono) -> bool {
        !self.aborted() && now < self.read_until()
    }

    /// Sleeps until `due` in steps short enough to notice an order; false when `go_on` returned false before
    /// that.
    pub(crate) fn sleep_until(&self, due: Mono, go_on: impl Fn(&Self) -> bool) -> bool {
        while go_on(self) {
            let now = clock::now();
            if now >= due {
                return true;
            }
            clock::sleep_until(due.min(now + self.timeout));
        }
        false
    }

    /// Longest time that a pump of this flow waits before it checks for orders.
    pub(crate) const fn max_wait(&self) -> Duration {
        self.timeout
    }

    /// Called by a pump when one of its streams has failed.
    pub(crate) fn notify_failed(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Whether a stream has failed.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Called by a pump at the first byte of the flow; wakes the sampler.
    pub(crate) fn notify_begun(&self) {
        self.sampler.wake();
    }

    /// Wakes this one too whenever the driver is woken.
    pub(crate) fn wake_also(&self, observer: Arc<EventFd>) {
        locked(&self.observers).push(observer);
    }

    pub(crate) fn wake_driver(&self) {
        self.driver.wake();
        locked(&self.observers).iter().for_each(|observer| observer.wake());
    }

    /// Called by each pump when it has finished writing.
    pub(crate) fn notify_written(&self) {
        if self.writing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake_driver();
            self.sampler.wake();
        }
    }

    /// Called by each pump as its last action, when all its streams have ended.
    pub(crate) fn notify_ended(&self) {
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake_driver();
            self.sampler.wake();
        }
    }

    /// Whether every pump has finished writing; true if none writes.
    pub(crate) fn all_written(&self) -> bool {
        self.writing.load(Ordering::Acquire) == 0
    }

    /// Whether every pump has ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
    }
}
