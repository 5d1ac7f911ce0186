//! Handles inputs for the links and the flow of a transfer.

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_units::{Bytes, Span, Timestamp};

use super::{
    END_DATAGRAM_GAP, END_DATAGRAMS, Failure, NuttcpCountsReason, NuttcpTransfer, NuttcpTransferState,
    POLL_INTERVAL, RETRY_DELAY, START_DATAGRAM_GAP, SharedPort, TransferEvent,
};
use crate::errno::{EADDRINUSE, ECONNREFUSED};
use crate::nuttcp::marks::Marked;
use crate::nuttcp::summary::FreshRanges;
use crate::stand_in::{CpuTime, FlowCounts, Input, Link, Opened, Output, Stop, SystemError};

/// Most bytes of a stream that are kept from before the flow. The driver reads far less until then.
const MAX_EARLY_BYTES: usize = 1 << 20;

/// Longest datagram that begins or ends a test, bytes.
const MARK_LENGTH: usize = 4;

impl NuttcpTransfer {
    /// Handles an input of this transfer; false if it is not one.
    pub(in super::super) fn input(
        &mut self,
        now: Timestamp,
        input: &Input<'_>,
        out: &mut VecDeque<Output>,
    ) -> bool {
        match input {
            Input::Opened { link, opened } if self.stream_of(*link).is_some() => {
                self.link_opened(now, *link, opened, out);
            }
            Input::NotOpened { link, reason } if self.stream_of(*link).is_some() => {
                self.not_opened(now, *link, reason, out);
            }
            Input::Accepted { listener, link, opened } => match self.stream_of(*listener) {
                Some(stream) => self.accepted(now, stream, *link, opened, out),
                None => return false,
            },
            Input::Datagram { link, from, bytes } if self.stream_of(*link).is_some() => {
                self.ask_for_own(*link, *from, out);
                self.datagram(now, bytes, out);
            }
            Input::Bytes { link, bytes } if self.stream_of(*link).is_some() => {
                self.early.0 = self.early.0.saturating_add(bytes.len() as u64);
                self.keep_early(*link, bytes);
                if self.terms.stdio && !self.terms.transmit && self.stage == NuttcpTransferState::Running {
                    self.counted.calls = self.counted.calls.saturating_add(1);
                    out.push_back(Output::Write(bytes.to_vec()));
                }
            }
            Input::Closed { link, reason } if self.stream_of(*link).is_some() => {
                self.closed(now, reason.as_ref(), out);
            }
            Input::Sent { link } if self.stream_of(*link).is_some() => self.sent(out),
            Input::Text(block) => return self.text(now, *block, out),
            Input::Started { flow, .. } => return *flow == self.flow,
            Input::NotStarted { flow, reason } if *flow == self.flow && self.has_flow => {
                self.links.fill(None);
                self.fail(Failure::Start(reason.clone()), out);
            }
            Input::Written { flow } if *flow == self.flow => self.stop(now, out),
            Input::Ended { counts } if counts.flow == self.flow => self.ended(now, counts, out),
            Input::Counts { cpu, flows } => return self.counts(now, *cpu, flows, out),
            _ => return false,
        }
        true
    }

    /// Keeps what arrives before the flow: its blocks carry times, and the next block begins where it ends.
    fn keep_early(&mut self, link: Link, bytes: &[u8]) {
        let stream = self.stream_of(link).and_then(|stream| self.early_blocks.get_mut(stream));
        if let Some(kept) = stream.filter(|_| !self.has_flow) {
            let room = MAX_EARLY_BYTES.saturating_sub(kept.len());
            kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    /// Handles passed deadlines.
    pub(in super::super) fn tick(&mut self, now: Timestamp, out: &mut VecDeque<Output>) {
        if self.next_look.is_some_and(|at| now >= at) {
            self.next_look = Some(now + POLL_INTERVAL);
            self.ask(NuttcpCountsReason::Idle, out);
        }
        if self.next_interval.is_some_and(|at| now >= at) {
            // On absolute ticks; missed ones are skipped.
            let every = self.terms.interval.as_ns().max(1);
            let next = (now.since(self.began).as_ns() / every).saturating_add(1).saturating_mul(every);
            self.next_interval = Some(self.began + Span::from_ns(next));
            self.ask(NuttcpCountsReason::Interval, out);
        }
        if self.due.is_some_and(|at| now >= at) {
            self.due = None;
            self.due_now(now, out);
        }
    }

    fn due_now(&mut self, now: Timestamp, out: &mut VecDeque<Output>) {
        match self.stage {
            NuttcpTransferState::Connecting => self.connect(out),
            NuttcpTransferState::Accepting => self.fail(Failure::Nobody, out),
            NuttcpTransferState::Awaiting => {
                self.events.push_back(TransferEvent::Idle);
                self.fail(Failure::Nobody, out);
            }
            NuttcpTransferState::Beginning(number) if number < self.terms.begins() => {
                self.mark(b"BOD", number, false, out);
                self.stage = NuttcpTransferState::Beginning(number + 1);
                if number + 1 == self.terms.begins() {
                    self.run(now, out);
                } else {
                    self.due = Some(now + START_DATAGRAM_GAP);
                }
            }
            NuttcpTransferState::Ending(number) if number < END_DATAGRAMS => {
                self.mark(b"EOD", number, true, out);
                self.stage = NuttcpTransferState::Ending(number + 1);
                if number + 1 == END_DATAGRAMS {
                    self.finish(out);
                } else {
                    self.due = Some(now + END_DATAGRAM_GAP);
                }
            }
            NuttcpTransferState::Running => self.stop(now, out),
            NuttcpTransferState::Draining => self.ask(NuttcpCountsReason::Drain, out),
            // A flow that did not end after it was stopped. Its peer has had its time to acknowledge.
            NuttcpTransferState::Stopping => {
                self.drained_by = Some(now);
                out.push_back(Output::Stop { flow: self.flow, how: Stop::Abort });
            }
            _ => {}
        }
    }

    /// Sends a mark. Those that begin a test go to the first stream. Those that end it go to all streams,
    /// because a receiver that reads the streams in turn may wait for any of them.
    fn mark(&self, word: &[u8; 3], number: u8, all: bool, out: &mut VecDeque<Output>) {
        let streams = if all { self.links.len() } else { 1 };
        for link in self.links.iter().take(streams).flatten() {
            let mut bytes = word.to_vec();
            bytes.push(b'0' + number);
            out.push_back(Output::Send { link: *link, bytes });
        }
    }

    /// Opens the missing connections.
    fn connect(&mut self, out: &mut VecDeque<Output>) {
        for number in std::mem::take(&mut self.missing) {
            out.push_back(Output::Connect {
                link: self.own(number),
                port: self.terms.stream_port(number),
                to: self.terms.address(number),
                options: self.terms.link_options(),
            });
        }
    }

    fn link_opened(&mut self, now: Timestamp, link: Link, opened: &Opened, out: &mut VecDeque<Output>) {
        let Some(stream) = self.stream_of(link) else { return };
        let listens = self.stage == NuttcpTransferState::Listening;
        if !listens && self.stage != NuttcpTransferState::Connecting {
            return;
        }
        if stream == 0 {
            self.opened = Some(opened.clone());
        }
        if listens && self.terms.udp && opened.descriptor < 0 {
            if self.terms.streams > 1 {
                let text = "Address already in use".to_owned();
                return self.fail(Failure::Listen(SystemError { errno: EADDRINUSE, text }), out);
            }
            self.shared = SharedPort::Waiting;
        }
        if listens && !self.terms.udp {
            // Listeners do not carry data; the connections take their places.
            self.marks += 1;
            if self.marks == u64::from(self.terms.streams) {
                self.marks = 0;
                self.ready();
            }
            return;
        }
        if let Some(held) = self.links.get_mut(stream) {
            *held = Some(link);
        }
        if self.links.iter().all(Option::is_some) {
            if listens { self.ready() } else { self.begin(now, out) }
        }
    }

    fn ready(&mut self) {
        self.stage = NuttcpTransferState::Ready;
        self.events.push_back(TransferEvent::Ready);
    }

    fn not_opened(&mut self, now: Timestamp, link: Link, reason: &SystemError, out: &mut VecDeque<Output>) {
        match self.stage {
            NuttcpTransferState::Listening => self.fail(Failure::Listen(reason.clone()), out),
            NuttcpTransferState::Connecting => {
                let again =
                    reason.errno == ECONNREFUSED && now < self.give_up_connecting && !self.terms.classic;
                if !again {
                    return self.fail(Failure::Connect(reason.clone()), out);
                }
                self.missing.extend(self.stream_of(link).and_then(|stream| u16::try_from(stream).ok()));
                self.due = Some(now + RETRY_DELAY);
            }
            _ => {}
        }
    }

    fn accepted(
        &mut self,
        now: Timestamp,
        stream: usize,
        link: Link,
        opened: &Opened,
        out: &mut VecDeque<Output>,
    ) {
        if let SharedPort::Asked(begins) = self.shared {
            self.shared = SharedPort::Had;
            self.opened = Some(opened.clone());
            self.links = vec![Some(link)];
            out.push_back(Output::Close { link: self.own(0) });
            if begins {
                self.begin(now, out);
            }
            return;
        }
        let free = self.links.get(stream).is_some_and(Option::is_none);
        if !free || !matches!(self.stage, NuttcpTransferState::Ready | NuttcpTransferState::Accepting) {
            out.push_back(Output::Close { link });
            return;
        }
        if let Some(held) = self.links.get_mut(stream) {
            *held = Some(link);
        }
        if stream == 0 {
            self.opened = Some(opened.clone());
        }
        out.push_back(Output::Close { link: Link(self.base + stream as u32) });
        if self.links.iter().all(Option::is_some) {
            self.begin(now, out);
        }
    }

    /// On a shared port the peer gets its own socket.
    fn ask_for_own(&mut self, listener: Link, peer: SocketAddr, out: &mut VecDeque<Output>) {
        if self.shared == SharedPort::Waiting {
            self.shared = SharedPort::Asked(false);
            out.push_back(Output::Adopt { listener, peer, options: self.terms.link_options() });
        }
    }

    /// The test begins, possibly after the peer's own socket is open.
    fn begin_or_wait(&mut self, now: Timestamp, out: &mut VecDeque<Output>) {
        match &mut self.shared {
            SharedPort::Asked(begins) => *begins = true,
            _ => self.begin(now, out),
        }
    }

    /// Handles a datagram before the flow: a mark that begins the test, or the first data if those marks were
    /// lost.
    fn datagram(&mut self, now: Timestamp, bytes: &[u8], out: &mut VecDeque<Output>) {
        if !matches!(self.stage, NuttcpTransferState::Ready | NuttcpTransferState::Awaiting) {
            return;
        }
        if bytes.len() > MARK_LENGTH {
            self.early = (self.early.0.saturating_add(bytes.len() as u64), self.early.1.saturating_add(1));
            return self.begin_or_wait(now, out);
        }
        let begins = bytes.starts_with(b"BOD");
        let number = match bytes.get(3) {
            Some(digit) if digit.is_ascii_digit() => digit - b'0',
            // No mark.
            Some(_) => return,
            None => 0,
        };
        self.marks += 1;
        if begins && number + 1 >= self.terms.begins() {
            self.begin_or_wait(now, out);
        } else if bytes.starts_with(b"EOD") && number > 0 {
            // All data were lost.
            self.events.push_back(TransferEvent::Begun);
            self.began = now;
            self.count(out);
        } else {
            self.due = Some(now + self.terms.data_timeout());
        }
    }

    fn ended(&mut self, now: Timestamp, counts: &FlowCounts, out: &mut VecDeque<Output>) {
        if !matches!(self.stage, NuttcpTransferState::Running | NuttcpTransferState::Stopping) {
            return;
        }
        self.take(now, counts);
        (self.next_look, self.next_interval) = (None, None);
        // The CPU time of the test ends with the data and does not include the end marks.
        self.count(out);
        if self.terms.udp && self.terms.transmit && !self.cut {
            self.stage = NuttcpTransferState::Ending(0);
            self.due_now(now, out);
        }
    }

    fn counts(
        &mut self,
        now: Timestamp,
        cpu: CpuTime,
        flows: &[FlowCounts],
        out: &mut VecDeque<Output>,
    ) -> bool {
        let mine = flows.iter().find(|counts| counts.flow == self.flow);
        // Every reading restarts the ranges, also one that another session has requested.
        if let Some(counts) = mine {
            self.note_ranges(counts);
        }
        let Some(why) = self.looks.pop_front() else { return false };
        match why {
            NuttcpCountsReason::Begin => self.cpu = cpu,
            NuttcpCountsReason::End => self.cost(now, cpu, mine, out),
            NuttcpCountsReason::Drain => {
                if self.stage == NuttcpTransferState::Draining {
                    self.drain(now, mine, out);
                }
            }
            _ if self.stage != NuttcpTransferState::Running && why != NuttcpCountsReason::Owner => {}
            NuttcpCountsReason::Interval => {
                if let Some(counts) = mine {
                    self.interval(counts);
                }
            }
            NuttcpCountsReason::Idle => {
                if let Some(counts) = mine {
                    self.is_idle(now, counts, out);
                }
            }
            NuttcpCountsReason::Owner => {
                let known = |of: fn(&crate::stand_in::StreamCounts) -> Option<u64>| {
                    mine.and_then(|counts| counts.streams.iter().filter_map(of).reduce(u64::saturating_add))
                };
                // The last line of a server may arrive when our flow has already been forgotten.
                let retrans = known(|stream| stream.retransmits).or(self.counted.retrans);
                let cwnd = known(|stream| stream.snd_cwnd).map(|bytes| bytes / 1024).or(self.counted.cwnd);
                let counts = retrans.map(|retrans| {
                    Marked { retrans, of_host: false, cwnd }.take_new(&mut self.shown_retrans)
                });
                self.events.push_back(TransferEvent::Looked(counts));
            }
        }
        true
    }

    fn interval(&mut self, counts: &FlowCounts) {
        let total = self.amount(counts);
        // After the end of a UDP test nothing arrives, so an empty interval is reported only if data follow.
        if self.terms.udp && total.bytes == self.shown.bytes {
            return;
        }
        let [delays, jitter] = &mut self.fresh;
        let interval = total.since(self.shown, FreshRanges { delays: delays.take(), jitter: jitter.take() });
        self.shown = total;
        let noted = counts.streams.first().and_then(|stream| stream.noted);
        let marked = noted
            .and_then(|noted| Marked::read(&noted, self.terms.peer))
            .map(|marked| marked.take_new(&mut self.shown_retrans));
        self.events.push_back(TransferEvent::Interval {
            interval: Box::new(interval),
            total: Box::new(total),
            marked,
        });
    }

    fn is_idle(&mut self, now: Timestamp, counts: &FlowCounts, out: &mut VecDeque<Output>) {
        let last = counts.last_at.unwrap_or(self.began).max(self.began);
        // With several streams the marks may arrive on any of them.
        let marked = self.terms.udp && counts.streams.iter().any(|stream| stream.ended);
        if marked {
            self.stop(now, out);
        } else if now.since(last) >= self.terms.data_timeout() {
            self.events.push_back(TransferEvent::Idle);
            self.stop(now, out);
        }
    }

    /// Computes the CPU time of the test.
    fn cost(
        &mut self,
        now: Timestamp,
        cpu: CpuTime,
        counts: Option<&FlowCounts>,
        out: &mut VecDeque<Output>,
    ) {
        self.counted.user = cpu.user.saturating_sub(self.cpu.user);
        self.counted.system = cpu.system.saturating_sub(self.cpu.system);
        self.counted.usage = cpu.usage_since(&self.cpu);
        if self.stage == NuttcpTransferState::Counting {
            let sends = self.terms.transmit && !self.terms.udp && self.has_flow;
            self.drain(now, counts.filter(|_| sends), out);
        }
    }

    pub(super) fn finish(&mut self, out: &mut VecDeque<Output>) {
        self.close(out);
        if self.has_flow {
            out.push_back(Output::Forget { flow: self.flow });
        }
        self.events.push_back(TransferEvent::Over);
    }

    /// The peer has closed a data connection that no flow uses.
    fn closed(&mut self, now: Timestamp, reason: Option<&SystemError>, out: &mut VecDeque<Output>) {
        match self.stage {
            NuttcpTransferState::Running if !self.has_flow => {
                self.trouble = reason.cloned();
                self.piped_end(now, out);
            }
            // It acknowledges nothing more. The kernel may still have bytes for it.
            NuttcpTransferState::Draining => {
                self.drained_by = Some(now);
                self.ask(NuttcpCountsReason::Drain, out);
            }
            _ => {}
        }
    }

    /// The next block of standard input can be sent.
    fn sent(&mut self, out: &mut VecDeque<Output>) {
        if self.stage == NuttcpTransferState::Running && self.terms.stdio && self.terms.transmit {
            out.push_back(Output::Read);
        }
    }

    fn text(&mut self, now: Timestamp, block: Option<&[u8]>, out: &mut VecDeque<Output>) -> bool {
        if self.stage != NuttcpTransferState::Running || !self.terms.stdio {
            return false;
        }
        match (block, self.links.first().copied().flatten()) {
            (Some(block), Some(link)) => {
                // With -n the input ends after that number of blocks.
                let most = self.terms.bytes().map_or(u64::MAX, Bytes::get);
                let room = usize::try_from(most.saturating_sub(self.early.0)).unwrap_or(usize::MAX);
                let block = block.get(..room).unwrap_or(block);
                self.early.0 = self.early.0.saturating_add(block.len() as u64);
                self.counted.calls = self.counted.calls.saturating_add(1);
                out.push_back(Output::Send { link, bytes: block.to_vec() });
                if self.early.0 >= most {
                    self.piped_end(now, out);
                }
            }
            _ => self.piped_end(now, out),
        }
        true
    }

    /// The end of data that are transferred without a flow.
    pub(super) fn piped_end(&mut self, now: Timestamp, out: &mut VecDeque<Output>) {
        self.counted.bytes = self.early.0;
        self.counted.span = now.since(self.began);
        self.count(out);
    }
}
