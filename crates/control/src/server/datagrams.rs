//! The UDP port: opens flows by challenge and echo, and reflects probes.
//!
//! Nobody gets more bytes back than they sent, and nothing at all without the cookie of a run.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use linerate_proto::native::{DATAGRAM_BYTES, Datagram, DatagramKind};
use linerate_sock::batch::RecvBatch;
use linerate_sock::open::udp_connected_on_same_port;
use linerate_sock::poll::{Interest, poll_few};
use linerate_sock::sockopt::{Timestamping, set_timestamping};
use linerate_sock::{Mono, SocketOptions, clock, stream};

use super::Shared;
use super::registry::Arrival;
use crate::probe::{arrival, reply};
use crate::setup::UDP_RCV_BUF;

/// Serves one UDP port until the server stops.
pub(super) fn serve(socket: &UdpSocket, address: SocketAddr, shared: &Shared) {
    let _ = clock::set_timer_slack_ns(1);
    let _ = set_timestamping(socket, Timestamping { receive: true, ..Timestamping::default() });
    let _ = stream::set_nonblocking(socket, true);
    let mut batch = RecvBatch::new(16, 2 * DATAGRAM_BYTES);
    // The key of the challenges: made new with every server, never told.
    let secret = RandomState::new();
    while !shared.stopping() {
        let bell = shared.switch.bell.as_fd();
        let waits = [(socket.as_fd(), Interest::READ), (bell, Interest::READ)];
        if poll_few(&waits, Mono::FAR).is_err() {
            return;
        }
        // An error here is an ICMP answer to something we sent; the next call goes on.
        let _ = batch.recv(socket);
        for datagram in batch.iter() {
            let (Some(from), Some(said)) = (datagram.source, Datagram::decode(datagram.bytes)) else {
                continue;
            };
            let (at, _) = arrival(datagram.ancillary.arrived_at_ns);
            answer(socket, address, from, &said, at, &secret, shared);
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
    let Some(inbox) = shared.registry.find(&said.cookie) else { return };
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
            let wishes = SocketOptions { rcv_buf: Some(UDP_RCV_BUF), ..SocketOptions::default() };
            let Ok(bound) = udp_connected_on_same_port(address, from, &wishes) else { return };
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
