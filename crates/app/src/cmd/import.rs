//! `linerate import`: archives results of other programs.

use std::io::{self, Read};
use std::path::Path;

use linerate_archive::{ArchiveError, SqliteArchive, Store};
use linerate_compat::import::{Imported, ImportedRun, ImportedRuns, runs, text};
use linerate_model::{Event, RunRecord};
use linerate_report::import::{ImportDocument, ImportRow, unread_line};

use super::archived::{archive, failed};
use super::page;
use crate::args::ImportArgs;
use crate::exit::Exit;
use crate::print;

/// Largest file to read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A run from a file.
struct Found {
    row: ImportRow,
    events: Vec<Event>,
}

impl Found {
    fn new(run: ImportedRun, file: &str) -> Self {
        let ImportedRun { tool, version, run, events } = run;
        Self { row: ImportRow { run, tool, version, file: file.to_owned(), known: false }, events }
    }
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
            Ok(imported) => {
                runs.extend(imported.runs.into_iter().map(|run| Found::new(run, &file)));
                remarks.extend(imported.unread.into_iter().map(|unread| (file.clone(), unread)));
            }
            Err(why) => {
                print::error(format!("{file}: {why}"));
                silent = true;
            }
        }
    }
    for (file, unread) in &remarks {
        print::warning(unread_line(file, unread));
    }
    for found in &mut runs {
        if let Err(error) = store(found, &mut archive) {
            return failed(&error);
        }
    }
    let printed = if args.json {
        let rows: Vec<&ImportRow> = runs.iter().map(|found| &found.row).collect();
        page::print_json_line(&ImportDocument::new(&rows, &remarks))
    } else {
        match lines(&runs, &archive) {
            Ok(text) => page::print(text.as_bytes()),
            Err(error) => failed(&error),
        }
    };
    match printed {
        Exit::Done if silent => Exit::Failed,
        printed => printed,
    }
}

/// The logs of the runs in a result file.
pub(super) fn logs(path: &Path) -> Result<Vec<Vec<Event>>, String> {
    let imported = of_file(path, &path.display().to_string(), None)?;
    Ok(imported.runs.into_iter().map(|run| run.events).collect())
}

/// The runs of a file, and its unreadable parts.
fn of_file(path: &Path, file: &str, tool: Option<&str>) -> Result<ImportedRuns, String> {
    let (bytes, time) = contents(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let from =
        Imported { file: file.to_owned(), file_time: time, linerate: env!("CARGO_PKG_VERSION").to_owned() };
    runs(&text(&bytes), tool, &from).map_err(|error| error.to_string())
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
    found.row.known = archive.contains(&found.row.run)?;
    if found.row.known { Ok(()) } else { archive.append(&found.events) }
}

/// One line per run.
fn lines(runs: &[Found], archive: &SqliteArchive) -> Result<String, ArchiveError> {
    let line = |found: &Found| {
        Ok(found.row.line(&archive.short_name(&found.row.run)?, &RunRecord::fold(&found.events)))
    };
    runs.iter().map(line).collect()
}
