//! A connection that has not said what it wants.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use linerate_proto::agent::AGENT;
use linerate_proto::native::{Connection, Framer, NATIVE, PREFACE_BYTES, Preface};
use linerate_proto::{Match, PeerError, Protocol};
use linerate_sock::Mono;

use super::inbox::{Detected, Inbox, detect};
use super::shares::Permit;

/// Most bytes by which protocols are told apart.
const MAX_SNIFF_BYTES: usize = 256;

/// Read at once of a greeting.
const READ_BYTES: usize = 4 << 10;

/// A connection that has not said what it wants.
pub(super) struct PendingConnection {
    pub(super) connection: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) until: Mono,
    /// The listener at which it came.
    pub(super) gate: usize,
    /// What it has said, without the preface of a native control connection.
    pub(super) said: Vec<u8>,
    /// Who greets us, once that is known: the greeting follows.
    pub(super) greets: Option<Greets>,
    /// Its place among those who have not said what they want.
    #[expect(dead_code, reason = "it is given back when this is dropped")]
    pub(super) permit: Permit,
}

/// Who says a greeting, and gets a thread for it when it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greets {
    /// A client of ours, whose preface is here and was answered.
    Client,
    /// A coordinator.
    Coordinator,
}

/// What it wants.
pub(super) enum Action {
    /// A run of ours: its greeting is complete.
    Run,
    /// A part of a run of ours.
    Part(Preface),
    /// A coordinator, to whom this is an agent: its greeting is complete.
    Coordinator,
    /// Another protocol.
    Foreign(Arc<Inbox>),
}

/// How far it has come.
pub(super) enum Heard {
    /// More has to come.
    More,
    /// It is known who it is: now it has time for its greeting.
    Greets,
    /// It has said what it wants.
    Wish(Action),
}

impl PendingConnection {
    /// Reads until it is known what it wants. Of what is ours not a byte more than the preface, or the first message
    /// after it, is read: what follows belongs to whoever gets the connection.
    pub(super) fn read(&mut self, native: bool, inboxes: &[Arc<Inbox>]) -> Result<Heard, String> {
        let mut buffer = [0; READ_BYTES];
        loop {
            let most = match self.greets {
                Some(Greets::Client) => match missing(&self.said)? {
                    0 => return Ok(Heard::Wish(Action::Run)),
                    missing => missing,
                },
                Some(Greets::Coordinator) => match missing(self.said.get(AGENT_MAGIC..).unwrap_or_default())?
                {
                    0 => return Ok(Heard::Wish(Action::Coordinator)),
                    missing => missing,
                },
                None => match self.detect(native, inboxes)? {
                    Greeting::Is(heard) => return Ok(heard),
                    Greeting::AtMost(most) => most,
                },
            };
            let room = buffer.get_mut(..most.min(READ_BYTES)).unwrap_or_default();
            match self.connection.read(room) {
                Ok(0) => return Err("closed before it said what it wants".to_owned()),
                Ok(count) => self.said.extend_from_slice(room.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Heard::More),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Tells by what was said who it is, or how much more may be read.
    fn detect(&mut self, native: bool, inboxes: &[Arc<Inbox>]) -> Result<Greeting, String> {
        let ours = match Preface::decode(&self.said) {
            _ if !native => false,
            Ok(Some(preface)) if preface.connection == Connection::Control => {
                self.send(&Preface::CONTROL.encode());
                self.said.clear();
                self.greets = Some(Greets::Client);
                return Ok(Greeting::Is(Heard::Greets));
            }
            Ok(Some(preface)) => return Ok(Greeting::Is(Heard::Wish(Action::Part(preface)))),
            Ok(None) => true,
            Err(PeerError::Version { theirs, ours }) => {
                // Our preface carries our version: the other end can then say what is wrong.
                self.send(&Preface::CONTROL.encode());
                return Err(format!("protocol version {theirs}, this server speaks {ours}"));
            }
            Err(_) => false,
        };
        let to_agent = if native { (AGENT.sniff)(&self.said) } else { Match::No };
        if to_agent == Match::Yes {
            self.greets = Some(Greets::Coordinator);
            return Ok(Greeting::Is(Heard::Greets));
        }
        if !ours && to_agent == Match::No {
            match detect(inboxes, &self.said, !native) {
                Detected::Its(inbox) => {
                    return Ok(Greeting::Is(Heard::Wish(Action::Foreign(Arc::clone(inbox)))));
                }
                Detected::More if self.said.len() < MAX_SNIFF_BYTES => {}
                _ => return Err("not a protocol that is served here".to_owned()),
            }
        }
        let most = if ours { PREFACE_BYTES } else { MAX_SNIFF_BYTES };
        Ok(Greeting::AtMost(most.saturating_sub(self.said.len())))
    }

    /// Says a few bytes, which fit into the socket of a connection on which nothing was said yet.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.connection.write(bytes);
    }

    /// The last word to somebody who is not served, in their own protocol where it is known and has one.
    pub(super) fn reject(mut self, why: &str) {
        let ours = match self.greets {
            Some(Greets::Client) => Some(&NATIVE),
            Some(Greets::Coordinator) => Some(&AGENT),
            None if self.said.starts_with(&linerate_proto::native::MAGIC) => Some(&NATIVE),
            None => None,
        };
        if let Some(protocol) = ours {
            if self.greets.is_none() {
                self.send(&Preface::CONTROL.encode());
            }
            send_refusal(&mut self.connection, protocol, why);
        }
    }
}

/// Says in the words of a protocol that a client is not served, and reads what has come: to close with bytes unread resets
/// the connection, and the last word could be lost.
pub(super) fn send_refusal(connection: &mut TcpStream, protocol: &Protocol, why: &str) {
    let _ = connection.set_nonblocking(true);
    let _ = connection.write(&(protocol.refusal)(why));
    let _ = connection.shutdown(std::net::Shutdown::Write);
    let _ = connection.read(&mut [0; 16 << 10]);
}

/// What is known by the first bytes.
enum Greeting {
    Is(Heard),
    /// Nothing; so many more bytes may be read.
    AtMost(usize),
}

/// Bytes of the first message that have not come.
fn missing(said: &[u8]) -> Result<usize, String> {
    Framer::missing_of_first(said).map_err(|error| error.to_string())
}

/// The first bytes of a coordinator.
const AGENT_MAGIC: usize = linerate_proto::agent::MAGIC.len();
