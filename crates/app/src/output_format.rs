//! Output of a run in a format, to stdout or a file.

use std::path::Path;

use linerate_model::{Event, RunRecord};
use linerate_report::format::{RunSource, path_error};
use linerate_report::{Format, FormatError, TextLayout, plot};
use linerate_runner::whole_file;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{front_end, stdout};

/// A run in a format. `events` is used by the formats that contain or name the log.
fn written(
    record: &RunRecord,
    events: &[Event],
    format: Format,
    view: &TextLayout,
) -> Result<Vec<u8>, CommandError> {
    let assets = front_end::assets();
    let run = RunSource { record, events, view, assets: assets.as_ref() };
    let mut out = Vec::new();
    format.write_run(run, &mut out).map_err(|error| match error {
        FormatError::NoFrontEnd => CommandError::failed(front_end::MISSING),
        error => CommandError::failed(format!("the result could not be written: {error}")),
    })?;
    Ok(out)
}

/// Writes a run to stdout; a closed pipe is not an error.
pub(crate) fn to_stdout(record: &RunRecord, events: &[Event], format: Format, view: &TextLayout) -> Exit {
    written(record, events, format, view).map_or_else(CommandError::report, |out| stdout::print(&out))
}

/// Writes a report to a file; an existing file is replaced only when the new one is complete.
pub(crate) fn write_report(record: &RunRecord, events: &[Event], format: Format, path: &Path) -> Exit {
    let document = written(record, events, format, &TextLayout::default());
    document.and_then(|document| write_out(Some(path), &document)).unwrap_or_else(CommandError::report)
}

/// Also writes a report to the file of `--report`, if there is one. An error of it replaces what printing came to.
pub(crate) fn and_report(printed: Exit, record: &RunRecord, events: &[Event], path: Option<&Path>) -> Exit {
    let written =
        path.map(|path| write_report(record, events, Format::of_file(path).unwrap_or_default(), path));
    written.filter(|written| *written != Exit::Done).unwrap_or(printed)
}

/// Writes a complete document to a file, or to stdout.
pub(crate) fn write_out(path: Option<&Path>, document: &[u8]) -> Result<Exit, CommandError> {
    let Some(path) = path else { return Ok(stdout::print(document)) };
    let written = whole_file(path, |out| out.write_all(document));
    written
        .map_err(|error| CommandError::failed(format!("{} could not be written: {error}", path.display())))?;
    Ok(Exit::Done)
}

/// Draws the curves of a sweep on stdout; nothing for other runs.
pub(crate) fn draw(record: &RunRecord, view: &TextLayout) -> Exit {
    stdout::print(plot::terminal(record, view).as_bytes())
}

/// Checks, before anything is measured, that a file can be written whose name ends in one of `endings`.
///
/// # Errors
/// It has another extension, needs the front end, or its folder does not exist.
pub(crate) fn check_file(flag: &str, path: Option<&Path>, endings: &str) -> Result<(), CommandError> {
    let no_pages = front_end::assets().is_none().then_some(front_end::MISSING);
    let why = path.and_then(|path| path_error(path, endings, no_pages));
    why.map_or(Ok(()), |why| Err(CommandError::usage(format!("{flag} {why}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_says_its_format_by_its_name() {
        let trouble = |name: &str| {
            let checked = check_file("--report", Some(Path::new(name)), ".csv, .md or .txt");
            checked.err().map(CommandError::into_text)
        };
        assert!(trouble("b.pdf").unwrap().contains(".csv"));
        assert!(trouble("b").unwrap().contains(".csv"));
        assert!(trouble("/no/such/folder/b.md").unwrap().contains("no folder"));
        assert_eq!((trouble("b.md"), trouble("b.csv"), trouble("b.txt")), (None, None, None));
    }
}
