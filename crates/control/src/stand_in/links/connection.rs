//! One connection of a stand-in: its unsent bytes, and its closing state.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use linerate_compat::stand_in::SystemError;
use linerate_engine::SecureChannel;
use linerate_sock::handle::AsFd;
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::{Mono, Moved, SockError, stream};

use super::super::driver_event::{own_reason, reason_of};
use crate::shares::Permit;
use crate::tls_channel::TlsChannel;

/// Most unsent bytes for a peer that does not read.
const MAX_UNSENT: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct StandInConnection {
    pub(super) stream: TcpStream,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    unsent: VecDeque<u8>,
    /// An urgent byte, and the number of unsent bytes before it.
    urgent: Option<(usize, u8)>,
    owes_sent: bool,
    finish: bool,
    finished: bool,
    broken: Option<SystemError>,
    read_over: bool,
    /// Whether everything that arrives is discarded, including the end of the stream.
    pub(super) discards: bool,
    /// Whether what arrives stays in the socket for a flow.
    pub(super) held: bool,
    /// Number of borrowers.
    pub(super) borrowed: u8,
    /// Set when it is closing: it is closed after all bytes have been sent, or at this time at the latest.
    pub(super) closing: Option<Mono>,
    /// Its place, if it arrived at a port of the server.
    pub(super) permit: Option<Permit>,
    /// Its encryption, if it has one.
    pub(super) channel: Option<Arc<TlsChannel>>,
    /// Whether nothing is written while more than TCP_NOTSENT_LOWAT waits in the socket. The kernel itself takes up to
    /// 64 KiB more.
    pub(super) keeps_queue_short: bool,
}

/// The result of a read.
#[derive(Debug)]
pub(super) enum Read {
    /// Number of bytes.
    Bytes(usize),
    /// Nothing has arrived.
    Pending,
    /// The end of the stream, and the error if there is one.
    Closed(Option<SystemError>),
}

/// The result of sending the unsent bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// The last of them was just sent.
    Sent,
    /// Some are still unsent, or there were none.
    Nothing,
    /// The connection is broken, and no read will report that.
    Broken(SystemError),
}

impl StandInConnection {
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
            borrowed: 0,
            closing: None,
            permit: None,
            channel: None,
            keeps_queue_short: false,
        }
    }

    /// What the poller should wait for.
    pub(super) fn interest(&self) -> Option<Interest> {
        // A flow that has the connection may hold the lock of its encryption.
        if self.borrowed > 0 {
            return None;
        }
        match (self.may_read(), self.has_unsent()) {
            (true, true) => Some(Interest::BOTH),
            (true, false) => Some(Interest::READ),
            (false, true) => Some(Interest::WRITE),
            (false, false) => None,
        }
    }

    fn may_read(&self) -> bool {
        !self.read_over && !self.held && self.closing.is_none()
    }

    /// Whether there are unsent bytes.
    pub(super) fn has_unsent(&self) -> bool {
        let is_blocked = || self.channel.as_ref().is_some_and(|channel| channel.is_blocked());
        !self.unsent.is_empty() || self.urgent.is_some() || is_blocked()
    }

    /// Whether there is something to read now of which a poll of the socket does not know.
    pub(super) fn has_decrypted(&self) -> bool {
        let has = |channel: &Arc<TlsChannel>| channel.has_arrived();
        self.borrowed == 0 && self.may_read() && self.channel.as_ref().is_some_and(has)
    }

    /// Tells the peer that an encrypted connection ends.
    pub(super) fn say_end(&self) {
        if let Some(channel) = &self.channel {
            channel.finish(self.stream.as_fd());
        }
    }

    /// Whether it was closed by the peer after its input had been discarded.
    pub(super) fn discarded(&self) -> bool {
        self.discards && self.read_over && self.borrowed == 0
    }

    /// Queues bytes and sends as many as possible.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Flushed {
        if self.unsent.len() + bytes.len() > MAX_UNSENT {
            return self.abort(own_reason("the peer does not read what it is sent"));
        }
        self.unsent.extend(bytes);
        self.owes_sent = true;
        // One that carries load sends when its turn comes, after the others. A fast path would take all that it has.
        if self.keeps_queue_short { Flushed::Nothing } else { self.flush() }
    }

    /// Sends one byte as urgent data, after the unsent bytes.
    pub(super) fn send_urgent(&mut self, byte: u8) -> Flushed {
        self.urgent = Some((self.unsent.len(), byte));
        self.flush()
    }

    /// Half-closes the connection after all bytes have been sent.
    pub(super) fn finish_writing(&mut self) -> Flushed {
        self.finish = true;
        self.flush()
    }

    /// Sends as many bytes as possible.
    pub(super) fn flush(&mut self) -> Flushed {
        while self.has_unsent() {
            if self.keeps_queue_short && !wait_for(&self.stream, Interest::WRITE, Mono(0)).unwrap_or(true) {
                return Flushed::Nothing;
            }
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
            self.say_end();
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        if std::mem::take(&mut self.owes_sent) { Flushed::Sent } else { Flushed::Nothing }
    }

    /// Makes one call: sends bytes up to the urgent one, or the urgent one, which is not in `unsent`.
    fn send_some(&mut self) -> Result<Moved, SockError> {
        let first = self.unsent.as_slices().0;
        if let Some(channel) = &self.channel {
            // There is no urgent data within TLS, and its tools send none.
            if !first.is_empty() {
                return channel.send(self.stream.as_fd(), first);
            }
            self.urgent = None;
            let sent = channel.flush(self.stream.as_fd())?;
            return Ok(if sent { Moved::Bytes(0) } else { Moved::Pending });
        }
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

    fn abort(&mut self, reason: SystemError) -> Flushed {
        self.unsent.clear();
        self.urgent = None;
        self.owes_sent = false;
        if self.read_over {
            return Flushed::Broken(reason);
        }
        // What has arrived is read first. The end of the stream then reports the reason.
        self.broken = Some(reason);
        Flushed::Nothing
    }

    /// Reads once.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Read {
        let moved = match &self.channel {
            Some(channel) => channel.recv(self.stream.as_fd(), buffer),
            None => stream::recv(&self.stream, buffer),
        };
        match moved {
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
