//! The UDP port: opens UDP flows with a challenge and its echo, and reflects probes.
//!
//! A peer never gets more bytes than it has sent (no amplification), and gets none without the cookie of a run.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_model::sniff::Match;
use linerate_proto::native::{DATAGRAM_BYTES, Datagram, DatagramKind};
use linerate_sock::batch::RecvBatch;
use linerate_sock::open::udp_connected_on_same_port;
use linerate_sock::poll::{Interest, poll_few};
use linerate_sock::sockopt::{Timestamping, set_timestamping};
use linerate_sock::{Mono, SocketOptions, clock, stream};

use super::Shared;
use super::inbox::{Detected, Inbox, detect};
use super::registry::Arrival;
use crate::probe::{arrival, reply};
use crate::setup::UDP_RCV_BUF;

/// Room per datagram on ports with only our own protocol, and on ports that embedded servers share.
const OWN_DATAGRAM_ROOM: usize = 2 * DATAGRAM_BYTES;
const MAX_ANY_DATAGRAM_BYTES: usize = 65_536;

/// One UDP port.
pub(super) struct Reflector {
    pub(super) socket: Arc<UdpSocket>,
    pub(super) address: SocketAddr,
    /// The port number as embedded servers know it.
    pub(super) port: u16,
    pub(super) native: bool,
    /// Inboxes of the embedded servers on this port, which get the datagrams that are not ours.
    pub(super) inboxes: Vec<Arc<Inbox>>,
    /// Inboxes of all embedded servers.
    pub(super) all: Vec<Arc<Inbox>>,
}

impl Reflector {
    /// Serves until the server stops.
    pub(super) fn serve(&self, shared: &Shared) {
        let socket = self.socket.as_ref();
        let _ = clock::set_timer_slack_ns(1);
        let _ = set_timestamping(socket, Timestamping { receive: true, ..Timestamping::default() });
        let _ = stream::set_nonblocking(socket, true);
        let mut batch = RecvBatch::new(
            16,
            if self.inboxes.is_empty() { OWN_DATAGRAM_ROOM } else { MAX_ANY_DATAGRAM_BYTES },
        );
        // The key of the challenges: random for every server and never sent.
        let secret = RandomState::new();
        while !shared.stopping() {
            let waker = shared.switch.waker.as_fd();
            let waits = [(socket.as_fd(), Interest::READ), (waker, Interest::READ)];
            if poll_few(&waits, Mono::FAR).is_err() {
                return;
            }
            // An error here is an ICMP reply to something that we sent. The next call continues normally.
            let _ = batch.recv(socket);
            for datagram in batch.iter() {
                let Some(from) = datagram.source else { continue };
                match Datagram::decode(datagram.bytes).filter(|_| self.native) {
                    Some(said) => {
                        let (at, _) = arrival(datagram.ancillary.arrived_at_ns);
                        answer(socket, self.address, from, &said, at, &secret, shared);
                    }
                    None => self.forward(from, datagram.bytes),
                }
            }
        }
    }

    /// Passes a datagram to the embedded server that recognizes it or may recognize it: no further bytes will
    /// follow.
    fn forward(&self, from: SocketAddr, bytes: &[u8]) {
        let maybe = || self.inboxes.iter().find(|inbox| (inbox.tool.sniff)(bytes) == Match::More);
        let claimed = self.all.iter().find(|inbox| inbox.claims(self.port, from.ip()));
        let its = claimed.or_else(|| match detect(&self.inboxes, bytes, true) {
            Detected::Its(inbox) => Some(inbox),
            Detected::More => maybe(),
            Detected::Nobody => None,
        });
        if let Some(inbox) = its {
            inbox.put_datagram(self.port, from, bytes.to_vec());
        }
    }
}

fn answer(
    socket: &UdpSocket,
    address: SocketAddr,
    from: SocketAddr,
    said: &Datagram,
    at: Mono,
    secret: &RandomState,
    shared: &Shared,
) {
    // The source address of a datagram is easily forged. We only answer the address that the client of the run
    // has proved to own with its control connection.
    let Some(inbox) = shared.registry.find(&said.cookie).filter(|inbox| inbox.is_client(from.ip())) else {
        return;
    };
    let challenge = secret.hash_one((from, said.cookie, said.flow, said.stream));
    match said.kind {
        DatagramKind::Probe => {
            let _ = socket.send_to(&reply(said, at).encode(), from);
        }
        DatagramKind::Open => {
            let challenge = Datagram { kind: DatagramKind::Challenge, number: challenge, ..*said };
            let _ = socket.send_to(&challenge.encode(), from);
        }
        DatagramKind::Echo if said.number == challenge => {
            let requested = SocketOptions { rcv_buf: Some(UDP_RCV_BUF), ..SocketOptions::default() };
            let Ok(bound) = udp_connected_on_same_port(address, from, &requested) else { return };
            let ready = Datagram { kind: DatagramKind::Ready, ..*said };
            // The client's next echo would no longer reach this socket, so the answer is sent three times
            // against loss.
            for _ in 0..3 {
                let _ = bound.socket.send(&ready.encode());
            }
            inbox.put(Arrival::Udp { flow: said.flow, stream: said.stream, socket: bound.socket });
        }
        _ => {}
    }
}
