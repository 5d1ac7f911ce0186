//! Answers the requests of transactions: as many response bytes for every complete request.

use std::collections::{BTreeMap, VecDeque};

use crate::stand_in::{Link, Output};

/// Most bytes of responses that are queued at once on a connection, unless one response is longer.
const BATCH_BYTES: u64 = 64 << 10;

/// Most connections at the same time, where each transaction has its own.
const MAX_CONNECTIONS: usize = 64;

/// The server's side of transactions over TCP.
#[derive(Debug)]
pub(super) struct Responder {
    request: u64,
    response: u64,
    /// Whether every transaction has its own connection.
    each_time: bool,
    connections: BTreeMap<Link, TransactionProgress>,
    /// Transactions that were answered.
    pub(super) transactions: u64,
    /// Bytes of all connections.
    pub(super) received: u64,
    pub(super) sent: u64,
}

#[derive(Debug, Default)]
struct TransactionProgress {
    /// Bytes of a request that is not complete yet.
    partial: u64,
    /// Responses that were not sent yet.
    owed: u64,
    /// Whether bytes are on their way into the socket.
    busy: bool,
}

impl Responder {
    /// Requests of at least one byte; a response may be empty.
    pub(super) fn new(request: u32, response: u32, each_time: bool) -> Self {
        Self {
            request: u64::from(request.max(1)),
            response: u64::from(response),
            each_time,
            connections: BTreeMap::new(),
            transactions: 0,
            received: 0,
            sent: 0,
        }
    }

    /// Adds a connection; false if it has to be closed.
    pub(super) fn accept(&mut self, link: Link) -> bool {
        let most = if self.each_time { MAX_CONNECTIONS } else { 1 };
        let room = self.connections.len() < most;
        if room {
            self.connections.insert(link, TransactionProgress::default());
        }
        room
    }

    pub(super) fn has(&self, link: Link) -> bool {
        self.connections.contains_key(&link)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.connections.is_empty()
    }

    /// Handles bytes of a request.
    pub(super) fn bytes(&mut self, link: Link, length: usize, out: &mut VecDeque<Output>) {
        let Some(progress) = self.connections.get_mut(&link) else { return };
        self.received = self.received.saturating_add(length as u64);
        let bytes = progress.partial.saturating_add(length as u64);
        progress.partial = bytes % self.request;
        progress.owed = progress.owed.saturating_add(bytes / self.request);
        if self.each_time {
            progress.owed = progress.owed.min(1);
        }
        self.respond(link, out);
    }

    /// All responses so far have been passed to the kernel.
    pub(super) fn sent(&mut self, link: Link, out: &mut VecDeque<Output>) {
        if let Some(progress) = self.connections.get_mut(&link) {
            progress.busy = false;
            self.respond(link, out);
        }
    }

    fn respond(&mut self, link: Link, out: &mut VecDeque<Output>) {
        let Some(progress) = self.connections.get_mut(&link) else { return };
        if progress.busy || progress.owed == 0 {
            return;
        }
        let batch = (BATCH_BYTES / self.response.max(1)).max(1).min(progress.owed);
        progress.owed -= batch;
        self.transactions = self.transactions.saturating_add(batch);
        let bytes = batch.saturating_mul(self.response);
        self.sent = self.sent.saturating_add(bytes);
        if bytes > 0 {
            progress.busy = true;
            out.push_back(Output::Send { link, bytes: vec![0; bytes as usize] });
        }
        if self.each_time {
            self.connections.remove(&link);
            out.push_back(Output::Close { link });
        }
    }

    /// A connection was closed by the client.
    pub(super) fn closed(&mut self, link: Link, out: &mut VecDeque<Output>) {
        if self.connections.remove(&link).is_some() {
            out.push_back(Output::Close { link });
        }
    }

    /// Closes all connections.
    pub(super) fn end(&mut self, out: &mut VecDeque<Output>) {
        while let Some((link, _)) = self.connections.pop_first() {
            out.push_back(Output::Close { link });
        }
    }
}
