//! Has the agents of two hosts measure, for a coordinator or for the agent of the client's host.

use linerate_control::{HostRef, Sink, SinkError};
use linerate_model::calendar::{CalendarRunState, CellResult};
use linerate_model::{Event, Outcome, RunLabels, TestSpec};
use linerate_runner::{ArchiveSink, ArchiveWarning, CancelToken, Measurement, Sinks, TestAgents};
use linerate_sock::Mono;

use crate::coordinator::RunEnd;

/// The longest log that is passed on.
const MAX_LOG_BYTES: usize = 48 << 20;

/// A run that is carried out by something else than a measurement.
#[doc(hidden)]
#[derive(Debug)]
pub struct SubstituteRun<'r> {
    /// Its name.
    pub run: &'r str,
    /// Its schedule.
    pub schedule: &'r str,
    /// The host of the client.
    pub from: &'r str,
    /// The host of the server.
    pub to: &'r str,
    /// What it measures.
    pub spec: &'r TestSpec,
    /// Traffic that begins later would not end in the time of the run.
    pub start_by: Mono,
}

/// Carries out runs instead of measuring, for tests of everything else: how a run ended, and its log.
#[doc(hidden)]
pub type RunSubstitute = fn(&SubstituteRun<'_>, &CancelToken) -> (RunEnd, String);

/// A run that is carried out now.
pub(crate) struct RunWork<'w> {
    /// Location of the archive; absent for the default one of this user.
    pub(crate) archive: Option<&'w str>,
    pub(crate) client: HostRef,
    pub(crate) server: HostRef,
    pub(crate) run: &'w str,
    pub(crate) schedule: &'w str,
    pub(crate) spec: &'w TestSpec,
    /// Traffic that begins later would not end in the time of the run.
    pub(crate) start_by: Mono,
    /// What carries it out instead of a measurement.
    pub(crate) substitute: Option<RunSubstitute>,
}

/// The log of a run as text, a JSON document on each line.
#[derive(Default)]
pub(crate) struct RunLog {
    pub(crate) text: String,
}

impl Sink for RunLog {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        let line = serde_json::to_string(event).unwrap_or_default();
        if self.text.len() + line.len() < MAX_LOG_BYTES {
            self.text += &line;
            self.text.push('\n');
        }
        Ok(())
    }
}

/// Measures and archives. The warning says that the archive does not have everything.
pub(crate) fn carry_out(
    work: RunWork<'_>,
    log: Option<&mut RunLog>,
    cancel: &CancelToken,
) -> (RunEnd, Option<ArchiveWarning>) {
    if let Some(substitute) = work.substitute {
        let (end, text) = substitute(&work.for_substitute(), cancel);
        if let Some(log) = log {
            log.text = text;
        }
        return (end, None);
    }
    let mut sink = match ArchiveSink::open(work.archive, |_| ()) {
        Ok(sink) => sink,
        Err(warning) => return (failed(warning.to_string()), None),
    };
    let host = work.server.name.clone();
    let agents = TestAgents { client: work.client, start_by: Some(work.start_by), server: Some(work.server) };
    let measurement = Measurement {
        host,
        port: None,
        tls: None,
        spec: work.spec.clone(),
        file: None,
        run: work.run.to_owned(),
        agents: Some(agents),
        labels: RunLabels { name: Some(work.schedule.into()), ..RunLabels::default() },
        investigation: None,
        calibration: None,
        lab: None,
    };
    let mut sinks: Vec<&mut dyn Sink> = vec![&mut sink];
    if let Some(log) = log {
        sinks.push(log);
    }
    let measured = measurement.run(cancel, sinks, &mut |_| None::<Sinks>);
    let warning = sink.close().err();
    let result = CellResult::of(&measured.record);
    let end = match (measured.outcome, result) {
        (Ok(Outcome::Completed), Some(result)) => {
            RunEnd { state: CalendarRunState::Finished, reason: String::new(), result: Some(result) }
        }
        (Ok(Outcome::Completed), None) => failed("it has no result".to_owned()),
        (Ok(_), _) => failed(linerate_control::CANCELLED.to_owned()),
        (Err(error), _) => failed(error.to_string()),
    };
    (end, warning)
}

impl RunWork<'_> {
    fn for_substitute(&self) -> SubstituteRun<'_> {
        SubstituteRun {
            run: self.run,
            schedule: self.schedule,
            from: &self.client.name,
            to: &self.server.name,
            spec: self.spec,
            start_by: self.start_by,
        }
    }
}

pub(crate) fn failed(reason: String) -> RunEnd {
    RunEnd { state: CalendarRunState::Failed, reason, result: None }
}
