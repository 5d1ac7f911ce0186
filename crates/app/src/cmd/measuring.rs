//! Common parts of all measuring commands: run, log, archive, signals.

pub(super) mod sinks;

use std::path::Path;

use linerate_control::{HostRef, Sink};
use linerate_model::{
    ArchiveOptions, Event, Investigation, LiveOutput, Outcome, RunLabels, RunRecord, TestSpec, TlsOptions,
};
use linerate_runner::{
    KnownServers, LabPortObserver, Measurement, PreparedFile, TestAgents, server_trust, target,
};

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{archive, calibration, print, terminal};
use sinks::{MeasuringScreen, StdoutLog};

/// What to measure, and where to output results.
pub(super) struct MeasureRequest<'a> {
    /// The server as typed.
    pub(super) host: &'a str,
    /// Port, if given separately.
    pub(super) port: Option<u16>,
    /// Whether and how the control connection is encrypted.
    pub(super) tls: &'a TlsOptions,
    /// What to measure.
    pub(super) spec: TestSpec,
    /// The file to send or write.
    pub(super) file: Option<&'a Path>,
    /// The agent that measures instead of this host.
    pub(super) agent: Option<HostRef>,
    /// Which further runs to make.
    pub(super) investigation: Option<Investigation>,
    /// Output during the measurement.
    pub(super) output: LiveOutput,
    /// What the user says about the run.
    pub(super) labels: RunLabels,
    /// The archive.
    pub(super) archive: &'a ArchiveOptions,
    /// Whether to keep the log in memory, as the HTML page requires.
    pub(super) keep_log: bool,
}

/// Measures, and calls `print` with the result, its log and its name in the archive, whether or not the run
/// succeeded.
pub(super) fn run(
    request: MeasureRequest<'_>,
    print: impl FnOnce(&RunRecord, &[Event], Option<String>) -> Exit,
) -> Result<Exit, CommandError> {
    let (host, port) = target(request.host, request.port).map_err(CommandError::usage)?;
    let known = KnownServers { file: None, notify: |notice| print::note(notice) };
    let tls = server_trust(request.tls, &host, port, known).map_err(CommandError::usage)?;
    let signals = Signals::catch()?;
    let file = request.file.map(|path| PreparedFile::prepare(path, &request.spec)).transpose();
    let measurement = Measurement::of(host, port, request.spec).map_err(CommandError::failed)?;
    let id = measurement.run.clone();
    let measurement = Measurement {
        tls,
        file: file.map_err(CommandError::usage)?,
        agents: request.agent.map(TestAgents::client),
        labels: request.labels,
        investigation: request.investigation,
        calibration: calibration::stored(),
        lab: LabPortObserver::from_environment(),
        ..measurement
    };
    let mut archived = archive::sink(request.archive.archive.as_deref());
    let mut screen = MeasuringScreen::new(&request.output);
    let mut stream = request.output.json_stream.then(StdoutLog::default);
    let mut whole = request.keep_log.then(Vec::new);
    let mut sinks: Vec<&mut dyn Sink> = Vec::new();
    sinks.extend(archived.as_mut().map(|sink| sink as &mut dyn Sink));
    sinks.push(&mut screen);
    sinks.extend(stream.as_mut().map(|sink| sink as &mut dyn Sink));
    sinks.extend(whole.as_mut().map(|sink| sink as &mut dyn Sink));
    let shows_progress = terminal::watched() && !request.output.quiet && !request.output.json_stream;
    let measured = measurement.run(&signals.cancel(), sinks, &mut |question| {
        if shows_progress {
            print::live(&question.because);
        }
        let sink = archive::sink(request.archive.archive.as_deref());
        Some(sink.map(|sink| Box::new(sink) as Box<dyn Sink>).into_iter().collect())
    });
    let record = measured.record;
    screen.end();
    let kept = archived.as_mut().is_some_and(archive::close).then_some(id);
    for caveat in record.caveats.iter().filter(|c| c.kind == linerate_model::CaveatKind::NotArchived) {
        print::warning(&caveat.text);
    }
    let events = whole.unwrap_or_default();
    let printed = print(&record, &events, kept.map(|id| id.chars().take(8).collect()));
    let streamed = stream.is_none_or(|stream| stream.end());
    match measured.outcome.map_err(CommandError::failed)? {
        Outcome::Interrupted => Ok(Exit::Interrupted(signals.which().unwrap_or(2))),
        _ if !streamed => Ok(Exit::Failed),
        _ => Ok(printed),
    }
}
