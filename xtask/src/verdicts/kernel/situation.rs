//! Structure of a situation of the kernel world. A new one is an entry of a table in `grid/`.

use std::time::Duration;

use linerate_model::Cause;

/// A cause planted with the kernel's own means, or none (a control).
#[derive(Clone, Copy)]
pub(super) struct Situation {
    /// Name on the command line.
    pub(super) name: &'static str,
    /// Modifications of the path and the hosts.
    pub(super) means: &'static [Means],
    /// Options of `linerate test`.
    pub(super) args: &'static [&'static str],
    /// Correct causes.
    pub(super) right: &'static [Cause],
    /// Causes that two ends cannot distinguish from the correct ones: correct unless confirmed.
    pub(super) unconfirmed: &'static [Cause],
    /// Causes that are correct anywhere in the result, not only as the verdict.
    pub(super) secondary: &'static [Cause],
    /// A correct verdict contains one of these texts; empty for no requirement.
    pub(super) required_text: &'static [&'static str],
    /// A correct verdict contains none of these in its text or its remedy: they would be wrong accusations or
    /// lead to the wrong setting.
    pub(super) forbidden_text: &'static [&'static str],
    /// Whether nothing is wrong here: then a wrong name is a false accusation.
    pub(super) control: bool,
    /// Whether it depends on chance and needs several seeds.
    pub(super) random: bool,
    /// Whether it keeps a small machine busy, so that nothing else can be measured in parallel.
    pub(super) alone: bool,
}

/// A host of the path: client a, two routers, server b. The routers are connected by a veth pair, or by the
/// delay forwarder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathHost {
    /// The client.
    A,
    /// The router next to the client, which is at `left`.
    West,
    /// The router next to the server, which is at `right`.
    East,
    /// The server.
    B,
}

impl PathHost {
    /// All hosts in the order of the path.
    pub(super) const ALL: [Self; 4] = [Self::A, Self::West, Self::East, Self::B];

    /// Suffix of its namespace's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::West => "west",
            Self::East => "east",
            Self::B => "b",
        }
    }
}

/// A means of the kernel, or of the tests.
#[derive(Debug, Clone, Copy)]
pub(super) enum Means {
    /// What the delay forwarder does between the routers; without it they are connected by a veth pair.
    Forwarder(Forwarding),
    /// `tc qdisc replace dev DEVICE …` on a host; the words start with the attachment point (`root tbf …`).
    Qdisc(PathHost, &'static str, &'static str),
    /// `tc class replace dev DEVICE …`.
    Class(PathHost, &'static str, &'static str),
    /// Packets that arrive at a device pass this discipline of an `ifb`.
    Ingress(PathHost, &'static str, &'static str),
    /// A rule of nft in the eastern router's forward chain, from client to server.
    Filter(&'static str),
    /// The same from server to client.
    FilterBack(&'static str),
    /// `sysctl -w`.
    Sysctl(PathHost, &'static str),
    /// Words added to the host's default route (`window 20000`).
    Route(PathHost, &'static str),
    /// MTU of an interface.
    Mtu(PathHost, &'static str, u32),
    /// Every interface sends and forwards single packets: no segmentation offload, so that filters see packets
    /// as on a wire.
    SinglePackets,
    /// Client (a) or server (b) may use this share of one CPU, percent, in periods of 20 ms.
    Quota(PathHost, u32),
    /// Number of busy loops during the test, and their `nice` value.
    Loops(usize, i32),
    /// A real iperf3 from the western router to the server, from 1.5 s before the test until its end.
    Neighbour(&'static [&'static str]),
    /// A real iperf3 from the server's side back to the client.
    NeighbourBack(&'static [&'static str]),
    /// Drops all packets: time after the client's start, and duration.
    Blackout(Duration, Duration),
    /// Stops the client: time after its start, and duration.
    Pause(Duration, Duration),
}

/// What the forwarder does to frames, in both directions unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Forwarding {
    /// Delay of one direction, µs.
    pub(crate) delay_us: u32,
    /// Random additional delay up to this, µs; frames keep their order unless `overtaking`.
    pub(crate) jitter_us: u32,
    /// Whether frames with less jitter overtake.
    pub(crate) overtaking: bool,
    /// Delays one of this number of frames towards the server; 0 for none.
    pub(crate) late_every: u32,
    /// Additional delay, µs.
    pub(crate) late_us: u32,
    /// Duplicates one of this number of frames towards the server; 0 for none.
    pub(crate) twice_every: u32,
}

/// Only a round-trip time, ms.
pub(super) const fn rtt_ms(ms: u32) -> Means {
    Means::Forwarder(delay_ms(ms))
}

/// The same, to be modified.
pub(super) const fn delay_ms(rtt_ms: u32) -> Forwarding {
    Forwarding {
        delay_us: 500 * rtt_ms,
        jitter_us: 0,
        overtaking: false,
        late_every: 0,
        late_us: 0,
        twice_every: 0,
    }
}

/// Three seconds of upload with cubic; nothing planted.
pub(super) const PLAIN: Situation = Situation {
    name: "",
    means: &[],
    args: &["-t", "3", "-C", "cubic"],
    right: &[],
    unconfirmed: &[],
    secondary: &[],
    required_text: &[],
    forbidden_text: &[],
    control: false,
    random: false,
    alone: false,
};
