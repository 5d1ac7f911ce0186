//! Connections that another listener of the program has accepted: clients of a speed test also come to the address of
//! the pages.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use linerate_sock::poll::EventFd;
use linerate_sock::thread::locked;

use crate::control_stream::ControlStream;
use crate::error::ControlError;

/// Most connections that wait for the thread of the ports. Of more, the program that brings them is told.
const MAX_WAITING: usize = 256;

/// A connection of which another listener has read something.
#[derive(Debug)]
pub(super) struct HandedOver {
    pub(super) connection: ControlStream,
    pub(super) peer: SocketAddr,
    /// What was decrypted of it.
    pub(super) received: Vec<u8>,
}

/// Gives connections to a server, as if it had accepted them at its own port.
#[derive(Debug, Clone)]
pub struct PortHandover {
    waiting: Arc<WaitingConnections>,
    /// Where the server itself listens.
    addresses: Arc<[IpAddr]>,
}

#[derive(Debug)]
struct WaitingConnections {
    arrived: Mutex<Vec<HandedOver>>,
    waker: EventFd,
}

impl PortHandover {
    /// # Errors
    /// The host is out of file descriptors.
    pub(super) fn new(addresses: impl Iterator<Item = IpAddr>) -> Result<Self, ControlError> {
        let waiting = WaitingConnections { arrived: Mutex::default(), waker: EventFd::new()? };
        Ok(Self { waiting: Arc::new(waiting), addresses: addresses.map(|ip| ip.to_canonical()).collect() })
    }

    /// Gives a connection to the server. What has arrived on it must not have been read.
    ///
    /// # Errors
    /// The connection is returned: the server does not listen on the address to which it was made, so whoever made it
    /// could not reach the server itself; or too many wait.
    pub fn give(&self, connection: TcpStream, peer: SocketAddr) -> Result<(), TcpStream> {
        if !connection.local_addr().is_ok_and(|to| self.takes(to.ip())) {
            return Err(connection);
        }
        self.add(HandedOver { connection: ControlStream::plain(connection), peer, received: Vec::new() });
        Ok(())
    }

    /// Gives an encrypted connection to the server, after its handshake (TLS 1.3), with the bytes that were already
    /// decrypted. Ask [`takes`](Self::takes) first.
    pub fn give_encrypted(
        &self,
        connection: TcpStream,
        tls: rustls::ServerConnection,
        received: Vec<u8>,
        peer: SocketAddr,
    ) {
        self.add(HandedOver { connection: ControlStream::encrypted(connection, tls.into()), peer, received });
    }

    /// Whether the server listens on this address, to which a connection was made, and few wait.
    #[must_use]
    pub fn takes(&self, to: IpAddr) -> bool {
        let to = to.to_canonical();
        let reachable = |own: &IpAddr| match own {
            IpAddr::V6(own) if own.is_unspecified() => true,
            IpAddr::V4(own) if own.is_unspecified() => to.is_ipv4(),
            own => *own == to,
        };
        locked(&self.waiting.arrived).len() < MAX_WAITING && self.addresses.iter().any(reachable)
    }

    fn add(&self, connection: HandedOver) {
        locked(&self.waiting.arrived).push(connection);
        self.waiting.waker.wake();
    }

    /// Is readable when connections wait.
    pub(super) fn waker(&self) -> &EventFd {
        &self.waiting.waker
    }

    pub(super) fn take(&self) -> Vec<HandedOver> {
        // Whatever woke the thread: all of them are taken.
        let _ = self.waiting.waker.clear();
        std::mem::take(&mut *locked(&self.waiting.arrived))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn connection() -> (TcpStream, TcpStream, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, peer) = listener.accept().unwrap();
        (near, far, peer)
    }

    #[test]
    fn only_connections_to_an_address_of_the_server_are_taken() {
        let given = |own: &str| {
            let handover = PortHandover::new([own.parse().unwrap()].into_iter()).unwrap();
            let (_near, far, peer) = connection();
            let taken = handover.give(far, peer).is_ok();
            assert_eq!(handover.take().len(), usize::from(taken));
            taken
        };
        for own in ["127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"] {
            assert!(given(own), "{own}");
        }
        for own in ["127.0.0.2", "::1", "192.0.2.1"] {
            assert!(!given(own), "{own}");
        }
    }
}
