//! How a service manager passes sockets: from descriptor 3 on, as sd_listen_fds(3) describes it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Socket, Type};

use crate::SockError;
use crate::inherited::InheritedSockets;

/// First descriptor that a service manager passes.
const FIRST_FD: RawFd = 3;

/// Most sockets that a service manager may pass: more than any host has addresses and tools have ports.
const MAX_SOCKETS: RawFd = 1024;

const TAKE_ANY: &str = "take over a socket of the service manager";

impl InheritedSockets {
    /// The sockets that `LISTEN_FDS` announces to the process `LISTEN_PID`; none if that is another one. Children do
    /// not inherit them. The first call takes them, before this process has opened files of its own; further calls
    /// find none.
    ///
    /// # Errors
    /// The variables are no numbers, or a descriptor is not a TCP listener or a UDP socket.
    pub fn from_environment() -> Result<Self, SockError> {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        let invalid =
            |text: String| SockError::new(TAKE_ANY, io::Error::new(io::ErrorKind::InvalidInput, text));
        let number = |name: &'static str| -> Result<Option<RawFd>, SockError> {
            let Some(text) = std::env::var_os(name) else { return Ok(None) };
            let parsed = text.to_str().and_then(|text| text.parse().ok()).filter(|number| *number >= 0);
            parsed.map(Some).ok_or_else(|| invalid(format!("{name} is not a number")))
        };
        let (Some(pid), Some(count)) = (number("LISTEN_PID")?, number("LISTEN_FDS")?) else {
            return Ok(Self::default());
        };
        if u32::try_from(pid) != Ok(std::process::id()) || TAKEN.swap(true, Ordering::Relaxed) {
            return Ok(Self::default());
        }
        if count > MAX_SOCKETS {
            return Err(invalid(format!("LISTEN_FDS announces {count} sockets; {MAX_SOCKETS} are allowed")));
        }
        let mut sockets = Self::default();
        for fd in FIRST_FD..FIRST_FD + count {
            // SAFETY: fcntl reads the flags of a descriptor that may be closed; it has no other effect.
            if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
                return Err(SockError::last(TAKE_ANY));
            }
            // SAFETY: the descriptor is open. It was passed to the program that got this process id, and `TAKEN`
            // ensures that it is taken once.
            sockets.add(unsafe { OwnedFd::from_raw_fd(fd) })?;
        }
        Ok(sockets)
    }

    /// Adds a bound socket.
    ///
    /// # Errors
    /// It is not a TCP listener or a UDP socket.
    pub fn add(&mut self, fd: OwnedFd) -> Result<(), SockError> {
        let fail = |source| SockError::new(TAKE_ANY, source);
        let socket = Socket::from(fd);
        socket.set_cloexec(true).map_err(fail)?;
        let kind = socket.r#type().map_err(fail)?;
        let address = socket.local_addr().map_err(fail)?.as_socket();
        let is_listener = kind == Type::STREAM && socket.is_listener().map_err(fail)?;
        match address {
            Some(address) if is_listener => self.listeners.push((address, socket)),
            Some(address) if kind == Type::DGRAM => self.datagrams.push((address, socket)),
            _ => {
                let text = "it is neither a TCP listener nor a UDP socket; correct the socket unit (ListenStream=, \
                            ListenDatagram=; Accept=no)";
                return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, text)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SocketOptions;
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};
    use std::os::unix::net::UnixDatagram;

    const ANY_PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    #[test]
    fn each_socket_is_found_by_its_address_and_kind_once() {
        let tcp = TcpListener::bind(ANY_PORT).unwrap();
        let address = tcp.local_addr().unwrap();
        let udp = UdpSocket::bind(address).unwrap();
        let mut sockets = InheritedSockets::default();
        sockets.add(tcp.into()).unwrap();
        sockets.add(udp.into()).unwrap();
        assert_eq!((sockets.listening(), sockets.left()), (vec![address], vec![address, address]));
        let listening = sockets.take_listener(address, 16).unwrap().unwrap();
        assert_eq!(listening.local, address);
        std::net::TcpStream::connect(address).unwrap();
        listening.listener.accept().unwrap();
        assert!(sockets.take_listener(address, 16).unwrap().is_none(), "it was taken");
        let bound = sockets.take_datagrams(address, &SocketOptions::default()).unwrap().unwrap();
        assert_eq!(bound.local, address);
        assert!(sockets.left().is_empty());
    }

    #[test]
    fn what_is_no_listener_is_refused_with_the_remedy() {
        let connected = TcpListener::bind(ANY_PORT).unwrap();
        let stream = std::net::TcpStream::connect(connected.local_addr().unwrap()).unwrap();
        let unix = UnixDatagram::unbound().unwrap();
        for fd in
            [OwnedFd::from(stream), OwnedFd::from(unix), std::fs::File::open("/dev/null").unwrap().into()]
        {
            let error = InheritedSockets::default().add(fd).unwrap_err();
            assert!(error.op.contains("service manager"), "{error}");
        }
    }
}
