//! The client's event log: numbers the events, folds them into the record, and passes them to the sinks.

use std::error::Error;
use std::ops::DerefMut;

use linerate_model::flow::FlowId;
use linerate_model::{Body, Caveat, CaveatKind, Event, RunRecord};
use linerate_sock::{Mono, clock};
use linerate_units::Timestamp;

/// Where events go: an archive, a terminal, a stream. A sink that fails gets no further events, and a caveat is
/// added.
pub trait Sink {
    /// Takes one event.
    ///
    /// # Errors
    /// This sink cannot take any more events.
    fn on(&mut self, event: &Event) -> Result<(), SinkError>;
}

/// Why a sink cannot take any more events.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct SinkError {
    /// What the run lacks from now on.
    pub kind: CaveatKind,
    /// What failed, such as "the event log could not be printed".
    pub what: &'static str,
    /// Why.
    pub source: Box<dyn Error + Send + Sync>,
}

impl SinkError {
    /// The caveat that the log gets: what failed, and why.
    #[must_use]
    pub fn caveat(&self) -> Caveat {
        let cause = self.source.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
        Caveat { kind: self.kind, text: format!("{}: {}{cause}", self.what, self.source).into() }
    }
}

/// Passes an event to the sinks. Those that fail get no further events; returns their caveats.
pub(crate) fn pass_to<S>(sinks: &mut [Option<S>], event: &Event) -> Vec<Caveat>
where
    S: DerefMut<Target: Sink>,
{
    let mut failures = Vec::new();
    for slot in sinks {
        let Some(sink) = slot else { continue };
        if let Err(error) = sink.on(event) {
            failures.push(error.caveat());
            *slot = None;
        }
    }
    failures
}

/// Keeps all events.
impl Sink for Vec<Event> {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        self.push(event.clone());
        Ok(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        (**self).on(event)
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
    /// The id of the run.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.run
    }

    /// Creates a log for the run `run`, with time counted from now.
    #[must_use]
    pub fn new(run: String, sinks: Vec<&'a mut dyn Sink>) -> Self {
        Self::owning(run, sinks.into_iter().map(|sink| Box::new(sink) as Box<dyn Sink + 'a>).collect())
    }

    /// Like [`Log::new`], but the log owns the sinks.
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

    /// The time origin of the run.
    #[must_use]
    pub fn epoch(&self) -> Mono {
        self.epoch
    }

    /// Time since the start of the run.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ns(clock::now().0.saturating_sub(self.epoch.0))
    }

    /// The record folded from the events so far.
    #[must_use]
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Ends the log and returns the record.
    #[must_use]
    pub fn into_record(self) -> RunRecord {
        self.record
    }

    /// Records an event of this host.
    pub fn note(&mut self, body: Body) {
        self.note_from(0, body);
    }

    /// Records an event of host number `host`.
    pub fn note_from(&mut self, host: u16, body: Body) {
        self.note_at(self.now(), host, body);
    }

    /// Sets the time origin of the run, for runs that another host began.
    pub(crate) fn count_from(&mut self, epoch: Mono) {
        self.epoch = epoch;
    }

    /// Records an event of host number `host` at time `at`. A time before that of the last event is raised to
    /// it.
    pub(crate) fn note_at(&mut self, at: Timestamp, host: u16, body: Body) {
        self.last = self.last.max(at);
        let event = Event { run: self.run.clone().into(), host, seq: self.seq, at: self.last, body };
        self.seq += 1;
        self.record.apply(&event);
        for caveat in pass_to(&mut self.sinks, &event) {
            self.note(Body::Caveat { flow: None, caveat });
        }
    }

    /// Adds a caveat.
    pub fn warn(&mut self, flow: Option<FlowId>, kind: CaveatKind, text: String) {
        self.note(Body::Caveat { flow, caveat: Caveat { kind, text: text.into() } });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink on a full disk: it takes one event.
    #[derive(Default)]
    struct FullDisk(Vec<u64>);

    impl Sink for FullDisk {
        fn on(&mut self, event: &Event) -> Result<(), SinkError> {
            self.0.push(event.seq);
            let full = std::io::Error::new(std::io::ErrorKind::StorageFull, "the disk is full");
            match self.0.len() {
                1 => Ok(()),
                _ => Err(SinkError {
                    kind: CaveatKind::NotArchived,
                    what: "this run was not archived",
                    source: full.into(),
                }),
            }
        }
    }

    #[test]
    fn a_sink_that_fails_is_left_out_and_the_run_says_what_it_lacks() {
        let mut full = FullDisk::default();
        let mut log = Log::new("r".to_owned(), vec![&mut full]);
        (0..4).for_each(|_| log.note(Body::PlanResumed));
        let record = log.into_record();
        let [caveat] = &record.caveats[..] else { panic!("{:?}", record.caveats) };
        assert_eq!(caveat.kind, CaveatKind::NotArchived);
        assert_eq!(&*caveat.text, "this run was not archived: the disk is full");
        assert_eq!(full.0, [0, 1]);
    }
}
