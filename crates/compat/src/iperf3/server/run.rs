//! One test of a server, from the start of its timers to the exchange of the results.

use linerate_units::{Span, Timestamp};

use super::test::{
    Break, Iperf3ServerCountsReason, Iperf3ServerPhase, Iperf3ServerTest, MESSAGE_TIMEOUT, StreamDrain,
};
use super::{READ_TIMEOUT, ServerState};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::params::{Params, natural};
use crate::iperf3::plan;
use crate::iperf3::report::Iperf3Stream;
use crate::iperf3::results::Iperf3Results;
use crate::iperf3::settings::Iperf3Settings;
use crate::iperf3::state::Iperf3State;
use crate::iperf3::test_state::Iperf3OpenTest;
use crate::iperf3::wire::{CLIENT_RESULTS_LIMIT, frame, take_message};
use crate::stand_in::{CpuTime, FlowCounts, FlowId, Opened, Output, Stop, SystemError};

/// How much longer than requested a client may take to end its test (as in iperf3 since 3.7).
const END_GRACE: Span = Span::from_secs(40);
/// Timeout for flows to stop.
const STOP_TIMEOUT: Span = Span::from_secs(2);
/// The drain after a goal: longest duration, longest pause, and poll interval.
const DRAIN: (Span, Span, Span) = (Span::from_secs(1), Span::from_ms(50), Span::from_ms(5));

impl Iperf3ServerTest {
    /// Handles what the client has sent.
    pub(super) fn listen(&mut self, now: Timestamp, server_state: &mut ServerState) {
        loop {
            match self.phase {
                // The parameters are handled by the server, and the client sends nothing more before the
                // streams are open.
                Iperf3ServerPhase::Negotiating
                | Iperf3ServerPhase::Asking
                | Iperf3ServerPhase::AwaitsUdpListener
                | Iperf3ServerPhase::Over(_) => return,
                Iperf3ServerPhase::Draining | Iperf3ServerPhase::Stopping => return,
                Iperf3ServerPhase::Exchanging => match take_message(&mut self.held, CLIENT_RESULTS_LIMIT) {
                    Ok(Some(message)) => self.take_results(now, &message, server_state),
                    Ok(None) => return,
                    Err(_) => self.fail(&Iperf3Error::new(Iperf3ErrorNumber::RECV_RESULTS), server_state),
                },
                Iperf3ServerPhase::Creating | Iperf3ServerPhase::Running | Iperf3ServerPhase::Showing => {
                    let Some(byte) = self.held.first().copied() else { return };
                    self.held.remove(0);
                    self.handle_state(now, Iperf3State::of(byte), server_state);
                }
            }
        }
    }

    fn handle_state(&mut self, now: Timestamp, state: Option<Iperf3State>, server_state: &mut ServerState) {
        if let Some(state) = state {
            let words = self.report.received_state(state);
            server_state.speak(words);
        }
        match (state, self.phase) {
            (Some(Iperf3State::TestStart), _) => {}
            (Some(Iperf3State::TestEnd), Iperf3ServerPhase::Running) => self.test_end(now),
            (Some(Iperf3State::IperfDone), Iperf3ServerPhase::Showing) => self.done(server_state),
            (Some(Iperf3State::ClientTerminate), Iperf3ServerPhase::Running) => {
                self.request_counts(Iperf3ServerCountsReason::BreakOff(Break::Client))
            }
            (Some(Iperf3State::ClientTerminate), _) => self.terminated(server_state),
            (Some(Iperf3State::IperfDone), _) => self.vanished(server_state),
            _ => self.fail(&Iperf3Error::new(Iperf3ErrorNumber::MESSAGE), server_state),
        }
    }

    pub(super) fn request_counts(&mut self, why: Iperf3ServerCountsReason) {
        self.looking = (why, false);
    }

    /// Whether counts are needed and were not requested yet; marks them as requested.
    pub(super) fn starts_looking(&mut self) -> bool {
        let starts = self.looking.0 != Iperf3ServerCountsReason::No && !self.looking.1;
        self.looking.1 = true;
        starts
    }

    /// All streams are open: starts the timers and the flows.
    pub(super) fn start(&mut self, now: Timestamp, server_state: &mut ServerState) {
        let Some(params) = &self.params else { return };
        let opened: Vec<Opened> = self.streams.iter().map(|(_, opened)| opened.clone()).collect();
        // Without a window, iperf3 reports the buffers of its listener.
        let window = params.window.is_some() || params.udp;
        let listener = server_state.listener_buffers.filter(|_| !window);
        for (at, opened) in opened.iter().enumerate() {
            let (snd_buf, rcv_buf) = listener.unwrap_or((opened.snd_buf, opened.rcv_buf));
            let text = self.report.stream(Iperf3Stream {
                socket: opened.descriptor,
                local: opened.local,
                remote: opened.remote.unwrap_or(opened.local),
                sends: params.server_sends(at),
                snd_buf,
                rcv_buf,
            });
            server_state.print(text);
        }
        let cpu = params.server_affinity.and_then(|cpu| u32::try_from(cpu).ok());
        let cpu = cpu.or(server_state.settings.common.affinity);
        let file = server_state.settings.common.file.clone();
        let mut test =
            Iperf3OpenTest::new(params, self.linked_groups(), &opened, server_state.settings.common.interval);
        test.begin(now);
        // Receivers must read before the client may send.
        let (senders, receivers): (Vec<_>, Vec<_>) = test.groups.clone().into_iter().partition(|g| g.sends);
        for group in receivers {
            test.started(group.flow);
            let task = plan::task(params, &group, self.run, false, cpu, file.as_ref());
            server_state.out.push_back(Output::Start(Box::new(task)));
        }
        let text = self.report.started();
        server_state.print(text);
        let states = [Iperf3State::TestStart, Iperf3State::TestRunning];
        for state in states {
            let words = self.report.sent_state(state);
            server_state.speak(words);
        }
        let states = states.map(Iperf3State::byte).to_vec();
        server_state.out.push_back(Output::Send { link: self.control, bytes: states });
        for group in senders {
            test.started(group.flow);
            let task = plan::task(params, &group, self.run, false, cpu, file.as_ref());
            server_state.out.push_back(Output::Start(Box::new(task)));
        }
        self.test = Some(test);
        self.set_limits(now, &server_state.settings);
        self.enter(Iperf3ServerPhase::Running, None);
        self.request_counts(Iperf3ServerCountsReason::Begin);
    }

    fn set_limits(&mut self, now: Timestamp, settings: &Iperf3Settings) {
        let Some(params) = &self.params else { return };
        let length = Span::from_secs(natural(params.time).saturating_add(natural(params.omit)));
        self.safety_end = (params.time > 0).then(|| now + length + END_GRACE);
        let averaged = settings.server.bitrate_limit_interval;
        let limited = settings.server.bitrate_limit.is_some_and(|limit| limit > 0) && averaged > Span::ZERO;
        self.rate_check = limited.then(|| (now + averaged, 0));
    }

    pub(super) fn deadline(&self, settings: &Iperf3Settings) -> Option<Timestamp> {
        let timers = if self.phase == Iperf3ServerPhase::Running { self.timer(settings) } else { None };
        let drain = self.draining.map(|drain| drain.next);
        [self.timeout, timers, drain].into_iter().flatten().min()
    }

    fn timer(&self, settings: &Iperf3Settings) -> Option<Timestamp> {
        let test = self.test.as_ref()?;
        let silent = test.silent_at(settings.common.rcv_timeout);
        let rate = self.rate_check.map(|(at, _)| at);
        [test.deadline(), silent, self.safety_end, rate].into_iter().flatten().min()
    }

    pub(super) fn tick(&mut self, now: Timestamp, server_state: &mut ServerState) {
        if self.timeout.is_some_and(|timeout| timeout <= now) {
            self.timeout = None;
            return self.timed_out(now, server_state);
        }
        let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        let timer = self.phase == Iperf3ServerPhase::Running && due(self.timer(&server_state.settings));
        if self.looking.0 == Iperf3ServerCountsReason::No
            && (timer || due(self.draining.map(|drain| drain.next)))
        {
            self.request_counts(Iperf3ServerCountsReason::Timer);
        }
    }

    /// A timeout has passed.
    fn timed_out(&mut self, now: Timestamp, server_state: &mut ServerState) {
        const ETIMEDOUT: i32 = 110;
        let late = |number| Iperf3Error::because(number, ETIMEDOUT, "Connection timed out");
        match self.phase {
            Iperf3ServerPhase::Negotiating => self.fail(&late(Iperf3ErrorNumber::RECV_PARAMS), server_state),
            Iperf3ServerPhase::AwaitsUdpListener | Iperf3ServerPhase::Creating => {
                self.fail(&Iperf3Error::new(Iperf3ErrorNumber::IDLE_TIMEOUT), server_state)
            }
            Iperf3ServerPhase::Stopping => self.finish(now, server_state),
            Iperf3ServerPhase::Exchanging => self.fail(&late(Iperf3ErrorNumber::RECV_RESULTS), server_state),
            Iperf3ServerPhase::Showing => self.done(server_state),
            Iperf3ServerPhase::Asking
            | Iperf3ServerPhase::Running
            | Iperf3ServerPhase::Draining
            | Iperf3ServerPhase::Over(_) => {}
        }
    }

    pub(super) fn counts(
        &mut self,
        now: Timestamp,
        cpu: CpuTime,
        flows: &[FlowCounts],
        server_state: &mut ServerState,
    ) {
        let (why, asked) = std::mem::replace(&mut self.looking, (Iperf3ServerCountsReason::No, false));
        let Some(test) = self.test.as_mut().filter(|_| asked && why != Iperf3ServerCountsReason::No) else {
            return;
        };
        let ending = why != Iperf3ServerCountsReason::Timer || self.phase != Iperf3ServerPhase::Running;
        let text = test.count(now, cpu, flows, &mut self.report, ending);
        server_state.print(text);
        match why {
            Iperf3ServerCountsReason::No | Iperf3ServerCountsReason::Begin => {}
            Iperf3ServerCountsReason::Timer if self.phase == Iperf3ServerPhase::Draining => {
                self.drain(now, server_state)
            }
            Iperf3ServerCountsReason::Timer => self.judge(now, server_state),
            Iperf3ServerCountsReason::Last => self.stop(now, server_state),
            Iperf3ServerCountsReason::BreakOff(by) => self.show_broken_off(now, by, server_state),
        }
    }

    /// Checks whether the test may continue.
    fn judge(&mut self, now: Timestamp, server_state: &mut ServerState) {
        let Some(test) = self.test.as_ref().filter(|_| self.phase == Iperf3ServerPhase::Running) else {
            return;
        };
        let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        if due(test.silent_at(server_state.settings.common.rcv_timeout)) {
            return self.fail(&Iperf3Error::new(Iperf3ErrorNumber::IDLE_TIMEOUT), server_state);
        }
        if due(self.safety_end) {
            return self.fail(&Iperf3Error::new(Iperf3ErrorNumber::DURATION_EXPIRED), server_state);
        }
        if let Some((_, before)) = self.rate_check.filter(|(at, _)| *at <= now) {
            let averaged = server_state.settings.server.bitrate_limit_interval;
            let bytes = test.meter.all_bytes();
            let bps = bytes.saturating_sub(before) as f64 * 8.0 / averaged.as_secs_f64();
            self.rate_check = Some((now + averaged, bytes));
            if server_state.settings.server.bitrate_limit.is_some_and(|limit| bps > limit as f64) {
                self.fail(&Iperf3Error::new(Iperf3ErrorNumber::TOTAL_RATE), server_state);
            }
        }
    }

    /// The client has ended the test. With a goal it has sent a known number of bytes, and the last of them may
    /// still be in transit.
    fn test_end(&mut self, now: Timestamp) {
        let receives = self.test.as_ref().is_some_and(|test| test.groups.iter().any(|g| !g.sends));
        let goal = self.params.as_ref().is_some_and(|params| params.goal().is_some());
        self.enter(Iperf3ServerPhase::Draining, None);
        if receives && goal {
            let (longest, _, step) = DRAIN;
            self.draining =
                Some(StreamDrain { bytes: 0, grew_at: now, next: now + step, until: now + longest });
            self.request_counts(Iperf3ServerCountsReason::Timer);
        } else {
            self.request_counts(Iperf3ServerCountsReason::Last);
        }
    }

    fn drain(&mut self, now: Timestamp, server_state: &mut ServerState) {
        let (Some(drain), Some(test)) = (&mut self.draining, &self.test) else { return };
        let (_, pause, step) = DRAIN;
        let goal = self.params.as_ref().and_then(Params::goal).unwrap_or(0);
        let bytes = test.meter.bytes(false);
        if bytes > drain.bytes {
            (drain.bytes, drain.grew_at) = (bytes, now);
        }
        drain.next = now + step;
        if bytes >= goal || now.since(drain.grew_at) >= pause || now >= drain.until {
            self.stop(now, server_state);
        }
    }

    /// The last counts have been read: what is received from now on does not belong to the test. The counts of
    /// senders may still grow until their flows have ended, because the client must never have received more
    /// than we report.
    fn stop(&mut self, now: Timestamp, server_state: &mut ServerState) {
        self.draining = None;
        self.ended_at = now;
        self.enter(Iperf3ServerPhase::Stopping, Some(now + STOP_TIMEOUT));
        let Some(test) = &mut self.test else { return };
        test.meter.freeze();
        let stops = test.running().iter().map(|flow| Output::Stop { flow: *flow, how: Stop::AtOnce });
        server_state.out.extend(stops);
        if test.running().is_empty() {
            self.finish(now, server_state);
        }
    }

    /// Handles the end of a flow. If it ends by itself, the client also sees that and decides.
    pub(super) fn flow_ended(&mut self, now: Timestamp, counts: &FlowCounts, server_state: &mut ServerState) {
        let Some(test) = &mut self.test else { return };
        if !test.ended(counts.flow) {
            return;
        }
        test.meter.take_flow(counts);
        if self.phase == Iperf3ServerPhase::Stopping && test.running().is_empty() {
            self.finish(now, server_state);
        }
    }

    pub(super) fn not_started(&mut self, flow: FlowId, reason: &SystemError, server_state: &mut ServerState) {
        if self.test.as_mut().is_some_and(|test| test.ended(flow)) {
            let number = match server_state.settings.common.file {
                Some(_) => Iperf3ErrorNumber::FILE,
                None => Iperf3ErrorNumber::INIT_STREAM,
            };
            let trouble = Iperf3Error::because(number, reason.errno, reason.text.clone());
            self.fail(&trouble, server_state);
        }
    }

    /// The flows have ended: prints the own results, then requests the client's.
    fn finish(&mut self, now: Timestamp, server_state: &mut ServerState) {
        let Some(test) = &mut self.test else { return };
        let interval = test.close(self.ended_at, &mut self.report);
        let summary = self.report.summary(&test.end(self.ended_at, None));
        server_state.print(interval + &summary);
        self.close_streams(server_state);
        self.send_state(Iperf3State::ExchangeResults, server_state);
        self.message_end = now + MESSAGE_TIMEOUT;
        self.enter(Iperf3ServerPhase::Exchanging, Some(self.message_end));
        self.listen(now, server_state);
    }

    /// Takes the client's results and sends ours.
    fn take_results(&mut self, now: Timestamp, message: &[u8], server_state: &mut ServerState) {
        let (Some(test), Some(params)) = (&self.test, &self.params) else { return };
        let Some(peer) = Iperf3Results::read(message, test.meter.elapsed(self.ended_at)) else {
            return self.fail(&Iperf3Error::new(Iperf3ErrorNumber::RECV_RESULTS), server_state);
        };
        if !test.knows(&peer) {
            return self.fail(&Iperf3Error::new(Iperf3ErrorNumber::STREAM_ID), server_state);
        }
        for (flow, tally) in test.peer_tallies(&peer, params.udp) {
            server_state.out.push_back(Output::PeerCounted { flow, tally: Box::new(tally) });
        }
        let mut own = test.results(self.ended_at);
        for (stream, (id, sends)) in own.streams.iter_mut().zip(test.meter.ids()) {
            // The receiver measures the jitter; iperf3 repeats it to the client.
            if let Some(theirs) = peer.stream(id).filter(|_| sends) {
                stream.jitter = theirs.jitter;
            }
        }
        own.output = params.get_server_output.then(|| self.report.for_client());
        let own = own.write();
        for words in [self.report.message("get_results", message), self.report.message("send_results", &own)]
        {
            server_state.speak(words);
        }
        server_state.out.push_back(Output::Send { link: self.control, bytes: frame(&own) });
        self.send_state(Iperf3State::DisplayResults, server_state);
        self.enter(Iperf3ServerPhase::Showing, Some(now + READ_TIMEOUT));
    }

    pub(super) fn close_streams(&mut self, server_state: &mut ServerState) {
        server_state.out.extend(self.streams.drain(..).map(|(link, _)| Output::Close { link }));
    }
}
