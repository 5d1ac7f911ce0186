//! The logs of a server's runs with foreign tools, as a test reads them.

use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use linerate_compat::stand_in::Planned;
use linerate_control::{LogStore, Sink, SinkError, StoredRun};
use linerate_model::{CaveatKind, Event, RunRecord};

/// Forwards the events of all runs, one run after another.
#[derive(Debug, Clone)]
pub(crate) struct ForwardingSink(pub(crate) Sender<Event>);

impl LogStore for ForwardingSink {
    fn open(&self, planned: &Planned, _: Option<IpAddr>) -> Option<StoredRun> {
        let (name, started_at) = (planned.run.0.to_string(), String::new());
        let (labels, sinks) = (linerate_model::RunLabels::default(), vec![Box::new(self.clone()) as _]);
        Some(StoredRun { name, started_at, labels, sinks, calibration: None })
    }
}

impl Sink for ForwardingSink {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.send(event.clone()).map_err(|error| SinkError {
            kind: CaveatKind::EventsDropped,
            what: "the test does not listen",
            source: error.into(),
        })
    }
}

/// The next run, after its end.
pub(crate) fn next_run(events: &Receiver<Event>) -> RunRecord {
    let mut record = RunRecord::default();
    while record.outcome.is_none() {
        record.apply(&events.recv_timeout(Duration::from_secs(30)).unwrap());
    }
    record
}
