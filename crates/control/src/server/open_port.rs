//! The open ports of a server.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use linerate_compat::Tool;
use linerate_sock::SocketOptions;
use linerate_sock::inherited::InheritedSockets;
use linerate_sock::open::{bind_udp, listen_tcp};

use super::ServerConfig;
use super::inbox::Inbox;
use crate::error::ControlError;
use crate::tls::ServerIdentity;

/// Backlog of the listeners: connections that wait in the kernel until they are accepted.
const BACKLOG: i32 = 16_384;

/// Number of attempts to find a port that is free for both TCP and UDP when the kernel chooses it.
const MAX_PORT_TRIES: u32 = 32;

/// What clients may encrypt at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortTls {
    /// Nothing.
    None,
    /// Control connections, and tests of browsers.
    Control,
    /// Everything, with HTTP/2 inside.
    Http2,
}

impl PortTls {
    /// The configuration for a new connection.
    pub(super) fn config(self, identity: &dyn ServerIdentity) -> Option<Arc<rustls::ServerConfig>> {
        match self {
            Self::None => None,
            Self::Control => Some(identity.tls()),
            Self::Http2 => Some(identity.http2()),
        }
    }
}

/// An open port: TCP and UDP with the same number on one address.
#[derive(Debug)]
pub(super) struct OpenPort {
    pub(super) address: SocketAddr,
    pub(super) listener: TcpListener,
    pub(super) socket: Arc<UdpSocket>,
    /// The port number as embedded servers know it. The addresses of one server may have different ports.
    pub(super) number: u16,
    /// Whether our own protocol is served here.
    pub(super) native: bool,
    /// What is encrypted here.
    pub(super) tls: PortTls,
    /// The embedded servers that are always reached here, in the order in which they examine the first bytes.
    pub(super) inboxes: Vec<Arc<Inbox>>,
}

impl OpenPort {
    /// Whether this embedded server is always reached here, and not only during its runs.
    pub(super) fn serves(&self, inbox: &Inbox) -> bool {
        self.inboxes.iter().any(|own| own.tool.name == inbox.tool.name)
    }
}

/// The open ports of a server, and the inbox of each foreign tool.
#[derive(Debug, Default)]
pub(super) struct OpenPorts {
    pub(super) ports: Vec<OpenPort>,
    pub(super) inboxes: Vec<Arc<Inbox>>,
}

impl OpenPorts {
    /// Opens the ports of a server on these addresses; those of the classic ports come last.
    ///
    /// Listeners that the service manager has opened replace the addresses; whatever else is needed is opened.
    pub(super) fn open(
        addresses: &[SocketAddr],
        config: &ServerConfig,
        inherited: &mut InheritedSockets,
    ) -> Result<Self, ControlError> {
        let mut all = Self::default();
        let is_further = |port: u16| {
            config.classic.iter().any(|classic| classic.port == port) || config.responsiveness == Some(port)
        };
        let listening: Vec<SocketAddr> =
            inherited.listening().into_iter().filter(|address| !is_further(address.port())).collect();
        let addresses = if listening.is_empty() { addresses } else { &listening };
        for address in addresses {
            let open = bind_pair(*address, inherited)?;
            // If the kernel chose the ports, every address has a different one, and embedded servers know the
            // first.
            let number = all.ports.first().map_or(open.number, |first| first.number);
            let inboxes = all.inboxes_of(&config.foreign)?;
            all.ports.push(OpenPort { number, inboxes, ..open });
        }
        for classic in &config.classic {
            for address in addresses {
                let open = bind_pair(SocketAddr::new(address.ip(), classic.port), inherited)?;
                let inboxes = all.inboxes_of(&classic.tools)?;
                all.ports.push(OpenPort { native: false, tls: PortTls::None, inboxes, ..open });
            }
        }
        if let Some(port) = config.responsiveness {
            all.open_responsiveness(port, addresses, inherited)?;
        }
        match inherited.left().first() {
            Some(address) => Err(ControlError::Local(format!(
                "the service manager passes a socket at {address} that nothing here serves; correct the socket unit: each \
                 ListenDatagram= needs a ListenStream= with the same address"
            ))),
            None => Ok(all),
        }
    }

    /// Opens the ports of clients that measure responsiveness.
    fn open_responsiveness(
        &mut self,
        port: u16,
        addresses: &[SocketAddr],
        inherited: &mut InheritedSockets,
    ) -> Result<(), ControlError> {
        let tools: Vec<&'static Tool> =
            linerate_compat::ALL.iter().copied().filter(|tool| tool.needs_tls()).collect();
        for address in addresses {
            let open = bind_pair(SocketAddr::new(address.ip(), port), inherited)?;
            let inboxes = self.inboxes_of(&tools)?;
            self.ports.push(OpenPort { native: false, tls: PortTls::Http2, inboxes, ..open });
        }
        Ok(())
    }

    /// The inboxes of these tools; each tool has one.
    fn inboxes_of(&mut self, tools: &[&'static Tool]) -> Result<Vec<Arc<Inbox>>, ControlError> {
        let mut own = Vec::new();
        for tool in tools {
            let known = self.inboxes.iter().find(|inbox| inbox.tool.name == tool.name).cloned();
            own.push(match known {
                Some(inbox) => inbox,
                None => {
                    let inbox = Arc::new(Inbox::new(tool)?);
                    self.inboxes.push(Arc::clone(&inbox));
                    inbox
                }
            });
        }
        Ok(own)
    }
}

/// Binds TCP and UDP to the same port. For port 0 the kernel chooses one that is free for both.
fn bind_pair(address: SocketAddr, inherited: &mut InheritedSockets) -> Result<OpenPort, ControlError> {
    let mut tries = if address.port() == 0 { MAX_PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        // An MPTCP listener serves plain TCP clients with plain TCP. A kernel without MPTCP opens a plain
        // listener.
        // A client that sends its first bytes with the SYN is served at once.
        let requested = SocketOptions { mptcp: true, fast_open: true, ..SocketOptions::default() };
        let tcp = match inherited.take_listener(address, BACKLOG)? {
            Some(tcp) => tcp,
            None => match listen_tcp(address, BACKLOG, &requested) {
                // On a host without IPv6, use IPv4.
                Err(error) if address.ip().is_unspecified() && address.is_ipv6() && error.lacks_address() => {
                    return bind_pair(SocketAddr::from(([0_u8; 4], address.port())), inherited);
                }
                other => other?,
            },
        };
        let requested = SocketOptions {
            reuse_port: true,
            rcv_buf: Some(crate::setup::UDP_RCV_BUF),
            ..SocketOptions::default()
        };
        let udp = match inherited.take_datagrams(tcp.local, &requested)? {
            Some(udp) => Ok(udp),
            None => bind_udp(tcp.local, &requested),
        };
        match udp {
            Ok(udp) => {
                return Ok(OpenPort {
                    address: tcp.local,
                    listener: tcp.listener,
                    socket: Arc::new(udp.socket),
                    number: tcp.local.port(),
                    native: true,
                    tls: PortTls::Control,
                    inboxes: Vec::new(),
                });
            }
            Err(error) if tries == 0 => return Err(error.into()),
            Err(_) => {}
        }
    }
}
