//! Lends the sockets of links to the engine or to a thread that exchanges messages.

use std::net::TcpStream;
use std::sync::Arc;

use linerate_compat::stand_in::{Link, SystemError};
use linerate_engine::{SecureChannel, Sockets};
use linerate_sock::stream;

use super::super::driver_event::own_reason;
use super::{LinkSocket, Links, reason};

/// A link may be in two flows: one reads it and the other writes to it.
const MAX_FLOWS_PER_LINK: u8 = 2;

fn counted(before: u8, borrowed: bool) -> u8 {
    if borrowed { before.saturating_add(1) } else { before.saturating_sub(1) }
}

impl Links {
    /// Whether a link still has unsent bytes, so that nobody else may write to it yet.
    pub(in super::super) fn has_unsent(&self, link: Link) -> bool {
        matches!(self.table.get(&link).map(|entry| &entry.kind), Some(LinkSocket::Connection(c)) if c.has_unsent())
    }

    /// The encryption of these links; empty if they have none.
    pub(in super::super) fn channels(&self, links: &[Link]) -> Vec<Arc<dyn SecureChannel>> {
        let of = |link| match self.table.get(link).map(|entry| &entry.kind) {
            Some(LinkSocket::Connection(connection)) => connection.channel.clone(),
            _ => None,
        };
        links.iter().filter_map(of).map(|channel| channel as Arc<dyn SecureChannel>).collect()
    }

    /// Duplicates the sockets of these links. The links cause no events until they are restored.
    pub(in super::super) fn lend(&mut self, links: &[Link]) -> Result<Sockets, SystemError> {
        let (mut tcp, mut udp) = (Vec::new(), Vec::new());
        for link in links {
            match self.table.get(link).map(|entry| &entry.kind) {
                Some(LinkSocket::Connection(c)) if c.borrowed < MAX_FLOWS_PER_LINK && c.closing.is_none() => {
                    tcp.push(c.stream.try_clone())
                }
                Some(LinkSocket::Datagrams(d)) if d.borrowed < MAX_FLOWS_PER_LINK => {
                    udp.push(d.socket.try_clone())
                }
                _ => return Err(own_reason("a link of the flow is not open")),
            }
        }
        let all =
            |duplicates: Vec<std::io::Result<TcpStream>>| duplicates.into_iter().collect::<Result<_, _>>();
        let sockets = match (tcp.is_empty(), udp.is_empty()) {
            (_, true) => all(tcp).map(Sockets::Tcp),
            (true, false) => udp.into_iter().collect::<Result<_, _>>().map(Sockets::Udp),
            (false, false) => return Err(own_reason("a flow has connections or datagrams, not both")),
        };
        let sockets = sockets.map_err(|error| reason(&error))?;
        for link in links {
            self.mark(*link, true);
        }
        Ok(sockets)
    }

    /// Returns the links to the stand-in.
    pub(in super::super) fn restore(&mut self, links: &[Link]) {
        for link in links {
            self.mark(*link, false);
        }
    }

    /// Switches between blocking mode, which borrowers need, and non-blocking mode, which the driver needs. The
    /// mode is shared by all duplicates of a socket.
    fn mark(&mut self, link: Link, borrowed: bool) {
        match self.table.get_mut(&link).map(|entry| &mut entry.kind) {
            Some(LinkSocket::Connection(connection)) => {
                connection.borrowed = counted(connection.borrowed, borrowed);
                let borrowed = connection.borrowed > 0;
                connection.held = false;
                let _ = stream::set_nonblocking(&connection.stream, !borrowed);
            }
            Some(LinkSocket::Datagrams(datagrams)) => {
                datagrams.borrowed = counted(datagrams.borrowed, borrowed);
                let borrowed = datagrams.borrowed > 0;
                datagrams.held = false;
                let _ = stream::set_nonblocking(&datagrams.socket, !borrowed);
            }
            _ => {}
        }
        self.update_interest(link);
    }
}
