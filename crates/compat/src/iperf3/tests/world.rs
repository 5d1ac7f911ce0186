//! A server of iperf3 on host 0, and clients or scripted peers on the others.

use linerate_units::Span;

use crate::iperf3::client::{Iperf3Client, Iperf3ClientConfig};
use crate::iperf3::report::Iperf3SystemInfo;
use crate::iperf3::server::{Iperf3Server, Iperf3ServerConfig};
use crate::iperf3::settings::Iperf3Settings;
use crate::stand_in::{Link, LinkOptions, Output, StandIn, StreamCounts, Transport};
use crate::virtual_hosts::{VirtualHosts, VirtualPath};

/// One-way delay.
pub(super) const DELAY: Span = Span::from_ms(10);
/// Index of the server's host.
pub(super) const SERVER: usize = 0;
/// The server's port.
const PORT: u16 = 5201;

pub(super) fn client(settings: Iperf3Settings) -> Box<dyn StandIn> {
    let host = Iperf3SystemInfo::default();
    Box::new(Iperf3Client::new(Iperf3ClientConfig { settings, host, unix_ms: 0, seed: [7; 32], login: None }))
}

pub(super) fn server(settings: Iperf3Settings) -> Iperf3ServerConfig {
    Iperf3ServerConfig {
        settings,
        host: Iperf3SystemInfo::default(),
        unix_ms: 0,
        seed: [9; 32],
        gate: None,
        shared: false,
    }
}

/// A server, and clients that start immediately. Receivers take 30 ms to stop.
pub(super) fn new_world(server: Iperf3ServerConfig, clients: Vec<Box<dyn StandIn>>) -> VirtualHosts {
    world_with(Box::new(Iperf3Server::new(server)), clients)
}

/// The same with any server.
pub(super) fn world_with(server: Box<dyn StandIn>, clients: Vec<Box<dyn StandIn>>) -> VirtualHosts {
    let path = VirtualPath {
        delay: DELAY,
        rate: 8e6,
        stops: [Span::from_ms(1), Span::from_ms(30)],
        tcp: StreamCounts { retransmits: Some(3), ..StreamCounts::default() },
        late_retransmits: 0,
        line: None,
    };
    VirtualHosts::on(path, SERVER, std::iter::once(server).chain(clients).map(Some).collect())
}

impl VirtualHosts {
    /// Connects a scripted peer to the server.
    pub(super) fn dial(&mut self, peer: usize, link: u32) {
        self.open(peer, link, Transport::Tcp);
    }

    /// Opens a datagram stream of a scripted peer.
    pub(super) fn hello(&mut self, peer: usize, link: u32) {
        self.open(peer, link, Transport::Udp);
        self.send_as(peer, link, b"9876");
    }

    fn open(&mut self, peer: usize, link: u32, transport: Transport) {
        let options = LinkOptions { transport, ..LinkOptions::default() };
        self.carry_out(peer, Output::Connect { link: Link(link), port: PORT, to: None, options });
    }

    /// Sends bytes of a scripted peer.
    pub(super) fn send_as(&mut self, peer: usize, link: u32, bytes: &[u8]) {
        self.carry_out(peer, Output::Send { link: Link(link), bytes: bytes.to_vec() });
    }

    /// Closes a connection of a scripted peer.
    pub(super) fn hang_up(&mut self, peer: usize, link: u32) {
        self.carry_out(peer, Output::Close { link: Link(link) });
    }

    /// The bytes that a scripted peer has received.
    pub(super) fn received(&self, peer: usize, link: u32) -> &[u8] {
        self.hosts[peer].received.get(&Link(link)).map_or(&[], Vec::as_slice)
    }
}

/// The cookie of a scripted client.
pub(super) const COOKIE: [u8; 37] = *b"abcdefghijklmnopqrstuvwxyz2345672345\0";

/// A scripted client from whom the server expects streams; its control connection is link 1.
pub(super) fn creating(mut world: VirtualHosts, json: &str) -> (VirtualHosts, usize) {
    let end = world.add_host();
    world.dial(end, 1);
    world.send_as(end, 1, &COOKIE);
    world.send_as(end, 1, &message(json));
    world.pass(Span::from_ms(100));
    assert_eq!(world.received(end, 1), [9, 10]);
    (world, end)
}

/// A message with its length.
pub(super) fn message(json: &str) -> Vec<u8> {
    crate::iperf3::wire::frame(json.as_bytes())
}
