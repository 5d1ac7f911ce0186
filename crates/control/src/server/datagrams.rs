//! The UDP port: opens flows by challenge and echo, and reflects probes.
//!
//! Nobody gets more bytes back than they sent, and nothing at all without the cookie of a run.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_proto::Match;
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

/// Room for a datagram where ours are the only ones, and where a servant gets the others.
const OWN_DATAGRAM_ROOM: usize = 2 * DATAGRAM_BYTES;
const MAX_ANY_DATAGRAM_BYTES: usize = 65_536;

/// One UDP port.
pub(super) struct Reflector {
    pub(super) socket: Arc<UdpSocket>,
    pub(super) address: SocketAddr,
    /// The port as servants know it.
    pub(super) port: u16,
    pub(super) native: bool,
    /// The servants who get what is not ours.
    pub(super) inboxes: Vec<Arc<Inbox>>,
    /// Every servant.
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
        // The key of the challenges: made new with every server, never told.
        let secret = RandomState::new();
        while !shared.stopping() {
            let waker = shared.switch.waker.as_fd();
            let waits = [(socket.as_fd(), Interest::READ), (waker, Interest::READ)];
            if poll_few(&waits, Mono::FAR).is_err() {
                return;
            }
            // An error here is an ICMP answer to something we sent; the next call goes on.
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

    /// Gives a datagram to the servant whose it is, or may be: there will be no more bytes to tell by.
    fn forward(&self, from: SocketAddr, bytes: &[u8]) {
        let maybe = || self.inboxes.iter().find(|inbox| (inbox.protocol.sniff)(bytes) == Match::More);
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
    // The address of a datagram is easily forged: nothing goes to one that the run's client has not shown to be its own.
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
            // The echo is not repeated to this door any more, so the answer is: a loss must not end the opening.
            for _ in 0..3 {
                let _ = bound.socket.send(&ready.encode());
            }
            inbox.put(Arrival::Udp { flow: said.flow, stream: said.stream, socket: bound.socket });
        }
        _ => {}
    }
}
