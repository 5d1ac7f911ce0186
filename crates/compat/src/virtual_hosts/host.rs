//! A host, and what a user and the test see of it.

use std::collections::{BTreeMap, VecDeque};

use linerate_model::{ResponsivenessReport, Side, Tally};
use linerate_units::{Span, Timestamp};

use super::engine::VirtualFlow;
use super::virtual_link::VirtualLink;
use crate::stand_in::{
    ConnectionCounts, CountedFlow, FlowId, FlowTask, HostCounts, Input, Link, LinkOptions, Planned, StandIn,
    StreamCounts,
};

/// The probes during a flow, or before all of them: when each was sent, and its round-trip time.
pub(crate) type VirtualLatencies = (Option<FlowId>, Vec<(Timestamp, Option<Span>)>);

/// A host with one tool.
#[derive(Default)]
pub(crate) struct VirtualHost {
    pub(super) tool: Option<Box<dyn StandIn>>,
    /// Standard output, standard error, and bytes written to standard output.
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) written: Vec<u8>,
    pub(crate) exit: Option<i32>,
    /// Bytes that the tool sent itself, with their link, and when.
    pub(crate) sent: Vec<(Link, Vec<u8>)>,
    pub(crate) sent_at: Vec<Timestamp>,
    /// Bytes sent as urgent data.
    pub(crate) urgent: Vec<u8>,
    /// Bytes received outside flows, by connection.
    pub(crate) received: BTreeMap<Link, Vec<u8>>,
    /// The flows that the tool requested.
    pub(crate) tasks: Vec<FlowTask>,
    /// The errors of the finished runs.
    pub(crate) runs: Vec<Option<String>>,
    /// The runs that were planned or requested.
    pub(crate) plans: Vec<Planned>,
    /// The counts that its peers reported.
    pub(crate) peer_counted: Vec<Tally>,
    /// The results that the tool counted itself, its latencies, and the responsiveness.
    pub(crate) counted: Vec<CountedFlow>,
    pub(crate) latencies: Vec<VirtualLatencies>,
    pub(crate) responsiveness: Vec<ResponsivenessReport>,
    /// When the line has carried what was sent.
    pub(super) line_free: Timestamp,
    /// Options set on accepted connections.
    pub(crate) tuned: Vec<LinkOptions>,
    /// Links whose bytes wait for a flow.
    pub(crate) held_back: Vec<Link>,
    /// Remaining blocks of standard input.
    pub(crate) input: VecDeque<Vec<u8>>,
    /// Whether the server admits runs.
    pub(crate) admits: bool,
    pub(super) links: BTreeMap<Link, VirtualLink>,
    pub(super) flows: BTreeMap<FlowId, VirtualFlow>,
    next_accepted: u32,
    next_port: u16,
}

impl VirtualHost {
    pub(super) fn new(tool: Option<Box<dyn StandIn>>) -> Self {
        let next_accepted = Link::FIRST_ACCEPTED.0;
        Self { tool, admits: true, next_accepted, next_port: 40_000, ..Self::default() }
    }

    /// The bytes that its peers reported.
    pub(crate) fn peer_bytes(&self) -> Vec<u64> {
        self.peer_counted.iter().map(|tally| tally.bytes.get()).collect()
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.tool.as_ref()?.deadline().filter(|_| self.exit.is_none())
    }

    pub(super) fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if let Some(tool) = &mut self.tool {
            tool.input(now, input);
        }
    }

    /// Tells the tool what the kernel has counted on a connection.
    pub(super) fn look_at(&mut self, now: Timestamp, link: Link) {
        let counts = self.links.get(&link).map(|wire| {
            let bytes_acknowledged = wire.acknowledged;
            let connection = Some(ConnectionCounts { bytes_acknowledged, ..ConnectionCounts::default() });
            StreamCounts { connection, ..StreamCounts::default() }
        });
        self.input(now, Input::LinkCounts { link, counts: counts.as_ref() });
    }

    /// Tells the tool that half of the time of four cores is used.
    pub(super) fn look_at_host(&mut self, now: Timestamp) {
        let used = now.as_ns() / 1_000_000;
        let cpu = Some([used, 0, used, 2 * used, 0, 0, 0, 0]);
        let counts = HostCounts { cpu, cores: Some(4), ..HostCounts::default() };
        self.input(now, Input::Host(&counts));
    }

    pub(super) fn note_sent(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        self.sent.push((link, bytes.to_vec()));
        self.sent_at.push(now);
    }

    pub(super) fn free_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port += 1;
        port
    }

    pub(super) fn accept(&mut self, wire: VirtualLink) -> Link {
        let link = Link(self.next_accepted);
        self.next_accepted += 1;
        self.links.insert(link, wire);
        link
    }

    /// The running flow that reads from a link, and the index of the stream.
    pub(super) fn receiver_of(&mut self, link: Link) -> Option<(&mut VirtualFlow, usize)> {
        let receives = |flow: &&FlowId| self.flows[flow].task.side == Side::Receiver;
        let flow = self.links.get(&link)?.flows.iter().find(receives).copied()?;
        let running = self.flows.get_mut(&flow)?;
        let at = running.task.links.iter().position(|own| *own == link)?;
        Some((running, at))
    }
}
