//! What a situation of the kernel's world consists of. A new one is an entry of a table in `grid/`.

use std::time::Duration;

/// A cause planted with the kernel's own means, or none (a control).
#[derive(Clone, Copy)]
pub(super) struct Situation {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What is done to the path and the hosts.
    pub(super) means: &'static [Means],
    /// Options of `linerate test`.
    pub(super) args: &'static [&'static str],
    /// Causes that are right.
    pub(super) right: &'static [&'static str],
    /// Causes that two ends cannot tell from the right ones: right as long as they are not confirmed.
    pub(super) unconfirmed: &'static [&'static str],
    /// Causes that are right wherever the result has them, not only as the verdict.
    pub(super) beside: &'static [&'static str],
    /// A right verdict has one of these in its words; none are needed where this is empty.
    pub(super) says: &'static [&'static str],
    /// A right verdict has none of these in its words or its remedy: what would be an accusation, or send somebody to the
    /// wrong setting.
    pub(super) never_says: &'static [&'static str],
    /// Whether nothing is wrong here: then a wrong name is an accusation.
    pub(super) control: bool,
    /// Whether chance decides something: then there are several seeds.
    pub(super) random: bool,
    /// Whether it keeps a small machine busy, so that nothing else may be measured beside it.
    pub(super) alone: bool,
}

/// A host of the path: client a, two routers, server b. The routers are joined by a cable, or by the delay forwarder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// The client.
    A,
    /// The router beside the client; `left` faces it.
    West,
    /// The router beside the server; `right` faces it.
    East,
    /// The server.
    B,
}

impl Host {
    /// All of them in the order of the path.
    pub(super) const ALL: [Self; 4] = [Self::A, Self::West, Self::East, Self::B];

    /// The end of its namespace's name.
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
    /// What the delay forwarder does between the routers; without it they share a cable.
    Forwarder(Forwarding),
    /// `tc qdisc replace dev DEVICE …` on a host; the words begin with where it goes (`root tbf …`).
    Qdisc(Host, &'static str, &'static str),
    /// `tc class replace dev DEVICE …`.
    Class(Host, &'static str, &'static str),
    /// What comes in at `right` of the eastern router (`toward b` on b's `eth0`) goes through this discipline of an `ifb`.
    Ingress(Host, &'static str, &'static str),
    /// A rule of nft in the eastern router's forward chain, from the client to the server.
    Filter(&'static str),
    /// The same from the server to the client.
    FilterBack(&'static str),
    /// `sysctl -w`.
    Sysctl(Host, &'static str),
    /// Words added to the host's default route (`window 20000`).
    Route(Host, &'static str),
    /// MTU of an interface.
    Mtu(Host, &'static str, u32),
    /// Every interface sends and forwards single packets: no segmentation offload, so that filters see what is on a wire.
    SinglePackets,
    /// Client (a) or server (b) may use this share of one processor, percent, in periods of 20 ms.
    Quota(Host, u32),
    /// So many loops beside the test, with this `nice`.
    Loops(usize, i32),
    /// A real iperf3 from the western router to the server, 1.5 s before the test and during it.
    Neighbour(&'static [&'static str]),
    /// A real iperf3 from the server's side back to the client.
    NeighbourBack(&'static [&'static str]),
    /// All packets are dropped for so long, at a time after the client's start.
    Blackout(Duration, Duration),
    /// The client is stopped so long after its start, and goes on later.
    Pause(Duration, Duration),
}

/// What the forwarder does to frames, both ways unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Forwarding {
    /// Delay for one direction, us.
    pub(crate) delay_us: u32,
    /// Up to this much is added at random, us; frames keep their order unless `overtaking`.
    pub(crate) jitter_us: u32,
    /// Whether frames with less jitter overtake.
    pub(crate) overtaking: bool,
    /// Every so many frames toward the server, one is held back; 0 for none.
    pub(crate) late_every: u32,
    /// By this much, us.
    pub(crate) late_us: u32,
    /// Every so many frames toward the server, one is sent twice; 0 for none.
    pub(crate) twice_every: u32,
}

/// A round trip, ms, and nothing else.
pub(super) const fn rtt_ms(ms: u32) -> Means {
    Means::Forwarder(delay_ms(ms))
}

/// The same, to be added to.
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
    beside: &[],
    says: &[],
    never_says: &[],
    control: false,
    random: false,
    alone: false,
};
