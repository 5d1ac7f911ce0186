//! Transactions: requests that are sent, and the responses to them.

use std::collections::VecDeque;

use linerate_units::{Span, Timestamp};

use super::{DATA, NetperfClient, NetperfClientPhase};
use crate::netperf::latencies::Latencies;
use crate::netperf::options::{Length, Unit};
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
    /// Transactions of these sizes, several of them at once. Nothing is under way yet.
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

impl NetperfClient {
    /// Sends requests over the data link.
    pub(super) fn ask(&mut self, now: Timestamp) {
        let begun = if self.options.connects_each_time { self.iteration.opening_at } else { now };
        if let Some(requests) = &mut self.iteration.requests {
            requests.fill(now, begun, self.data, &mut self.out);
        }
    }

    /// Handles bytes of responses or a datagram.
    pub(super) fn response_bytes(&mut self, now: Timestamp, count: usize) {
        let Some(requests) = &mut self.iteration.requests else { return };
        let done = requests.received(now, count);
        let complete = requests.complete;
        if done > 0 {
            self.transactions_done(now, complete);
        }
    }

    pub(super) fn transactions_done(&mut self, now: Timestamp, complete: u64) {
        if let Some(interval) = self.options.interim
            && now.since(self.iteration.interim_end) >= interval
        {
            self.interim(now, self.transaction_units(complete));
        }
        let enough = matches!(self.options.length, Length::Units(units) if complete >= u64::from(units));
        if self.options.connects_each_time {
            // The server closes each connection; the transaction ends with that.
        } else if enough || self.iteration.until.is_some_and(|until| now >= until) {
            self.end_transactions(now);
        } else {
            self.ask(now);
        }
    }

    /// Transactions, or the bytes that they have moved.
    pub(super) fn transaction_units(&self, complete: u64) -> u64 {
        let bytes = |size: Option<u32>| u64::from(size.unwrap_or(0));
        let each = bytes(self.options.request_size) + bytes(self.options.response_size);
        if self.options.unit == Unit::Transactions { complete } else { complete.saturating_mul(each) }
    }

    /// A connection with one transaction was closed by the server.
    pub(super) fn connection_over(&mut self, now: Timestamp) {
        self.out.push_back(Output::Close { link: self.data });
        let Some(requests) = &mut self.iteration.requests else { return };
        if requests.is_waiting() {
            return self.fail("netperf: send_omni: recv_data failed: the server closed the connection\n");
        }
        let complete = requests.complete;
        let enough = matches!(self.options.length, Length::Units(units) if complete >= u64::from(units));
        if enough || self.iteration.until.is_some_and(|until| now >= until) {
            self.iteration.open = false;
            self.end_transactions(now);
            if self.phase == NetperfClientPhase::Ending {
                // A connection without a request tells the server that the time is over.
                self.reopen_data(now);
            }
            return;
        }
        self.reopen_data(now);
    }

    /// Opens the data link again.
    pub(super) fn reopen_data(&mut self, now: Timestamp) {
        self.next_data_link();
        self.open_data(now);
    }

    /// Another number for the data link: one that was closed may still be sending.
    pub(super) fn next_data_link(&mut self) {
        self.data = Link(if self.data.0 + 1 < Link::FIRST_ACCEPTED.0 { self.data.0 + 1 } else { DATA.0 });
    }

    /// Responses that are late are lost, and requests are sent instead.
    pub(super) fn expire_responses(&mut self, now: Timestamp) {
        let Some(requests) =
            self.iteration.requests.as_mut().filter(|_| self.phase == NetperfClientPhase::Transacting)
        else {
            return;
        };
        if requests.lost_at.is_some_and(|at| now >= at) {
            requests.forget();
            // The interval starts again, as the time without a response says nothing about a rate.
            self.iteration.interim_units = self.transaction_units(self.iteration.complete());
            self.iteration.interim_end = now;
            self.ask(now);
        }
    }
}
