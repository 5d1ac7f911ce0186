//! Connections that another listener of the program has accepted: clients of a speed test also come to the address of
//! the pages.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use linerate_sock::poll::EventFd;
use linerate_sock::thread::locked;

use crate::error::ControlError;

/// Most connections that wait for the thread of the ports. Of more, the program that brings them is told.
const MAX_WAITING: usize = 256;

/// Gives connections to a server, as if it had accepted them at its own port.
#[derive(Debug, Clone)]
pub struct PortHandover {
    waiting: Arc<WaitingConnections>,
    /// Where the server itself listens.
    addresses: Arc<[IpAddr]>,
}

#[derive(Debug)]
struct WaitingConnections {
    arrived: Mutex<Vec<(TcpStream, SocketAddr)>>,
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
        let to = connection.local_addr().map(|local| local.ip().to_canonical());
        let reachable = |own: &IpAddr| match (own, &to) {
            (IpAddr::V6(own), Ok(_)) if own.is_unspecified() => true,
            (IpAddr::V4(own), Ok(to)) if own.is_unspecified() => to.is_ipv4(),
            (own, to) => to.as_ref().is_ok_and(|to| to == own),
        };
        let mut arrived = locked(&self.waiting.arrived);
        if arrived.len() >= MAX_WAITING || !self.addresses.iter().any(reachable) {
            return Err(connection);
        }
        arrived.push((connection, peer));
        drop(arrived);
        self.waiting.waker.wake();
        Ok(())
    }

    /// Is readable when connections wait.
    pub(super) fn waker(&self) -> &EventFd {
        &self.waiting.waker
    }

    pub(super) fn take(&self) -> Vec<(TcpStream, SocketAddr)> {
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
