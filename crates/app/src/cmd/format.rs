//! Output of a run in a format, to stdout or a file.

use std::io::{self, Write};
use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use linerate_model::{Event, RunRecord};
use linerate_report::format::RunSource;
use linerate_report::{FORMATS, Format, FormatError, TextLayout, plot};

use super::page;
use crate::exit::Exit;
use crate::{front_end, print};

/// Parses the name of a format.
pub(crate) fn format_name() -> impl TypedValueParser<Value = Format> {
    let names = FORMATS.iter().map(|row| PossibleValue::new(row.name).help(row.help));
    PossibleValuesParser::new(names).map(|name| Format::named(&name).unwrap_or_default())
}

/// The format according to a file's extension.
pub(super) fn format_of(path: &Path) -> Option<Format> {
    Format::of_extension(path.extension()?.to_str()?)
}

/// Writes a run. `events` is used by the event log, and by the HTML page, which contains the log.
fn write(
    record: &RunRecord,
    events: &[Event],
    format: Format,
    view: &TextLayout,
    out: &mut dyn Write,
) -> io::Result<()> {
    let assets = front_end::assets();
    let run = RunSource { record, events, view, assets: assets.as_ref() };
    format.write_run(run, out).map_err(|error| match error {
        FormatError::Io(error) => error,
        FormatError::NoFrontEnd => io::Error::other(front_end::MISSING),
        error => io::Error::other(error),
    })
}

/// Writes a run to stdout; a closed pipe is not an error.
pub(super) fn to_stdout(record: &RunRecord, events: &[Event], format: Format, view: &TextLayout) -> Exit {
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
pub(super) fn to_file(record: &RunRecord, events: &[Event], format: Format, path: &Path) -> io::Result<()> {
    whole_file(path, |out| write(record, events, format, &TextLayout::default(), out))
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
pub(super) fn draw(record: &RunRecord, view: &TextLayout) -> Exit {
    page::print(plot::terminal(record, view).as_bytes())
}
