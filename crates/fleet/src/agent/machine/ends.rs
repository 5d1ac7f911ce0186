//! How runs ended, which an agent keeps until the coordinators have it.

use linerate_model::calendar::{CalendarRunState, UnixTime};
use linerate_proto::fleet::{AgentRun, PlainName, ResultDocument};

use super::{CalendarAgent, ClockReading, StopReason};
use crate::coordinator::RunEnd;

impl CalendarAgent {
    /// A run has ended; `log` is its log, a JSON document on each line.
    pub fn ended(&mut self, run: &str, end: RunEnd, log: String, reading: &ClockReading) {
        let Some(active) = self.active.remove(run) else { return };
        let now = self.clock.now(reading).map_or(active.ends, |(now, _)| now);
        let (mut state, mut reason) = (end.state, end.reason);
        if let Some(why) = active.stopped {
            state = match why {
                StopReason::TakenBack => CalendarRunState::Cancelled,
                StopReason::TimeOver | StopReason::Refused => CalendarRunState::Failed,
            };
            reason = why.in_words().to_owned();
        }
        let document = ResultDocument {
            state,
            reason: reason.into(),
            result: end.result,
            begun: Some(active.begun),
            ended: now,
            log: log.into(),
        };
        self.keep(run, &document);
        self.memory.runs.insert(run.into(), None);
        self.remember();
        self.reports.at_once();
    }

    fn keep(&mut self, run: &str, document: &ResultDocument) {
        let kept = self.outbox.keep(run, document, self.folder.as_mut());
        self.note_kept(kept);
    }

    /// A run will not take place.
    pub(super) fn note_missed(&mut self, run: &AgentRun, why: String, now: UnixTime) {
        self.memory.runs.insert(run.id.clone(), None);
        let document = ResultDocument {
            state: CalendarRunState::Missed,
            reason: why.into(),
            result: None,
            begun: None,
            ended: now,
            log: String::new().into(),
        };
        self.keep(&run.id, &document);
        self.remember();
    }

    /// Runs that a process before this one began and did not end.
    pub fn note_broken_off(&mut self, reading: &ClockReading) {
        let ended = self.clock.now(reading).map(|(now, _)| now);
        let begun: Vec<(PlainName, UnixTime)> = self
            .memory
            .runs
            .iter()
            .filter(|(run, _)| !self.active.contains_key(*run) && !self.outbox.has(run))
            .filter_map(|(run, begun)| Some((run.clone(), (*begun)?)))
            .collect();
        for (run, begun) in begun {
            let document = ResultDocument {
                state: CalendarRunState::Failed,
                reason: "its agent ended while it was carried out".into(),
                result: None,
                begun: Some(begun),
                ended: ended.unwrap_or(begun),
                log: String::new().into(),
            };
            self.keep(&run, &document);
            self.memory.runs.insert(run, None);
        }
        self.remember();
    }
}
