//! `linerate import`: archives results of other programs.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use linerate_archive::{Archive, ArchiveError, EventStore};
use linerate_compat::import::{Imported, ImportedRun, ImportedRuns, TOOLS, runs, text};
use linerate_model::{ArchiveOptions, Event, RunRecord};
use linerate_report::import::{ImportDocument, ImportRow, unread_line};
use linerate_runner::{archive_at, result_file};

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{print, stdout};

/// Largest file to read.
const MAX_FILE_BYTES: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files with results as JSON, XML, CSV or text, several results per file allowed; - is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Read only results of this program
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(TOOLS))]
    tool: Option<String>,
    /// Print the imported results as JSON
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    archive: ArchiveOptions,
}

/// A run from a file.
struct RunFromFile {
    row: ImportRow,
    events: Vec<Event>,
}

impl RunFromFile {
    fn new(run: ImportedRun, file: &str) -> Self {
        let ImportedRun { tool, version, run, events } = run;
        Self { row: ImportRow { run, tool, version, file: file.to_owned(), known: false }, events }
    }
}

/// Archives the runs of all files; an unreadable file does not stop the others.
pub(crate) fn run(args: &ImportArgs) -> Result<Exit, CommandError> {
    let mut archive = archive_at(args.archive.archive.as_deref())?;
    let (mut runs, mut remarks, mut silent) = (Vec::new(), Vec::new(), false);
    for path in &args.files {
        let file = path.display().to_string();
        match of_file(path, &file, args.tool.as_deref()) {
            Ok(imported) => {
                runs.extend(imported.runs.into_iter().map(|run| RunFromFile::new(run, &file)));
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
        found.row.known = archive.contains(&found.row.run)?;
        if !found.row.known {
            archive.append(&found.events)?;
        }
    }
    let printed = if args.json {
        let rows: Vec<&ImportRow> = runs.iter().map(|found| &found.row).collect();
        stdout::print_json_line(&ImportDocument::new(&rows, &remarks))
    } else {
        stdout::print(lines(&runs, &archive)?.as_bytes())
    };
    match printed {
        Exit::Done if silent => Ok(Exit::Failed),
        printed => Ok(printed),
    }
}

/// The logs of the runs in a result file.
pub(super) fn logs(path: &Path) -> Result<Vec<Vec<Event>>, String> {
    let imported = of_file(path, &path.display().to_string(), None)?;
    Ok(imported.runs.into_iter().map(|run| run.events).collect())
}

/// The runs of a file, and its unreadable parts.
fn of_file(path: &Path, file: &str, tool: Option<&str>) -> Result<ImportedRuns, String> {
    let bytes =
        result_file::read(path, MAX_FILE_BYTES).map_err(|error| format!("it cannot be read: {error}"))?;
    let from = Imported {
        file: file.to_owned(),
        file_time: result_file::time(path),
        linerate: env!("CARGO_PKG_VERSION").to_owned(),
    };
    runs(&text(&bytes), tool, &from).map_err(|error| error.to_string())
}

/// One line per run.
fn lines(runs: &[RunFromFile], archive: &Archive) -> Result<String, ArchiveError> {
    let line = |found: &RunFromFile| {
        Ok(found.row.line(&archive.short_name(&found.row.run)?, &RunRecord::fold(&found.events)))
    };
    runs.iter().map(line).collect()
}
