//! What `linerate lab` and the switch of a lab say to each other: one JSON object a line, over a Unix socket that only
//! the lab's owner can reach.

use serde::{Deserialize, Serialize};

use linerate_emu::fabric::{PacketAccounting, PortCounts};

/// A question to the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// How it stands now.
    Status,
    /// What the ports did in a span of the monotonic clock.
    Witness {
        /// Beginning.
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

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To [`Ask::Status`].
    Status(Box<Status>),
    /// To [`Ask::Witness`].
    Witness(PortHistory),
    /// It is done.
    Done,
    /// It cannot be done.
    Refused {
        /// Why, and what to do.
        why: String,
    },
}

/// How a lab stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the lab.
    pub name: String,
    /// Name of its topology.
    pub topology: String,
    /// Seed of all its randomness.
    pub seed: u64,
    /// The switch's process; absent when the kernel carries the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// True if the lab was made without root: its namespaces have no names, and live in a user namespace of that process.
    pub rootless: bool,
    /// Time since it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_ns: Option<u64>,
    /// The hosts.
    pub hosts: Vec<HostStatus>,
    /// The ports.
    pub ports: Vec<PortStatus>,
    /// What became of every packet.
    pub books: PacketAccounting,
    /// How the switch keeps up.
    pub keeping_up: KeepingUp,
    /// What could not be set up as described.
    pub notes: Vec<String>,
}

/// A host of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// Its IPv4 address with the prefix's length.
    pub address: String,
    /// Its IPv6 address with the prefix's length.
    pub address6: String,
    /// Its network namespace: a name for `ip netns exec`, or a path for `nsenter --net=`.
    pub netns: String,
}

/// A port of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortStatus {
    /// The link, as `lab set link.NAME` names it.
    pub link: String,
    /// Line rate, of all members together; absent: infinitely fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<f64>,
    /// Bits on the wire per second, preambles and gaps included, over the last second.
    pub wire_bps: f64,
    /// Packets per second over the last second.
    pub pps: f64,
    /// Share of the last second in which its lines were sending, the mean of its members.
    pub busy: f64,
    /// Packets dropped for whatever cause since the start.
    pub dropped: u64,
    /// The counters since the start; the largest queue is that of the last second.
    #[serde(flatten)]
    pub counts: PortCounts,
}

/// How the switch keeps up with its clock.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct KeepingUp {
    /// Frames handed to hosts; a frame may stand for many packets.
    pub frames: u64,
    /// Half of them were handed over no later than this after their time.
    pub late_p50_ns: u64,
    /// All but one in a hundred.
    pub late_p99_ns: u64,
    /// The worst.
    pub late_max_ns: u64,
    /// How many were later than [`KeepingUp::bound_ns`].
    pub late: u64,
    /// What counts as late.
    pub bound_ns: u64,
    /// Share of one core that the switch used over the last second.
    pub cpu: f64,
    /// Frames that a host could not take: its interface was down.
    pub refused: u64,
    /// Frames that were not understood well enough to be carried.
    pub malformed: u64,
    /// Packets that the kernel dropped before the switch could read them.
    pub overrun: u64,
}

/// What the ports did in a span of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortHistory {
    /// Each port that carried something, and its intervals.
    pub ports: Vec<PortSeries>,
    /// Frames that left too late; absent from a switch that does not watch that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Lateness>,
    /// How near the switch came to what it can carry; absent from one that does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_rate: Option<PacketRate>,
}

/// The intervals of a port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortSeries {
    /// `from>to`.
    pub name: String,
    /// In the order of time.
    pub intervals: Vec<Interval>,
}

/// One interval of a port.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Beginning, on the monotonic clock.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Packets that left.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// Packets dropped, for whatever cause.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
    /// Bytes that waited at the end.
    pub queue_bytes: u64,
    /// The most that waited.
    pub queue_max_bytes: u64,
    /// Share of the time in which its lines were sending; absent for a line that takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
}

/// Frames that left later than their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// How many were later than the bound.
    pub count: u64,
    /// Of how many; absent from a switch that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// The worst.
    pub worst_ns: u64,
    /// What counts as late.
    pub bound_ns: u64,
}

/// How near a switch came to what it can carry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PacketRate {
    /// Frames a second in the interval with the highest use of its core.
    pub max_pps: f64,
    /// What the core would carry of the same frames if it did nothing else.
    pub limit_pps: f64,
    /// Packets that the kernel dropped before the switch could read them.
    #[serde(default)]
    pub overrun: u64,
}
