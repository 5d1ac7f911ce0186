//! Runs that this host starts itself while it is a server: they wait in the same queue as its clients.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use linerate_units::Span;

use super::queue::{ClientQueue, QueueDecision};
use super::start_tickets::StartTickets;
use crate::error::ControlError;

/// The queue of a server, for runs that its own program starts towards other hosts.
#[derive(Debug, Clone)]
pub struct OwnRuns {
    queue: Arc<ClientQueue>,
    port: u16,
    visitors: VisitorPorts,
    start_tickets: Arc<StartTickets>,
}

/// Where a server measures clients that come by its pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct VisitorPorts {
    /// Browsers; absent if it takes no tests of them.
    pub(super) browsers: Option<BrowserPort>,
    /// Clients that measure responsiveness; absent if it takes none.
    pub(super) responsiveness: Option<u16>,
}

/// Where a server measures browsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrowserPort {
    /// The port.
    pub number: u16,
    /// Whether it may also be reached over TLS, as pages over HTTPS need.
    pub has_tls: bool,
}

/// How many clients and runs of its own a server has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueLoad {
    /// That are measured.
    pub running: usize,
    /// That wait.
    pub waiting: usize,
}

/// A place in the queue. It is left when this value is dropped.
#[derive(Debug)]
pub struct OwnRun {
    queue: Arc<ClientQueue>,
    ticket: u64,
}

/// What a run may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnRunTurn {
    /// Begin.
    Now,
    /// Wait, at this position in the queue; 1 is next.
    Later {
        /// The position.
        position: u32,
        /// Longest expected wait.
        wait: Span,
    },
}

impl OwnRuns {
    pub(super) fn new(
        queue: Arc<ClientQueue>,
        port: u16,
        visitors: VisitorPorts,
        start_tickets: Arc<StartTickets>,
    ) -> Self {
        Self { queue, port, visitors, start_tickets }
    }

    /// The tickets with which browsers start tests at this server.
    #[must_use]
    pub fn start_tickets(&self) -> &Arc<StartTickets> {
        &self.start_tickets
    }

    /// Where pages measure from their browser; absent if this server takes no such tests.
    #[must_use]
    pub fn browser_port(&self) -> Option<BrowserPort> {
        self.visitors.browsers
    }

    /// Where clients measure responsiveness, over HTTPS; absent if this server takes no such tests.
    #[must_use]
    pub fn responsiveness_port(&self) -> Option<u16> {
        self.visitors.responsiveness
    }

    /// The port of the server. A test against it waits in the queue as its client.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The longest run that clients and pages may start now; absent for no limit.
    #[must_use]
    pub fn longest(&self) -> Option<Span> {
        self.queue.longest()
    }

    /// Adds a run that is expected to take `length`. All runs of this host count as those of one client.
    ///
    /// # Errors
    /// The queue is full.
    pub fn join(&self, length: Span) -> Result<OwnRun, ControlError> {
        let ticket = self
            .queue
            .join(IpAddr::V4(Ipv4Addr::LOCALHOST), length)
            .map_err(|full| ControlError::Local(full.to_string()))?;
        Ok(OwnRun { queue: Arc::clone(&self.queue), ticket })
    }

    /// The clients and runs that are here.
    #[must_use]
    pub fn load(&self) -> QueueLoad {
        self.queue.load()
    }
}

impl OwnRun {
    /// Whether the run may begin. Once it may, this stays so.
    ///
    /// # Errors
    /// The place was given to another host, as the queue is full.
    pub fn turn(&self) -> Result<OwnRunTurn, ControlError> {
        match self.queue.turn(self.ticket) {
            QueueDecision::Now { .. } => Ok(OwnRunTurn::Now),
            QueueDecision::Later { position, wait } => Ok(OwnRunTurn::Later { position, wait }),
            QueueDecision::Displaced => Err(ControlError::Local(
                "the queue of this server is full, and another host took the place of this run; try again later"
                    .to_owned(),
            )),
        }
    }

    /// Position in the queue, and longest expected wait; absent once it may begin. Asking does not let it begin.
    #[must_use]
    pub fn position(&self) -> Option<(u32, Span)> {
        self.queue.position(self.ticket)
    }
}

impl Drop for OwnRun {
    fn drop(&mut self) {
        self.queue.leave(self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Policy, ServerLimits};

    #[test]
    fn a_run_of_this_host_and_a_client_take_turns() {
        let queue = Arc::new(ClientQueue::new(Policy::Exclusive, ServerLimits::default()));
        let own = OwnRuns::new(Arc::clone(&queue), 5201, VisitorPorts::default(), StartTickets::new());
        let client = queue.join(IpAddr::from([192, 0, 2, 1]), Span::from_secs(20)).unwrap();
        assert!(matches!(queue.turn(client), QueueDecision::Now { .. }));
        let run = own.join(Span::from_secs(10)).unwrap();
        assert_eq!(run.position().map(|(position, _)| position), Some(1));
        assert!(matches!(run.turn().unwrap(), OwnRunTurn::Later { position: 1, .. }));
        assert_eq!(own.load(), QueueLoad { running: 1, waiting: 1 });
        queue.leave(client);
        assert!(run.position().is_some() && own.load().running == 0, "a question admits nobody");
        assert_eq!(run.turn().unwrap(), OwnRunTurn::Now);
        assert_eq!(run.position(), None);
        let next = queue.join(IpAddr::from([192, 0, 2, 2]), Span::from_secs(20)).unwrap();
        assert!(matches!(queue.turn(next), QueueDecision::Later { position: 1, .. }));
        drop(run);
        assert!(matches!(queue.turn(next), QueueDecision::Now { .. }), "a dropped run leaves the queue");
    }

    #[test]
    fn a_full_queue_is_an_error_that_says_so() {
        let queue = Arc::new(ClientQueue::new(
            Policy::Exclusive,
            ServerLimits { most_clients: Some(1), ..ServerLimits::default() },
        ));
        let own = OwnRuns::new(queue, 5201, VisitorPorts::default(), StartTickets::new());
        let first = own.join(Span::from_secs(10)).unwrap();
        assert!(own.join(Span::from_secs(10)).unwrap_err().to_string().contains("1 clients"));
        drop(first);
        assert!(own.join(Span::from_secs(10)).is_ok());
    }
}
