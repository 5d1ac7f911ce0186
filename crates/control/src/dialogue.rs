//! One protocol dialogue over its connection, and the flows that it starts. Client and server share this loop.

mod own_or_shared;
mod phase_flows;
mod progress_gap;
mod stream_watch;
#[cfg(test)]
mod tests;
mod waiting_reports;

use linerate_sock::handle::{AsFd, BorrowedFd};
use std::collections::BTreeMap;
use std::net::TcpStream;

use linerate_engine::{FlowReport, FlowSetup, Sockets, arm};
use linerate_model::flow::FlowId;
use linerate_model::{Caveat, Sample, Side, SideSettings, StreamCounting, Tally, Transport};
use linerate_proto::{Ended, PeerError, Progress, Session, SessionInput, SessionOutput};
use linerate_sock::poll::{Interest, poll_few};
use linerate_sock::{Mono, clock};
use linerate_units::{Bytes, Span, Timestamp};
use own_or_shared::OwnOrSharedFlow;
use phase_flows::{DialogueFlow, FlowAbout, PhaseStart};
use progress_gap::{PROGRESS_INTERVAL, gap_for};
use waiting_reports::{ENOUGH_UNSENT_BYTES, WaitingReports};

use crate::ControlError;
use crate::control_stream::{Arrival, ControlStream};
use crate::interface_watch::InterfaceWatch;
use crate::multicast::SenderShare;
use crate::setup::{LATE_DATAGRAM_TIMEOUT, RESET_TIMEOUT};

/// Most bytes read in one turn, so that deadlines, flows and the owner of the control connection are not delayed.
const MAX_BYTES_PER_TURN: usize = 64 << 10;

/// Most unsent bytes for a peer that does not read. Final reports and their samples wait elsewhere.
const MAX_UNSENT_BYTES: usize = 16 << 20;

/// How long the peer may take nothing while final reports wait.
const DELIVERY_TIMEOUT: Span = Span::from_secs(60);

/// One end's dialogue and its flows.
pub(crate) struct Dialogue<S> {
    session: S,
    stream: ControlStream,
    epoch: Mono,
    client: bool,
    flows: BTreeMap<FlowId, DialogueFlow>,
    start: PhaseStart,
    next_progress: Timestamp,
    extra_caveats: Vec<Caveat>,
    interface: InterfaceWatch,
    events: Vec<DialogueEvent>,
    reports: WaitingReports,
    /// Bytes that waited in front of the socket after the last turn.
    unsent: usize,
    /// When some of them had left, or no report waited.
    delivered: Mono,
}

/// An event of a dialogue, for its owner.
#[derive(Debug)]
pub(crate) enum DialogueEvent {
    /// A session output that the owner has to handle.
    Session(SessionOutput),
    /// A local flow has started, with these settings.
    Started { flow: FlowId, side: Side, settings: Box<SideSettings> },
    /// The drain was cut off.
    Cut {
        /// The local flows that it ends. Others had ended before, or a stream of them had failed.
        interrupted: Vec<FlowId>,
    },
    /// Progress of a local flow.
    Progress(Progress),
    /// What each stream of a local flow has moved.
    Streams { flow: FlowId, counted: StreamCounting, bytes: Vec<Bytes> },
    /// New samples of a local flow.
    Samples { flow: FlowId, samples: Vec<Sample> },
    /// A local flow has ended.
    Ended(Box<Ended>),
}

impl<S: Session> Dialogue<S> {
    pub(crate) fn new(
        session: S,
        stream: ControlStream,
        epoch: Mono,
        client: bool,
    ) -> Result<Self, ControlError> {
        let local = |error: std::io::Error| ControlError::Local(format!("the control connection: {error}"));
        stream.make_ready().map_err(local)?;
        Ok(Self {
            interface: InterfaceWatch::of(stream.tcp()),
            session,
            stream,
            epoch,
            client,
            flows: BTreeMap::new(),
            start: PhaseStart::default(),
            next_progress: Timestamp::START,
            extra_caveats: Vec::new(),
            events: Vec::new(),
            reports: WaitingReports::default(),
            unsent: 0,
            delivered: clock::now(),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_ns(clock::now().0.saturating_sub(self.epoch.0))
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.tcp()
    }

    pub(crate) fn session(&self) -> &S {
        &self.session
    }

    /// Begins counting other traffic on the interface: from now on this run sends only probes and the dialogue.
    pub(crate) fn idle_begins(&mut self) {
        self.interface.idle_begins(self.stream.tcp());
    }

    /// Ends that count; data connections are opened from now on.
    pub(crate) fn idle_ends(&mut self) {
        self.interface.idle_ends(self.stream.tcp());
    }

    /// Feeds the session and immediately executes its outputs.
    pub(crate) fn input(&mut self, input: SessionInput<'_>) -> Result<(), ControlError> {
        let now = self.now();
        let result = self.session.input(now, input);
        self.execute();
        Ok(result?)
    }

    /// Creates the threads of the flows of a phase. Receivers read from now on, because the arrival of the
    /// first byte is the time origin of the result and must not wait for a thread. Senders wait until the
    /// session starts them.
    pub(crate) fn arm(&mut self, flows: Vec<(FlowSetup, Sockets)>) -> Result<(), ControlError> {
        if self.flows.is_empty() && !flows.is_empty() {
            self.begin_counting();
        }
        let (receivers, senders): (Vec<_>, Vec<_>) =
            flows.into_iter().partition(|(setup, _)| setup.side == Side::Receiver);
        self.start = PhaseStart { peer_sends: !receivers.is_empty(), ..PhaseStart::default() };
        for (setup, sockets) in receivers.into_iter().chain(senders) {
            let (number, about) = (setup.flow, FlowAbout::of(&setup));
            let handle = arm(setup, sockets, self.epoch)?;
            if about.side == Side::Receiver {
                handle.begin_at(Mono::default());
            }
            self.flows.insert(number, DialogueFlow::new(OwnOrSharedFlow::Own(Box::new(handle)), about));
        }
        Ok(())
    }

    /// Like [`Dialogue::arm`] for the only flow of a phase, whose sender other runs share.
    pub(crate) fn arm_shared(&mut self, setup: FlowSetup, share: SenderShare) -> Result<(), ControlError> {
        self.begin_counting();
        self.start = PhaseStart::default();
        let (number, about) = (setup.flow, FlowAbout::of(&setup));
        share.arm(setup, self.epoch)?;
        self.flows.insert(number, DialogueFlow::new(OwnOrSharedFlow::Shared(share), about));
        Ok(())
    }

    /// All sockets of this end are open. Senders start at `planned`, or as soon as the peer is ready if that is
    /// later or absent.
    pub(crate) fn begin(&mut self, planned: Option<Mono>) -> Result<(), ControlError> {
        for flow in self.flows.values() {
            flow.handle.plan_start(planned.unwrap_or_default())?;
        }
        self.start.planned = planned;
        self.input(SessionInput::FlowsOpen)
    }

    /// Whether the session has started the flows; they may still wait for their planned start.
    pub(crate) fn is_started(&self) -> bool {
        self.start.start_sent.is_some()
    }

    /// When everything had started as far as this end knows: all local sender threads, and, if the peer sends,
    /// the start message to it. Absent before that.
    pub(crate) fn began(&self) -> Option<Mono> {
        let start_sent = self.start.start_sent?;
        let own = self.flows.values().filter(|flow| flow.about.side == Side::Sender);
        let own = own.map(|flow| flow.handle.began()).collect::<Option<Vec<Mono>>>()?;
        let peer_start = self.start.peer_sends.then_some(start_sent);
        own.into_iter().chain(peer_start).chain(self.start.ended).max()
    }

    /// Adds a caveat to the final report of every flow that ends from now on.
    pub(crate) fn add_caveat(&mut self, caveat: Caveat) {
        self.extra_caveats.push(caveat);
    }

    /// The caveats added with [`Dialogue::add_caveat`].
    pub(crate) fn extra_caveats(&self) -> &[Caveat] {
        &self.extra_caveats
    }

    fn execute(&mut self) {
        while let Some(output) = self.session.output() {
            match output {
                SessionOutput::Send(bytes) => self.stream.queue(&bytes),
                SessionOutput::Start => {
                    self.start();
                    self.events.push(DialogueEvent::Session(SessionOutput::Start));
                }
                SessionOutput::StopWriting => self.flows.values().for_each(|flow| flow.handle.stop_writing()),
                SessionOutput::Cut => self.cut(),
                SessionOutput::PeerSenderDone { flow } => self.peer_sender_done(flow),
                other => self.events.push(DialogueEvent::Session(other)),
            }
        }
        self.stream.flush();
    }

    /// The session has started the flows; its start message is sent first.
    fn start(&mut self) {
        self.stream.flush();
        let at = self.start.planned.unwrap_or_default();
        self.flows.values().for_each(|flow| flow.handle.begin_at(at));
        self.start.start_sent = Some(clock::now());
        for (number, DialogueFlow { handle, about, .. }) in &self.flows {
            let settings = Box::new(handle.settings());
            self.events.push(DialogueEvent::Started { flow: *number, side: about.side, settings });
        }
        self.next_progress = self.now() + self.progress_gap();
    }

    /// The drain is over. The sender resets the connections after it has recorded its unsent bytes. If a
    /// receiver reset first, it would discard the data that has arrived, and the reset would discard the
    /// sender's queue.
    fn cut(&mut self) {
        let running = |flow: &DialogueFlow| !flow.handle.has_failed() && !flow.handle.progress().ended;
        let running = self.flows.iter().filter(|(_, flow)| running(flow));
        let interrupted = running.map(|(number, _)| *number).collect();
        for flow in self.flows.values() {
            match flow.about.side {
                Side::Sender => flow.handle.abort(),
                Side::Receiver => flow.handle.stop_reading(clock::now() + RESET_TIMEOUT.as_duration()),
            }
        }
        self.events.push(DialogueEvent::Cut { interrupted });
    }

    /// A datagram receiver cannot detect the end of the stream, so it is stopped when the peer's sender is
    /// done.
    fn peer_sender_done(&mut self, number: FlowId) {
        if let Some(flow) = self.flows.get(&number).filter(|flow| flow.about.transport == Transport::Udp) {
            flow.handle.stop_reading(clock::now() + LATE_DATAGRAM_TIMEOUT.as_duration());
        }
    }

    /// Waits at most until `until` for the next event, or for one of `others` to become readable, and handles
    /// it.
    pub(crate) fn turn(
        &mut self,
        until: Mono,
        others: &[BorrowedFd<'_>],
    ) -> Result<Vec<DialogueEvent>, ControlError> {
        self.execute();
        if self.events.is_empty() && !self.stream.has_decrypted() {
            self.wait(until, others)?;
        }
        self.read()?;
        if self.session.deadline().is_some_and(|deadline| self.now() >= deadline) {
            self.input(SessionInput::Tick)?;
        }
        self.check_flows()?;
        self.execute();
        self.note_delivery()?;
        self.send_reports()?;
        self.unsent = self.stream.unsent();
        Ok(std::mem::take(&mut self.events))
    }

    /// Notes whether bytes have left since the last turn.
    fn note_delivery(&mut self) -> Result<(), ControlError> {
        let (unsent, now) = (self.stream.unsent(), clock::now());
        if unsent == 0 || unsent < self.unsent || self.reports.is_empty() {
            self.delivered = now;
        }
        if unsent > MAX_UNSENT_BYTES || now.since(self.delivered) >= DELIVERY_TIMEOUT.as_duration() {
            return Err(ControlError::Local("the other end does not read its messages".to_owned()));
        }
        if (1..self.unsent).contains(&unsent) {
            self.input(SessionInput::Delivering)?;
        }
        Ok(())
    }

    /// Sends final reports as far as the connection takes them.
    fn send_reports(&mut self) -> Result<(), ControlError> {
        while self.stream.unsent() < ENOUGH_UNSENT_BYTES {
            let Some(report) = self.reports.next() else { break };
            self.input(report)?;
        }
        Ok(())
    }

    fn wait(&self, until: Mono, others: &[BorrowedFd<'_>]) -> Result<(), ControlError> {
        let mut deadline = until;
        let at = |time: Timestamp| self.epoch + Span::from_ns(time.as_ns()).as_duration();
        if let Some(session) = self.session.deadline() {
            deadline = deadline.min(at(session));
        }
        if self.is_started() && !self.flows.is_empty() {
            deadline = deadline.min(at(self.next_progress));
        }
        let mut fds = Vec::with_capacity(1 + self.flows.len() + others.len());
        fds.extend(self.stream.interest());
        fds.extend(self.flows.values().map(|flow| (flow.handle.waker().as_fd(), Interest::READ)));
        fds.extend(others.iter().map(|fd| (*fd, Interest::READ)));
        poll_few(&fds, deadline)?;
        Ok(())
    }

    fn read(&mut self) -> Result<(), ControlError> {
        let mut bytes = [0; 16 << 10];
        let mut left = MAX_BYTES_PER_TURN;
        // Unread bytes wake the next turn immediately.
        while !self.stream.is_closed() && left > 0 {
            match self.stream.read(&mut bytes)? {
                Arrival::Bytes(count) => {
                    left = left.saturating_sub(count);
                    self.input(SessionInput::Bytes(&bytes[..count]))?;
                }
                Arrival::Nothing => return Ok(()),
                Arrival::Closed => self.input(SessionInput::Closed)?,
            }
        }
        Ok(())
    }

    /// Sends the remaining bytes, so that the final message of this end arrives.
    pub(crate) fn flush_at_end(&mut self) {
        self.stream.flush_at_end();
    }

    /// Time until the next progress report.
    fn progress_gap(&self) -> Span {
        let bits = self.flows.values().map(|flow| flow.bytes_seen as f64 * 8.0).sum::<f64>();
        let begun = self.start.start_sent.map(|start_sent| clock::now().since(start_sent).as_secs_f64());
        // The bytes of requests say nothing about the rate of the path.
        let transactions = self.flows.values().any(|flow| flow.about.transactions);
        match begun.filter(|elapsed| *elapsed > 0.0 && !self.client && !transactions) {
            Some(elapsed) => gap_for(bits / elapsed),
            None => PROGRESS_INTERVAL,
        }
    }

    fn check_flows(&mut self) -> Result<(), ControlError> {
        let report_due = self.is_started() && !self.flows.is_empty() && self.now() >= self.next_progress;
        if report_due {
            self.next_progress = self.now() + self.progress_gap();
        }
        let numbers: Vec<FlowId> = self.flows.keys().copied().collect();
        for number in numbers {
            self.check_flow(number, report_due)?;
        }
        Ok(())
    }

    fn check_flow(&mut self, number: FlowId, report_due: bool) -> Result<(), ControlError> {
        let Some(flow) = self.flows.get_mut(&number) else { return Ok(()) };
        let _ = flow.handle.waker().clear();
        let progress = flow.handle.progress();
        let side = flow.about.side;
        let moved = progress.bytes.get() > flow.bytes_seen;
        flow.bytes_seen = progress.bytes.get();
        let done = progress.finished_writing
            && !std::mem::replace(&mut flow.done_reported, progress.finished_writing);
        let samples = if report_due { flow.handle.new_samples() } else { Vec::new() };
        // Only the client displays them.
        let streams_due = report_due && self.client && progress.bytes.get() > 0 && flow.streams.is_due();
        let streams = if streams_due { flow.handle.stream_bytes() } else { None };
        if moved && side == Side::Receiver {
            self.input(SessionInput::Alive)?;
        }
        if done {
            self.input(SessionInput::SenderDone { flow: number })?;
        }
        if report_due {
            self.report_progress(number, side, &progress)?;
            self.report_streams(number, streams);
            if !samples.is_empty() {
                self.events.push(DialogueEvent::Samples { flow: number, samples });
            }
        }
        if progress.ended {
            self.end(number)?;
        }
        Ok(())
    }

    fn report_progress(
        &mut self,
        flow: FlowId,
        side: Side,
        progress: &linerate_engine::FlowProgress,
    ) -> Result<(), ControlError> {
        let progress = Progress {
            flow,
            side,
            bytes: progress.bytes,
            elapsed_ns: progress.elapsed,
            srtt_ns: progress.srtt,
            retransmits: progress.retransmits,
        };
        // Only the client displays progress; the server does not need the client's.
        if !self.client {
            self.input(SessionInput::Progress(progress))?;
        }
        self.events.push(DialogueEvent::Progress(progress));
        Ok(())
    }

    fn report_streams(&mut self, flow: FlowId, streams: Option<(StreamCounting, Vec<Bytes>)>) {
        let streams = streams.map(|(counted, bytes)| DialogueEvent::Streams { flow, counted, bytes });
        self.events.extend(streams);
    }

    fn end(&mut self, number: FlowId) -> Result<(), ControlError> {
        let Some(flow) = self.flows.remove(&number) else { return Ok(()) };
        let side = flow.about.side;
        if self.client {
            self.report_streams(number, flow.handle.stream_bytes());
        }
        if side == Side::Sender {
            self.start.ended = self.start.ended.max(flow.handle.began());
        }
        let rest = flow.handle.new_samples();
        let Some(mut report) = flow.handle.finish() else { return Ok(()) };
        let samples = std::mem::take(&mut report.samples);
        report.caveats.extend(self.extra_caveats.iter().cloned());
        self.note_counts(&mut report.tally);
        let ended = Box::new(final_report(number, side, report));
        if !rest.is_empty() {
            self.events.push(DialogueEvent::Samples { flow: number, samples: rest });
        }
        self.events.push(DialogueEvent::Ended(ended.clone()));
        self.reports.add(if self.client { Vec::new() } else { samples }, ended);
        self.send_reports()
    }

    /// Begins the interface counters of the phase.
    pub(crate) fn begin_counting(&mut self) {
        self.interface.phase_begins(Some(self.stream.tcp()));
    }

    /// Adds the interface counts since the phase began.
    pub(crate) fn note_counts(&self, tally: &mut Tally) {
        if let Some((interface, dialogue)) = self.interface.counted(Some(self.stream.tcp())) {
            let kernel = tally.kernel.get_or_insert_default();
            (kernel.interface, kernel.control) = (Some(interface), dialogue);
        }
    }

    /// Ends every flow immediately after a failure of the control connection and keeps what the flows counted.
    pub(crate) fn abort_flows(&mut self) -> Vec<DialogueEvent> {
        let mut events = std::mem::take(&mut self.events);
        for flow in self.flows.values() {
            flow.handle.abort();
        }
        for (number, flow) in std::mem::take(&mut self.flows) {
            // Flows that never started have nothing to report.
            if !self.is_started() {
                continue;
            }
            let rest = flow.handle.new_samples();
            if !rest.is_empty() {
                events.push(DialogueEvent::Samples { flow: number, samples: rest });
            }
            // What continues for other runs has no counts yet.
            if let Some(report) = flow.handle.finish() {
                events.push(DialogueEvent::Ended(Box::new(final_report(number, flow.about.side, report))));
            }
        }
        events
    }

    /// Whether any flow of this end is running.
    pub(crate) fn flows_running(&self) -> bool {
        !self.flows.is_empty()
    }
}

fn final_report(flow: FlowId, side: Side, report: FlowReport) -> Ended {
    Ended { flow, side, settings: report.settings, tally: report.tally, caveats: report.caveats }
}

/// Whether an error only means that the peer has closed the connection or is silent.
pub(crate) fn is_gone(error: &ControlError) -> bool {
    matches!(error, ControlError::Peer(PeerError::Closed { .. } | PeerError::Silent { .. }))
}
