//! A sweep over message sizes: makes trials until every size is measured or the time is over.

use std::sync::atomic::{AtomicBool, Ordering};

use linerate_engine::Sockets;
use linerate_model::flow::FlowId;
use linerate_model::{Body, ByteAccounting, CaveatKind, Direction, Side, Sweep};
use linerate_proto::{Ended, FlowOrder, PeerError, SessionInput, SessionOutput, SweepTrial, TrialCount};
use linerate_sock::{Mono, clock};
use linerate_units::Span;

use super::{ClientRun, POLL_INTERVAL, TestRequest, phase_gate};
use crate::dialogue::DialogueEvent;
use crate::error::ControlError;
use crate::log::Log;
use crate::sweep::{NextTrial, Runner, SweepSchedule};
use crate::{flow_log, judge, port_observer};

/// Number of the only flow.
const FLOW: FlowId = FlowId(0);

/// The result of a wait.
enum WaitResult<T> {
    Here(T),
    /// Cancelled by the caller.
    Stopped,
}

/// The final reports of both ends.
#[derive(Default)]
struct FinalReports {
    own: Option<Ended>,
    peer: Option<Ended>,
}

impl ClientRun<'_> {
    /// Measures the sweep. What was measured is logged even after a failure.
    pub(super) fn sweep(
        &mut self,
        sweep: &Sweep,
        request: &TestRequest<'_>,
        log: &mut Log<'_>,
    ) -> Result<(), ControlError> {
        let began = clock::now();
        log.note(Body::FlowPlanned(flow_log::plan(FLOW, Direction::Upload, &self.spec, log)));
        let mut schedule = SweepSchedule::new(sweep);
        let mut reports = FinalReports::default();
        let result = self.sweep_steps(&mut schedule, &mut reports, request.stop, log);
        for point in schedule.take_remaining() {
            log.note(Body::Size { flow: FLOW, point });
        }
        warn_unmeasured(&schedule, result.is_ok() && !request.stop.load(Ordering::Relaxed), log);
        let byte_accounting = match (&reports.own, &reports.peer) {
            (Some(own), Some(peer)) => Some(ByteAccounting::close(&own.tally, &peer.tally)),
            _ => None,
        };
        for (host, ended) in (0..).zip([reports.own, reports.peer]) {
            if let Some(ended) = ended {
                flow_log::note_end(FLOW, host, ended, log);
            }
        }
        if let Some(byte_accounting) = byte_accounting {
            log.note(Body::BytesAccounted { flow: FLOW, byte_accounting });
        }
        if let Some(observer) = request.observer {
            port_observer::record_observations(observer, began, &[FLOW], log);
        }
        judge::judge(FLOW, log);
        result
    }

    fn sweep_steps(
        &mut self,
        schedule: &mut SweepSchedule,
        reports: &mut FinalReports,
        stop: &AtomicBool,
        log: &mut Log<'_>,
    ) -> Result<(), ControlError> {
        let order = FlowOrder::new(&self.spec, FLOW, Direction::Upload, schedule.largest());
        let order = order.map_err(|error| ControlError::Local(error.to_string()))?;
        let (mut runner, planned) = self.open_stream(order, stop)?;
        phase_gate::note_start(planned, clock::now(), log);
        log.note(Body::FlowOpened { flow: FLOW, side: Side::Sender, settings: runner.settings().clone() });
        self.dialogue.begin_counting();
        let measured = self.trials(schedule, &mut runner, stop, log);
        let mut own = runner.final_report(FLOW);
        self.dialogue.note_counts(&mut own.tally);
        reports.own = Some(own);
        measured?;
        self.part(&mut runner, reports)
    }

    /// Opens the only stream at both ends. Also returns the planned start if a gate determined it.
    fn open_stream(
        &mut self,
        order: FlowOrder,
        stop: &AtomicBool,
    ) -> Result<(Runner, Option<Mono>), ControlError> {
        let orders = [order];
        self.dialogue.input(SessionInput::Measure(orders.to_vec()))?;
        let open = |event: &DialogueEvent| matches!(event, DialogueEvent::Session(SessionOutput::Open(_)));
        self.wait_for(stop, |event| open(&event).then_some(()))?;
        let opened = self.open_flows(&orders, None, stop).and_then(|mut sockets| match sockets.pop() {
            Some(Sockets::Tcp(mut streams)) if streams.len() == 1 => {
                Runner::new(streams.remove(0), &self.spec, true)
            }
            _ => Err(ControlError::Local("a series has one TCP connection".to_owned())),
        });
        let runner = match opened {
            Ok(runner) => runner,
            Err(error) => {
                // The server learns the reason before we give up.
                let _ = self.dialogue.input(SessionInput::FlowsFailed(error.to_string()));
                self.dialogue.flush_at_end();
                return Err(error);
            }
        };
        let planned = self.wait_at_gate(true, stop)?;
        self.dialogue.input(SessionInput::FlowsOpen)?;
        let start = |event: &DialogueEvent| matches!(event, DialogueEvent::Session(SessionOutput::Start));
        self.wait_for(stop, |event| start(&event).then_some(()))?;
        Ok((runner, planned))
    }

    fn trials(
        &mut self,
        schedule: &mut SweepSchedule,
        runner: &mut Runner,
        stop: &AtomicBool,
        log: &mut Log<'_>,
    ) -> Result<(), ControlError> {
        let began = clock::now();
        let spent = || Span::from(clock::now().since(began));
        while let NextTrial::Trial(trial) = schedule.next(spent()) {
            let WaitResult::Here((own, peer)) = self.trial(trial, runner, stop)? else { return Ok(()) };
            let counted = schedule.counted(spent(), &own, &peer);
            let point = counted.map_err(|what| PeerError::Misbehaved { what: what.into() })?;
            if let Some(point) = point {
                log.note(Body::Size { flow: FLOW, point });
            }
        }
        Ok(())
    }

    /// Makes one trial; returns the counts of both ends.
    fn trial(
        &mut self,
        trial: SweepTrial,
        runner: &mut Runner,
        stop: &AtomicBool,
    ) -> Result<WaitResult<(TrialCount, TrialCount)>, ControlError> {
        self.dialogue.input(SessionInput::Trial(trial))?;
        runner.begin(trial)?;
        let (mut own, mut peer) = (None, None);
        loop {
            if stop.load(Ordering::Relaxed) {
                runner.stop();
                return Ok(WaitResult::Stopped);
            }
            for event in self.dialogue.turn(clock::now() + POLL_INTERVAL.as_duration(), &[runner.waker()])? {
                if let DialogueEvent::Session(SessionOutput::PeerTrial(count)) = event {
                    peer = Some(count);
                }
            }
            if runner.alive() {
                self.dialogue.input(SessionInput::Alive)?;
            }
            own = own.or_else(|| runner.take());
            let failed = |whose: &str, count: &Option<TrialCount>| {
                let why = count.as_ref()?.trouble.as_ref()?;
                let size = trial.message_bytes.exact();
                Some(ControlError::Local(format!("messages of {size} {whose}: {why}")))
            };
            // The server's reason comes first: this end may only have seen the connection break.
            if let Some(error) = failed("at the server", &peer).or_else(|| failed("here", &own)) {
                return Err(error);
            }
            if let (Some(own), Some(peer)) = (&own, &peer) {
                return Ok(WaitResult::Here((own.clone(), peer.clone())));
            }
        }
    }

    /// Ends the sweep at both ends.
    fn part(&mut self, runner: &mut Runner, reports: &mut FinalReports) -> Result<(), ControlError> {
        let Some(own) = reports.own.clone() else { return Ok(()) };
        self.dialogue.input(SessionInput::FlowEnded(Box::new(own)))?;
        // A signal no longer applies; the server has a few seconds.
        let never = AtomicBool::new(false);
        self.wait_for(&never, |event| match event {
            DialogueEvent::Session(SessionOutput::PeerEnded(ended)) => {
                reports.peer = Some(*ended);
                None
            }
            DialogueEvent::Session(SessionOutput::PhaseDone) => Some(()),
            _ => None,
        })?;
        runner.stop();
        Ok(())
    }

    /// Runs the dialogue until `wanted` returns a value.
    fn wait_for<T>(
        &mut self,
        stop: &AtomicBool,
        mut wanted: impl FnMut(DialogueEvent) -> Option<T>,
    ) -> Result<T, ControlError> {
        loop {
            let mut found = None;
            for event in self.dialogue.turn(clock::now() + POLL_INTERVAL.as_duration(), &[])? {
                found = found.or(wanted(event));
            }
            if let Some(found) = found {
                return Ok(found);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(ControlError::Stopped);
            }
        }
    }
}

/// Adds a caveat that names the unmeasured sizes and the reason.
fn warn_unmeasured(schedule: &SweepSchedule, regular: bool, log: &mut Log<'_>) {
    let missing = schedule.unmeasured();
    let Some(first) = missing.first() else { return };
    let why = match (regular, schedule.too_slow()) {
        (false, _) => "the series ended in the middle",
        (true, true) => "a message took a second or more, so no larger ones were sent",
        (true, false) => "the time was up; give a longer -t or fewer sizes",
    };
    let text = format!("{} size(s) from {first} up were not measured: {why}", missing.len());
    log.warn(Some(FLOW), CaveatKind::Partial, text);
}
