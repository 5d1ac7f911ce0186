//! Common parts of all measuring commands: run, log, archive, signals.

mod from;
pub(super) mod sinks;

use std::path::Path;

use linerate_control::{HostRef, Sink};
use linerate_model::{Event, Outcome, RunRecord, TestSpec};
use linerate_report::Format;
use linerate_runner::{FollowUps, LabPortObserver, Measurement, target};

use super::format;
use crate::args::{ArchiveArgs, Investigation, OutputArgs};
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{archive_sink, calibration, front_end, print, terminal};
pub(super) use from::agent;
use sinks::{Screen, Stream, Whole};

/// What to measure, and where to output results.
pub(super) struct MeasureRequest<'a> {
    /// The server as typed.
    pub(super) host: &'a str,
    /// Port, if given separately.
    pub(super) port: Option<u16>,
    /// What to measure.
    pub(super) spec: TestSpec,
    /// The agent that measures instead of this host.
    pub(super) agent: Option<HostRef>,
    /// Whether to make further runs for open questions.
    pub(super) investigate: Option<Investigation>,
    /// Output during the measurement.
    pub(super) output: &'a OutputArgs,
    /// The archive.
    pub(super) archive: &'a ArchiveArgs,
    /// Whether to keep the log in memory, as the HTML page requires.
    pub(super) keep_log: bool,
}

/// Measures, and calls `print` with the result, its log and its name in the archive, whether or not the run
/// succeeded.
pub(super) fn run(
    wish: MeasureRequest<'_>,
    print: impl FnOnce(&RunRecord, &[Event], Option<String>) -> Exit,
) -> Exit {
    let (host, port) = match target(wish.host, wish.port) {
        Ok(found) => found,
        Err(trouble) => {
            print::error(trouble);
            return Exit::Usage;
        }
    };
    let Ok(signals) = Signals::catch() else {
        print::error("cannot catch signals");
        return Exit::Failed;
    };
    let measurement = match Measurement::of(host, port, wish.spec) {
        Ok(measurement) => measurement,
        Err(error) => {
            print::error(error);
            return Exit::Failed;
        }
    };
    let id = measurement.run.clone();
    let measurement = Measurement {
        from: wish.agent,
        follow_ups: wish.investigate.map_or(FollowUps::None, FollowUps::from),
        calibration: calibration::stored(),
        lab: LabPortObserver::from_environment(),
        ..measurement
    };
    let mut archive = archive_sink::open(wish.archive.archive.as_deref());
    let mut screen = Screen::new(wish.output);
    let mut stream = wish.output.json_stream.then(Stream::default);
    let mut whole = wish.keep_log.then(Whole::default);
    let mut sinks: Vec<&mut dyn Sink> = Vec::new();
    sinks.extend(archive.as_mut().map(|sink| sink as &mut dyn Sink));
    sinks.push(&mut screen);
    sinks.extend(stream.as_mut().map(|sink| sink as &mut dyn Sink));
    sinks.extend(whole.as_mut().map(|sink| sink as &mut dyn Sink));
    let told = terminal::watched() && !wish.output.quiet && !wish.output.json_stream;
    let measured = measurement.run(&signals.cancel(), sinks, &mut |question| {
        if told {
            print::live(&question.because);
        }
        let sink = archive_sink::open(wish.archive.archive.as_deref());
        Some(sink.map(|sink| Box::new(sink) as Box<dyn Sink>).into_iter().collect())
    });
    let record = measured.record;
    screen.end();
    let kept = archive.as_mut().is_some_and(archive_sink::close).then_some(id);
    for caveat in record.caveats.iter().filter(|c| c.kind == linerate_model::CaveatKind::NotArchived) {
        print::warning(&caveat.text);
    }
    let events = whole.map(|whole| whole.0).unwrap_or_default();
    let printed = print(&record, &events, kept.map(|id| id.chars().take(8).collect()));
    let streamed = stream.is_none_or(|stream| stream.end());
    match measured.outcome {
        Err(error) => {
            print::error(error);
            Exit::Failed
        }
        Ok(Outcome::Interrupted) => Exit::Interrupted(signals.which().unwrap_or(2)),
        Ok(_) if !streamed => Exit::Failed,
        Ok(_) => printed,
    }
}

impl From<Investigation> for FollowUps {
    fn from(wanted: Investigation) -> Self {
        match wanted {
            Investigation::Open => Self::Open,
            Investigation::Reads => Self::Reads,
        }
    }
}

/// Writes a report to a file.
pub(super) fn write_report(record: &RunRecord, events: &[Event], format: Format, path: &Path) -> Exit {
    match format::to_file(record, events, format, path) {
        Ok(()) => Exit::Done,
        Err(error) => {
            print::error(format!("the report {} could not be written: {error}", path.display()));
            Exit::Failed
        }
    }
}

/// Checks, before anything is measured, that the extension of the file for `flag` is one of `endings`; returns
/// the error.
pub(super) fn file_error(flag: &str, path: &Path, endings: &str) -> Option<String> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if ending.is_empty() || !endings.split([' ', ',']).any(|known| known.strip_prefix('.') == Some(ending)) {
        return Some(format!("{flag} {}: the name must end in {endings}", path.display()));
    }
    if ending == "html" && front_end::assets().is_none() {
        return Some(format!("{flag} {}: {}", path.display(), front_end::MISSING));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    (!folder.is_dir()).then(|| format!("{flag} {}: there is no folder {}", path.display(), folder.display()))
}

#[cfg(test)]
mod tests {
    use super::super::format::format_of;
    use super::*;

    #[test]
    fn the_report_says_its_format_by_its_name() {
        assert_eq!(format_of(Path::new("a/b.md")), Some(Format::Markdown));
        assert_eq!(format_of(Path::new("a/b")), None);
        let trouble = |name: &str| file_error("--report", Path::new(name), ".csv, .md or .txt");
        assert!(trouble("b.pdf").unwrap().contains(".csv"));
        assert!(trouble("b").unwrap().contains(".csv"));
        assert!(trouble("/no/such/folder/b.md").unwrap().contains("no folder"));
        assert_eq!((trouble("b.md"), trouble("b.csv"), trouble("b.txt")), (None, None, None));
    }
}
