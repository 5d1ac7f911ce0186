//! An emulated network for its viewers: what it consists of, and what its ports do now.

use std::collections::VecDeque;

use linerate_runner::lab::control_protocol::{
    DirectionStatus, HostStatus, LinkStatus, PortHistory, PortStatus, Status,
};
use linerate_sock::Mono;
use schemars::JsonSchema;
use serde::Serialize;

/// Frames that a new viewer sees of the time before: one minute.
const MAX_HISTORY: usize = 120;
/// Time between two of them.
const STEP_NS: u64 = 500_000_000;

/// What a viewer gets first, and whenever a link has changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct LabSnapshot {
    /// Name of the lab.
    name: String,
    /// Name of its topology.
    topology: String,
    /// Seed of all its randomness.
    seed: u64,
    /// What carries its packets.
    backend: LabBackend,
    /// The hosts.
    hosts: Vec<ViewedHost>,
    /// Names of the switches between them.
    switches: Vec<String>,
    /// The links.
    links: Vec<ViewedLink>,
    /// What differs from the description: settings that could not be applied, interfaces that are gone.
    notes: Vec<String>,
    /// What its ports do now.
    frame: LabFrame,
    /// Their queues in the last minute.
    history: LabQueueHistory,
}

/// What carries the packets of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LabBackend {
    /// A switch of linerate, which counts at every port.
    Switch,
    /// Queueing disciplines of the kernel: there are no counts of ports.
    Kernel,
}

/// A host of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct ViewedHost {
    /// Its name.
    name: String,
    /// Its IPv4 address with the length of the prefix.
    address: String,
    /// Its IPv6 address with the length of the prefix.
    address6: String,
}

/// A link of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ViewedLink {
    /// Its name, as `lab set link.NAME` takes it.
    name: String,
    /// The hosts or switches at its ends.
    ends: [String; 2],
    /// Number of its members; 1 unless it is a LAG.
    members: u32,
    /// The direction from each of the two ends.
    directions: [ViewedDirection; 2],
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ViewedDirection {
    /// Line rate, of all members together; absent: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_bps: Option<f64>,
    /// The rate at which its queue drains: that of the line, or of a slower shaper; absent: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    drain_bps: Option<f64>,
    /// The most bytes that can wait in front of the line, in the queues of all members together, while no other port
    /// uses the shared buffer of a switch. At a host that is the memory of its NIC.
    buffer_bytes: u64,
    /// Propagation delay.
    delay_ns: u64,
}

/// What the ports of a lab do now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct LabFrame {
    /// Time since the lab was started; absent for a lab of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    up_ns: Option<u64>,
    /// The ports: of each link, the one at its first end, then the one at its second end. None in a lab of the kernel.
    ports: Vec<PortFrame>,
    /// How well the switch keeps up; absent for a lab of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    switch: Option<LabSwitchFrame>,
}

/// What a port does now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct PortFrame {
    /// Bits on the wire per second over the last second, preambles and gaps included.
    wire_bps: f64,
    /// Packets per second over the last second.
    pps: f64,
    /// Share of the last second in which its lines were sending.
    busy: f64,
    /// Bytes that wait now, in the queues of all members together.
    queue_bytes: u64,
    /// The same for each member; absent unless the link is a LAG.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members_queue_bytes: Vec<u64>,
    /// The most that waited in the last second.
    queue_max_bytes: u64,
    /// Packets dropped since the start, for any reason.
    dropped: u64,
    /// Those of them that the queue had no place for, or its discipline dropped.
    dropped_queue: u64,
    /// Packets marked with congestion experienced since the start.
    marked: u64,
}

/// How well the switch keeps up with real time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct LabSwitchFrame {
    /// Share of one core that it used over the last second.
    cpu: f64,
    /// Frames delivered to hosts since the start.
    frames: u64,
    /// Those of them that were later than `late_bound_ns`.
    late: u64,
    /// Above this a frame is late.
    late_bound_ns: u64,
    /// Packets that the kernel dropped before the switch could read them.
    overrun: u64,
}

/// The queues of the ports until now, for lines of a chart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct LabQueueHistory {
    /// Times since the start of the lab, the oldest first.
    at_ns: Vec<u64>,
    /// Of each port in the order of the frame, the most bytes that waited about each of these times.
    queue_max_bytes: Vec<Vec<u64>>,
}

/// The state of a lab that is watched.
#[derive(Debug)]
pub(crate) struct LabState {
    snapshot: LabSnapshot,
    history: VecDeque<(u64, Vec<u64>)>,
}

impl LabState {
    /// The first answer of a lab, and what its switch remembers.
    pub(crate) fn new(status: &Status, history: Option<(Mono, &PortHistory)>) -> Self {
        let snapshot = describe(status);
        let history =
            history.and_then(|(now, history)| earlier(&snapshot, status, now, history)).unwrap_or_default();
        Self { snapshot, history }
    }

    /// A further answer; true if more has changed than a frame has.
    pub(crate) fn update(&mut self, status: &Status) -> bool {
        let next = describe(status);
        let is_other = next.frame.up_ns < self.snapshot.frame.up_ns;
        let has_changed = is_other || !self.snapshot.is_same_network(&next);
        // It was started again under this name, perhaps with other ports.
        if is_other || next.frame.ports.len() != self.snapshot.frame.ports.len() {
            self.history.clear();
        }
        if let Some(at) = next.frame.up_ns {
            if self.history.len() >= MAX_HISTORY {
                self.history.pop_front();
            }
            self.history.push_back((at, next.frame.ports.iter().map(|port| port.queue_max_bytes).collect()));
        }
        self.snapshot = next;
        has_changed
    }

    pub(crate) fn frame(&self) -> &LabFrame {
        &self.snapshot.frame
    }

    pub(crate) fn snapshot(&self) -> LabSnapshot {
        let of_port = |port: usize| self.history.iter().map(|(_, queues)| queues[port]).collect();
        let history = LabQueueHistory {
            at_ns: self.history.iter().map(|(at, _)| *at).collect(),
            queue_max_bytes: (0..self.snapshot.frame.ports.len()).map(of_port).collect(),
        };
        LabSnapshot { history, ..self.snapshot.clone() }
    }
}

impl LabSnapshot {
    /// Whether everything is as before but for what its ports do.
    fn is_same_network(&self, other: &Self) -> bool {
        let of = |lab: &Self| Self {
            frame: other.frame.clone(),
            history: LabQueueHistory::default(),
            ..lab.clone()
        };
        of(self) == of(other)
    }
}

fn describe(status: &Status) -> LabSnapshot {
    let host = |host: &HostStatus| ViewedHost {
        name: host.name.clone(),
        address: host.address.clone(),
        address6: host.address6.clone(),
    };
    let direction = |direction: &DirectionStatus| ViewedDirection {
        rate_bps: direction.rate_bps,
        drain_bps: direction.drain_bps,
        buffer_bytes: direction.buffer_bytes,
        delay_ns: direction.delay_ns,
    };
    let link = |link: &LinkStatus| ViewedLink {
        name: link.name.clone(),
        ends: link.ends.clone(),
        members: link.members,
        directions: link.directions.each_ref().map(direction),
    };
    LabSnapshot {
        name: status.name.clone(),
        topology: status.topology.clone(),
        seed: status.seed,
        backend: if status.pid.is_some() { LabBackend::Switch } else { LabBackend::Kernel },
        hosts: status.hosts.iter().map(host).collect(),
        switches: status.switches.clone(),
        links: status.links.iter().map(link).collect(),
        notes: status.notes.clone(),
        frame: frame(status),
        history: LabQueueHistory::default(),
    }
}

fn frame(status: &Status) -> LabFrame {
    let port = |port: &PortStatus| PortFrame {
        wire_bps: port.wire_bps,
        pps: port.pps,
        busy: port.busy,
        queue_bytes: port.counts.queue_bytes.get(),
        members_queue_bytes: port.counts.members.iter().map(|member| member.queue_bytes.get()).collect(),
        queue_max_bytes: port.counts.queue_max_bytes.get(),
        dropped: port.dropped,
        dropped_queue: port.counts.dropped_queue,
        marked: port.counts.marked,
    };
    let keeping_up = &status.keeping_up;
    LabFrame {
        up_ns: status.up_ns,
        ports: status.ports.iter().map(port).collect(),
        switch: status.pid.map(|_| LabSwitchFrame {
            cpu: keeping_up.cpu,
            frames: keeping_up.frames,
            late: keeping_up.late,
            late_bound_ns: keeping_up.bound_ns,
            overrun: keeping_up.overrun,
        }),
    }
}

/// The queues before the first answer, from the history of the switch; absent if its ports cannot be told apart.
fn earlier(
    snapshot: &LabSnapshot,
    status: &Status,
    now: Mono,
    history: &PortHistory,
) -> Option<VecDeque<(u64, Vec<u64>)>> {
    let names: Vec<&str> = status.ports.iter().map(|port| port.counts.name.as_str()).collect();
    let is_clear = |name: &&str| names.iter().filter(|other| other == &name).count() == 1;
    let up_ns = snapshot.frame.up_ns?;
    if !names.iter().all(is_clear) {
        return None;
    }
    let mut bins: Vec<Vec<u64>> = vec![vec![0; names.len()]; MAX_HISTORY];
    let began = now.as_ns().saturating_sub(up_ns);
    for (port, name) in names.iter().enumerate() {
        // Ports without traffic are not in it.
        let Some(series) = history.ports.iter().find(|series| series.name == *name) else { continue };
        for interval in series.intervals.iter().filter(|interval| interval.end_ns > began) {
            let steps_ago = (now.as_ns().saturating_sub(interval.end_ns) / STEP_NS) as usize;
            if let Some(bin) = MAX_HISTORY.checked_sub(1 + steps_ago) {
                bins[bin][port] = bins[bin][port].max(interval.queue_max_bytes);
            }
        }
    }
    let steps = (MAX_HISTORY as u64).min(up_ns / STEP_NS) as usize;
    let first = MAX_HISTORY - steps;
    let at = |bin: usize| up_ns.saturating_sub((MAX_HISTORY - 1 - bin) as u64 * STEP_NS);
    Some(bins.into_iter().enumerate().skip(first).map(|(bin, queues)| (at(bin), queues)).collect())
}
