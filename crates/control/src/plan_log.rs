//! The event log of a plan, in addition to the logs of its runs.

use linerate_model::{Body, Event, PlanRecord};
use linerate_sock::{Mono, clock};
use linerate_units::{Span, Timestamp};

use crate::log::{Sink, pass_to};

/// The log of a plan: numbers its events, folds them into the record, and passes them to the sinks.
pub struct PlanLog<'a> {
    run: String,
    epoch: Mono,
    /// When this session began, which is later than the log if the plan was resumed.
    began: Mono,
    record: PlanRecord,
    sinks: Vec<Option<&'a mut dyn Sink>>,
}

impl<'a> PlanLog<'a> {
    /// Continues the log of a record: sequence numbers and time follow those of its last event.
    #[must_use]
    pub fn resume(record: PlanRecord, sinks: Vec<&'a mut dyn Sink>) -> Self {
        let (before, began) = (record.last.as_ns(), clock::now());
        Self {
            run: record.run.to_string(),
            epoch: Mono(began.as_ns().saturating_sub(before)),
            began,
            record,
            sinks: sinks.into_iter().map(Some).collect(),
        }
    }

    /// The id of the plan's run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The record folded from the events so far.
    #[must_use]
    pub fn record(&self) -> &PlanRecord {
        &self.record
    }

    /// Ends the log and returns the record.
    #[must_use]
    pub fn into_record(self) -> PlanRecord {
        self.record
    }

    /// Converts an instant to a time of this log; absent for an instant before its beginning.
    #[must_use]
    pub fn time_of(&self, at: Mono) -> Option<Timestamp> {
        at.as_ns().checked_sub(self.epoch.as_ns()).map(Timestamp::from_ns)
    }

    /// Time since this log was begun or resumed, without what it covered before.
    #[must_use]
    pub fn session_time(&self) -> Span {
        clock::now().since(self.began).into()
    }

    /// Records an event.
    pub fn note(&mut self, body: Body) {
        let at = Timestamp::from_ns(clock::now().as_ns().saturating_sub(self.epoch.as_ns()));
        let event = Event {
            run: self.run.clone().into(),
            host: 0,
            seq: self.record.events,
            at: at.max(self.record.last),
            body,
        };
        self.record.apply(&event);
        for caveat in pass_to(&mut self.sinks, &event) {
            self.note(Body::Caveat { flow: None, caveat });
        }
    }
}

impl std::fmt::Debug for PlanLog<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanLog").field("run", &self.run).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_log_goes_on_at_its_end_and_its_session_begins_at_0() {
        let last = Timestamp::from_ns(500_000_000_000);
        let record = PlanRecord { run: "p".into(), last, events: 7, ..PlanRecord::default() };
        let mut log = PlanLog::resume(record, Vec::new());
        assert!(log.session_time() < Span::from_secs(100), "{}", log.session_time());
        log.note(Body::PlanResumed);
        assert!(log.record().last >= last);
        assert_eq!(log.record().events, 8);
    }
}
