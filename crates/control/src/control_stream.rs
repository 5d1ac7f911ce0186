//! A control connection: TCP, or TLS 1.3 over it, with the bytes that wait to be sent.

#[cfg(test)]
pub(crate) mod tests;

use linerate_sock::handle::{AsFd, BorrowedFd};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use linerate_model::Fingerprint;
use linerate_proto::agent::ChannelBinding;
use linerate_sock::clock;
use linerate_sock::poll::{Interest, poll_few};
use linerate_units::Span;
use rustls::{Connection, ServerConnection};

use crate::error::ControlError;
use crate::tls::{TlsError, fingerprint_of};
use crate::tls_channel::TlsChannel;

/// Longest wait at the end for the remaining bytes to be sent.
const FLUSH_TIMEOUT: Span = Span::from_ms(500);

/// Most reads of the connection for one call, so that records without content do not keep its owner from others.
const MAX_READS: usize = 16;

/// Label and length of the exporter that identifies a TLS connection (RFC 9266).
const EXPORTER: &[u8] = b"EXPORTER-Channel-Binding";

/// A control connection that never waits.
#[derive(Debug)]
pub(crate) struct ControlStream {
    tcp: TcpStream,
    tls: Option<Box<Connection>>,
    unsent: Vec<u8>,
    /// Decrypted bytes that were not read yet. No poll of the connection tells of them.
    decrypted: usize,
    /// What TLS has read from the connection so far.
    encrypted_bytes: usize,
    /// The peer has closed, or the connection has failed.
    closed: bool,
    /// Nothing can be sent any more.
    unwritable: bool,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// This number of bytes, at least one.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// Nothing any more.
    Closed,
}

impl ControlStream {
    /// A connection without encryption.
    pub(crate) fn plain(tcp: TcpStream) -> Self {
        Self {
            tcp,
            tls: None,
            unsent: Vec::new(),
            decrypted: 0,
            encrypted_bytes: 0,
            closed: false,
            unwritable: false,
        }
    }

    /// A connection whose handshake is about to begin, or is over.
    pub(crate) fn encrypted(tcp: TcpStream, tls: Connection) -> Self {
        Self { tls: Some(Box::new(tls)), ..Self::plain(tcp) }
    }

    /// Encrypts a connection from here on, as its server. `received` is what was read of it already: the beginning of
    /// the client's handshake.
    pub(crate) fn encrypt(
        &mut self,
        config: Arc<rustls::ServerConfig>,
        mut received: &[u8],
    ) -> Result<(), ControlError> {
        let mut tls = ServerConnection::new(config).map_err(TlsError::from)?;
        self.encrypted_bytes = received.len();
        while !received.is_empty() && tls.read_tls(&mut received).is_ok_and(|count| count > 0) {}
        self.tls = Some(Box::new(tls.into()));
        self.process()
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// The connection itself, of one that is not encrypted.
    pub(crate) fn into_tcp(self) -> TcpStream {
        self.tcp
    }

    /// The connection and its encryption, with what was decrypted and not read yet.
    pub(crate) fn into_channel(mut self) -> (TcpStream, Option<TlsChannel>, Vec<u8>) {
        let mut rest = Vec::new();
        if let Some(tls) = &mut self.tls {
            // Nothing more may be there for now, and its reader says so by an error.
            let _ = tls.reader().read_to_end(&mut rest);
        }
        (self.tcp, self.tls.map(TlsChannel::new), rest)
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Prepares the connection for waiting with a poll.
    pub(crate) fn make_ready(&self) -> std::io::Result<()> {
        self.tcp.set_nonblocking(true)?;
        self.tcp.set_nodelay(true)
    }

    /// The bytes that were read for the handshake; absent if there is none under way.
    pub(crate) fn handshake_bytes(&self) -> Option<usize> {
        self.tls.as_ref().filter(|tls| tls.is_handshaking()).map(|_| self.encrypted_bytes)
    }

    /// The fingerprint of the certificate that the peer has shown.
    pub(crate) fn peer_fingerprint(&self) -> Option<Fingerprint> {
        self.tls.as_ref()?.peer_certificates()?.first().map(fingerprint_of)
    }

    /// The protocol that both ends have agreed on within TLS.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.alpn_protocol()
    }

    /// What identifies this encrypted connection to both of its ends; absent for one without encryption.
    pub(crate) fn channel_binding(&self) -> Result<Option<ChannelBinding>, ControlError> {
        let Some(tls) = &self.tls else { return Ok(None) };
        let value = tls.export_keying_material(ChannelBinding::default(), EXPORTER, Some(&[]));
        Ok(Some(value.map_err(TlsError::from)?))
    }

    /// Adds bytes that the next flush sends.
    pub(crate) fn queue(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Number of bytes that wait.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.len()
    }

    fn is_blocked(&self) -> bool {
        let encrypted = || self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        !self.unwritable && (!self.unsent.is_empty() || encrypted())
    }

    /// What to wait for; absent once the peer has closed the connection.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, Interest)> {
        let interest = if self.is_blocked() { Interest::BOTH } else { Interest::READ };
        (!self.closed).then(|| (self.tcp.as_fd(), interest))
    }

    /// Whether there is something to read of which a poll does not know.
    pub(crate) fn has_decrypted(&self) -> bool {
        self.decrypted > 0 && !self.closed
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Sends what the connection takes. The read side detects and reports its end.
    pub(crate) fn flush(&mut self) {
        while self.is_blocked() {
            let written = match &mut self.tls {
                None => self.tcp.write(&self.unsent).inspect(|count| drop(self.unsent.drain(..*count))),
                Some(tls) => {
                    // It takes as much as fits into its buffer, and nothing of it is an error.
                    let taken = tls.writer().write(&self.unsent).unwrap_or(0);
                    self.unsent.drain(..taken);
                    if !tls.wants_write() {
                        return;
                    }
                    tls.write_tls(&mut self.tcp)
                }
            };
            match written {
                Ok(count) if count > 0 => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => self.unwritable = true,
            }
        }
        if self.unwritable {
            self.unsent.clear();
        }
    }

    /// Sends the remaining bytes for up to [`FLUSH_TIMEOUT`], so that the final message of this end arrives.
    pub(crate) fn flush_at_end(&mut self) {
        let deadline = clock::now() + FLUSH_TIMEOUT.as_duration();
        while self.is_blocked() && !deadline.has_passed() {
            self.flush();
            let _ = poll_few(&[(self.tcp.as_fd(), Interest::WRITE)], deadline);
        }
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush();
    }

    /// Goes on with a handshake, without waiting.
    ///
    /// # Errors
    /// The handshake has failed.
    pub(crate) fn continue_handshake(&mut self) -> Result<(), ControlError> {
        self.flush();
        for _ in 0..MAX_READS {
            if self.closed || self.handshake_bytes().is_none() || !self.read_encrypted()? {
                break;
            }
        }
        Ok(())
    }

    /// Reads what has arrived, without waiting.
    ///
    /// # Errors
    /// The encryption has failed, so there is nobody to talk to.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<Arrival, ControlError> {
        for _ in 0..MAX_READS {
            if self.closed {
                return Ok(Arrival::Closed);
            }
            let result = match &mut self.tls {
                None => self.tcp.read(into),
                Some(tls) => tls.reader().read(into),
            };
            match result {
                Ok(count @ 1..) => {
                    self.decrypted = self.decrypted.saturating_sub(count);
                    return Ok(Arrival::Bytes(count));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.decrypted = 0;
                    if !self.read_encrypted()? {
                        return Ok(Arrival::Nothing);
                    }
                }
                _ => self.closed = true,
            }
        }
        // What is left wakes the next poll.
        Ok(Arrival::Nothing)
    }

    /// Reads and decrypts what has arrived; false if nothing has, or there is no encryption.
    fn read_encrypted(&mut self) -> Result<bool, ControlError> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        match tls.read_tls(&mut self.tcp) {
            Ok(count) => {
                self.encrypted_bytes += count;
                self.process()?;
                // Nothing is left to decrypt at the end of the connection, and no reader to say so in a handshake.
                self.closed |= count == 0 && self.handshake_bytes().is_some();
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(_) => {
                self.closed = true;
                Ok(true)
            }
        }
    }

    /// Decrypts what was read, and sends what TLS itself has to say.
    fn process(&mut self) -> Result<(), ControlError> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let state = tls.process_new_packets();
        self.flush();
        match state {
            Ok(state) => {
                self.decrypted = state.plaintext_bytes_to_read();
                Ok(())
            }
            Err(error) => {
                self.closed = true;
                Err(TlsError::from(error).into())
            }
        }
    }

    /// Sends a last message, then reads what has arrived: closing a socket with unread bytes resets the connection,
    /// and the message could be lost.
    pub(crate) fn close_with(mut self, message: &[u8]) {
        let _ = self.tcp.set_nonblocking(true);
        self.queue(message);
        self.flush();
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush();
        let _ = self.tcp.shutdown(Shutdown::Write);
        let _ = self.tcp.read(&mut [0; 16 << 10]);
    }
}
