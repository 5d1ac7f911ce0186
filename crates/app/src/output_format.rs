//! Output of a run in a format, to stdout or a file.

use std::io::{self, Write};
use std::path::Path;

use linerate_model::{Event, RunRecord};
use linerate_report::format::RunSource;
use linerate_report::{Format, FormatError, TextLayout, plot};
use linerate_runner::whole_file;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{front_end, print, stdout};

/// The format according to a file's extension.
pub(crate) fn format_of(path: &Path) -> Option<Format> {
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
pub(crate) fn to_stdout(record: &RunRecord, events: &[Event], format: Format, view: &TextLayout) -> Exit {
    let mut out = Vec::new();
    match write(record, events, format, view, &mut out) {
        Ok(()) => stdout::print(&out),
        Err(error) => {
            print::error(format!("the result could not be printed: {error}"));
            Exit::Failed
        }
    }
}

/// Writes a run to a file; an existing file is replaced only when the new one is complete.
pub(crate) fn to_file(record: &RunRecord, events: &[Event], format: Format, path: &Path) -> io::Result<()> {
    whole_file(path, |out| write(record, events, format, &TextLayout::default(), out))
}

/// The error of a file that could not be written.
pub(crate) fn not_written(path: &Path, error: &io::Error) -> CommandError {
    CommandError::failed(format!("{} could not be written: {error}", path.display()))
}

/// Draws the curves of a sweep on stdout; nothing for other runs.
pub(crate) fn draw(record: &RunRecord, view: &TextLayout) -> Exit {
    stdout::print(plot::terminal(record, view).as_bytes())
}

/// Extensions of report files. A new format needs an extension here.
pub(crate) const REPORT_EXTENSIONS: &str = ".html, .json, .csv, .md, .txt or .svg";
/// Extensions of report files of a plan, which has assertions.
pub(crate) const PLAN_REPORT_EXTENSIONS: &str = ".html, .json, .csv, .md, .txt, .svg or .xml (JUnit)";

/// Writes a report to a file.
pub(crate) fn write_report(record: &RunRecord, events: &[Event], format: Format, path: &Path) -> Exit {
    match to_file(record, events, format, path) {
        Ok(()) => Exit::Done,
        Err(error) => {
            print::error(format!("the report {} could not be written: {error}", path.display()));
            Exit::Failed
        }
    }
}

/// Checks, before anything is measured, that a file can be written whose name ends in one of `endings`.
///
/// # Errors
/// It has another extension, needs the front end, or its folder does not exist.
pub(crate) fn check_file(flag: &str, path: &Path, endings: &str) -> Result<(), CommandError> {
    file_error(flag, path, endings).map_or(Ok(()), |error| Err(CommandError::usage(error)))
}

fn file_error(flag: &str, path: &Path, endings: &str) -> Option<String> {
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
