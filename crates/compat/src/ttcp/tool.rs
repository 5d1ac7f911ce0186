//! ttcp in either role.

mod arrivals;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::pipe::TtcpPipe;
use super::report;
use super::settings::{TtcpSettings, TtcpVariant};
use super::transfer::{TtcpTransfer, TtcpTransferState};
use super::{EXTRA_END_MARKS, MARK_BYTES, PCATTCP_PREAMBLE, UNIX_START};
use crate::EmbeddedServerConfig;
use crate::stand_in::{
    CpuTime, FlowCounts, FlowId, Input, Link, LinkOptions, Opened, Output, RunId, StandIn, Stop, SystemError,
    Transport,
};

/// The link that connects, or the listener.
const MAIN_LINK: Link = Link(0);

/// The datagram socket of a receiver for both TCP and UDP.
const SECOND: Link = Link(1);

/// Most concurrent tests; more are refused.
const MAX_TESTS: usize = 64;

/// How long datagrams of a peer after its test count as its extra marks.
const LATE_MARK_WINDOW: Span = Span::from_secs(2);

/// How often the counts of a flow are polled, to detect that it has stalled.
const POLL_INTERVAL: Span = Span::from_secs(1);

/// The same if the progress is displayed.
const PROGRESS_INTERVAL: Span = Span::from_ms(250);

/// The purpose of the next counts.
#[derive(Debug, Clone, Copy)]
enum TtcpCountsReason {
    /// CPU time at the start.
    Start(RunId),
    /// To see whether data move.
    Progress(RunId),
    /// CPU time at the end.
    End(RunId),
}

/// ttcp in either role.
#[derive(Debug)]
pub struct Ttcp {
    pub(super) settings: TtcpSettings,
    pub(super) outputs: VecDeque<Output>,
    pub(super) pipe: Option<TtcpPipe>,
    transfers: BTreeMap<RunId, TtcpTransfer>,
    next_run: RunId,
    looks: VecDeque<TtcpCountsReason>,
    /// Peers whose test is over.
    gone: VecDeque<(SocketAddr, Timestamp)>,
    signal: Option<i32>,
    pub(super) over: bool,
}

impl Ttcp {
    /// Creates the tool with these settings.
    #[must_use]
    pub const fn new(settings: TtcpSettings) -> Self {
        Self {
            settings,
            outputs: VecDeque::new(),
            pipe: None,
            transfers: BTreeMap::new(),
            next_run: RunId(0),
            looks: VecDeque::new(),
            gone: VecDeque::new(),
            signal: None,
            over: false,
        }
    }

    /// Creates the receiver for a port that is shared with other protocols.
    #[must_use]
    pub fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
        Box::new(Self::new(TtcpSettings::server(config.port)))
    }

    pub(super) fn put(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn print_error(&mut self, text: Option<String>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.put(Output::PrintError(text));
        }
    }

    /// Prints the header and result of these variants on standard output, unless the data go there.
    pub(super) fn print_result(&mut self, text: String) {
        let mixed = self.settings.stdio && !self.settings.transmit;
        match self.settings.line {
            TtcpVariant::Sgi | TtcpVariant::Ohio if !mixed => self.put(Output::Print(text)),
            _ => self.print_error(Some(text)),
        }
    }

    pub(super) fn exit(&mut self, code: i32) {
        if !self.over {
            self.over = true;
            self.put(Output::Exit(self.signal.map_or(code, |number| 128_i32.saturating_add(number))));
        }
    }

    fn begin(&mut self) {
        self.print_result(report::header(&self.settings));
        self.print_error(report::note(&self.settings, "socket"));
        if self.settings.buffer.is_some() {
            let step = if self.settings.transmit { "sndbuf" } else { "rcvbuf" };
            self.print_error(report::note(&self.settings, step));
        }
        if self.settings.no_delay && self.settings.transmit {
            self.print_error(report::note(&self.settings, "nodelay"));
        }
        let port = self.settings.port;
        if self.settings.connects() {
            let options = self.options(self.settings.udp);
            self.put(Output::Connect { link: MAIN_LINK, port, to: None, options });
            return;
        }
        let options = self.options(self.settings.udp && !self.settings.both);
        self.put(Output::Listen { link: MAIN_LINK, port, options });
        if self.settings.both {
            let options = self.options(true);
            self.put(Output::Listen { link: SECOND, port, options });
        }
    }

    fn options(&self, udp: bool) -> LinkOptions {
        let settings = &self.settings;
        let (snd_buf, rcv_buf) =
            if settings.transmit { (settings.buffer, None) } else { (None, settings.buffer) };
        LinkOptions {
            transport: if udp { Transport::Udp } else { Transport::Tcp },
            ipv4: settings.ipv4,
            ipv6: settings.ipv6,
            snd_buf,
            rcv_buf,
            no_delay: settings.no_delay && settings.transmit && !udp,
            ..LinkOptions::default()
        }
    }

    fn opened(&mut self, now: Timestamp, link: Link, opened: &Opened) {
        if !self.settings.connects() {
            self.print_error(report::listening(&self.settings, opened.local));
            if self.settings.stdio && self.settings.udp {
                self.pipe = Some(TtcpPipe::new(link));
            }
            return;
        }
        let peer = opened.remote.unwrap_or(opened.local);
        self.print_error(report::connected(&self.settings, peer));
        if self.settings.stdio {
            self.start_pipe(link);
        } else if let Some(run) = self.add(now, self.settings.udp, Some(link), peer)
            && let Some(transfer) = self.transfers.get(&run)
        {
            let plan = transfer.plan(&self.settings, run);
            self.put(Output::Plan(Box::new(plan)));
            self.start(now, run);
        }
    }

    fn start_pipe(&mut self, link: Link) {
        self.pipe = Some(TtcpPipe::new(link));
        if self.settings.transmit {
            self.put(Output::Read);
        }
    }

    fn admitted(&mut self, now: Timestamp, run: RunId) {
        if self.transfers.get(&run).is_some_and(|transfer| transfer.stage == TtcpTransferState::Asking) {
            self.start(now, run);
        }
    }

    /// Passes the link of a test to the engine.
    fn start(&mut self, now: Timestamp, run: RunId) {
        let every = self.poll_interval();
        let Some(transfer) = self.transfers.get_mut(&run) else { return };
        if transfer.closed {
            self.measured(run);
            return;
        }
        transfer.stage = TtcpTransferState::Running;
        transfer.alive = (now, 0);
        transfer.due = Some(now + every);
        let (task, udp, link) = (transfer.task(&self.settings, run), transfer.udp, transfer.link);
        if let (true, true, Some(link)) = (udp, self.settings.transmit, link) {
            self.put(Output::Send { link, bytes: self.mark() });
        }
        self.put(Output::Start(Box::new(task)));
        self.request_counts(TtcpCountsReason::Start(run));
    }

    fn poll_interval(&self) -> Span {
        if self.settings.progress || self.settings.running_rate { PROGRESS_INTERVAL } else { POLL_INTERVAL }
    }

    /// A mark consists of the start of the buffer.
    fn mark(&self) -> Vec<u8> {
        let buffer = if self.settings.line == TtcpVariant::Pcattcp { PCATTCP_PREAMBLE } else { UNIX_START };
        buffer.iter().copied().take(MARK_BYTES).collect()
    }

    fn request_counts(&mut self, wanted: TtcpCountsReason) {
        self.looks.push_back(wanted);
        self.put(Output::Look);
    }

    fn counts(&mut self, now: Timestamp, cpu: CpuTime, flows: &[FlowCounts]) {
        match self.looks.pop_front() {
            Some(TtcpCountsReason::Start(run)) => {
                if let Some(transfer) = self.transfers.get_mut(&run) {
                    transfer.cpu = Some(cpu);
                }
            }
            Some(TtcpCountsReason::Progress(run)) => self.progress(now, run, flows),
            Some(TtcpCountsReason::End(run)) => self.finish(now, run, cpu),
            None => {}
        }
    }

    fn progress(&mut self, now: Timestamp, run: RunId, flows: &[FlowCounts]) {
        let Some(transfer) = self.transfers.get_mut(&run) else { return };
        let before = super::count::moved(&transfer.counts);
        let Some(counts) = flows.iter().find(|counts| counts.flow == transfer.flow) else { return };
        if transfer.stage != TtcpTransferState::Running {
            return;
        }
        transfer.counts = counts.clone();
        let moved = super::count::moved(counts);
        if transfer.is_stuck(now, &self.settings) {
            transfer.cut = true;
            let lost = if transfer.udp { ", or its end marks were lost" } else { "" };
            let idle = super::transfer::IDLE.as_secs_f64();
            transfer.trouble = Some(format!("no data for {idle} seconds: the other end is gone{lost}"));
            let how = if self.settings.transmit { Stop::Abort } else { Stop::AtOnce };
            let flow = transfer.flow;
            self.put(Output::Stop { flow, how });
            return;
        }
        transfer.shown += 1;
        let shown = transfer.shown;
        if self.settings.running_rate {
            let rate = report::running(moved.saturating_sub(before), PROGRESS_INTERVAL.as_secs_f64(), shown);
            self.print_error(Some(rate));
        } else if self.settings.progress && self.settings.transmit {
            let whole = self.settings.count.saturating_mul(u64::from(self.settings.length));
            self.print_error(Some(report::bar(moved, whole)));
        }
    }

    fn ended(&mut self, now: Timestamp, counts: &FlowCounts) {
        let found = self.transfers.iter_mut().find(|(_, transfer)| transfer.flow == counts.flow);
        let Some((run, transfer)) = found else { return };
        let run = *run;
        if transfer.stage != TtcpTransferState::Running {
            return;
        }
        transfer.counts = counts.clone();
        if let (None, Some(reason)) = (&transfer.trouble, &counts.trouble) {
            transfer.trouble = Some(reason.text.clone());
        }
        let delivering = !transfer.udp && self.settings.transmit && self.settings.line == TtcpVariant::Ohio;
        if let (true, true, Some(link)) = (transfer.udp, self.settings.transmit, transfer.link) {
            self.put(Output::Send { link, bytes: self.mark() });
        } else if delivering && transfer.trouble.is_none() {
            // The clock of this variant stops when everything is delivered, not when it is written.
            transfer.stage = TtcpTransferState::Delivering;
            transfer.due = Some(now + Span::from_secs(5));
            return;
        }
        self.measured(run);
    }

    fn measured(&mut self, run: RunId) {
        let Some(transfer) = self.transfers.get_mut(&run) else { return };
        transfer.stage = TtcpTransferState::Measured;
        transfer.due = None;
        self.request_counts(TtcpCountsReason::End(run));
    }

    /// Prints the result.
    fn finish(&mut self, now: Timestamp, run: RunId, cpu: CpuTime) {
        let Some(transfer) = self.transfers.get_mut(&run) else { return };
        let settings = TtcpSettings { udp: transfer.udp, ..self.settings.clone() };
        let outcome = transfer.outcome(&settings, cpu);
        let (peer, flow, trouble) = (transfer.peer, transfer.flow, transfer.trouble.clone());
        transfer.stage = TtcpTransferState::Sparing;
        let pause = settings.udp && settings.transmit && settings.line == TtcpVariant::Pcattcp;
        transfer.due = pause.then(|| now + POLL_INTERVAL);
        if let Some(trouble) = &trouble {
            self.print_error(Some(report::failed(&settings, "IO", 0, trouble)));
        }
        self.print_result(report::result(&settings, &outcome, Some(peer)));
        self.print_error(Some(report::honest(&settings, &outcome)));
        self.put(Output::RunOver { run, trouble });
        self.put(Output::Forget { flow });
        if !pause {
            self.leave(now, run);
        }
    }

    /// Sends the last datagrams of a test and ends it.
    fn leave(&mut self, now: Timestamp, run: RunId) {
        let Some(transfer) = self.transfers.remove(&run) else { return };
        if let Some(link) = transfer.link {
            if transfer.udp && self.settings.transmit {
                for _ in 0..EXTRA_END_MARKS {
                    self.put(Output::Send { link, bytes: self.mark() });
                }
            }
            self.put(Output::Close { link });
        }
        if transfer.udp && !self.settings.transmit {
            self.gone.push_back((transfer.peer, now));
            if self.gone.len() > MAX_TESTS {
                self.gone.pop_front();
            }
        }
        let again = self.settings.forever && !self.settings.transmit && self.signal.is_none();
        if !again && self.transfers.is_empty() {
            self.exit(i32::from(transfer.trouble.is_some()));
        }
    }

    fn not_opened(&mut self, link: Link, reason: &SystemError) {
        let step = if self.settings.connects() { "connect" } else { "bind" };
        self.print_error(Some(report::failed(&self.settings, step, reason.errno, &reason.text)));
        let before = self.transfers.len();
        self.transfers.retain(|_, transfer| transfer.stage != TtcpTransferState::Adopting);
        // A failed peer does not affect others, and without its datagram socket a receiver still serves
        // connections.
        let serves = self.settings.forever && (before > self.transfers.len() || link == SECOND);
        if !serves {
            self.exit(1);
        }
    }

    fn closed(&mut self, now: Timestamp, link: Link, reason: Option<&SystemError>) {
        if self.pipe.as_ref().is_some_and(|pipe| pipe.link == link) {
            self.pipe_closed(now, reason);
            return;
        }
        let found = self.transfers.iter_mut().find(|(_, transfer)| transfer.link == Some(link));
        let Some((run, transfer)) = found else { return };
        let run = *run;
        transfer.closed = true;
        if let Some(reason) = reason {
            transfer.trouble = Some(reason.text.clone());
        }
        if transfer.stage == TtcpTransferState::Delivering {
            transfer.counts.last_at = Some(now);
            self.measured(run);
        }
    }

    fn not_started(&mut self, flow: FlowId, reason: &SystemError) {
        let found = self.transfers.iter_mut().find(|(_, transfer)| transfer.flow == flow);
        let Some((run, transfer)) = found else { return };
        if transfer.stage == TtcpTransferState::Running {
            let run = *run;
            transfer.trouble = Some(reason.text.clone());
            // Its links are already closed.
            transfer.link = None;
            self.measured(run);
        }
    }

    fn tick(&mut self, now: Timestamp) {
        let every = self.poll_interval();
        let due: Vec<RunId> = self
            .transfers
            .iter()
            .filter(|(_, transfer)| transfer.due.is_some_and(|due| due <= now))
            .map(|(run, _)| *run)
            .collect();
        for run in due {
            let Some(transfer) = self.transfers.get_mut(&run) else { continue };
            match transfer.stage {
                TtcpTransferState::Running => {
                    transfer.due = Some(now + every);
                    self.request_counts(TtcpCountsReason::Progress(run));
                }
                TtcpTransferState::Delivering => self.measured(run),
                TtcpTransferState::Sparing => self.leave(now, run),
                TtcpTransferState::Adopting | TtcpTransferState::Asking | TtcpTransferState::Measured => {
                    transfer.due = None
                }
            }
        }
        self.pipe_tick(now);
    }

    fn interrupted(&mut self, now: Timestamp, number: i32) {
        if self.signal.replace(number).is_some() || (self.transfers.is_empty() && self.pipe.is_none()) {
            self.exit(1);
            return;
        }
        self.pipe_ended(now, None);
        let running: Vec<RunId> = self.transfers.keys().copied().collect();
        for run in running {
            let Some(transfer) = self.transfers.get_mut(&run) else { continue };
            transfer.cut = true;
            match transfer.stage {
                TtcpTransferState::Running => {
                    let flow = transfer.flow;
                    self.put(Output::Stop { flow, how: Stop::AtOnce });
                }
                TtcpTransferState::Measured => {}
                TtcpTransferState::Sparing => self.leave(now, run),
                TtcpTransferState::Adopting | TtcpTransferState::Asking | TtcpTransferState::Delivering => {
                    self.measured(run)
                }
            }
        }
    }
}

impl StandIn for Ttcp {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.over {
            return;
        }
        match input {
            Input::Begin => self.begin(),
            Input::Opened { link, opened } => self.opened(now, link, &opened),
            Input::NotOpened { link, reason } => self.not_opened(link, &reason),
            Input::Accepted { listener, link, opened } => self.accepted(now, listener, link, &opened),
            Input::Bytes { link, bytes } => self.bytes(now, link, bytes),
            Input::Datagram { link, from, bytes } => self.datagram(now, link, from, bytes),
            Input::Closed { link, reason } => self.closed(now, link, reason.as_ref()),
            Input::Sent { link } => self.pipe_sent(now, link),
            Input::Admitted { run } => self.admitted(now, run),
            Input::Refused { run, why, .. } => self.refused(run, &why),
            Input::NotStarted { flow, reason } => self.not_started(flow, &reason),
            Input::Counts { cpu, flows } => self.counts(now, cpu, flows),
            Input::Written { flow } => {
                let how = if self.settings.udp { Stop::AtOnce } else { Stop::Regularly };
                self.put(Output::Stop { flow, how });
            }
            Input::Ended { counts } => self.ended(now, counts),
            Input::Tick => self.tick(now),
            Input::Signal(number) => self.interrupted(now, number),
            Input::Text(block) => self.pipe_text(now, block),
            _ => {}
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let pipe = self.pipe.as_ref().and_then(|pipe| pipe.due);
        self.transfers.values().filter_map(|transfer| transfer.due).chain(pipe).min().filter(|_| !self.over)
    }
}
