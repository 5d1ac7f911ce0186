//! The test while its timers run.

use linerate_units::{Span, Timestamp};

use super::{
    ERROR_REPORT_TIMEOUT, GOAL_TICK, Iperf3Client, Iperf3ClientCountsReason, Iperf3ClientPhase,
    RESULTS_TIMEOUT, RUN, STOP_TIMEOUT,
};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::params::natural;
use crate::iperf3::plan;
use crate::iperf3::state::Iperf3State;
use crate::stand_in::{CpuTime, FlowCounts, FlowId, Output, Stop, SystemError};

impl Iperf3Client {
    /// The server has sent TEST_START.
    pub(super) fn start(&mut self, now: Timestamp) {
        let Some(params) = &self.params else { return };
        let length = natural(params.time).saturating_add(natural(params.omit));
        self.end = (params.time > 0).then(|| now + Span::from_secs(length));
        let goal_is_ours = params.goal().is_some() && (params.omit > 0 || receives(params));
        self.goal_tick = goal_is_ours.then(|| now + GOAL_TICK);
        if let Some(test) = &mut self.test {
            test.begin(now);
        }
        let text = self.report.started();
        self.print(text);
        self.enter(Iperf3ClientPhase::Running, None);
        self.request_counts(Iperf3ClientCountsReason::Begin);
    }

    /// The server has sent TEST_RUNNING.
    pub(super) fn start_senders(&mut self) {
        self.start_flows(true);
    }

    /// Starts the flows that send, or those that receive.
    pub(super) fn start_flows(&mut self, senders: bool) {
        let (Some(params), Some(test)) = (&self.params, &mut self.test) else { return };
        let common = &self.config.settings.common;
        let (affinity, file) = (common.affinity, common.file.as_ref());
        let groups: Vec<_> = test.groups.iter().filter(|group| group.sends == senders).cloned().collect();
        for group in groups {
            if test.running().contains(&group.flow) {
                continue;
            }
            test.started(group.flow);
            let task = plan::task(params, &group, RUN, true, affinity, file);
            self.out.push_back(Output::Start(Box::new(task)));
        }
    }

    /// When the next timer is due.
    pub(super) fn timer(&self) -> Option<Timestamp> {
        let test = self.test.as_ref()?;
        let silent = test.silent_at(self.config.settings.common.rcv_timeout);
        [test.deadline(), self.end, self.goal_tick, silent].into_iter().flatten().min()
    }

    pub(super) fn counts(&mut self, now: Timestamp, cpu: CpuTime, flows: &[FlowCounts]) {
        let why = std::mem::replace(&mut self.looking, Iperf3ClientCountsReason::No);
        let ending = why != Iperf3ClientCountsReason::Timer || self.is_due(now);
        let Some(test) = &mut self.test else { return };
        let text = test.count(now, cpu, flows, &mut self.report, ending);
        self.print(text);
        match why {
            Iperf3ClientCountsReason::No | Iperf3ClientCountsReason::Begin => {}
            Iperf3ClientCountsReason::Timer => self.judge(now),
            Iperf3ClientCountsReason::Last => self.freeze(now),
            Iperf3ClientCountsReason::BreakOff => self.show_broken_off(now),
        }
    }

    /// Checks whether the test is over.
    fn judge(&mut self, now: Timestamp) {
        let Some(test) = &self.test else { return };
        if self.is_due(now) || self.has_reached_goal() {
            self.stop(now);
        } else if test.silent_at(self.config.settings.common.rcv_timeout).is_some_and(|silent| silent <= now)
        {
            self.fail(&Iperf3Error::new(Iperf3ErrorNumber::IDLE_TIMEOUT));
        } else if self.goal_tick.is_some_and(|tick| tick <= now) {
            self.goal_tick = Some(now + GOAL_TICK);
        }
    }

    /// Whether its duration is over.
    fn is_due(&self, now: Timestamp) -> bool {
        self.end.is_some_and(|end| end <= now)
    }

    /// Whether either direction has reached the goal.
    fn has_reached_goal(&self) -> bool {
        let (Some(params), Some(test)) = (&self.params, &self.test) else { return false };
        params.goal().is_some_and(|goal| test.meter.bytes(true) >= goal || test.meter.bytes(false) >= goal)
    }

    /// Ends the test.
    pub(super) fn stop(&mut self, now: Timestamp) {
        if self.phase == Iperf3ClientPhase::Running {
            self.enter(Iperf3ClientPhase::Stopping, Some(now + STOP_TIMEOUT));
            self.request_counts(Iperf3ClientCountsReason::Last);
        }
    }

    /// What is received from now on does not count. Senders finish their current block.
    fn freeze(&mut self, now: Timestamp) {
        self.ended_at = now;
        let Some(test) = &mut self.test else { return };
        test.meter.freeze();
        let stops = test.running().iter().map(|flow| Output::Stop { flow: *flow, how: Stop::AtOnce });
        self.out.extend(stops);
        if !test.sends() {
            self.finish(now);
        }
    }

    pub(super) fn flow_ended(&mut self, now: Timestamp, counts: &FlowCounts) {
        let Some(test) = &mut self.test else { return };
        if !test.ended(counts.flow) {
            return;
        }
        test.meter.take_flow(counts);
        let sends = test.group(counts.flow).is_some_and(|group| group.sends);
        let last = sends && !test.sends();
        match self.phase {
            // The last counts of receivers may not have arrived yet.
            Iperf3ClientPhase::Stopping if last && self.looking == Iperf3ClientCountsReason::No => {
                self.ended_at = now;
                self.finish(now);
            }
            Iperf3ClientPhase::Running if self.is_due(now) || sends && self.has_written_all() => {
                self.stop(now)
            }
            Iperf3ClientPhase::Running | Iperf3ClientPhase::Ready => {
                // The server may report the reason.
                let number =
                    if sends { Iperf3ErrorNumber::STREAM_WRITE } else { Iperf3ErrorNumber::STREAM_READ };
                let reason = counts.trouble.clone().unwrap_or(SystemError { errno: 0, text: String::new() });
                self.broken.get_or_insert(Iperf3Error::because(number, reason.errno, reason.text));
                self.timeout = Some(now + ERROR_REPORT_TIMEOUT);
            }
            Iperf3ClientPhase::Leaving => self.exit_when_done(),
            _ => {}
        }
    }

    fn has_written_all(&self) -> bool {
        let (Some(params), Some(test)) = (&self.params, &self.test) else { return false };
        params.goal().is_some_and(|goal| test.meter.bytes(true) >= goal)
    }

    pub(super) fn not_started(&mut self, flow: FlowId, reason: &SystemError) {
        if let Some(test) = &mut self.test {
            test.ended(flow);
        }
        let number = match self.config.settings.common.file {
            Some(_) => Iperf3ErrorNumber::FILE,
            None => Iperf3ErrorNumber::INIT_STREAM,
        };
        self.fail(&Iperf3Error::because(number, reason.errno, reason.text.clone()));
    }

    /// The senders have ended, and the receivers were stopped.
    pub(super) fn finish(&mut self, now: Timestamp) {
        let Some(test) = &self.test else { return };
        // Further data from the server are read until it closes, because it could block otherwise.
        let receivers = test.groups.iter().filter(|group| !group.sends);
        let links = receivers.flat_map(|group| group.links.clone());
        self.out.extend(links.map(|link| Output::Discard { link }));
        self.send_state(Iperf3State::TestEnd);
        self.enter(Iperf3ClientPhase::Ended, Some(now + RESULTS_TIMEOUT));
        self.listen(now);
    }
}

fn receives(params: &crate::iperf3::params::Params) -> bool {
    params.reverse || params.bidirectional
}
