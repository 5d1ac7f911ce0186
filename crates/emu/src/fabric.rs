//! Hosts, switches and links connected to a network: packets from hosts go in, packets for hosts come out.
//!
//! The fabric is a state machine like its stages. Each direction of each link acts at exact times, in
//! chronological order, however late the caller is: [`Fabric::advance`] executes everything up to `now`, one
//! event after the other, so a late driver delivers late but changes nothing else.

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

use crate::link_direction::{LinkDirection, QueueDiscipline, TooBig};
use crate::packet_batch::PacketBatch;
use crate::stage::cut::split;
use crate::topology::{Topology, TopologyLink};
use directed_link::DirectedLink;
use switch::{ForwardingTable, SharedMemory};

/// What a switch needs to know of a batch in addition to its packet lengths.
pub trait Ethernet: PacketBatch {
    /// Destination address.
    fn destination(&self) -> [u8; 6];

    /// Source address.
    fn source(&self) -> [u8; 6];

    /// Length of the largest IP packet in it; 0 for frames that are not IP.
    fn ip_packet_len(&self) -> u32;

    /// A router's answer to the sender of a packet above the MTU; `None` if no answer may be sent.
    fn too_big(&self, mtu: u32, router: &Router) -> Option<Self>;
}

/// The addresses from which the emulated routers answer packets above the MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Router {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub v4: Ipv4Addr,
    /// IPv6 address.
    pub v6: Ipv6Addr,
}

/// The attachment of a host: the index of the host and of one of its links, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttachmentPoint {
    /// Index of the host in the topology.
    pub host: usize,
    /// Index of the link in the topology.
    pub link: usize,
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Host(usize),
    Switch(usize),
}

impl Node {
    const fn is_host(self) -> bool {
        matches!(self, Self::Host(_))
    }
}

/// A batch that reached a host.
#[derive(Debug)]
pub struct Delivery<T> {
    /// The host and link on which it arrived.
    pub attachment: AttachmentPoint,
    /// Time of arrival: never later than the time to which the fabric was advanced.
    pub at: Timestamp,
    /// The packets that arrived.
    pub batch: T,
}

/// The network of a topology.
#[derive(Debug)]
pub struct Fabric<T> {
    /// Two per link: from its first end, and from its second.
    wires: Vec<DirectedLink<T>>,
    /// Source and destination of each wire.
    ends: Vec<(Node, Node)>,
    switches: Vec<ForwardingTable>,
    router: Router,
    /// For each wire, the shortest time from its far end to a host; `None` if no host is reachable.
    ahead: Vec<Option<Span>>,
    agenda: BinaryHeap<Reverse<(Timestamp, usize)>>,
    outbox: VecDeque<Delivery<T>>,
    accounting: PacketAccounting,
}

/// A host's own queue is in its kernel, which does not send faster than the link. Packets waiting in the NIC's
/// queue came in a burst because the kernel or the driver of this fabric was late: this many bytes, plus this
/// much time at line rate, always fit.
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
                let direction = at_sending_end(from.is_host(), link, &link.directions[side]);
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
            accounting: PacketAccounting::default(),
        };
        fabric.compute_min_delays();
        fabric
    }

    /// Computes the shortest time from the far end of each wire to a host, over the delays of the wires in
    /// between. Returns the number of rounds over all wires that this took.
    fn compute_min_delays(&mut self) -> usize {
        self.ahead =
            self.ends.iter().map(|(_, to)| matches!(to, Node::Host(_)).then_some(Span::ZERO)).collect();
        // Without loops, this converges after at most as many rounds as there are wires. After a round that changed
        // nothing, no further one would: a star needs two, however many hosts it has.
        for round in 1..=self.wires.len() {
            let mut changed = false;
            for wire in 0..self.wires.len() {
                let Node::Switch(switch) = self.ends[wire].1 else { continue };
                let next = self.switches[switch].wires.iter().filter(|&&next| next != wire ^ 1);
                let shortest =
                    next.filter_map(|&next| Some(self.ahead[next]? + self.wires[next].least_delay())).min();
                changed |= shortest != self.ahead[wire];
                self.ahead[wire] = shortest;
            }
            if !changed {
                return round;
            }
        }
        self.wires.len()
    }

    /// Accepts a batch that a host sends. Everything due before `now` must have been executed.
    pub fn input(&mut self, now: Timestamp, attachment: AttachmentPoint, batch: T) {
        let from = Node::Host(attachment.host);
        let sides = [2 * attachment.link, 2 * attachment.link + 1];
        let Some(wire) = sides.into_iter().find(|&wire| self.ends.get(wire).is_some_and(|e| e.0 == from))
        else {
            return;
        };
        self.accounting.entered += u64::from(batch.packets());
        self.send(now, wire, batch);
    }

    /// Executes everything that happens up to `now`.
    pub fn advance(&mut self, now: Timestamp) {
        while let Some(&Reverse((at, wire))) = self.agenda.peek()
            && at <= now
        {
            self.agenda.pop();
            // Entries are not removed when a wire is rescheduled; only the latest is valid.
            if self.wires[wire].planned == Some(at) {
                self.wires[wire].planned = None;
                self.wires[wire].run(at);
                self.collect(at, wire);
            }
        }
    }

    /// The next batch that has reached a host, in the order of arrival.
    pub fn output(&mut self) -> Option<Delivery<T>> {
        self.outbox.pop_front()
    }

    /// The time before which nothing can reach a host: a driver that calls then, and whenever a host sends, is
    /// never late. Internal events before that time are executed by [`Fabric::advance`] at their own times,
    /// however late it is called.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.wires.iter().zip(&self.ahead).filter_map(|(wire, ahead)| Some(wire.planned? + (*ahead)?)).min()
    }

    /// The time of the next event.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.wires.iter().filter_map(|wire| wire.planned).min()
    }

    /// Changes one direction of a link while it runs; `side` 0 is the direction from its first end. Packets in
    /// flight are kept.
    pub fn set_direction(
        &mut self,
        now: Timestamp,
        link: &TopologyLink,
        number: usize,
        side: usize,
        direction: &LinkDirection,
    ) {
        let wire = 2 * number + side;
        let (Some((from, _)), Some(target)) = (self.ends.get(wire), self.wires.get_mut(wire)) else { return };
        let least_delay = target.least_delay();
        target.set(now, at_sending_end(from.is_host(), link, direction));
        if target.least_delay() != least_delay {
            self.compute_min_delays();
        }
        self.plan(wire);
    }

    /// Counters of every direction of every link, in the order of the topology.
    #[must_use]
    pub fn ports(&self, now: Timestamp) -> Vec<PortCounts> {
        self.wires.iter().map(|wire| wire.counts(now)).collect()
    }

    /// Starts a new interval for the largest queues.
    pub fn reset_peaks(&mut self, now: Timestamp) {
        for wire in &mut self.wires {
            wire.reset_peaks(now);
        }
    }

    /// What happened to every packet so far.
    #[must_use]
    pub fn accounting(&self) -> PacketAccounting {
        let mut accounting = self.accounting;
        for wire in &self.wires {
            wire.enter_into(&mut accounting);
        }
        accounting
    }

    fn send(&mut self, now: Timestamp, wire: usize, batch: T) {
        let Some(batch) = self.drop_too_big(now, wire, batch) else { return };
        let shared = match self.ends[wire].0 {
            Node::Switch(switch) => self.shared_memory(now, switch),
            Node::Host(_) => None,
        };
        self.wires[wire].push(now, batch, shared);
        self.collect(now, wire);
    }

    /// Drops the packets of a batch that exceed the MTU of a wire, and informs their sender if the wire does so;
    /// returns the packets that fit.
    fn drop_too_big(&mut self, now: Timestamp, wire: usize, mut batch: T) -> Option<T> {
        let (mtu, too_big) = (self.wires[wire].direction.mtu, self.wires[wire].direction.too_big);
        let (sizes, largest) = (batch.sizes(), batch.ip_packet_len());
        if largest <= mtu {
            return Some(batch);
        }
        // All packets but the last have the same length, so only the last can fit.
        let last_fits = sizes.packets > 1 && largest.saturating_sub(sizes.each - sizes.last) <= mtu;
        let last = last_fits.then(|| split(&mut batch, sizes.packets - 1));
        self.wires[wire].too_big += u64::from(batch.packets());
        if let (TooBig::Icmp, Node::Switch(switch)) = (too_big, self.ends[wire].0)
            && let Some(reply) = batch.too_big(mtu, &self.router)
        {
            self.accounting.made += u64::from(reply.packets());
            self.forward(now, switch, None, reply);
        }
        last
    }

    /// The memory shared by the ports of a switch. Each member of a LAG is a port.
    fn shared_memory(&self, now: Timestamp, switch: usize) -> Option<SharedMemory> {
        let shared = self.switches[switch].shared?;
        let wires = || self.switches[switch].wires.iter().map(|&wire| &self.wires[wire]);
        Some(SharedMemory {
            shared,
            ports: wires().map(DirectedLink::members).sum(),
            waiting: wires().map(|wire| wire.waiting(now)).sum(),
        })
    }

    /// Forwards what has left a wire, and schedules its next event.
    fn collect(&mut self, now: Timestamp, wire: usize) {
        while let Some(batch) = self.wires[wire].arrived.pop_front() {
            match self.ends[wire].1 {
                Node::Host(host) => {
                    self.accounting.delivered += u64::from(batch.packets());
                    let attachment = AttachmentPoint { host, link: wire / 2 };
                    self.outbox.push_back(Delivery { attachment, at: now, batch });
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
        // The wire back to the source of a frame is the other direction of the same link.
        let back = from.map(|wire| wire ^ 1);
        if let Some(back) = back {
            self.switches[switch].learn(batch.source(), back);
        }
        match self.switches[switch].look_up(batch.destination()) {
            Some(wire) if Some(wire) == back => self.accounting.filtered += u64::from(batch.packets()),
            Some(wire) => self.send(now, wire, batch),
            None => self.flood(now, switch, back, &batch),
        }
    }

    fn flood(&mut self, now: Timestamp, switch: usize, back: Option<usize>, batch: &T) {
        let wires: Vec<usize> =
            self.switches[switch].wires.iter().copied().filter(|&wire| Some(wire) != back).collect();
        self.accounting.made += u64::from(batch.packets()) * wires.len() as u64;
        self.accounting.filtered += u64::from(batch.packets());
        for wire in wires {
            self.send(now, wire, batch.duplicate());
        }
    }
}

/// A direction of a link as its sending end has it: the queue of a host is that of its NIC, not that of a switch.
#[must_use]
pub fn at_sending_end(is_host: bool, link: &TopologyLink, direction: &LinkDirection) -> LinkDirection {
    let mut direction = direction.clone();
    if is_host {
        direction.discipline = QueueDiscipline::TailDrop;
        let late = direction.rate.map_or(0, |rate| (rate.bps() / 8.0 * MIN_NIC_BUFFER_SECONDS) as u64);
        direction.buffer = Bytes::new(direction.buffer.get().max(MIN_NIC_BUFFER_BYTES + late));
        if !link.nic {
            direction.rate = None;
        }
    }
    direction
}
