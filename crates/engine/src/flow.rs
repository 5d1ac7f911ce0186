//! State shared by all threads of one side of a flow.

use linerate_sock::handle::{AsFd, BorrowedFd};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::OnceLock;

use linerate_model::flow::{SystemError, Transit};
use linerate_model::{Side, StopAfter};
use linerate_sock::clock::ThreadClock;
use linerate_sock::{Mono, affinity};
use linerate_units::{Bitrate, Bytes};

use crate::control::{MAX_BORROWED_PUMP_WAIT, MAX_PUMP_WAIT, PumpControl};
use crate::counters::{CounterWriter, Counters};
use crate::error::EngineError;
use crate::measured::MeasuredPart;
use crate::pacer::{self, PacingSchedule, SchedulePosition};
use crate::plan::ThreadPlan;
use crate::setup::{FlowSetup, Sockets};
use crate::transactions::{TransactionConnections, TransactionCounters, TransactionCounts};
use crate::transit::{BlockReader, SpacingWriter, TransitWriter, Transits};

/// State shared by all threads of one side of a flow.
#[derive(Debug)]
pub(crate) struct FlowSide {
    pub(crate) setup: FlowSetup,
    pub(crate) sockets: Sockets,
    pub(crate) plan: ThreadPlan,
    /// Decides which bytes count in the result.
    pub(crate) part: MeasuredPart,
    pub(crate) control: PumpControl,
    /// One for each stream.
    pub(crate) counters: Vec<Counters>,
    /// One for each stream of a receiver that measures transit times; otherwise empty.
    pub(crate) transits: Vec<Transits>,
    /// One for each stream of a receiver that compares the gaps between datagrams; otherwise empty.
    pub(crate) spacings: Vec<Transits>,
    /// One for each pump of a flow with requests and responses; otherwise empty.
    pub(crate) transactions: Vec<TransactionCounters>,
    /// CPU clock of each pump, once it runs.
    pub(crate) clocks: Vec<OnceLock<ThreadClock>>,
    /// The first error.
    pub(crate) trouble: OnceLock<SystemError>,
}

impl FlowSide {
    pub(crate) fn new(setup: FlowSetup, sockets: Sockets) -> Result<Self, EngineError> {
        let plan = ThreadPlan::new(sockets.len(), affinity::online_cpus(), &setup)?;
        let writes = setup.side == Side::Sender;
        // A sender measures for as long as it writes; only a receiver has a measured duration of its own.
        let spaced = !writes && matches!(setup.transit, Transit::Spaced(_));
        let timed = !writes
            && match &setup.transit {
                Transit::Uncounted => false,
                Transit::Spaced(_) => setup.stamp.time.is_some(),
                Transit::Datagrams | Transit::Blocks(_) => true,
            };
        let part = MeasuredPart::new(setup.omit, setup.measured.filter(|_| !writes));
        Ok(Self {
            control: PumpControl::new(
                plan.pumps,
                writes,
                if setup.borrowed { MAX_BORROWED_PUMP_WAIT } else { MAX_PUMP_WAIT },
            )?,
            counters: (0..plan.streams).map(|_| Counters::new()).collect(),
            transits: (0..plan.streams).filter(|_| timed).map(|_| Transits::default()).collect(),
            spacings: (0..plan.streams).filter(|_| spaced).map(|_| Transits::default()).collect(),
            transactions: (0..plan.pumps)
                .filter(|_| setup.transactions.is_some())
                .map(|_| TransactionCounters::new(writes))
                .collect(),
            trouble: OnceLock::new(),
            clocks: (0..plan.pumps).map(|_| OnceLock::new()).collect(),
            setup,
            sockets,
            plan,
            part,
        })
    }

    pub(crate) fn writes(&self) -> bool {
        self.setup.side == Side::Sender
    }

    /// Bytes that a TCP stream with a rate writes at once: a small part of a second, or whole blocks if it sends in
    /// bursts.
    pub(crate) fn chunk(&self, rate: Bitrate) -> usize {
        let block = self.plan.block;
        if self.setup.pacing_tick.is_some() { block } else { pacer::chunk(rate, block) }
    }

    /// Where a sender's stream is in its schedule, if each byte that was due was written; absent without a rate and
    /// before the first write.
    pub(crate) fn schedule_position(&self, stream: usize) -> Option<SchedulePosition> {
        let rate = self.setup.offered.filter(|_| self.writes())?;
        let counts = self.counters.get(stream)?.read();
        let schedule = PacingSchedule::new(counts.begun()?, rate)?.in_ticks(self.setup.pacing_tick);
        Some(SchedulePosition { schedule, passed: counts.total })
    }

    /// The counter handle of one stream.
    pub(crate) fn meter(&self, stream: usize) -> CounterWriter<'_> {
        CounterWriter::new(&self.counters[stream], &self.part)
    }

    /// The reader of a stream's stamped blocks; absent if blocks are not stamped.
    pub(crate) fn block_reader(&self, stream: usize) -> Option<BlockReader<'_>> {
        let Transit::Blocks(blocks) = &self.setup.transit else { return None };
        let writer = TransitWriter::new(self.transits.get(stream)?);
        Some(BlockReader::new(writer, self.setup.stamp, blocks, stream))
    }

    /// The writer of a stream's gaps between datagrams; absent if they are not compared.
    pub(crate) fn spacing_writer(&self, stream: usize) -> Option<SpacingWriter<'_>> {
        let Transit::Spaced(spacing) = self.setup.transit else { return None };
        Some(SpacingWriter::new(TransitWriter::new(self.spacings.get(stream)?), spacing))
    }

    /// Whether nothing more will happen without an order: every pump has ended, and a sender on borrowed
    /// connections has its order to end, or has failed.
    pub(crate) fn is_over(&self) -> bool {
        let waits = self.setup.borrowed && self.writes() && !self.control.failed();
        self.control.all_ended() && (!waits || self.control.stop_requested())
    }

    /// When writing ends, counted from the first byte; [`Mono::FAR`] for a limit in bytes.
    pub(crate) fn write_until(&self) -> Mono {
        match self.setup.stop_after {
            StopAfter::TimeNs(span) => self.part.origin() + span.as_duration(),
            StopAfter::Bytes(_) => Mono::FAR,
        }
    }
}

impl FlowSide {
    /// Bytes in both directions, of which the counters of streams have `streams`.
    fn moved_bytes(&self, streams: u64) -> u64 {
        let moved = TransactionCounts::of(&self.transactions).moved;
        match self.setup.transactions.as_ref().map(|transactions| &transactions.connections) {
            // Connections of their own also carry what broke off, which the counters of streams do not have.
            Some(TransactionConnections::Accepted(_) | TransactionConnections::Opened(_)) => moved,
            _ => streams.saturating_add(moved),
        }
    }
}

impl Drop for FlowSide {
    /// Only here, all threads have ended, also those of a flow that was abandoned.
    fn drop(&mut self) {
        if let Some(TransactionConnections::Accepted(accepted)) =
            self.setup.transactions.as_ref().map(|transactions| &transactions.connections)
        {
            accepted.close();
        }
        if let Some(account) = &self.setup.account {
            let streams: u64 = self.counters.iter().map(|stream| stream.read().total).sum();
            account.add(Bytes::new(self.moved_bytes(streams)));
        }
    }
}

impl Sockets {
    /// The TCP connection of a stream; absent for UDP.
    pub(crate) fn tcp(&self, stream: usize) -> Option<&TcpStream> {
        match self {
            Self::Tcp(streams) => streams.get(stream),
            Self::Udp(_) => None,
        }
    }

    /// The UDP socket of a stream; absent for TCP.
    pub(crate) fn udp(&self, stream: usize) -> Option<&UdpSocket> {
        match self {
            Self::Tcp(_) => None,
            Self::Udp(sockets) => sockets.get(stream),
        }
    }

    /// All sockets, in the order of the streams.
    pub(crate) fn iter(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let (tcp, udp): (&[TcpStream], &[UdpSocket]) = match self {
            Self::Tcp(streams) => (streams, &[]),
            Self::Udp(sockets) => (&[], sockets),
        };
        tcp.iter().map(AsFd::as_fd).chain(udp.iter().map(AsFd::as_fd))
    }

    /// Local and remote address of the first stream.
    pub(crate) fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        match self {
            Self::Tcp(streams) => streams.first().map(|s| (s.local_addr().ok(), s.peer_addr().ok())),
            Self::Udp(sockets) => sockets.first().map(|s| (s.local_addr().ok(), s.peer_addr().ok())),
        }
        .unwrap_or_default()
    }
}
