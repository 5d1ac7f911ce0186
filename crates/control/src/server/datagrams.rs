//! The UDP ports: opens UDP flows with a challenge and its echo, reflects probes, and passes on what belongs to
//! foreign tools.
//!
//! A peer never gets more bytes than it has sent (no amplification), and gets none without the cookie of a run.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};

use linerate_model::sniff::Match;
use linerate_proto::native::{DATAGRAM_BYTES, DatagramKind, ProbeDatagram};
use linerate_sock::batch::{Datagram, RecvBatch};
use linerate_sock::sockopt::{Timestamping, set_timestamping};
use linerate_sock::{Mono, SockError, SocketOptions, reply, stream};

use super::Shared;
use super::inbox::{Detected, detect};
use super::open_port::OpenPort;
use super::registry::{DataSocket, Registry};
use crate::probe::{arrival, reply as probe_reply};
use crate::setup::UDP_RCV_BUF;

/// Most datagrams of a port that are read at once; what arrives at the other ports comes next.
const BATCH: usize = 16;

/// Room per datagram on ports with only our own protocol, and on ports that embedded servers share.
const OWN_DATAGRAM_ROOM: usize = 2 * DATAGRAM_BYTES;
const MAX_ANY_DATAGRAM_BYTES: usize = 65_536;

/// A batch that has room for the datagrams of any of these ports.
pub(super) fn batch<'a>(mut ports: impl Iterator<Item = &'a OpenPort>) -> RecvBatch {
    let own = ports.all(|port| port.inboxes.is_empty());
    RecvBatch::new(BATCH, if own { OWN_DATAGRAM_ROOM } else { MAX_ANY_DATAGRAM_BYTES })
}

/// Prepares the socket of a port for [`receive`].
pub(super) fn prepare(port: &OpenPort) -> Result<(), SockError> {
    if port.address.ip().is_unspecified() {
        // Without it, a client that uses another address than the first of this host gets no answer.
        let _ = reply::note_destinations(&port.socket);
    }
    stream::set_nonblocking(&*port.socket, true)
}

/// Lets the kernel note when datagrams arrive at a port, or no longer. Without its timestamps, probes get our own.
///
/// While any socket of a host asks for them, its kernel reads the clock for every packet, so a server asks only while
/// there are probes.
pub(super) fn note_arrivals(port: &OpenPort, receive: bool) {
    let _ = set_timestamping(&*port.socket, Timestamping { receive, ..Timestamping::default() });
}

/// Answers or passes on the datagrams that have arrived at a port, at most one batch of them. True if a probe of a run
/// was among them.
pub(super) fn receive(port: &OpenPort, batch: &mut RecvBatch, shared: &Shared) -> bool {
    let mut has_probes = false;
    // An error here is an ICMP reply to something that we sent. The next call continues normally.
    let _ = batch.recv(&*port.socket);
    for datagram in batch.iter() {
        let Some(from) = datagram.source else { continue };
        match ProbeDatagram::decode(datagram.bytes).filter(|_| port.native) {
            Some(message) => {
                let (at, _) = arrival(datagram.ancillary.arrived_at_ns);
                let answerer = Answerer {
                    port,
                    address: datagram.ancillary.destination,
                    registry: &shared.registry,
                    challenge_key: &shared.challenge_key,
                };
                has_probes |= answerer.answer(from, &message, at);
            }
            None => forward(port, from, &datagram, shared),
        }
    }
    has_probes
}

/// Passes a datagram to the embedded server that recognizes it or may recognize it: no further bytes will
/// follow.
fn forward(port: &OpenPort, from: SocketAddr, datagram: &Datagram<'_>, shared: &Shared) {
    let bytes = datagram.bytes;
    let maybe = || port.inboxes.iter().find(|inbox| (inbox.tool.sniff)(bytes) == Match::More);
    let claimed = shared.inboxes().find(|inbox| inbox.claims(port.number, from.ip()));
    let its = claimed.or_else(|| match detect(&port.inboxes, bytes, true) {
        Detected::Its(inbox) => Some(inbox),
        Detected::More => maybe(),
        Detected::Nobody => None,
    });
    if let Some(inbox) = its {
        inbox.put_datagram(port.number, from, datagram.ancillary.destination, bytes.to_vec());
    }
}

/// What answers a datagram.
struct Answerer<'p> {
    port: &'p OpenPort,
    /// The address of this host that the datagram was sent to, if it is known.
    address: Option<IpAddr>,
    registry: &'p Registry,
    challenge_key: &'p RandomState,
}

impl Answerer<'_> {
    fn send(&self, to: SocketAddr, message: &ProbeDatagram) {
        // A datagram may be lost.
        let _ = reply::send_from(&self.port.socket, self.address, to, &message.encode());
    }

    /// True if this was a probe of a run.
    fn answer(&self, from: SocketAddr, message: &ProbeDatagram, at: Mono) -> bool {
        // The source address of a datagram is easily forged. We only answer the address that the client of the run
        // has proved to own with its control connection.
        let Some(inbox) = self.registry.find(&message.cookie).filter(|inbox| inbox.is_client(from.ip()))
        else {
            return false;
        };
        let challenge = self.challenge_key.hash_one((from, message.cookie, message.flow, message.stream));
        match message.kind {
            DatagramKind::Probe => {
                self.send(from, &probe_reply(message, at));
            }
            DatagramKind::Open => {
                let kind = DatagramKind::Challenge;
                self.send(from, &ProbeDatagram { kind, number: challenge, ..*message });
            }
            // The client echoes every challenge, and asks for more while none comes.
            DatagramKind::Echo
                if message.number == challenge && inbox.may_open_udp(message.flow, message.stream) =>
            {
                let requested = SocketOptions { rcv_buf: Some(UDP_RCV_BUF), ..SocketOptions::default() };
                let (address, port) = (self.address, self.port.address);
                let Ok(bound) = reply::connected_at(address, port, from, &requested) else {
                    return false;
                };
                let ready = ProbeDatagram { kind: DatagramKind::Ready, ..*message };
                // The client's next echo would no longer reach this socket, so the answer is sent three times
                // against loss.
                for _ in 0..3 {
                    let _ = bound.socket.send(&ready.encode());
                }
                inbox.put(DataSocket::Udp {
                    flow: message.flow,
                    stream: message.stream,
                    socket: bound.socket,
                });
            }
            _ => {}
        }
        message.kind == DatagramKind::Probe
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};
    use std::sync::Arc;
    use std::time::Duration;

    use linerate_model::flow::FlowId;
    use linerate_sock::clock;
    use linerate_sock::open::bind_udp;

    use super::super::open_port::PortTls;
    use super::*;

    const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    /// Regression: on a busy server several challenges wait for the client, which answers all of them. A second socket
    /// then swallowed the datagrams of the test.
    #[test]
    fn an_echo_that_comes_twice_opens_one_socket() {
        let shared = SocketOptions { reuse_port: true, ..SocketOptions::default() };
        let socket = Arc::new(bind_udp(ANY.into(), &shared).unwrap().socket);
        let port = OpenPort {
            address: socket.local_addr().unwrap(),
            listener: TcpListener::bind(ANY).unwrap(),
            socket,
            number: 0,
            native: true,
            tls: PortTls::None,
            inboxes: Vec::new(),
        };
        let (registry, key) = (Registry::new().unwrap(), RandomState::new());
        let (cookie, number) = (*b"0123456789abcdef", 0);
        let inbox = registry.open(cookie, Ipv4Addr::LOCALHOST.into(), 1).unwrap();
        let client = UdpSocket::bind(ANY).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let from = client.local_addr().unwrap();
        let answerer = Answerer { port: &port, address: None, registry: &registry, challenge_key: &key };
        let open = ProbeDatagram {
            kind: DatagramKind::Open,
            cookie,
            flow: FlowId(1),
            stream: 0,
            number,
            times: [0; 3],
        };
        answerer.answer(from, &open, clock::now());
        let mut bytes = [0; DATAGRAM_BYTES];
        let length = client.recv(&mut bytes).unwrap();
        let challenge = ProbeDatagram::decode(&bytes[..length]).unwrap();
        let echo = ProbeDatagram { kind: DatagramKind::Echo, ..challenge };
        answerer.answer(from, &echo, clock::now());
        answerer.answer(from, &echo, clock::now());
        let arrived = inbox.take();
        let [DataSocket::Udp { socket, .. }] = &arrived[..] else { panic!("{arrived:?}") };
        client.send_to(b"data", port.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert_eq!(socket.recv(&mut bytes).unwrap(), 4);
    }
}
