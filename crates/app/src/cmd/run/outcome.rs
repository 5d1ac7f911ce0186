//! Output of a plan's results in all formats.

use std::io;
use std::path::Path;

use linerate_model::PlanRecord;
use linerate_report::{Format, TextLayout, plan};

use super::RunArgs;
use crate::args::ReportArgs;
use crate::cmd::format::{format_of, whole_file};
use crate::cmd::page;
use crate::exit::Exit;
use crate::{print, terminal};

/// Width of text that does not go to a terminal.
const UNWATCHED_WIDTH: usize = 160;

/// Prints the result and writes the report file.
pub(super) fn print(args: &RunArgs, record: &PlanRecord, kept: Option<String>) -> Exit {
    let printed = if args.json {
        page::print_json(&plan::document(record))
    } else if args.json_stream {
        Exit::Done
    } else {
        let view = TextLayout { kept, ..view() };
        page::print(plan::text(record, &view).as_bytes())
    };
    let Some(path) = &args.report else { return printed };
    if format_of(path) == Some(Format::Html) {
        // The page contains the runs, which it loads from the archive.
        let runs = vec![record.run.clone()];
        let wish = ReportArgs {
            runs: runs.into_iter().map(Into::into).collect(),
            output: Some(path.clone()),
            archive: args.archive.clone(),
        };
        let written = crate::cmd::report::run(&wish);
        return if written == Exit::Done { printed } else { written };
    }
    match report(record, path) {
        Ok(()) => printed,
        Err(error) => {
            print::error(format!("the report {} could not be written: {error}", path.display()));
            Exit::Failed
        }
    }
}

/// The view of a plan: tables may be wide if they go to a file or another program.
pub(in crate::cmd) fn view() -> TextLayout {
    let view = terminal::stdout_view();
    if terminal::printed() { view } else { TextLayout { width: UNWATCHED_WIDTH, ..view } }
}

fn report(record: &PlanRecord, path: &Path) -> io::Result<()> {
    let format = format_of(path).unwrap_or_default();
    whole_file(path, |out| format.write_plan(record, out).map_err(io::Error::other))
}
