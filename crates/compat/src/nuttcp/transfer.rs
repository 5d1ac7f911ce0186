//! The data phase of one end: links, datagrams that begin and end it, the flow and its counts.
//!
//! Both roles use it: they state when the peer is ready ([`NuttcpTransfer::connect_or_wait`]) and handle each
//! [`TransferEvent`].

mod input;

use std::collections::VecDeque;

use linerate_units::{Span, Timestamp};

use super::delays::{FreshRange, OneWay};
use super::marks::TransmitterCounts;
use super::plan::Terms;
use super::report::Counted;
use super::summary::ReceiverCounts;
use crate::stand_in::{CpuTime, FlowCounts, FlowId, Link, Opened, Output, RunId, Stop, SystemError};

/// How long a refused data connection is retried: a peer before 6.2.8 sends OK before it listens.
const RETRY_TIMEOUT: Span = Span::from_secs(1);

/// Time between two attempts.
const RETRY_DELAY: Span = Span::from_ms(50);

/// Timeout for the peer's data connection.
const ACCEPT_TIMEOUT: Span = Span::from_secs(5);

/// Interval between the two datagrams that begin a test.
const START_DATAGRAM_GAP: Span = Span::from_ms(250);

/// Interval between the datagrams that end it.
const END_DATAGRAM_GAP: Span = Span::from_ms(500);

/// Number of datagrams that end a test.
const END_DATAGRAMS: u8 = 5;

/// How often a receiver checks whether data still arrive.
const POLL_INTERVAL: Span = Span::from_ms(250);

/// Timeout for a flow to end after it was stopped: unacknowledged data are still sent.
const FLOW_END_TIMEOUT: Span = Span::from_secs(60);

/// How often a sender checks whether everything is acknowledged.
const DRAIN_POLL_INTERVAL: Span = Span::from_ms(10);

/// How long a receiver continues after the control connection has ended.
const RECEIVER_GRACE: Span = Span::from_secs(1);

/// An event of a transfer, for its owner.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TransferEvent {
    /// All listeners are open.
    Ready,
    /// The data connections are open.
    Begun,
    /// An interval of a receiver has ended.
    Interval {
        /// The counts of the interval.
        interval: Box<ReceiverCounts>,
        /// The counts since the start.
        total: Box<ReceiverCounts>,
        /// The retransmissions that the transmitter marked; absent if it writes no marks.
        marked: Option<TransmitterCounts>,
    },
    /// The answer to [`NuttcpTransfer::request_counts`]: what the kernel has counted since the last one;
    /// absent if unknown.
    Looked(Option<TransmitterCounts>),
    /// The idle timeout has passed.
    Idle,
    /// The counts are final.
    Over,
    /// Nothing could be measured.
    Failed(Failure),
}

/// Why nothing could be measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Failure {
    /// A port is not available.
    Listen(SystemError),
    /// A data connection cannot be opened.
    Connect(SystemError),
    /// The peer has opened no data connection.
    Nobody,
    /// The engine could not start.
    Start(SystemError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NuttcpTransferState {
    /// Not started.
    Idle,
    /// Opening the listeners.
    Listening,
    /// Waiting for [`NuttcpTransfer::connect_or_wait`].
    Ready,
    /// Waiting until the peer listens, or for connections to open.
    Connecting,
    /// Waiting for connections of the peer.
    Accepting,
    /// Beginning a UDP test; the number of the next mark.
    Beginning(u8),
    /// Waiting for the first datagram.
    Awaiting,
    /// Data are being transferred.
    Running,
    /// The flow was stopped.
    Stopping,
    /// Ending a UDP test; the number of the next mark.
    Ending(u8),
    /// Waiting for the last counts.
    Counting,
    /// A TCP sender's kernel still retransmits.
    Draining,
    /// Over.
    Over,
}

/// The purpose of requested counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NuttcpCountsReason {
    Begin,
    Interval,
    Idle,
    Owner,
    End,
    Drain,
}

/// The state of a datagram port that is shared with others: the peer gets its own socket on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SharedPort {
    /// The port is not shared.
    Not,
    /// Nothing has arrived yet.
    Waiting,
    /// The socket was requested; whether the test begins with it.
    Asked(bool),
    /// The socket is open.
    Had,
}

/// The data phase of one end.
#[derive(Debug)]
pub(super) struct NuttcpTransfer {
    pub(super) terms: Terms,
    flow: FlowId,
    run: RunId,
    /// Number of the first stream's own link; the others follow.
    base: u32,
    links: Vec<Option<Link>>,
    stage: NuttcpTransferState,
    /// The properties of the first stream, for the report.
    pub(super) opened: Option<Opened>,
    due: Option<Timestamp>,
    /// When a sender stops waiting for acknowledgements.
    drained_by: Option<Timestamp>,
    give_up_connecting: Timestamp,
    /// Streams to connect at the next attempt.
    missing: Vec<u16>,
    next_look: Option<Timestamp>,
    next_interval: Option<Timestamp>,
    shown: ReceiverCounts,
    looks: VecDeque<NuttcpCountsReason>,
    began: Timestamp,
    cpu: CpuTime,
    shown_retrans: u64,
    /// The range of one-way delays, and of jitter, since the last interval.
    fresh: [FreshRange; 2],
    /// What arrived before the flow: bytes and datagrams.
    early: (u64, u64),
    /// The data of each stream that arrived before the flow, if their blocks carry times.
    early_blocks: Vec<Vec<u8>>,
    /// Number of marks that arrived before the flow.
    marks: u64,
    shared: SharedPort,
    /// Whether the peer has left; nothing more is sent to it.
    cut: bool,
    has_flow: bool,
    pub(super) counted: Counted,
    /// The error of the flow.
    pub(super) trouble: Option<SystemError>,
    events: VecDeque<TransferEvent>,
}

impl NuttcpTransfer {
    /// A transfer whose own links have numbers from `base` on.
    pub(super) fn new(terms: Terms, base: u32, flow: FlowId, run: RunId) -> Self {
        let links = vec![None; usize::from(terms.streams)];
        let early_blocks = vec![Vec::new(); if terms.stamps_blocks() { links.len() } else { 0 }];
        Self {
            terms,
            flow,
            run,
            base,
            links,
            stage: NuttcpTransferState::Idle,
            opened: None,
            due: None,
            drained_by: None,
            give_up_connecting: Timestamp::START,
            missing: Vec::new(),
            next_look: None,
            next_interval: None,
            shown: ReceiverCounts::default(),
            looks: VecDeque::new(),
            began: Timestamp::START,
            cpu: CpuTime::default(),
            shown_retrans: 0,
            fresh: [FreshRange::default(), FreshRange::default()],
            early: (0, 0),
            early_blocks,
            marks: 0,
            shared: SharedPort::Not,
            cut: false,
            has_flow: false,
            counted: Counted::default(),
            trouble: None,
            events: VecDeque::new(),
        }
    }

    pub(super) fn next_event(&mut self) -> Option<TransferEvent> {
        self.events.pop_front()
    }

    pub(super) fn is_over(&self) -> bool {
        self.stage == NuttcpTransferState::Over
    }

    /// Whether the transfer of data has begun.
    pub(super) fn has_begun(&self) -> bool {
        matches!(
            self.stage,
            NuttcpTransferState::Running
                | NuttcpTransferState::Stopping
                | NuttcpTransferState::Ending(_)
                | NuttcpTransferState::Counting
                | NuttcpTransferState::Draining
                | NuttcpTransferState::Over
        )
    }

    /// Whether data are being transferred.
    pub(super) fn is_running(&self) -> bool {
        self.stage == NuttcpTransferState::Running
    }

    /// Opens the listeners, if this end has any.
    pub(super) fn prepare(&mut self, out: &mut VecDeque<Output>) {
        if self.terms.connects() {
            self.stage = NuttcpTransferState::Ready;
            self.events.push_back(TransferEvent::Ready);
            return;
        }
        self.stage = NuttcpTransferState::Listening;
        for number in 0..self.terms.streams {
            out.push_back(Output::Listen {
                link: self.own(number),
                port: self.terms.stream_port(number),
                options: self.terms.link_options(),
            });
        }
    }

    /// The peer is ready: connects after `delay`, or waits for connections.
    pub(super) fn connect_or_wait(&mut self, now: Timestamp, delay: Span) {
        if self.stage != NuttcpTransferState::Ready {
            return;
        }
        if self.terms.connects() {
            self.stage = NuttcpTransferState::Connecting;
            self.give_up_connecting = now + delay + RETRY_TIMEOUT;
            self.missing = (0..self.terms.streams).collect();
            self.due = Some(now + delay);
        } else if self.terms.udp {
            self.stage = NuttcpTransferState::Awaiting;
            self.due = Some(now + self.terms.data_timeout());
        } else {
            self.stage = NuttcpTransferState::Accepting;
            self.due = Some(now + ACCEPT_TIMEOUT);
        }
    }

    /// Requests the kernel's present counts.
    pub(super) fn request_counts(&mut self, out: &mut VecDeque<Output>) {
        self.ask(NuttcpCountsReason::Owner, out);
    }

    /// The peer has closed the control connection. A sender stops; a receiver waits for the end of the data.
    pub(super) fn peer_gone(&mut self, now: Timestamp, out: &mut VecDeque<Output>) {
        self.cut = true;
        match self.stage {
            NuttcpTransferState::Running if self.terms.transmit => self.stop(now, out),
            NuttcpTransferState::Running => self.due = Some(now + RECEIVER_GRACE),
            NuttcpTransferState::Stopping | NuttcpTransferState::Counting | NuttcpTransferState::Over => {}
            // A receiver that has reported does not need further end marks, and has received everything.
            NuttcpTransferState::Ending(_) => self.finish(out),
            // It acknowledges nothing more. What was retransmitted since the last look still counts.
            NuttcpTransferState::Draining => self.ask(NuttcpCountsReason::Drain, out),
            _ => {
                self.abort(out);
                self.events.push_back(TransferEvent::Failed(Failure::Nobody));
            }
        }
    }

    /// Ends the test early, in the normal way.
    pub(super) fn stop(&mut self, now: Timestamp, out: &mut VecDeque<Output>) {
        if self.stage != NuttcpTransferState::Running {
            return;
        }
        if !self.has_flow {
            self.piped_end(now, out);
            return;
        }
        let regularly = self.terms.transmit && !self.terms.udp;
        let how = if regularly { Stop::Regularly } else { Stop::AtOnce };
        out.push_back(Output::Stop { flow: self.flow, how });
        self.stage = NuttcpTransferState::Stopping;
        self.due = Some(now + FLOW_END_TIMEOUT);
    }

    /// Aborts everything.
    pub(super) fn abort(&mut self, out: &mut VecDeque<Output>) {
        if self.stage == NuttcpTransferState::Over {
            return;
        }
        if self.has_flow && matches!(self.stage, NuttcpTransferState::Running | NuttcpTransferState::Stopping)
        {
            out.push_back(Output::Stop { flow: self.flow, how: Stop::Abort });
        }
        self.close(out);
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        [self.due, self.next_look, self.next_interval].into_iter().flatten().min()
    }

    fn own(&self, number: u16) -> Link {
        Link(self.base + u32::from(number))
    }

    /// The stream with this link.
    fn stream_of(&self, link: Link) -> Option<usize> {
        let own = link.0.checked_sub(self.base).map(|at| at as usize).filter(|at| *at < self.links.len());
        own.or_else(|| self.links.iter().position(|held| *held == Some(link)))
    }

    fn ask(&mut self, why: NuttcpCountsReason, out: &mut VecDeque<Output>) {
        self.looks.push_back(why);
        out.push_back(Output::Look);
    }

    /// All links are open: begins the test.
    fn begin(&mut self, now: Timestamp, out: &mut VecDeque<Output>) {
        self.events.push_back(TransferEvent::Begun);
        self.began = now;
        if self.terms.udp && self.terms.transmit {
            self.stage = NuttcpTransferState::Beginning(0);
            self.due = Some(now);
            return;
        }
        self.run(now, out);
    }

    /// Starts the flow.
    fn run(&mut self, now: Timestamp, out: &mut VecDeque<Output>) {
        self.began = now;
        self.stage = NuttcpTransferState::Running;
        self.due = None;
        self.ask(NuttcpCountsReason::Begin, out);
        if !self.terms.transmit {
            self.next_look = Some(now + POLL_INTERVAL);
            if self.terms.interval > Span::ZERO {
                self.next_interval = Some(now + self.terms.interval);
            }
        }
        if self.terms.stdio {
            if self.terms.transmit {
                self.due = self.terms.time.map(|time| now + time);
                out.push_back(Output::Read);
            }
            self.next_look = None;
            self.next_interval = None;
            return;
        }
        self.has_flow = true;
        let links = self.links.iter().flatten().copied().collect();
        out.push_back(Output::Start(Box::new(self.terms.task(
            self.flow,
            self.run,
            links,
            &self.early_blocks,
        ))));
    }

    /// The flow has ended; requests the CPU time.
    fn count(&mut self, out: &mut VecDeque<Output>) {
        self.stage = NuttcpTransferState::Counting;
        (self.due, self.next_look, self.next_interval) = (None, None, None);
        self.ask(NuttcpCountsReason::End, out);
    }

    /// TCP sender: waits until the peer has acknowledged everything, as the kernel retransmits until then.
    fn drain(&mut self, now: Timestamp, counts: Option<&FlowCounts>, out: &mut VecDeque<Output>) {
        let Some(counts) = counts else { return self.finish(out) };
        let retrans =
            counts.streams.iter().filter_map(|stream| stream.retransmits).reduce(u64::saturating_add);
        self.counted.retrans = retrans.or(self.counted.retrans);
        let waits = counts.streams.iter().any(|stream| stream.all_acknowledged == Some(false));
        if !waits || self.cut || self.drained_by.is_some_and(|by| now >= by) {
            return self.finish(out);
        }
        self.stage = NuttcpTransferState::Draining;
        self.drained_by.get_or_insert(now + FLOW_END_TIMEOUT);
        self.due = Some(now + DRAIN_POLL_INTERVAL);
    }

    /// Takes the present counts of the flow.
    fn take(&mut self, now: Timestamp, counts: &FlowCounts) {
        let known = |of: fn(&crate::stand_in::StreamCounts) -> Option<u64>| {
            counts.streams.iter().filter_map(of).reduce(u64::saturating_add)
        };
        let marks = match (self.terms.udp, self.terms.transmit) {
            (false, _) => 0,
            (true, true) => u64::from(END_DATAGRAMS + self.terms.begins()),
            (true, false) => self.marks + 2,
        };
        let last = counts.last_at.unwrap_or(if self.terms.transmit { now } else { self.began });
        let span = last.since(self.began);
        self.counted.bytes = counts.total(|stream| stream.bytes).saturating_add(self.early.0);
        self.counted.calls = counts.total(|stream| stream.calls).saturating_add(marks + self.early.1);
        self.counted.span = self.terms.with_last_turn(self.counted.bytes, span);
        self.counted.retrans = known(|stream| stream.retransmits).filter(|_| !self.terms.udp);
        self.counted.one_way = delays(counts);
        self.counted.jitter = jitter(counts);
        let each = |of: fn(&crate::stand_in::StreamCounts) -> Option<u64>| -> Vec<u64> {
            counts.streams.iter().map_while(of).collect()
        };
        self.counted.stream_retrans = each(|stream| stream.retransmits);
        self.counted.stream_cwnd = each(|stream| stream.snd_cwnd.map(|bytes| bytes / 1024));
        self.counted.cwnd = known(|stream| stream.snd_cwnd).map(|bytes| bytes / 1024);
        self.trouble.clone_from(&counts.trouble);
    }

    /// Notes the ranges of a reading.
    fn note_ranges(&mut self, counts: &FlowCounts) {
        let [delays, jitter] = &mut self.fresh;
        delays.note(counts.streams.iter().map(|stream| stream.transit.as_ref()));
        jitter.note(counts.streams.iter().map(|stream| stream.spacing.as_ref()));
    }

    /// The bytes since the start, and the losses by the datagrams' own counts.
    fn amount(&self, counts: &FlowCounts) -> ReceiverCounts {
        let mut amount = ReceiverCounts {
            bytes: self.early.0,
            span: counts.at.since(self.began),
            delays: delays(counts),
            jitter: jitter(counts),
            ..ReceiverCounts::default()
        };
        let mut received = self.early.1;
        for stream in &counts.streams {
            amount.bytes = amount.bytes.saturating_add(stream.bytes);
            amount.sent = amount.sent.saturating_add(stream.highest);
            received = received.saturating_add(stream.packets.saturating_sub(stream.duplicates));
        }
        amount.lost = amount.sent.saturating_sub(received);
        amount
    }

    fn close(&mut self, out: &mut VecDeque<Output>) {
        for number in 0..self.terms.streams {
            let own = self.own(number);
            if let Some(link) = self.links.get_mut(usize::from(number)).and_then(Option::take) {
                out.push_back(Output::Close { link });
            } else if self.stage != NuttcpTransferState::Idle && !self.has_flow {
                out.push_back(Output::Close { link: own });
            }
        }
        (self.due, self.next_look, self.next_interval) = (None, None, None);
        self.stage = NuttcpTransferState::Over;
    }

    fn fail(&mut self, failure: Failure, out: &mut VecDeque<Output>) {
        self.close(out);
        self.events.push_back(TransferEvent::Failed(failure));
    }
}

/// The jitter of all streams together.
fn jitter(counts: &FlowCounts) -> Option<OneWay> {
    let of = counts.streams.iter().filter_map(|stream| stream.spacing.as_ref());
    of.map(OneWay::of).reduce(OneWay::with)
}

/// The delays of all streams together.
fn delays(counts: &FlowCounts) -> Option<OneWay> {
    let of = counts.streams.iter().filter_map(|stream| stream.transit.as_ref());
    of.map(OneWay::of).reduce(OneWay::with)
}
