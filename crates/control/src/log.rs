//! The client's event log: numbers events, folds them into the record, and passes them on.

use linerate_model::{Body, Caveat, CaveatKind, Event, RunRecord};
use linerate_sock::{Mono, clock};
use linerate_units::Timestamp;

/// Where events go: an archive, a terminal, a stream. A sink that fails is left out from then on, with a caveat.
pub trait Sink {
    /// Takes one event.
    ///
    /// # Errors
    /// Why this sink can take no more; the text is for a person.
    fn on(&mut self, event: &Event) -> Result<(), String>;

    /// The caveat to raise when the sink failed.
    fn failed(&self) -> CaveatKind {
        CaveatKind::EventsDropped
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn on(&mut self, event: &Event) -> Result<(), String> {
        (**self).on(event)
    }

    fn failed(&self) -> CaveatKind {
        (**self).failed()
    }
}

/// The event log of one run.
pub struct Log<'a> {
    run: String,
    epoch: Mono,
    seq: u64,
    last: Timestamp,
    record: RunRecord,
    sinks: Vec<Option<Box<dyn Sink + 'a>>>,
}

impl<'a> Log<'a> {
    /// A log for the run named `run`, with time counted from now.
    #[must_use]
    pub fn new(run: String, sinks: Vec<&'a mut dyn Sink>) -> Self {
        Self::owning(run, sinks.into_iter().map(|sink| Box::new(sink) as Box<dyn Sink + 'a>).collect())
    }

    /// As [`Log::new`], with sinks that end with the log.
    #[must_use]
    pub fn owning(run: String, sinks: Vec<Box<dyn Sink + 'a>>) -> Self {
        Self {
            run,
            epoch: clock::now(),
            seq: 0,
            last: Timestamp::START,
            record: RunRecord::default(),
            sinks: sinks.into_iter().map(Some).collect(),
        }
    }

    /// The instant from which the run's time counts.
    #[must_use]
    pub fn epoch(&self) -> Mono {
        self.epoch
    }

    /// Time since the start of the run.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ns(clock::now().0.saturating_sub(self.epoch.0))
    }

    /// What the events so far amount to.
    #[must_use]
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The log is over; the record stays.
    #[must_use]
    pub fn into_record(self) -> RunRecord {
        self.record
    }

    /// Notes something this host says.
    pub fn note(&mut self, body: Body) {
        self.note_from(0, body);
    }

    /// Notes something that host `host` says.
    pub fn note_from(&mut self, host: u16, body: Body) {
        self.note_at(self.now(), host, body);
    }

    /// The run's time counts from `epoch`: where another host began it.
    pub(crate) fn count_from(&mut self, epoch: Mono) {
        self.epoch = epoch;
    }

    /// Notes something that host `host` says of time `at`; an earlier time than that of the last event counts as that.
    pub(crate) fn note_at(&mut self, at: Timestamp, host: u16, body: Body) {
        self.last = self.last.max(at);
        let event = Event { run: self.run.clone().into(), host, seq: self.seq, at: self.last, body };
        self.seq += 1;
        self.record.apply(&event);
        let mut failures = Vec::new();
        for slot in &mut self.sinks {
            let Some(sink) = slot else { continue };
            if let Err(why) = sink.on(&event) {
                failures.push(Caveat { kind: sink.failed(), text: why.into() });
                *slot = None;
            }
        }
        for caveat in failures {
            self.note(Body::Caveat { flow: None, caveat });
        }
    }

    /// Notes what weakens a result.
    pub fn warn(&mut self, flow: Option<u16>, kind: CaveatKind, text: String) {
        self.note(Body::Caveat { flow, caveat: Caveat { kind, text: text.into() } });
    }
}
