//! `linerate import`: archives results of other programs.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::path::Path;

use linerate_archive::{ArchiveError, SqliteArchive, Store};
use linerate_compat::import::{Imported, bodies, name, prose, read, run_name, text};
use linerate_model::foreign_text::one_line;
use linerate_model::import::{Reading, Unread};
use linerate_model::{Body, Event, ForeignText, RunRecord};
use serde_json::json;

use super::archived::{archive, failed};
use super::page;
use crate::args::ImportArgs;
use crate::exit::Exit;
use crate::print;

/// Largest file to read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A run from a file.
struct Found {
    /// The program that made the measurement.
    tool: String,
    version: Option<String>,
    file: String,
    events: Vec<Event>,
    /// Whether the archive already contains it.
    known: bool,
}

pub(crate) fn run(args: &ImportArgs) -> Exit {
    let mut archive = match archive(&args.archive) {
        Ok(archive) => archive,
        Err(error) => return failed(&error),
    };
    let (mut runs, mut remarks, mut silent) = (Vec::new(), Vec::new(), false);
    for path in &args.files {
        let file = path.display().to_string();
        match of_file(path, &file, args.tool.as_deref()) {
            Ok((found, unread)) => {
                runs.extend(found);
                remarks.extend(unread.into_iter().map(|unread| (file.clone(), unread)));
            }
            Err(why) => {
                print::error(format!("{file}: {why}"));
                silent = true;
            }
        }
    }
    for (file, unread) in &remarks {
        let column = unread.column.map(|column| format!(", column {column}")).unwrap_or_default();
        print::warning(one_line(&format!("{file}: line {}{column}: {}", unread.line, unread.why)));
    }
    for found in &mut runs {
        if let Err(error) = store(found, &mut archive) {
            return failed(&error);
        }
    }
    let printed = if args.json { document(&runs, &remarks) } else { lines(&runs, &archive) };
    match printed {
        Err(error) => return failed(&error),
        Ok(text) => {
            let printed = page::print(text.as_bytes());
            if printed != Exit::Done {
                return printed;
            }
        }
    }
    if silent { Exit::Failed } else { Exit::Done }
}

/// The logs of the runs in a result file.
pub(super) fn logs(path: &Path) -> Result<Vec<Vec<Event>>, String> {
    let (runs, _) = of_file(path, &path.display().to_string(), None)?;
    Ok(runs.into_iter().map(|run| run.events).collect())
}

/// The runs of a file, and its unreadable parts.
fn of_file(path: &Path, file: &str, tool: Option<&str>) -> Result<(Vec<Found>, Vec<Unread>), String> {
    let (bytes, time) = contents(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let text = text(&bytes);
    if let Some(line) = prose(&text).filter(|_| tool.is_none()) {
        return Err(format!(
            "line {line}: this is prose that contains results as examples; copy a measured result into a \
             separate file, or name the program with --tool"
        ));
    }
    let readings = read(&text, tool).map_err(|error| error.to_string())?;
    let from =
        Imported { file: file.to_owned(), file_time: time, linerate: env!("CARGO_PKG_VERSION").to_owned() };
    let mut runs = Vec::new();
    let mut twins = BTreeMap::new();
    let mut logs = false;
    for reading in &readings {
        if reading.tool == "linerate" && !std::mem::replace(&mut logs, true) {
            runs.extend(own_logs(&text, file));
        }
        runs.extend(of_reading(reading, &from, &mut twins, &runs));
    }
    Ok((runs, readings.into_iter().flat_map(|reading| reading.unread).collect()))
}

fn of_reading(
    reading: &Reading,
    from: &Imported,
    twins: &mut BTreeMap<String, u32>,
    logs: &[Found],
) -> Vec<Found> {
    // The tests of our own logs are already imported as logs.
    let mine = reading.tool == "linerate" && logs.iter().any(|found| found.tool == "linerate");
    let tests = reading.tests.iter().filter(|_| !mine);
    let runs = tests.map(|test| {
        let twin = twins.entry(name(reading, test, 0)).or_default();
        let run = name(reading, test, *twin);
        *twin += 1;
        let bodies = (0..).zip(bodies(reading, test, from));
        let event = |(seq, (at, body))| Event { run: run.clone().into(), host: 0, seq, at, body };
        Found {
            tool: reading.tool.to_string(),
            version: reading.version.clone().map(Into::into),
            file: from.file.clone(),
            events: bodies.map(event).collect(),
            known: false,
        }
    });
    runs.collect()
}

/// The runs of event logs, unchanged.
fn own_logs(text: &str, file: &str) -> Vec<Found> {
    let mut logs: Vec<Found> = Vec::new();
    let mut places: HashMap<ForeignText, usize> = HashMap::new();
    for event in text.lines().filter_map(|line| own_event(line.trim())) {
        match places.get(&event.run).and_then(|at| logs.get_mut(*at)) {
            Some(log) => log.events.push(event),
            None => {
                places.insert(event.run.to_string().into(), logs.len());
                logs.push(Found {
                    tool: "linerate".to_owned(),
                    version: None,
                    file: file.to_owned(),
                    events: vec![event],
                    known: false,
                });
            }
        }
    }
    logs
}

/// An event of a log that was written elsewhere. A run id that does not have our format is replaced, as it
/// becomes a part of file names, pages and tables.
fn own_event(line: &str) -> Option<Event> {
    let mut event = Event::read(line).ok()?;
    event.run = run_name(&event.run).into();
    match &mut event.body {
        Body::Grouped(place) => {
            if let Some(plan) = &mut place.plan {
                plan.run = run_name(&plan.run).into();
            }
        }
        Body::TrialEnded(trial) => trial.runs.iter_mut().for_each(|run| run.run = run_name(&run.run).into()),
        Body::FollowUp { follow_up, .. } => {
            follow_up.runs.iter_mut().for_each(|run| *run = run_name(run).into())
        }
        _ => {}
    }
    Some(event)
}

/// Content and time of a file.
fn contents(path: &Path) -> io::Result<(Vec<u8>, String)> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        read_bounded(io::stdin().lock(), &mut bytes)?;
        return Ok((bytes, linerate_runner::now()));
    }
    let file = std::fs::File::open(path)?;
    let changed = file.metadata()?.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
    let time = changed.and_then(|time| time.round(jiff::Unit::Second).ok()).map(|time| time.to_string());
    read_bounded(file, &mut bytes)?;
    Ok((bytes, time.unwrap_or_else(linerate_runner::now)))
}

/// Reads up to [`MAX_FILE_BYTES`]; more is an error.
fn read_bounded(from: impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    from.take(MAX_FILE_BYTES + 1).read_to_end(bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let why = format!("it is larger than {} MiB; split it", MAX_FILE_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(())
}

/// Stores a run unless the archive contains it.
fn store(found: &mut Found, archive: &mut SqliteArchive) -> Result<(), ArchiveError> {
    let run = &found.events[0].run;
    found.known = archive.contains(run)?;
    if found.known { Ok(()) } else { archive.append(&found.events) }
}

/// One line per run.
fn lines(runs: &[Found], archive: &SqliteArchive) -> Result<String, ArchiveError> {
    let mut text = String::new();
    for found in runs {
        let record = RunRecord::fold(&found.events);
        let kept = archive.short_name(&found.events[0].run)?;
        let how = if found.known { "was already archived as" } else { "imported as" };
        let version = found.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let line = format!("{}: {}{version} {how} {kept}: {}", found.file, found.tool, figures(&record));
        text += &one_line(&line);
        text.push('\n');
    }
    Ok(text)
}

/// The rates of a run as text.
fn figures(record: &RunRecord) -> String {
    let flows: Vec<String> = record
        .flows
        .iter()
        .map(|flow| {
            let sent = flow.sender.as_ref().map(|tally| format!("{} sent", tally.bitrate));
            let rate = flow.bitrate().map(|rate| rate.to_string()).or(sent);
            format!("{} {}", flow.plan.name, rate.unwrap_or_else(|| "without a figure".to_owned()))
        })
        .collect();
    match (&record.reason, flows.is_empty()) {
        (Some(reason), true) => reason.to_string(),
        (None, true) => "no figure".to_owned(),
        (_, false) => flows.join(", "),
    }
}

fn document(runs: &[Found], remarks: &[(String, Unread)]) -> Result<String, ArchiveError> {
    let run = |found: &Found| {
        json!({
            "id": found.events[0].run, "tool": found.tool, "version": found.version, "file": found.file,
            "new": !found.known,
        })
    };
    let runs: Vec<_> = runs.iter().map(run).collect();
    let remark = |(file, unread): &(String, Unread)| json!({ "file": file, "line": unread.line, "column": unread.column, "why": unread.why });
    let unread: Vec<_> = remarks.iter().map(remark).collect();
    Ok(format!("{}\n", json!({ "schema": "linerate.import/1", "runs": runs, "unread": unread })))
}
