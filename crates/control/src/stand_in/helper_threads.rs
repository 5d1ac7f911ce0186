//! Threads that wait so that the driver need not, and the way their news come back.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_sock::SockError;
use linerate_sock::poll::EventFd;

use super::driver_event::DriverEvent;

/// Where the news of helping threads arrive.
#[derive(Debug)]
pub(super) struct Helpers {
    bell: Arc<EventFd>,
    sender: Sender<DriverEvent>,
    arrived: Receiver<DriverEvent>,
}

/// The way back of one thread.
#[derive(Debug)]
pub(super) struct CompletionSender {
    bell: Arc<EventFd>,
    sender: Sender<DriverEvent>,
}

impl Helpers {
    pub(super) fn new() -> Result<Self, SockError> {
        let (sender, arrived) = channel();
        Ok(Self { bell: Arc::new(EventFd::new()?), sender, arrived })
    }

    pub(super) fn bell(&self) -> &EventFd {
        &self.bell
    }

    pub(super) fn post(&self) -> CompletionSender {
        CompletionSender { bell: Arc::clone(&self.bell), sender: self.sender.clone() }
    }

    /// What has arrived.
    pub(super) fn take(&self) -> Vec<DriverEvent> {
        let _ = self.bell.clear();
        self.arrived.try_iter().collect()
    }
}

impl CompletionSender {
    pub(super) fn send(&self, news: DriverEvent) {
        // Nobody listens any more: the driver has ended.
        let _ = self.sender.send(news);
        self.bell.ring();
    }
}
