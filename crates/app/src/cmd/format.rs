//! A run in a format, to stdout or a file.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use linerate_model::{Event, RunRecord};
use linerate_report::{View, csv, document, markdown, ndjson, text};

use crate::args::FormatName;
use crate::exit::Exit;
use crate::say;

/// Writes a run. `events` is used by the event log only.
pub(super) fn write(
    record: &RunRecord,
    events: &[Event],
    format: FormatName,
    view: &View,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        FormatName::Jsonl => {
            for event in events {
                ndjson::write(event, &mut &mut *out).map_err(io::Error::other)?;
            }
        }
        FormatName::Json => {
            serde_json::to_writer_pretty(&mut *out, &document(record))?;
            writeln!(out)?;
        }
        FormatName::Csv => csv::samples(record, &mut *out).map_err(io::Error::other)?,
        FormatName::SummaryCsv => csv::summary(record, &mut *out).map_err(io::Error::other)?,
        FormatName::Markdown => out.write_all(markdown::report(record).as_bytes())?,
        FormatName::Text => out.write_all(text(record, view).as_bytes())?,
    }
    out.flush()
}

/// Writes a run to stdout; a reader that has gone away is no error.
pub(super) fn to_stdout(record: &RunRecord, events: &[Event], format: FormatName, view: &View) -> Exit {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(record, events, format, view, &mut out) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say::error(format!("the result could not be printed: {error}"));
            Exit::Failed
        }
        _ => Exit::Done,
    }
}

/// Writes a run to a file; a file that is there is replaced only when the new one is complete.
pub(super) fn to_file(
    record: &RunRecord,
    events: &[Event],
    format: FormatName,
    path: &Path,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut out = io::BufWriter::new(std::fs::File::create(&part)?);
    let written = write(record, events, format, &View::default(), &mut out);
    drop(out);
    let result = written.and_then(|()| std::fs::rename(&part, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    result
}
