//! A connection that is not yet identified.

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_model::sniff::Match;
use linerate_proto::PeerError;
use linerate_proto::agent::AGENT;
use linerate_proto::native::{ConnectionPurpose, Framer, NATIVE, PREFACE_BYTES, Preface};
use linerate_sock::Mono;

use super::inbox::{Detected, Inbox, detect};
use super::open_port::{OpenPort, PortTls};
use crate::control_stream::{Arrival, ControlStream};
use crate::shares::Permit;
use crate::tls::{HTTP_PROTOCOL, ServerIdentity, TLS_PROTOCOL};

/// Most bytes used to distinguish protocols.
const MAX_SNIFF_BYTES: usize = 256;

/// Most bytes of a greeting that are read at once.
const READ_BYTES: usize = 4 << 10;

/// Most bytes of a client in the handshake of TLS. Ours needs less than 2 KiB.
const MAX_HANDSHAKE_BYTES: usize = 16 << 10;

/// First bytes of each TLS connection: the record of a handshake (RFC 8446, section 5.1).
const HANDSHAKE_RECORD: [u8; 2] = [22, 3];

/// The answer to a plain request where everybody encrypts.
const PLAIN_REPLY: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 34\r\n\
    Connection: close\r\n\r\nthis port speaks HTTPS only (h2)\r\n";

/// Why a client of another tool is not served within TLS.
const ONLY_WITHIN_TLS: &str =
    "within TLS only clients and coordinators of linerate, and tests of browsers, are served here";

/// A connection that has not completed its greeting.
pub(super) struct PendingConnection {
    pub(super) connection: ControlStream,
    pub(super) peer: SocketAddr,
    pub(super) until: Mono,
    /// Index in [`super::Shared::ports`] of the port that accepted it.
    pub(super) port_index: usize,
    /// The bytes received so far, without the preface of a native control connection.
    pub(super) received: Vec<u8>,
    /// The kind of peer, once that is known. Its greeting follows.
    pub(super) greeting: Option<GreetingKind>,
    /// Its place among the pending connections.
    #[expect(dead_code, reason = "the place is released when this is dropped")]
    pub(super) permit: Permit,
}

/// The kind of peer that sends a greeting. It gets a thread when the greeting is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GreetingKind {
    /// A native client, whose preface was received and answered.
    Client,
    Coordinator,
}

/// What to do with an identified connection.
pub(super) enum Action {
    /// Begin a native run; the greeting is complete.
    Run,
    /// Hand a data or probe connection to its native run.
    Part(Preface),
    /// Serve a coordinator as its agent; the greeting is complete.
    Coordinator,
    /// Hand the connection to an embedded server.
    Foreign(Arc<Inbox>),
    /// Nothing: the peer has its answer and is gone.
    HealthCheck,
}

/// The state after a read.
pub(super) enum GreetingState {
    /// More bytes are needed.
    More,
    /// The kind of peer is known; the timeout for its greeting starts now.
    KindKnown,
    /// The connection is identified.
    Identified(Action),
}

impl PendingConnection {
    /// Reads until the connection is identified. In our own protocols this reads no byte beyond the preface or
    /// the first message after it: what follows is read by the thread that gets the connection.
    pub(super) fn read(
        &mut self,
        port: &OpenPort,
        identity: Option<&dyn ServerIdentity>,
    ) -> Result<GreetingState, String> {
        let mut buffer = [0; READ_BYTES];
        loop {
            let most = match self.greeting {
                Some(GreetingKind::Client) => match missing(&self.received)? {
                    0 => return Ok(GreetingState::Identified(Action::Run)),
                    missing => missing,
                },
                Some(GreetingKind::Coordinator) => {
                    match missing(self.received.get(AGENT_MAGIC..).unwrap_or_default())? {
                        0 => return Ok(GreetingState::Identified(Action::Coordinator)),
                        missing => missing,
                    }
                }
                None => match self.detect(port, identity)? {
                    Greeting::Is(state) => return Ok(state),
                    Greeting::AtMost(most) => most,
                },
            };
            let room = buffer.get_mut(..most.min(READ_BYTES)).unwrap_or_default();
            match self.connection.read(room).map_err(|error| error.to_string())? {
                Arrival::Bytes(count) => {
                    self.received.extend_from_slice(room.get(..count).unwrap_or_default())
                }
                Arrival::Closed if self.is_health_check() => {
                    return Ok(GreetingState::Identified(Action::HealthCheck));
                }
                Arrival::Closed => {
                    return Err("connection closed before the greeting was complete".to_owned());
                }
                Arrival::Nothing if self.connection.handshake_bytes() > Some(MAX_HANDSHAKE_BYTES) => {
                    return Err("its TLS handshake is too long".to_owned());
                }
                Arrival::Nothing => return Ok(GreetingState::More),
            }
        }
    }

    /// Whether a peer that closes now wanted only the answer to its preface.
    fn is_health_check(&self) -> bool {
        matches!(self.greeting, Some(GreetingKind::Client)) && self.received.is_empty()
    }

    /// Encrypts the connection if the peer begins with a handshake of TLS; true if one more byte has to show that.
    fn encrypt(&mut self, tls: PortTls, identity: Option<&dyn ServerIdentity>) -> Result<bool, String> {
        let Some(identity) = identity.filter(|_| !self.connection.is_encrypted()) else { return Ok(false) };
        if Match::magic(&self.received, &HANDSHAKE_RECORD) == Match::Yes
            && let Some(config) = tls.config(identity)
        {
            let received = std::mem::take(&mut self.received);
            self.connection.encrypt(config, &received).map_err(|error| error.to_string())?;
        }
        Ok(self.received == HANDSHAKE_RECORD[..1])
    }

    /// Identifies the peer by the bytes received so far, or returns how many more may be read.
    fn detect(&mut self, port: &OpenPort, identity: Option<&dyn ServerIdentity>) -> Result<Greeting, String> {
        let (native, inboxes) = (port.native, port.inboxes.as_slice());
        if port.tls != PortTls::None && self.encrypt(port.tls, identity)? {
            return Ok(Greeting::AtMost(1));
        }
        if port.tls == PortTls::Http2 && !self.connection.is_encrypted() {
            return self.await_encryption();
        }
        // Browsers name the protocol that they speak within TLS; some programs with the same tests name none.
        let named = self.connection.protocol();
        let (may_be_ours, may_be_http) =
            (native && named != Some(HTTP_PROTOCOL), named != Some(TLS_PROTOCOL));
        let ours = match Preface::decode(&self.received) {
            _ if !may_be_ours => false,
            Ok(Some(preface)) if preface.connection == ConnectionPurpose::Control => {
                self.send(&Preface::CONTROL.encode());
                self.received.clear();
                self.greeting = Some(GreetingKind::Client);
                return Ok(Greeting::Is(GreetingState::KindKnown));
            }
            Ok(Some(_)) if self.connection.is_encrypted() => {
                return Err("a data or probe connection within TLS".to_owned());
            }
            Ok(Some(preface)) => return Ok(Greeting::Is(GreetingState::Identified(Action::Part(preface)))),
            Ok(None) => true,
            Err(PeerError::Version { theirs, ours }) => {
                // Our preface contains our version, so the other end can report the mismatch.
                self.send(&Preface::CONTROL.encode());
                return Err(format!("protocol version {theirs}, but this server uses {ours}"));
            }
            Err(_) => false,
        };
        let to_agent = if may_be_ours { (AGENT.sniff)(&self.received) } else { Match::No };
        if to_agent == Match::Yes {
            self.greeting = Some(GreetingKind::Coordinator);
            return Ok(Greeting::Is(GreetingState::KindKnown));
        }
        if !ours && to_agent == Match::No {
            let is_encrypted = self.connection.is_encrypted();
            match detect(inboxes, &self.received, port.tls == PortTls::None) {
                Detected::Its(inbox)
                    if !is_encrypted || (may_be_http && inbox.tool.is_served_within_tls()) =>
                {
                    return Ok(Greeting::Is(GreetingState::Identified(Action::Foreign(Arc::clone(inbox)))));
                }
                Detected::More if self.received.len() < MAX_SNIFF_BYTES => {}
                _ if is_encrypted => return Err(ONLY_WITHIN_TLS.to_owned()),
                _ => return Err("not a protocol that is served here".to_owned()),
            }
        }
        let most = if ours { PREFACE_BYTES } else { MAX_SNIFF_BYTES };
        Ok(Greeting::AtMost(most.saturating_sub(self.received.len())))
    }

    /// For a port on which all connections are encrypted. A client of plain HTTP is told so.
    fn await_encryption(&mut self) -> Result<Greeting, String> {
        if self.received.first().is_none_or(|first| *first == HANDSHAKE_RECORD[0]) {
            return Ok(Greeting::AtMost(MAX_SNIFF_BYTES.saturating_sub(self.received.len())));
        }
        if self.received[0].is_ascii_uppercase() {
            self.send(PLAIN_REPLY);
        }
        Err("it is not encrypted, and this port speaks HTTPS only".to_owned())
    }

    /// Sends a few bytes; they fit into the empty send buffer of a new connection.
    fn send(&mut self, bytes: &[u8]) {
        self.connection.queue(bytes);
        self.connection.flush();
    }

    /// Refuses a connection, with a message in its own protocol if that is known and has one.
    pub(super) fn reject(mut self, why: &str) {
        let ours = match self.greeting {
            Some(GreetingKind::Client) => Some(&NATIVE),
            Some(GreetingKind::Coordinator) => Some(&AGENT),
            None if self.received.starts_with(&linerate_proto::native::MAGIC) => Some(&NATIVE),
            None => None,
        };
        if let Some(protocol) = ours {
            if self.greeting.is_none() {
                self.send(&Preface::CONTROL.encode());
            }
            self.connection.close_with(&(protocol.refusal)(why));
        }
    }
}

/// What the first bytes show.
enum Greeting {
    Is(GreetingState),
    /// Nothing yet; at most this number of further bytes may be read.
    AtMost(usize),
}

/// Number of bytes of the first message that are still missing.
fn missing(received: &[u8]) -> Result<usize, String> {
    Framer::missing_of_first(received).map_err(|error| error.to_string())
}

/// Length of a coordinator's first bytes (the magic of the protocol).
const AGENT_MAGIC: usize = linerate_proto::agent::MAGIC.len();
