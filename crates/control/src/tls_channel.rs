//! The encryption of a foreign tool's connection, shared between its owner and the flow that has the connection.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Mutex;

use linerate_engine::SecureChannel;
use linerate_sock::handle::BorrowedFd;
use linerate_sock::thread::locked;
use linerate_sock::{Moved, SockError, stream};
use rustls::Connection;

/// What is read from the socket at once: a few records.
const READ_BYTES: usize = 64 << 10;
/// The same until a read was filled: most connections only ask for something.
const FIRST_READ_BYTES: usize = 4 << 10;

/// The call of an error whose cause is what the peer has sent.
pub(crate) const DECRYPT: &str = "decrypt";

/// An encrypted connection whose handshake is over. No call waits, as the socket does not block.
#[derive(Debug)]
pub(crate) struct TlsChannel(Mutex<TlsState>);

#[derive(Debug)]
struct TlsState {
    tls: Box<Connection>,
    /// What was read from the socket, of which this part is not decrypted yet.
    arrived: Vec<u8>,
    undecrypted: std::ops::Range<usize>,
    /// Number of decrypted bytes that were not read yet.
    decrypted: usize,
    end: TlsStreamEnd,
    /// Whether nothing can be sent any more.
    unwritable: bool,
}

/// The end of what the peer sends: announced by it, or because something cannot be decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TlsStreamEnd {
    /// It may send more.
    Open,
    /// No read has reported it.
    Unreported,
    /// A read has.
    Reported,
}

impl TlsChannel {
    /// Goes on with a connection after its handshake.
    pub(crate) fn new(tls: Box<Connection>) -> Self {
        let mut state = TlsState {
            tls,
            arrived: Vec::new(),
            undecrypted: 0..0,
            decrypted: 0,
            end: TlsStreamEnd::Open,
            unwritable: false,
        };
        // What has come with the handshake. An error is reported by the first read.
        let _ = state.process();
        Self(Mutex::new(state))
    }

    /// Whether there is data to read that a poll of the socket does not report.
    pub(crate) fn has_arrived(&self) -> bool {
        let state = locked(&self.0);
        state.decrypted > 0 || !state.undecrypted.is_empty() || state.end == TlsStreamEnd::Unreported
    }

    /// Whether encrypted bytes wait for room in the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        let state = locked(&self.0);
        !state.unwritable && state.tls.wants_write()
    }

    /// Announces the end of the stream to the peer.
    pub(crate) fn finish(&self, socket: BorrowedFd<'_>) {
        let mut state = locked(&self.0);
        state.tls.send_close_notify();
        // If it does not fit into the socket, the peer still sees the end of the connection.
        let _ = state.flush(socket);
    }
}

impl SecureChannel for TlsChannel {
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<Moved, SockError> {
        let state = &mut *locked(&self.0);
        if !state.flush(socket)? {
            return Ok(Moved::Pending);
        }
        // It takes as much as fits into its buffer, whole records of a block of the engine.
        let taken = state.tls.writer().write(bytes).map_err(|source| SockError::new("encrypt", source))?;
        state.flush(socket)?;
        Ok(Moved::Bytes(taken))
    }

    fn flush(&self, socket: BorrowedFd<'_>) -> Result<bool, SockError> {
        locked(&self.0).flush(socket)
    }

    fn recv(&self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Moved, SockError> {
        let state = &mut *locked(&self.0);
        let mut taken = 0;
        while taken < buffer.len() {
            match state.tls.reader().read(&mut buffer[taken..]) {
                Ok(count @ 1..) => {
                    taken += count;
                    state.decrypted = state.decrypted.saturating_sub(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    state.decrypted = 0;
                    match state.decrypt(socket, taken == 0) {
                        Ok(Moved::Bytes(_)) => {}
                        // What came before an error is delivered, and the next call reports it.
                        _ if taken > 0 => break,
                        Err(error) => match state.tls.reader().read(buffer) {
                            Ok(count @ 1..) => taken = count,
                            _ => {
                                state.end = TlsStreamEnd::Reported;
                                return Err(error);
                            }
                        },
                        pending => return pending,
                    }
                }
                // The end, announced or not, as of a connection without encryption.
                Ok(0) | Err(_) if taken == 0 => {
                    state.end = TlsStreamEnd::Reported;
                    return Ok(Moved::Closed);
                }
                Ok(_) | Err(_) => break,
            }
        }
        Ok(Moved::Bytes(taken))
    }
}

impl TlsState {
    fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<bool, SockError> {
        let mut socket = SocketWriter { socket, error: None };
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => {
                    self.unwritable = true;
                    return Err(socket.error.unwrap_or_else(|| SockError::new("send", error)));
                }
            }
        }
        Ok(true)
    }

    /// Decrypts more of what has arrived, and reads the socket for it if it `may_read`. Bytes are those that were
    /// processed, which may be a part of a record.
    fn decrypt(&mut self, socket: BorrowedFd<'_>, may_read: bool) -> Result<Moved, SockError> {
        if self.end != TlsStreamEnd::Open {
            // An error stays: of what the peer sends after it, nothing can be decrypted.
            self.process()?;
        }
        if self.undecrypted.is_empty() {
            if !may_read {
                return Ok(Moved::Pending);
            }
            if self.arrived.is_empty() {
                self.arrived.resize(FIRST_READ_BYTES, 0);
            }
            match stream::recv(&socket, &mut self.arrived)? {
                Moved::Bytes(count) => {
                    self.undecrypted = 0..count;
                    if count == self.arrived.len() {
                        self.arrived.resize(READ_BYTES, 0);
                    }
                }
                Moved::Closed => {
                    // Its reader reports the end of the connection.
                    let _ = self.tls.read_tls(&mut io::empty());
                    return self.process().map(|()| Moved::Bytes(0));
                }
                Moved::Pending => return Ok(Moved::Pending),
            }
        }
        let mut rest = &self.arrived[self.undecrypted.clone()];
        let used = self.tls.read_tls(&mut rest).map_err(|source| SockError::new(DECRYPT, source))?;
        self.undecrypted.start += used;
        if used == 0 {
            // Nothing counts after the end that the peer has announced.
            self.undecrypted = 0..0;
        }
        self.process()?;
        // It has an answer to the peer, for example to new keys. Without room it is sent later.
        self.flush(socket)?;
        Ok(Moved::Bytes(used))
    }

    fn process(&mut self) -> Result<(), SockError> {
        match self.tls.process_new_packets() {
            Ok(state) => {
                self.decrypted = state.plaintext_bytes_to_read();
                if state.peer_has_closed() {
                    self.note_end();
                }
                Ok(())
            }
            Err(error) => {
                self.note_end();
                Err(SockError::new(DECRYPT, io::Error::new(ErrorKind::InvalidData, error)))
            }
        }
    }

    fn note_end(&mut self) {
        if self.end == TlsStreamEnd::Open {
            self.end = TlsStreamEnd::Unreported;
        }
    }
}

/// The socket as TLS writes to it.
struct SocketWriter<'s> {
    socket: BorrowedFd<'s>,
    /// Why the last write has failed.
    error: Option<SockError>,
}

impl SocketWriter<'_> {
    fn outcome(&mut self, sent: Result<Moved, SockError>) -> io::Result<usize> {
        match sent {
            Ok(Moved::Bytes(count)) => Ok(count),
            Ok(Moved::Pending | Moved::Closed) => Err(ErrorKind::WouldBlock.into()),
            Err(error) => {
                let kind = error.source.kind();
                self.error = Some(error);
                Err(if kind == ErrorKind::WouldBlock { ErrorKind::BrokenPipe } else { kind }.into())
            }
        }
    }
}

impl Write for SocketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = stream::send(&self.socket, bytes);
        self.outcome(sent)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let sent = stream::send_parts(&self.socket, parts);
        self.outcome(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
