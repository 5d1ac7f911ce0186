//! Delivers signals to a stand-in.

use linerate_sock::handle::{AsFd, BorrowedFd};
use std::collections::VecDeque;
use std::sync::Mutex;

use linerate_sock::poll::EventFd;
use linerate_sock::thread::locked;

use crate::ControlError;

/// Passes signals from the thread that catches them to the driver, which wakes immediately.
#[derive(Debug)]
pub struct Interrupts {
    come: Mutex<VecDeque<i32>>,
    waker: EventFd,
}

impl Interrupts {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// The host is out of file descriptors.
    pub fn new() -> Result<Self, ControlError> {
        Ok(Self { come: Mutex::new(VecDeque::new()), waker: EventFd::new()? })
    }

    /// Adds a signal, by its number.
    pub fn raise(&self, signal: i32) {
        locked(&self.come).push_back(signal);
        self.waker.wake();
    }

    /// Removes the oldest signal.
    pub(super) fn take(&self) -> Option<i32> {
        let mut come = locked(&self.come);
        let signal = come.pop_front();
        if come.is_empty() {
            let _ = self.waker.clear();
        }
        signal
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}
