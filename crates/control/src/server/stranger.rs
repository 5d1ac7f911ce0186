//! A connection that has not said what it wants.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use linerate_proto::agent::AGENT;
use linerate_proto::native::{PREFACE_BYTES, Preface};
use linerate_proto::{Match, PeerError};
use linerate_sock::Mono;

use super::tray::{Tray, Whose, whose};

/// Most bytes by which protocols are told apart.
const ENOUGH: usize = 256;

/// A connection that has not said what it wants.
pub(super) struct Stranger {
    pub(super) connection: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) until: Mono,
    /// The listener at which it came.
    pub(super) gate: usize,
    pub(super) said: Vec<u8>,
}

/// What it wants.
pub(super) enum Wish {
    /// A run of ours, or a part of one.
    Native(Preface),
    /// A coordinator, to whom this is an agent.
    Coordinator,
    /// Another protocol.
    Foreign(Arc<Tray>),
}

impl Stranger {
    /// Reads until it is known what it wants; absent until then. Of what is ours not a byte more than the preface is
    /// read: what follows belongs to whoever gets the connection.
    pub(super) fn read(&mut self, native: bool, trays: &[Arc<Tray>]) -> Result<Option<Wish>, String> {
        let mut buffer = [0; ENOUGH];
        loop {
            let ours = match Preface::decode(&self.said) {
                _ if !native => false,
                Ok(Some(preface)) => return Ok(Some(Wish::Native(preface))),
                Ok(None) => true,
                Err(PeerError::Version { theirs, ours }) => {
                    self.tell_version();
                    return Err(format!("protocol version {theirs}, this server speaks {ours}"));
                }
                Err(_) => false,
            };
            let to_agent = if native { (AGENT.sniff)(&self.said) } else { Match::No };
            if to_agent == Match::Yes {
                return Ok(Some(Wish::Coordinator));
            }
            if !ours && to_agent == Match::No {
                match whose(trays, &self.said, !native) {
                    Whose::Its(tray) => return Ok(Some(Wish::Foreign(Arc::clone(tray)))),
                    Whose::More if self.said.len() < ENOUGH => {}
                    _ => return Err("not a protocol that is served here".to_owned()),
                }
            }
            let most = if ours { PREFACE_BYTES } else { ENOUGH } - self.said.len();
            let room = buffer.get_mut(..most).unwrap_or_default();
            match self.connection.read(room) {
                Ok(0) => return Err("closed before it said what it wants".to_owned()),
                Ok(count) => self.said.extend_from_slice(room.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Our preface carries our version: the other end can then say what is wrong.
    fn tell_version(&mut self) {
        let _ = self.connection.write(&Preface::CONTROL.encode());
    }
}
