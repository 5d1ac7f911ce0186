//! The event log of a plan, in addition to the logs of its runs.

use linerate_model::{Body, Event, PlanRecord};
use linerate_sock::{Mono, clock};
use linerate_units::{Span, Timestamp};

use crate::log::{Sink, pass_to};

/// The log of a plan: numbers its events, folds them into the record, and passes them to the sinks.
pub struct PlanLog<'a> {
    run: String,
    /// What the log covered before this session. The clock of this machine may have restarted since.
    before: Timestamp,
    /// When this session began.
    began: Mono,
    record: PlanRecord,
    sinks: Vec<Option<&'a mut dyn Sink>>,
}

impl<'a> PlanLog<'a> {
    /// Continues the log of a record: sequence numbers and time follow those of its last event.
    #[must_use]
    pub fn resume(record: PlanRecord, sinks: Vec<&'a mut dyn Sink>) -> Self {
        Self {
            run: record.run.to_string(),
            before: record.last,
            began: clock::now(),
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

    /// Converts an instant to a time of this log; absent for an instant before it was begun or resumed.
    #[must_use]
    pub fn time_of(&self, at: Mono) -> Option<Timestamp> {
        let elapsed = at.as_ns().checked_sub(self.began.as_ns())?;
        Some(self.before + Span::from_ns(elapsed))
    }

    /// Time since this log was begun or resumed, without what it covered before.
    #[must_use]
    pub fn session_time(&self) -> Span {
        clock::now().since(self.began).into()
    }

    /// Records an event.
    pub fn note(&mut self, body: Body) {
        let at = self.before + self.session_time();
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

    #[test]
    fn after_a_restart_of_the_machine_a_resumed_log_goes_on_at_its_end() {
        // Longer than any machine has run: its clock has restarted since.
        let last = Timestamp::from_ns(u64::MAX / 2);
        let record = PlanRecord { run: "p".into(), last, events: 7, ..PlanRecord::default() };
        let mut log = PlanLog::resume(record, Vec::new());
        let second = Span::from_secs(1);
        assert_eq!(log.time_of(log.began + second.as_duration()), Some(last + second));
        assert_eq!(log.time_of(Mono(log.began.as_ns() - 1)), None, "before this session");
        clock::sleep_until(log.began + Span::from_ms(2).as_duration());
        log.note(Body::PlanResumed);
        let since = log.record().last.since(last);
        assert!(since >= Span::from_ms(2), "{since}");
    }
}
