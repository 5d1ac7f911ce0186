//! Output of a run in a format, to stdout or a file.

use std::io::{self, Write};
use std::path::Path;

use linerate_model::{Event, RunRecord};
use linerate_report::picture::Pictures;
use linerate_report::{View, csv, document, html, markdown, ndjson, plot, text};

use super::page;
use crate::args::FormatName;
use crate::exit::Exit;
use crate::{front_end, print};

/// Error message if there is nothing to draw.
pub(super) const NOTHING_TO_DRAW: &str =
    "there is nothing to draw: no rate over time, no latency and no curve was measured";

/// Whether the run is a sweep over message sizes.
pub(super) fn is_series(record: &RunRecord) -> bool {
    record.flows.iter().any(|flow| !flow.sizes.is_empty())
}

/// Writes a run. `events` is used by the event log, and by the HTML page, which contains the log.
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
        FormatName::Csv if is_series(record) => csv::sizes(record, &mut *out).map_err(io::Error::other)?,
        FormatName::Csv => csv::samples(record, &mut *out).map_err(io::Error::other)?,
        FormatName::SummaryCsv => csv::summary(record, &mut *out).map_err(io::Error::other)?,
        FormatName::Markdown => out.write_all(markdown::report(record).as_bytes())?,
        FormatName::Html => {
            let assets = front_end::assets().ok_or_else(|| io::Error::other(front_end::MISSING))?;
            html::write(None, &[html::Run { record, events }], &assets, &mut *out)?;
        }
        FormatName::Svg => write_pictures(&Pictures::of_run(record), None, &mut *out)?,
        FormatName::Text => out.write_all(text(record, view).as_bytes())?,
    }
    out.flush()
}

/// Writes one chart, or all of them below each other.
pub(super) fn write_pictures(
    pictures: &Pictures,
    only: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let picture = pictures.svg(only).ok_or_else(|| io::Error::other(NOTHING_TO_DRAW))?;
    out.write_all(picture.as_bytes())
}

/// Writes a run to stdout; a closed pipe is not an error.
pub(super) fn to_stdout(record: &RunRecord, events: &[Event], format: FormatName, view: &View) -> Exit {
    let mut out = Vec::new();
    match write(record, events, format, view, &mut out) {
        Ok(()) => page::print(&out),
        Err(error) => {
            print::error(format!("the result could not be printed: {error}"));
            Exit::Failed
        }
    }
}

/// Writes a run to a file; an existing file is replaced only when the new one is complete.
pub(super) fn to_file(
    record: &RunRecord,
    events: &[Event],
    format: FormatName,
    path: &Path,
) -> io::Result<()> {
    whole_file(path, |out| write(record, events, format, &View::default(), out))
}

/// Writes a file; an existing file is replaced only when the new one is complete.
pub(super) fn whole_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut out = io::BufWriter::new(std::fs::File::create(&part)?);
    let written = write(&mut out).and_then(|()| out.flush());
    drop(out);
    let result = written.and_then(|()| std::fs::rename(&part, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    result
}

/// Draws the curves of a sweep on stdout; nothing for other runs.
pub(super) fn draw(record: &RunRecord, view: &View) -> Exit {
    page::print(plot::terminal(record, view).as_bytes())
}
