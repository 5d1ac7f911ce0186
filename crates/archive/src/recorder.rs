//! The event sink that writes a running measurement to its archive.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::{Body, Caveat, CaveatKind, Event, ForeignText, GroupPlace};
use linerate_units::{Span, Timestamp};

use crate::{ArchiveError, EventStore};

/// Appends events as they happen, in short transactions.
///
/// Important events (the start, the end of a flow, a verdict, the end) are committed at once. Others wait up to
/// half a second of run time, so that commits are rare during a measurement. In a run that is part of a plan,
/// all events wait that long, but at most until the plan's log reports the end of the trial. So a short trial
/// is one commit.
#[derive(Debug)]
pub struct Recorder<S: EventStore> {
    store: S,
    waiting: Vec<Event>,
    /// Active runs that are parts of plans.
    parts: BTreeSet<ForeignText>,
    /// Time at which the waiting events are committed, on the clock of the events.
    due: Timestamp,
    failing: bool,
    /// Where the events of a run were dropped while the archive failed.
    gaps: BTreeMap<ForeignText, EventGap>,
    dropped: u64,
}

/// Dropped events of a run. A caveat has the number of the first one.
#[derive(Debug)]
struct EventGap {
    /// Place of the caveat among the waiting events.
    caveat: usize,
    events: u64,
}

impl EventGap {
    fn body(&self) -> Body {
        let text = ArchiveError::Dropped { events: self.events }.to_string();
        Body::Caveat { flow: None, caveat: Caveat { kind: CaveatKind::EventsDropped, text: text.into() } }
    }
}

/// Longest time that an event waits, measured by the times of events.
const MAX_EVENT_DELAY: Span = Span::from_ms(500);
/// Time between two tries while the archive fails. Each try may have to wait for a lock.
const RETRY_INTERVAL: Span = Span::from_secs(5);
/// Largest number of events per transaction, while the archive works.
const BATCH: usize = 256;
/// Number of events in memory above which readings are dropped while it fails. A result without some of its readings is
/// still one; so other events are dropped above twice as many, which only a hostile peer sends.
const MAX_WAITING_EVENTS: usize = 65_536;

impl<S: EventStore> Recorder<S> {
    /// A recorder that writes into `store`.
    #[must_use]
    pub const fn new(store: S) -> Self {
        Self {
            store,
            waiting: Vec::new(),
            parts: BTreeSet::new(),
            due: Timestamp::START,
            failing: false,
            gaps: BTreeMap::new(),
            dropped: 0,
        }
    }

    /// Adds an event, and commits if it is due.
    ///
    /// # Errors
    /// If events could not be committed. They are kept and tried again with a later event. The caller may
    /// continue, or drop the recorder and note that the run is not archived. If another process holds a lock,
    /// this is an error only if an event had to be committed at once.
    pub fn on(&mut self, event: &Event) -> Result<(), ArchiveError> {
        if self.waiting.is_empty() {
            self.due = event.at + MAX_EVENT_DELAY;
        }
        let is_reading = matches!(
            event.body,
            Body::Sample { .. } | Body::Port { .. } | Body::Streams { .. } | Body::Progress { .. }
        );
        let room = if is_reading { MAX_WAITING_EVENTS } else { 2 * MAX_WAITING_EVENTS };
        if self.waiting.len() < room {
            self.waiting.push(event.clone());
        } else {
            self.drop_event(event);
        }
        // An archive that fails may keep the measurement waiting: only the end of the run is worth another try.
        let last = matches!(event.body, Body::RunEnded { .. });
        let urgent = self.is_urgent(event) && (last || !self.failing);
        let full = self.waiting.len() >= BATCH && !self.failing;
        if !urgent && !full && event.at < self.due {
            return Ok(());
        }
        match self.flush() {
            Ok(()) => Ok(()),
            Err(error) => {
                self.due = event.at + RETRY_INTERVAL;
                if error.is_passing() && !urgent { Ok(()) } else { Err(error) }
            }
        }
    }

    fn drop_event(&mut self, event: &Event) {
        self.dropped += 1;
        let place = self.waiting.len();
        let gap = self.gaps.entry(event.run.clone()).or_insert(EventGap { caveat: place, events: 0 });
        gap.events += 1;
        match self.waiting.get_mut(gap.caveat) {
            Some(caveat) => caveat.body = gap.body(),
            None => self.waiting.push(Event { body: gap.body(), ..event.clone() }),
        }
    }

    /// Commits the waiting events.
    ///
    /// # Errors
    /// If they cannot be committed; they are then still kept.
    pub fn flush(&mut self) -> Result<(), ArchiveError> {
        self.failing = true;
        if !self.waiting.is_empty() {
            self.store.append(&self.waiting)?;
            self.waiting.clear();
            self.gaps.clear();
        }
        self.failing = false;
        Ok(())
    }

    /// Number of events that were dropped since this was asked last. The runs have a caveat about them.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn is_urgent(&mut self, event: &Event) -> bool {
        match &event.body {
            Body::Grouped(GroupPlace { plan: Some(_), .. }) => {
                self.parts.insert(event.run.clone());
                false
            }
            // The end of its trial follows in the log of its plan, and is committed then.
            Body::RunEnded { .. } if self.parts.remove(&event.run) => false,
            Body::RunStarted(_) | Body::FlowEnded { .. } | Body::Verdict { .. } | Body::RunEnded { .. } => {
                !self.parts.contains(&event.run)
            }
            Body::PlanStarted(_) | Body::PlanResumed | Body::TrialEnded(_) => true,
            _ => false,
        }
    }

    /// The events that could not be committed, which are then no longer waiting.
    pub fn take_waiting(&mut self) -> Vec<Event> {
        self.gaps.clear();
        std::mem::take(&mut self.waiting)
    }

    /// The archive.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The archive, for changes.
    pub const fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }
}

impl<S: EventStore> Drop for Recorder<S> {
    fn drop(&mut self) {
        // Callers that need the result call `flush` before. This saves what can still be saved.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::flow::FlowId;
    use linerate_model::{Outcome, PlanPlace, RunStart, TestSpec, TrialEnd, World};
    use linerate_units::Bytes;

    /// Records the size of each transaction; fails while `refuses` is set.
    #[derive(Debug, Default)]
    struct CountingStore {
        batches: Vec<usize>,
        events: Vec<Event>,
        tries: usize,
        refuses: bool,
    }

    impl EventStore for CountingStore {
        fn append(&mut self, events: &[Event]) -> Result<(), ArchiveError> {
            self.tries += 1;
            if self.refuses {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                let source = rusqlite::Error::SqliteFailure(busy, None);
                return Err(ArchiveError::Locked { archive: String::new(), source: source.into() });
            }
            self.batches.push(events.len());
            self.events.extend_from_slice(events);
            Ok(())
        }
    }

    fn progress(at_ms: u64) -> Event {
        let body = Body::Progress {
            flow: FlowId(0),
            bytes: Bytes::new(1),
            elapsed: Span::from_ms(at_ms),
            srtt: None,
            retransmits: None,
        };
        Event { run: "r".into(), host: 0, seq: at_ms, at: Timestamp::START + Span::from_ms(at_ms), body }
    }

    fn ended(at_ms: u64) -> Event {
        Event { body: Body::RunEnded { outcome: Outcome::Completed, reason: None }, ..progress(at_ms) }
    }

    #[test]
    fn events_wait_for_half_a_second_for_a_full_batch_or_for_one_that_matters() {
        let mut recorder = Recorder::new(CountingStore::default());
        for at_ms in [0, 100, 499, 500, 600] {
            recorder.on(&progress(at_ms)).unwrap();
        }
        assert_eq!(recorder.store().batches, [4]);
        recorder.on(&ended(700)).unwrap();
        assert_eq!(recorder.store().batches, [4, 2]);
        for _ in 0..300 {
            recorder.on(&progress(800)).unwrap();
        }
        assert_eq!(recorder.store().batches, [4, 2, 256]);
    }

    #[test]
    fn a_short_trial_of_a_plan_is_one_commit_and_a_long_one_is_written_as_it_goes() {
        let place = PlanPlace { run: "plan".into(), point: "p".into(), repeat: 0, flow: "a-b".into() };
        let grouped = GroupPlace {
            group: "g".into(),
            start_after: Span::ZERO,
            cross_traffic: false,
            plan: Some(place),
        };
        let at = |body: Body, at_ms: u64| Event { body, ..progress(at_ms) };
        let started = || {
            Body::RunStarted(Box::new(RunStart {
                schema: "".into(),
                started_at: "".into(),
                world: World::Lab,
                linerate: "".into(),
                target: "".into(),
                spec: TestSpec::default(),
            }))
        };
        let trial =
            TrialEnd { point: "".into(), repeat: 0, content: "".into(), step: None, runs: Vec::new() };
        let trial = Event { run: "plan".into(), ..at(Body::TrialEnded(trial), 90_000) };
        let mut recorder = Recorder::new(CountingStore::default());
        recorder.on(&at(Body::Grouped(grouped.clone()), 0)).unwrap();
        recorder.on(&at(started(), 0)).unwrap();
        recorder.on(&ended(30)).unwrap();
        assert_eq!(recorder.store().batches, [0; 0]);
        recorder.on(&trial).unwrap();
        assert_eq!(recorder.store().batches, [4]);
        // The next trial has its own delay.
        recorder.on(&at(Body::Grouped(grouped), 0)).unwrap();
        recorder.on(&at(started(), 0)).unwrap();
        recorder.on(&progress(500)).unwrap();
        assert_eq!(recorder.store().batches, [4, 3]);
        // A run outside of plans is committed at its end.
        recorder.on(&ended(600)).unwrap();
        recorder.on(&trial).unwrap();
        recorder.on(&Event { run: "alone".into(), ..ended(1) }).unwrap();
        assert_eq!(recorder.store().batches, [4, 3, 2, 1]);
    }

    #[test]
    fn while_the_archive_is_locked_it_is_tried_rarely_and_nothing_is_lost() {
        let mut recorder = Recorder::new(CountingStore { refuses: true, ..CountingStore::default() });
        for tenth in 0..100 {
            recorder.on(&progress(tenth * 100)).unwrap();
        }
        // At 0.5 s and at 5.5 s.
        assert_eq!(recorder.store().tries, 2);
        assert!(recorder.on(&ended(10_000)).is_err());
        recorder.store.refuses = false;
        recorder.flush().unwrap();
        assert_eq!(recorder.store().batches, [101]);
    }

    #[test]
    fn an_archive_that_fails_for_long_costs_readings_and_never_the_result() {
        let mut recorder = Recorder::new(CountingStore { refuses: true, ..CountingStore::default() });
        let other = |at_ms: u64| Event { run: "other".into(), ..progress(at_ms) };
        for at_ms in 0..MAX_WAITING_EVENTS as u64 + 7 {
            recorder.on(&progress(at_ms)).unwrap();
        }
        recorder.on(&other(3)).unwrap();
        let end = MAX_WAITING_EVENTS as u64 + 7;
        assert!(recorder.on(&ended(end)).is_err());
        recorder.store.refuses = false;
        recorder.flush().unwrap();
        assert_eq!((recorder.take_dropped(), recorder.take_dropped()), (8, 0));
        let kept = &recorder.store().events[MAX_WAITING_EVENTS..];
        let is = |event: &Event, run: &str, seq: u64| (&*event.run, event.seq) == (run, seq);
        let [gap, others_gap, last] = kept else { panic!("{kept:?}") };
        assert!(is(gap, "r", MAX_WAITING_EVENTS as u64) && is(others_gap, "other", 3), "{kept:?}");
        assert_eq!(last, &ended(end));
        let Body::Caveat { caveat, .. } = &gap.body else { panic!("{gap:?}") };
        assert!(
            caveat.kind == CaveatKind::EventsDropped && caveat.text.starts_with("7 events"),
            "{caveat:?}"
        );
        // What follows is written as ever.
        recorder.on(&ended(end + 1)).unwrap();
        assert_eq!(recorder.store().events.last(), Some(&ended(end + 1)));
    }
}
