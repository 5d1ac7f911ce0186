//! Actions on links: sending, closing, resetting, ignoring input.

use std::net::{Shutdown, SocketAddr};

use linerate_compat::stand_in::Link;
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::{Mono, clock, reply, sockopt, stream};

use super::connection::Flushed;
use super::{
    DriverEvent, DriverEvents, LINGER_TIMEOUT, LinkEntry, LinkSocket, Links, mapped_address, opening,
};

impl Links {
    /// Sends bytes on a connection, or one datagram.
    pub(in super::super) fn send(&mut self, link: Link, bytes: &[u8], events: &mut DriverEvents) {
        let Some(entry) = self.table.get_mut(&link) else { return };
        match &mut entry.kind {
            LinkSocket::Connection(connection) if connection.closing.is_none() => {
                note_flushed(link, connection.send(bytes), events);
            }
            LinkSocket::Datagrams(datagrams) => {
                // An ICMP error or a full queue: a datagram may be lost.
                let _ = stream::send(&datagrams.socket, bytes);
                events.push_back(DriverEvent::Sent { link });
            }
            _ => {}
        }
        self.update_interest(link);
    }

    /// Sends a datagram from a listening socket.
    pub(in super::super) fn send_to(&mut self, link: Link, to: SocketAddr, bytes: &[u8]) {
        let socket = match self.table.get(&link).map(|entry| &entry.kind) {
            Some(LinkSocket::Datagrams(datagrams)) => Some((&datagrams.socket, datagrams.local)),
            Some(LinkSocket::SharedPorts(ports, _)) => {
                let port = opening::port_for_peer(ports, to);
                port.and_then(|port| Some((port.socket.as_deref()?, port.address)))
            }
            _ => None,
        };
        if let Some((socket, local)) = socket {
            let _ = reply::send_from(socket, self.destination(link, to), mapped_address(to, local), bytes);
        }
    }

    /// Sends one byte as TCP urgent data.
    pub(in super::super) fn send_urgent(&mut self, link: Link, byte: u8, events: &mut DriverEvents) {
        if let Some(LinkSocket::Connection(connection)) =
            self.table.get_mut(&link).map(|entry| &mut entry.kind)
        {
            note_flushed(link, connection.send_urgent(byte), events);
        }
        self.update_interest(link);
    }

    /// Half-closes a connection after all bytes have been sent.
    pub(in super::super) fn finish_writing(&mut self, link: Link, events: &mut DriverEvents) {
        if let Some(LinkSocket::Connection(connection)) =
            self.table.get_mut(&link).map(|entry| &mut entry.kind)
        {
            note_flushed(link, connection.finish_writing(), events);
        }
        self.update_interest(link);
    }

    /// Closes a link after all bytes have been sent, and a borrowed one after it has been returned.
    pub(in super::super) fn close(&mut self, link: Link) {
        match self.table.get_mut(&link).map(|entry| &mut entry.kind) {
            Some(LinkSocket::Connection(connection)) => {
                connection.closing = Some(clock::now() + LINGER_TIMEOUT)
            }
            Some(LinkSocket::Datagrams(datagrams)) if datagrams.borrowed > 0 => datagrams.closed = true,
            Some(_) => drop(self.remove(link)),
            None => {}
        }
        self.update_interest(link);
    }

    /// Resets a connection.
    pub(in super::super) fn reset(&mut self, link: Link) {
        if let Some(LinkSocket::Connection(connection)) = self.remove(link) {
            let _ = sockopt::set_linger_abort(&connection.stream);
            if connection.borrowed > 0 {
                // Wakes the thread that has borrowed it.
                let _ = connection.stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// Discards what arrives on a link from now on.
    pub(in super::super) fn discard(&mut self, link: Link) {
        match self.table.get_mut(&link).map(|entry| &mut entry.kind) {
            Some(LinkSocket::Connection(connection)) => connection.discards = true,
            Some(LinkSocket::Datagrams(datagrams)) => datagrams.discards = true,
            _ => {}
        }
    }

    /// Leaves what arrives on a link in the socket until a flow has used the link.
    pub(in super::super) fn hold_back(&mut self, link: Link) {
        match self.table.get_mut(&link).map(|entry| &mut entry.kind) {
            Some(LinkSocket::Connection(connection)) => connection.held = true,
            Some(LinkSocket::Datagrams(datagrams)) => datagrams.held = true,
            _ => {}
        }
        self.update_interest(link);
    }

    /// Sends the remaining bytes of all links, at most until `until`.
    pub(in super::super) fn flush_at_end(&mut self, until: Mono) {
        let waiting =
            |entry: &&mut LinkEntry| matches!(&entry.kind, LinkSocket::Connection(c) if c.has_unsent());
        for entry in self.table.values_mut().filter(waiting) {
            let LinkSocket::Connection(connection) = &mut entry.kind else { continue };
            while connection.has_unsent() && !until.has_passed() {
                let _ = wait_for(&connection.stream, Interest::WRITE, until);
                if matches!(connection.flush(), Flushed::Broken(_)) {
                    break;
                }
            }
        }
    }
}

pub(super) fn note_flushed(link: Link, flushed: Flushed, events: &mut DriverEvents) {
    match flushed {
        Flushed::Sent => events.push_back(DriverEvent::Sent { link }),
        Flushed::Broken(reason) => events.push_back(DriverEvent::Closed { link, reason: Some(reason) }),
        Flushed::Nothing => {}
    }
}
