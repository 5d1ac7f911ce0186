//! The messages between `linerate lab` and the switch of a lab: one JSON object per line, over a Unix socket
//! that only the lab's owner can open.

use serde::{Deserialize, Serialize};

use linerate_emu::fabric::{PacketAccounting, PortCounts, at_sending_end};
use linerate_emu::topology::{Topology, TopologyLink};
use linerate_units::Bitrate;

/// A request to the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// The current status.
    Status,
    /// The port counters over a range of the monotonic clock.
    PortHistory {
        /// Start.
        from_ns: u64,
        /// End.
        to_ns: u64,
    },
    /// Change links while they run.
    Set {
        /// What to change: `link.NAME` or `link.NAME.from.NODE`.
        target: String,
        /// Keys and values as in a topology file.
        changes: Vec<(String, String)>,
    },
    /// End the lab and remove everything.
    Down,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To [`Ask::Status`].
    Status(Box<Status>),
    /// To [`Ask::PortHistory`].
    PortHistory(PortHistory),
    /// The request has been executed.
    Done,
    /// The request cannot be executed.
    Refused {
        /// Why, and what to do.
        why: String,
    },
}

/// The status of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the lab.
    pub name: String,
    /// Name of its topology.
    pub topology: String,
    /// Seed of all its randomness.
    pub seed: u64,
    /// The switch's process; absent for a lab of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// True if the lab was created without root: its namespaces have no names, and are in a user namespace of
    /// that process.
    pub rootless: bool,
    /// Time since it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_ns: Option<u64>,
    /// The hosts.
    pub hosts: Vec<HostStatus>,
    /// Names of the switches between them.
    #[serde(default)]
    pub switches: Vec<String>,
    /// The links as they are now.
    #[serde(default)]
    pub links: Vec<LinkStatus>,
    /// The counters of the ports: of each link, the port at its first end, then the port at its second end. None in a
    /// lab of the kernel.
    pub ports: Vec<PortStatus>,
    /// What happened to every packet.
    pub packet_accounting: PacketAccounting,
    /// How well the switch keeps up.
    pub keeping_up: KeepingUp,
    /// What differs from the description: settings that could not be applied, interfaces that are gone.
    pub notes: Vec<String>,
}

/// A host of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// Its IPv4 address with the prefix length.
    pub address: String,
    /// Its IPv6 address with the prefix length.
    pub address6: String,
    /// Its network namespace: a name for `ip netns exec`, or a path for `nsenter --net=`.
    pub netns: String,
}

/// A link of a lab, between two hosts or switches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Its name, as `lab set link.NAME` takes it.
    pub name: String,
    /// The hosts or switches at its ends.
    pub ends: [String; 2],
    /// Number of its members; 1 unless it is a LAG.
    pub members: u32,
    /// The direction from each of the two ends.
    pub directions: [DirectionStatus; 2],
}

impl LinkStatus {
    /// The links of a topology, in its order.
    pub(crate) fn all_of(topology: &Topology) -> Vec<Self> {
        let direction = |link: &TopologyLink, end: usize| {
            let is_host = topology.host(&link.ends[end]).is_some();
            let members = link.members.max(1);
            let direction = at_sending_end(is_host, link, &link.directions[end]);
            let bps = |rate: Option<Bitrate>| rate.map(|rate| rate.bps() * f64::from(members));
            let shaped = direction.shape.map(|bucket| bucket.rate);
            let slowest = match (direction.rate, shaped) {
                (Some(line), Some(shaped)) if shaped < line => Some(shaped),
                (line, shaped) => line.or(shaped),
            };
            DirectionStatus {
                rate_bps: bps(direction.rate),
                drain_bps: bps(slowest),
                buffer_bytes: match is_host {
                    true => direction.buffer.get() * u64::from(members),
                    false => topology.buffer_alone(link, end).get(),
                },
                delay_ns: direction.delay.as_ns(),
            }
        };
        let link = |link: &TopologyLink| Self {
            name: link.name.clone(),
            ends: link.ends.clone(),
            members: link.members.max(1),
            directions: [direction(link, 0), direction(link, 1)],
        };
        topology.links.iter().map(link).collect()
    }
}

/// One direction of a link, as the port at its sending end has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// Line rate, of all members together; absent: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<f64>,
    /// The rate at which its queue drains: that of the line, or of a slower shaper; absent: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_bps: Option<f64>,
    /// The most bytes that can wait in front of the line, in the queues of all members together, while no other port
    /// uses the shared buffer of a switch. At a host that is the memory of its NIC; in front of it is the queue of the
    /// host's kernel, which the switch does not see.
    pub buffer_bytes: u64,
    /// Propagation delay.
    pub delay_ns: u64,
}

/// A port of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortStatus {
    /// The link, as `lab set link.NAME` names it.
    pub link: String,
    /// Line rate, of all members together; absent: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<f64>,
    /// Bits on the wire per second, preambles and gaps included, over the last second.
    pub wire_bps: f64,
    /// Packets per second over the last second.
    pub pps: f64,
    /// Share of the last second in which its lines were sending, averaged over its members.
    pub busy: f64,
    /// Packets dropped since the start, for any reason.
    pub dropped: u64,
    /// The counters since the start; the largest queue is that of the last second.
    #[serde(flatten)]
    pub counts: PortCounts,
}

/// How well the switch keeps up with real time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct KeepingUp {
    /// Frames delivered to hosts; a frame may stand for many packets.
    pub frames: u64,
    /// Half of them were at most this late.
    pub late_p50_ns: u64,
    /// 99 % of them were at most this late.
    pub late_p99_ns: u64,
    /// The maximum.
    pub late_max_ns: u64,
    /// How many were later than [`KeepingUp::bound_ns`].
    pub late: u64,
    /// The limit above which a frame counts as late.
    pub bound_ns: u64,
    /// Share of one core that the switch used over the last second.
    pub cpu: f64,
    /// Frames that a host could not accept: its interface was down.
    pub refused: u64,
    /// Frames that could not be parsed and were not forwarded.
    pub malformed: u64,
    /// Packets that the kernel dropped before the switch could read them.
    pub overrun: u64,
}

/// The port counters over a time range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortHistory {
    /// Each port with traffic, and its intervals.
    pub ports: Vec<PortSeries>,
    /// Frames that left too late; absent if the switch does not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Lateness>,
    /// How close the switch came to its capacity; absent if it does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_rate: Option<PacketRate>,
}

/// The intervals of a port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortSeries {
    /// `from>to`.
    pub name: String,
    /// In chronological order.
    pub intervals: Vec<HistoryInterval>,
}

/// One interval of a port.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HistoryInterval {
    /// Start, on the monotonic clock.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Packets that left.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// Packets dropped, for any reason.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
    /// Bytes waiting at the end.
    pub queue_bytes: u64,
    /// Most bytes waiting.
    pub queue_max_bytes: u64,
    /// Share of the time in which its lines were sending; absent for a link of unlimited rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
}

/// Frames that left too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// How many were later than the bound.
    pub count: u64,
    /// The total number of frames; absent if the switch does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// The maximum.
    pub worst_ns: u64,
    /// The limit above which a frame counts as late.
    pub bound_ns: u64,
}

/// How close a switch came to its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PacketRate {
    /// Frames per second in the interval with the highest CPU use.
    pub max_pps: f64,
    /// Frames per second that the core could forward if it did nothing else.
    pub limit_pps: f64,
    /// Packets that the kernel dropped before the switch could read them.
    #[serde(default)]
    pub overrun: u64,
}
