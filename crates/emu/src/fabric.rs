//! Hosts, switches and links joined to a network: what comes from a host goes in, what reaches a host comes out.
//!
//! The fabric is a state machine like its stages. Each direction of each link acts at exact instants, in the order of
//! time, whoever calls late: [`Fabric::advance`] carries out everything up to `now`, one instant after the other, so a
//! late driver delivers late and changes nothing else.

mod directed_link;
mod packet_accounting;
mod switch;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_units::{Bytes, Span, Timestamp};

pub use packet_accounting::{PacketAccounting, PortCounts};

use crate::link_direction::{Discipline, LinkDirection, TooBig};
use crate::packet_batch::PacketBatch;
use crate::topology::{Link, Topology};
use directed_link::DirectedLink;
use switch::ForwardingTable;

/// What a switch must know of a train besides its lengths.
pub trait Ethernet: PacketBatch {
    /// Address of the receiver.
    fn destination(&self) -> [u8; 6];

    /// Address of the sender.
    fn source(&self) -> [u8; 6];

    /// The largest IP packet in it; 0 for frames that are not IP.
    fn ip_packet_len(&self) -> u32;

    /// What a router would tell its sender about a packet above the MTU; `None` where nobody may be told.
    fn too_big(&self, mtu: u32, router: &Router) -> Option<Self>;
}

/// As whom the emulated routers speak when a packet is too big.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Router {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub v4: Ipv4Addr,
    /// IPv6 address.
    pub v6: Ipv6Addr,
}

/// Where a host is plugged in: the number of a host, and which of its links, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plug {
    /// The host, as numbered in the topology.
    pub host: usize,
    /// The link, as numbered in the topology.
    pub link: usize,
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Host(usize),
    Switch(usize),
}

/// A train that reached a host.
#[derive(Debug)]
pub struct Delivery<T> {
    /// Which host, on which link.
    pub plug: Plug,
    /// When it arrived: never later than the instant the fabric was advanced to.
    pub at: Timestamp,
    /// What arrived.
    pub batch: T,
}

/// The network of a topology.
#[derive(Debug)]
pub struct Fabric<T> {
    /// Two per link: away from its first end, away from its second.
    wires: Vec<DirectedLink<T>>,
    /// From and to, for each wire.
    ends: Vec<(Node, Node)>,
    switches: Vec<ForwardingTable>,
    router: Router,
    /// For each wire, the least time from its far end to a host; `None` where no host is to be reached.
    ahead: Vec<Option<Span>>,
    agenda: BinaryHeap<Reverse<(Timestamp, usize)>>,
    outbox: VecDeque<Delivery<T>>,
    books: PacketAccounting,
}

/// A host's own queue is its kernel's, which does not send faster than the line. What waits at the card came at once
/// because the kernel or the driver of this fabric was late: so much and so long of it is never dropped there.
const MIN_NIC_BUFFER_BYTES: u64 = 2 << 20;
const MIN_NIC_BUFFER_SECONDS: f64 = 0.05;

impl<T: Ethernet> Fabric<T> {
    /// An empty network.
    #[must_use]
    pub fn new(topology: &Topology, router: Router) -> Self {
        let node = |name: &str| match topology.hosts.iter().position(|host| host.name == name) {
            Some(host) => Node::Host(host),
            None => Node::Switch(topology.switches.iter().position(|s| s.name == name).unwrap_or_default()),
        };
        let mut switches: Vec<ForwardingTable> =
            topology.switches.iter().map(|switch| ForwardingTable::new(switch.shared)).collect();
        let (mut wires, mut ends) = (Vec::new(), Vec::new());
        for link in &topology.links {
            let nodes = [node(&link.ends[0]), node(&link.ends[1])];
            for side in 0..2 {
                let (from, to) = (nodes[side], nodes[1 - side]);
                let number = wires.len();
                if let Node::Switch(switch) = from {
                    switches[switch].wires.push(number);
                }
                let seed = topology.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number as u64);
                let direction = seen_from(from, link, &link.directions[side]);
                let name = format!("{}>{}", link.ends[side], link.ends[1 - side]);
                wires.push(DirectedLink::new(name, link, direction, seed));
                ends.push((from, to));
            }
        }
        let mut fabric = Self {
            ahead: vec![None; wires.len()],
            wires,
            ends,
            switches,
            router,
            agenda: BinaryHeap::new(),
            outbox: VecDeque::new(),
            books: PacketAccounting::default(),
        };
        fabric.compute_min_delays();
        fabric
    }

    /// Finds the least time from the far end of each wire to a host, over the delays of the wires between.
    fn compute_min_delays(&mut self) {
        self.ahead =
            self.ends.iter().map(|(_, to)| matches!(to, Node::Host(_)).then_some(Span::ZERO)).collect();
        // A network without loops is settled after as many rounds as it has wires.
        for _ in 0..self.wires.len() {
            for wire in 0..self.wires.len() {
                let Node::Switch(switch) = self.ends[wire].1 else { continue };
                let next = self.switches[switch].wires.iter().filter(|&&next| next != wire ^ 1);
                self.ahead[wire] =
                    next.filter_map(|&next| Some(self.ahead[next]? + self.wires[next].least_delay())).min();
            }
        }
    }

    /// Takes a train that a host sends. Everything due before `now` must have been carried out.
    pub fn input(&mut self, now: Timestamp, plug: Plug, batch: T) {
        let from = Node::Host(plug.host);
        let sides = [2 * plug.link, 2 * plug.link + 1];
        let Some(wire) = sides.into_iter().find(|&wire| self.ends.get(wire).is_some_and(|e| e.0 == from))
        else {
            return;
        };
        self.books.entered += u64::from(batch.packets());
        self.send(now, wire, batch);
    }

    /// Carries out everything that happens up to `now`.
    pub fn advance(&mut self, now: Timestamp) {
        while let Some(&Reverse((at, wire))) = self.agenda.peek()
            && at <= now
        {
            self.agenda.pop();
            // Entries are not taken back when a wire's plans change; only the latest counts.
            if self.wires[wire].planned == Some(at) {
                self.wires[wire].planned = None;
                self.wires[wire].run(at);
                self.collect(at, wire);
            }
        }
    }

    /// The next train that has reached a host, in the order of arrival.
    pub fn output(&mut self) -> Option<Delivery<T>> {
        self.outbox.pop_front()
    }

    /// Before when nothing can reach a host: a driver that looks then, and when a host sends, is never late. Until then
    /// things happen inside, which [`Fabric::advance`] carries out at their times, however late it is called.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.wires.iter().zip(&self.ahead).filter_map(|(wire, ahead)| Some(wire.planned? + (*ahead)?)).min()
    }

    /// When something happens next by itself.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.wires.iter().filter_map(|wire| wire.planned).min()
    }

    /// Changes one direction of a link while it runs; `side` 0 is away from its first end. What is on its way stays.
    pub fn set_direction(
        &mut self,
        now: Timestamp,
        link: &Link,
        number: usize,
        side: usize,
        direction: &LinkDirection,
    ) {
        let wire = 2 * number + side;
        let (Some((from, _)), Some(target)) = (self.ends.get(wire), self.wires.get_mut(wire)) else { return };
        target.set(now, seen_from(*from, link, direction));
        self.compute_min_delays();
        self.plan(wire);
    }

    /// Counters of every direction of every link, in the order of the topology.
    #[must_use]
    pub fn ports(&self, now: Timestamp) -> Vec<PortCounts> {
        self.wires.iter().map(|wire| wire.counts(now)).collect()
    }

    /// Begins a new span of time for the largest queues.
    pub fn reset_peaks(&mut self, now: Timestamp) {
        for wire in &mut self.wires {
            wire.reset_peaks(now);
        }
    }

    /// What became of every packet so far.
    #[must_use]
    pub fn accounting(&self) -> PacketAccounting {
        let mut books = self.books;
        for wire in &self.wires {
            wire.enter_into(&mut books);
        }
        books
    }

    fn send(&mut self, now: Timestamp, wire: usize, batch: T) {
        let target = &mut self.wires[wire];
        if batch.ip_packet_len() > target.direction.mtu {
            let (mtu, told) = (target.direction.mtu, target.direction.too_big == TooBig::Icmp);
            target.too_big += u64::from(batch.packets());
            if let (true, Node::Switch(switch)) = (told, self.ends[wire].0)
                && let Some(reply) = batch.too_big(mtu, &self.router)
            {
                self.books.made += u64::from(reply.packets());
                self.forward(now, switch, None, reply);
            }
            return;
        }
        let limit = match self.ends[wire].0 {
            Node::Switch(switch) => self.room(now, switch, wire),
            Node::Host(_) => None,
        };
        self.wires[wire].push(now, batch, limit);
        self.collect(now, wire);
    }

    /// What a wire may fill of the memory that its switch's ports share.
    fn room(&self, now: Timestamp, switch: usize, wire: usize) -> Option<u64> {
        let shared = self.switches[switch].shared?;
        let own = self.wires[wire].waiting(now);
        let all = self.switches[switch].wires.iter().map(|&port| self.wires[port].waiting(now)).sum();
        Some(switch::limit(&shared, self.switches[switch].wires.len(), own, all))
    }

    /// Hands on what has come out of a wire, and plans its next instant.
    fn collect(&mut self, now: Timestamp, wire: usize) {
        while let Some(batch) = self.wires[wire].arrived.pop_front() {
            match self.ends[wire].1 {
                Node::Host(host) => {
                    self.books.delivered += u64::from(batch.packets());
                    let plug = Plug { host, link: wire / 2 };
                    self.outbox.push_back(Delivery { plug, at: now, batch });
                }
                Node::Switch(switch) => self.forward(now, switch, Some(wire), batch),
            }
        }
        self.plan(wire);
    }

    fn plan(&mut self, wire: usize) {
        let due = self.wires[wire].deadline();
        if due != self.wires[wire].planned {
            self.wires[wire].planned = due;
            if let Some(due) = due {
                self.agenda.push(Reverse((due, wire)));
            }
        }
    }

    fn forward(&mut self, now: Timestamp, switch: usize, from: Option<usize>, batch: T) {
        // The wire back to where a frame came from is its twin.
        let back = from.map(|wire| wire ^ 1);
        if let Some(back) = back {
            self.switches[switch].learn(batch.source(), back);
        }
        match self.switches[switch].look_up(batch.destination()) {
            Some(wire) if Some(wire) == back => self.books.filtered += u64::from(batch.packets()),
            Some(wire) => self.send(now, wire, batch),
            None => self.flood(now, switch, back, &batch),
        }
    }

    fn flood(&mut self, now: Timestamp, switch: usize, back: Option<usize>, batch: &T) {
        let wires: Vec<usize> =
            self.switches[switch].wires.iter().copied().filter(|&wire| Some(wire) != back).collect();
        self.books.made += u64::from(batch.packets()) * wires.len() as u64;
        self.books.filtered += u64::from(batch.packets());
        for wire in wires {
            self.send(now, wire, batch.duplicate());
        }
    }
}

/// A way as its sending end makes it: a host's queue is its kernel's and its card's, not that of a switch.
fn seen_from(from: Node, link: &Link, direction: &LinkDirection) -> LinkDirection {
    let mut direction = direction.clone();
    if let Node::Host(_) = from {
        direction.discipline = Discipline::TailDrop;
        let late = direction.rate.map_or(0, |rate| (rate.bps() / 8.0 * MIN_NIC_BUFFER_SECONDS) as u64);
        direction.buffer = Bytes::new(direction.buffer.get().max(MIN_NIC_BUFFER_BYTES + late));
        if !link.nic {
            direction.rate = None;
        }
    }
    direction
}
