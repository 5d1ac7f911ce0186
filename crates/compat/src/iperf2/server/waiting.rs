//! Clients that wait for their turn, at a server for one client at a time (-1).
//!
//! 2.1.8 accepts the next connection when the test before it has ended; until then the kernel holds what the client
//! has sent. Here a connection is accepted at once and read up to its header, because a parallel connection of the
//! present client is recognised by that. What follows stays in the socket.

use linerate_units::Timestamp;

use super::Iperf2Server;
use crate::iperf2::arrival::Iperf2Arrival;
use crate::stand_in::{Link, Output, SystemError};

/// Most waiting connections; further ones are refused.
const MAX_WAITING: usize = 128;

impl Iperf2Server {
    /// Whether a client is served, and others have to wait.
    pub(super) fn is_busy(&self) -> bool {
        self.queue.settings.single && !(self.runs.is_empty() && self.bounces.is_empty())
    }

    /// Adds a connection with a known header to its run, or to those that wait while another client is served.
    pub(super) fn join_or_wait(&mut self, now: Timestamp, arrival: Iperf2Arrival) {
        if !self.is_busy() || self.runs.values().any(|run| run.takes(&arrival)) {
            return self.join(now, arrival);
        }
        let Some(link) = arrival.link else { return };
        if arrival.udp {
            // Its datagrams are already lost to the test, so the client reports that nobody answers.
            self.queue.put(Output::Close { link });
        } else if self.waiting.len() >= MAX_WAITING {
            self.queue.put(Output::Reset { link });
        } else {
            if !arrival.closed {
                self.queue.put(Output::Hold { link });
            }
            self.waiting.push_back(arrival);
        }
    }

    /// Serves the next client when no other one is served any more, with all its connections.
    pub(super) fn serve_waiting(&mut self, now: Timestamp) {
        while !self.queue.over && !self.is_busy() {
            let Some(first) = self.waiting.pop_front() else { return };
            self.join_after_waiting(now, first);
            for arrival in std::mem::take(&mut self.waiting) {
                if self.runs.values().any(|run| run.takes(&arrival)) {
                    self.join_after_waiting(now, arrival);
                } else {
                    self.waiting.push_back(arrival);
                }
            }
        }
    }

    /// Its time counts from now, as if it were accepted now.
    fn join_after_waiting(&mut self, now: Timestamp, mut arrival: Iperf2Arrival) {
        arrival.at = now;
        self.join(now, arrival);
    }

    /// Counts bytes that were read before the connection was held.
    pub(super) fn waiting_bytes(&mut self, link: Link, bytes: usize) {
        if let Some(arrival) = self.waiting.iter_mut().find(|arrival| arrival.link == Some(link)) {
            arrival.stream.own_bytes = arrival.stream.own_bytes.saturating_add(bytes as u64);
        }
    }

    /// A waiting client has sent everything, or its connection is broken.
    pub(super) fn waiting_closed(&mut self, link: Link, reason: Option<&SystemError>) {
        let Some(at) = self.waiting.iter().position(|arrival| arrival.link == Some(link)) else { return };
        if reason.is_some() {
            self.waiting.remove(at);
            self.queue.put(Output::Close { link });
        } else if let Some(arrival) = self.waiting.get_mut(at) {
            arrival.closed = true;
        }
    }
}
