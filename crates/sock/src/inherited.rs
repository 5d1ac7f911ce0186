//! Sockets that the service manager has opened for this process (sd_listen_fds(3)).

use std::net::{SocketAddr, TcpListener, UdpSocket};

use socket2::Socket;

use crate::open::{Bound, Listening};
use crate::options::SocketOptions;
use crate::{SockError, sockopt};

const TAKE: &str = "take over the socket of";

/// Bound sockets from the service manager that nothing has taken yet.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    pub(crate) listeners: Vec<(SocketAddr, Socket)>,
    pub(crate) datagrams: Vec<(SocketAddr, Socket)>,
}

impl InheritedSockets {
    /// The addresses of the TCP listeners that nothing has taken, in the order of the socket unit.
    #[must_use]
    pub fn listening(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|(address, _)| *address).collect()
    }

    /// The addresses of all sockets that nothing has taken.
    #[must_use]
    pub fn left(&self) -> Vec<SocketAddr> {
        self.listeners.iter().chain(&self.datagrams).map(|(address, _)| *address).collect()
    }

    /// The listener at `address` as it is, in blocking mode; absent if there is none.
    #[must_use]
    pub fn take_plain_listener(&mut self, address: SocketAddr) -> Option<TcpListener> {
        take(&mut self.listeners, address).map(TcpListener::from)
    }

    /// The listener at `address`, with a new backlog; absent if there is none.
    ///
    /// # Errors
    /// The kernel refuses to listen.
    pub fn take_listener(
        &mut self,
        address: SocketAddr,
        backlog: i32,
    ) -> Result<Option<Listening>, SockError> {
        let Some(socket) = take(&mut self.listeners, address) else { return Ok(None) };
        let fail = |source| SockError::new(TAKE, source).at(address);
        socket.listen(backlog).map_err(fail)?;
        socket.set_nonblocking(false).map_err(fail)?;
        let granted = SocketOptions::default().granted(&socket)?;
        Ok(Some(Listening { listener: socket.into(), local: address, granted }))
    }

    /// The UDP socket at `address`, with these options; absent if there is none.
    ///
    /// # Errors
    /// The kernel refuses an option.
    pub fn take_datagrams(
        &mut self,
        address: SocketAddr,
        requested: &SocketOptions,
    ) -> Result<Option<Bound>, SockError> {
        let Some(socket) = take(&mut self.datagrams, address) else { return Ok(None) };
        let fail = |source| SockError::new(TAKE, source).at(address);
        if requested.reuse_port {
            sockopt::set_reuse_address(&socket, true)?;
        }
        requested.apply_any(&socket).map_err(|error| error.at(address))?;
        socket.set_nonblocking(false).map_err(fail)?;
        let granted = requested.granted(&socket)?;
        Ok(Some(Bound { socket: UdpSocket::from(socket), local: address, granted }))
    }
}

fn take(sockets: &mut Vec<(SocketAddr, Socket)>, address: SocketAddr) -> Option<Socket> {
    let at = sockets.iter().position(|(local, _)| *local == address)?;
    Some(sockets.remove(at).1)
}
