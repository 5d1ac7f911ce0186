//! Threads that perform blocking calls for the driver, and the channel for their results.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_sock::SockError;
use linerate_sock::poll::EventFd;

use super::driver_event::DriverEvent;

/// Receives the results of helper threads.
#[derive(Debug)]
pub(super) struct Helpers {
    waker: Arc<EventFd>,
    sender: Sender<DriverEvent>,
    arrived: Receiver<DriverEvent>,
}

/// Sends the results of one thread.
#[derive(Debug)]
pub(super) struct CompletionSender {
    waker: Arc<EventFd>,
    sender: Sender<DriverEvent>,
}

impl Helpers {
    pub(super) fn new() -> Result<Self, SockError> {
        let (sender, arrived) = channel();
        Ok(Self { waker: Arc::new(EventFd::new()?), sender, arrived })
    }

    pub(super) fn waker(&self) -> &EventFd {
        &self.waker
    }

    pub(super) fn post(&self) -> CompletionSender {
        CompletionSender { waker: Arc::clone(&self.waker), sender: self.sender.clone() }
    }

    /// The results that have arrived.
    pub(super) fn take(&self) -> Vec<DriverEvent> {
        let _ = self.waker.clear();
        self.arrived.try_iter().collect()
    }
}

impl CompletionSender {
    pub(super) fn send(&self, events: DriverEvent) {
        // Sending fails only if the driver has ended.
        let _ = self.sender.send(events);
        self.waker.wake();
    }
}
