//! One test in sink mode: its state, and its requests to the engine.

use std::net::SocketAddr;

use linerate_model::{Direction, Side, SocketKnobs, TestSpec};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use super::count::{self, Early};
use super::report::TtcpResult;
use super::settings::{TtcpSettings, TtcpVariant};
use super::{MARK_BYTES, PCATTCP_PREAMBLE};
use crate::stand_in::{
    CpuTime, EndMark, FlowCounts, FlowId, FlowTask, Link, Pattern, Payload, Planned, RunId, Transport,
};
use linerate_model::flow::StampLayout;

/// Without a byte for this long, the peer counts as dead, or the end marks of UDP as lost.
pub(super) const IDLE: Span = Span::from_secs(60);

/// The state of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TtcpTransferState {
    /// A first datagram has arrived; waiting for a separate socket.
    Adopting,
    /// Waiting for permission.
    Asking,
    /// The engine transfers data.
    Running,
    /// Everything is written, but the peer has not closed yet.
    Delivering,
    /// The counts are final; waiting for the CPU time.
    Measured,
    /// The result is printed; the extra end marks follow.
    Sparing,
}

/// One test in sink mode.
#[derive(Debug)]
pub(super) struct TtcpTransfer {
    pub(super) flow: FlowId,
    pub(super) udp: bool,
    pub(super) link: Option<Link>,
    pub(super) peer: SocketAddr,
    pub(super) stage: TtcpTransferState,
    pub(super) early: Early,
    pub(super) counts: FlowCounts,
    /// CPU time at the start.
    pub(super) cpu: Option<CpuTime>,
    /// The peer closed the connection before the engine used it.
    pub(super) closed: bool,
    /// This end ended the flow, not the peer.
    pub(super) cut: bool,
    pub(super) trouble: Option<String>,
    pub(super) due: Option<Timestamp>,
    /// When bytes last moved, and their number at that time.
    pub(super) alive: (Timestamp, u64),
    /// How often the running rate was printed.
    pub(super) shown: usize,
}

impl TtcpTransfer {
    pub(super) fn new(now: Timestamp, flow: FlowId, udp: bool, link: Option<Link>, peer: SocketAddr) -> Self {
        Self {
            flow,
            udp,
            link,
            peer,
            stage: if link.is_some() { TtcpTransferState::Asking } else { TtcpTransferState::Adopting },
            early: Early::default(),
            counts: FlowCounts::default(),
            cpu: None,
            closed: false,
            cut: false,
            trouble: None,
            due: None,
            alive: (now, 0),
            shown: 0,
        }
    }

    /// The planned run, for the archive.
    pub(super) fn plan(&self, settings: &TtcpSettings, run: RunId) -> Planned {
        let mut spec = TestSpec::default();
        spec.traffic.udp = self.udp;
        spec.traffic.no_latency = true;
        spec.traffic.length = Some(Bytes::new(u64::from(settings.length)));
        spec.traffic.bytes = self.limit(settings);
        spec.traffic.rate = offered(settings);
        spec.socket = sockets(settings);
        match self.direction(settings) {
            Direction::Upload => spec.traffic.upload = true,
            Direction::Download => spec.traffic.download = true,
        }
        Planned {
            run,
            tool: "ttcp",
            peer: None,
            link: self.link.unwrap_or(Link(0)),
            client: settings.connects(),
            spec,
            flows: vec![(self.flow, self.direction(settings))],
            expected: None,
        }
    }

    /// The end that connects is the client, whatever the direction of the data.
    fn direction(&self, settings: &TtcpSettings) -> Direction {
        if settings.reversed { Direction::Download } else { Direction::Upload }
    }

    fn limit(&self, settings: &TtcpSettings) -> Option<Bytes> {
        let whole = settings.count.saturating_mul(u64::from(settings.length));
        (settings.transmit && !settings.forever).then(|| Bytes::new(whole))
    }

    /// The flow to request from the engine.
    pub(super) fn task(&self, settings: &TtcpSettings, run: RunId) -> FlowTask {
        let preamble =
            settings.line == TtcpVariant::Pcattcp && PCATTCP_PREAMBLE.len() < settings.length as usize;
        FlowTask {
            flow: self.flow,
            run,
            side: if settings.transmit { Side::Sender } else { Side::Receiver },
            direction: self.direction(settings),
            transport: if self.udp { Transport::Udp } else { Transport::Tcp },
            links: self.link.into_iter().collect(),
            length: Bytes::new(u64::from(settings.length)),
            payload: Payload {
                head: if preamble { PCATTCP_PREAMBLE.to_vec() } else { Vec::new() },
                pattern: Pattern::Printable,
                first_length: None,
            },
            framing: Default::default(),
            stamp: StampLayout::NONE,
            bytes: self.limit(settings),
            time: None,
            omit: Span::ZERO,
            offered: offered(settings),
            burst: None,
            pacing_tick: None,
            fq_rate: None,
            socket: sockets(settings),
            affinity: None,
            end_mark: if self.udp {
                EndMark::Short { bytes: MARK_BYTES, nth: 2_u32.saturating_sub(self.early.marks).max(1) }
            } else {
                EndMark::None
            },
            read_before: Vec::new(),
            note: None,
            transit: Default::default(),
            together: false,
            file: None,
        }
    }

    /// Notes the progress; true if nothing has moved for too long.
    pub(super) fn is_stuck(&mut self, now: Timestamp, settings: &TtcpSettings) -> bool {
        let moved = count::moved(&self.counts).saturating_add(self.early.bytes);
        if moved != self.alive.1 {
            self.alive = (now, moved);
        }
        let block = Bytes::new(u64::from(settings.length));
        // A sender may be slower than that by its own pauses.
        let gap = offered(settings).and_then(|rate| rate.time_for(block)).unwrap_or(Span::ZERO);
        now.since(self.alive.0) >= IDLE + gap
    }

    /// The result, with the CPU time at the end.
    pub(super) fn outcome(&self, settings: &TtcpSettings, cpu: CpuTime) -> TtcpResult {
        let before = self.cpu.unwrap_or(cpu);
        let first = self.early.first_at.or(self.counts.first_at);
        let last = self.counts.last_at.max(self.early.last_at);
        TtcpResult {
            bytes: count::moved(&self.counts).saturating_add(self.early.bytes),
            calls: count::calls(&self.counts, self.udp)
                .saturating_add(self.early.calls)
                .saturating_add(self.marks(settings)),
            elapsed: first.zip(last).map_or(Span::ZERO, |(first, last)| last.since(first)),
            user: cpu.user.saturating_sub(before.user),
            system: cpu.system.saturating_sub(before.system),
            usage: cpu.usage_since(&before),
        }
    }

    /// Calls for marks that are not counted elsewhere: those of the transmitter for its start, end and extra
    /// marks, and at a receiver those that the engine received.
    fn marks(&self, settings: &TtcpSettings) -> u64 {
        match (self.udp, settings.transmit) {
            (false, _) => 0,
            (true, true) => 2 + super::EXTRA_END_MARKS as u64,
            (true, false) if self.cut => 0,
            (true, false) => u64::from(2_u32.saturating_sub(self.early.marks)),
        }
    }
}

fn sockets(settings: &TtcpSettings) -> SocketKnobs {
    SocketKnobs {
        window: settings.buffer.filter(|bytes| *bytes > 0).map(Bytes::new),
        no_delay: settings.no_delay,
        ipv4: settings.ipv4,
        ipv6: settings.ipv6,
        ..SocketKnobs::default()
    }
}

/// The engine implements pauses and limits as a rate.
fn offered(settings: &TtcpSettings) -> Option<Bitrate> {
    if !settings.transmit {
        return None;
    }
    let paused = settings.write_gap.and_then(|gap| Bitrate::of(Bytes::new(u64::from(settings.length)), gap));
    let limited = settings.byte_rate.and_then(|bytes| Bitrate::from_bps(bytes as f64 * 8.0));
    match (paused, limited) {
        (Some(paused), Some(limited)) => Some(if paused < limited { paused } else { limited }),
        (paused, limited) => paused.or(limited),
    }
}
