//! Transactions: requests that are sent, and the responses to them.

use std::collections::VecDeque;

use linerate_units::{Span, Timestamp};

use crate::netperf::latencies::Latencies;
use crate::stand_in::{Link, Output};

/// The requests of a client over one link at a time.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    request: Vec<u8>,
    response: u64,
    /// Most requests that are under way.
    most: usize,
    udp: bool,
    /// When the requests that are under way were sent.
    sent_at: VecDeque<Timestamp>,
    /// Bytes of a response that is not complete.
    partial: u64,
    /// How long a response may take; absent for ever.
    timeout: Option<Span>,
    /// When the oldest response counts as lost.
    pub(super) lost_at: Option<Timestamp>,
    pub(super) complete: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) calls: u64,
    pub(super) latencies: Option<Latencies>,
}

impl Requests {
    /// Transactions of these sizes, so many of them at once. Nothing is under way yet.
    pub(super) fn new(request: Vec<u8>, response: u32, most: u32, udp: bool) -> Self {
        Self {
            request,
            response: u64::from(response.max(1)),
            most: most.max(1) as usize,
            udp,
            sent_at: VecDeque::new(),
            partial: 0,
            timeout: None,
            lost_at: None,
            complete: 0,
            sent: 0,
            received: 0,
            calls: 0,
            latencies: None,
        }
    }

    /// The same with a time after which a response counts as lost, and with the times of transactions if they
    /// are wanted.
    pub(super) fn with(self, timeout: Option<Span>, statistics: bool) -> Self {
        Self { timeout, latencies: statistics.then(Latencies::default), ..self }
    }

    /// Sends as many requests as may be under way. `begun` is the time from which the first one counts.
    pub(super) fn fill(&mut self, now: Timestamp, begun: Timestamp, link: Link, out: &mut VecDeque<Output>) {
        while self.sent_at.len() < self.most {
            self.sent_at.push_back(begun);
            self.sent = self.sent.saturating_add(self.request.len() as u64);
            out.push_back(Output::Send { link, bytes: self.request.clone() });
        }
        self.lost_at = self.timeout.map(|timeout| now + timeout);
    }

    /// Handles bytes of a response, or a datagram; returns the number of transactions that are complete now.
    pub(super) fn received(&mut self, now: Timestamp, bytes: usize) -> u64 {
        self.received = self.received.saturating_add(bytes as u64);
        self.calls = self.calls.saturating_add(1);
        let before = self.complete;
        if self.udp {
            self.completed(now);
        } else {
            self.partial = self.partial.saturating_add(bytes as u64);
            while self.partial >= self.response && self.completed(now) {
                self.partial -= self.response;
            }
        }
        self.complete - before
    }

    /// A response to the oldest request; false if none is under way.
    fn completed(&mut self, now: Timestamp) -> bool {
        let Some(sent_at) = self.sent_at.pop_front() else { return false };
        self.complete = self.complete.saturating_add(1);
        if let Some(latencies) = &mut self.latencies {
            latencies.add(now.since(sent_at));
        }
        true
    }

    /// Whether a response is missing.
    pub(super) fn is_waiting(&self) -> bool {
        !self.sent_at.is_empty()
    }

    /// Forgets what is under way: it was lost, or its connection is closed.
    pub(super) fn forget(&mut self) {
        self.sent_at.clear();
        (self.partial, self.lost_at) = (0, None);
    }
}
