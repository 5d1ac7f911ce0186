//! One connection of a stand-in: what waits to be sent, and how far it is closed.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpStream};

use linerate_proto::stand_in::Reason;
use linerate_sock::poll::Interest;
use linerate_sock::{Mono, Moved, SockError, stream};

use super::super::driver_event::{own_reason, reason_of};
use crate::server::Permit;

/// Most bytes that wait for a peer that does not read.
const MAX_UNSENT: usize = 16 << 20;

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    unsent: VecDeque<u8>,
    /// A byte of urgent data, behind so many others.
    urgent: Option<(usize, u8)>,
    owes_sent: bool,
    finish: bool,
    finished: bool,
    broken: Option<Reason>,
    read_over: bool,
    /// What arrives is thrown away, and the end as well.
    pub(super) discards: bool,
    /// What arrives waits for a flow.
    pub(super) held: bool,
    /// Somebody else has it.
    pub(super) lent: u8,
    /// Closed as soon as everything was sent, or at this time.
    pub(super) closing: Option<Mono>,
    /// Its place at the server behind whose ports it came.
    pub(super) permit: Option<Permit>,
}

/// What a read found.
#[derive(Debug)]
pub(super) enum Read {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Pending,
    /// The end.
    Closed(Option<Reason>),
}

/// What became of the bytes that waited.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// The last of them has left just now.
    Sent,
    /// Nothing is new.
    Nothing,
    /// The connection is broken, and nobody will find out by reading.
    Broken(Reason),
}

impl Connection {
    pub(super) fn new(stream: TcpStream, local: SocketAddr, peer: SocketAddr) -> Self {
        Self {
            stream,
            local,
            peer,
            unsent: VecDeque::new(),
            urgent: None,
            owes_sent: false,
            finish: false,
            finished: false,
            broken: None,
            read_over: false,
            discards: false,
            held: false,
            lent: 0,
            closing: None,
            permit: None,
        }
    }

    /// What the poller shall wait for.
    pub(super) fn interest(&self) -> Option<Interest> {
        let read = !self.read_over && !self.held && self.closing.is_none();
        match (read, self.has_unsent()) {
            _ if self.lent > 0 => None,
            (true, true) => Some(Interest::BOTH),
            (true, false) => Some(Interest::READ),
            (false, true) => Some(Interest::WRITE),
            (false, false) => None,
        }
    }

    /// Whether bytes wait to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.urgent.is_some()
    }

    /// Whether it was only listened to, and has ended.
    pub(super) fn discarded(&self) -> bool {
        self.discards && self.read_over && self.lent == 0
    }

    /// Puts bytes in line and sends what goes.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Flushed {
        if self.unsent.len() + bytes.len() > MAX_UNSENT {
            return self.abort(own_reason("the peer does not read what it is sent"));
        }
        self.unsent.extend(bytes);
        self.owes_sent = true;
        self.flush()
    }

    /// Sends a byte as urgent data, behind what waits.
    pub(super) fn send_urgent(&mut self, byte: u8) -> Flushed {
        self.urgent = Some((self.unsent.len(), byte));
        self.flush()
    }

    /// Half-closes once everything was sent.
    pub(super) fn finish_writing(&mut self) -> Flushed {
        self.finish = true;
        self.flush()
    }

    /// Sends what goes.
    pub(super) fn flush(&mut self) -> Flushed {
        while self.has_unsent() {
            match self.send_some() {
                Ok(Moved::Bytes(count)) => {
                    drop(self.unsent.drain(..count));
                    self.urgent = self.urgent.map(|(before, byte)| (before - count, byte));
                }
                Ok(Moved::Pending | Moved::Closed) => return Flushed::Nothing,
                Err(error) => return self.abort(reason_of(&error)),
            }
        }
        if self.finish && !self.finished {
            self.finished = true;
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        if std::mem::take(&mut self.owes_sent) { Flushed::Sent } else { Flushed::Nothing }
    }

    /// One call: bytes up to the urgent one, or that one, which is not among those that wait.
    fn send_some(&mut self) -> Result<Moved, SockError> {
        let first = self.unsent.as_slices().0;
        match self.urgent {
            Some((0, byte)) => {
                let moved = stream::send_urgent(&self.stream, byte)?;
                if moved.bytes() == 0 {
                    return Ok(moved);
                }
                self.urgent = None;
                Ok(Moved::Bytes(0))
            }
            Some((before, _)) => stream::send(&self.stream, first.get(..before).unwrap_or(first)),
            None => stream::send(&self.stream, first),
        }
    }

    fn abort(&mut self, reason: Reason) -> Flushed {
        self.unsent.clear();
        self.urgent = None;
        self.owes_sent = false;
        if self.read_over {
            return Flushed::Broken(reason);
        }
        // What has arrived is read first; the end of it says why.
        self.broken = Some(reason);
        Flushed::Nothing
    }

    /// Reads once.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Read {
        match stream::recv(&self.stream, buffer) {
            Ok(Moved::Bytes(count)) => Read::Bytes(count),
            Ok(Moved::Pending) => Read::Pending,
            Ok(Moved::Closed) => {
                self.read_over = true;
                Read::Closed(self.broken.take())
            }
            Err(error) => {
                self.read_over = true;
                Read::Closed(Some(reason_of(&error)))
            }
        }
    }
}
