//! `linerate report`: archived runs, or a plan with its runs, as one page.

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use clap::Args;
use linerate_archive::Store;
use linerate_model::{ArchiveOptions, ForeignText, LabelOptions};
use linerate_report::html;
use linerate_runner::{ReportSource, ReportSourceError};

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output_format::{check_file, write_out};
use crate::{archive, front_end, stdout};

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Names of runs, or unique prefixes; several are shown side by side, and a plan includes its runs
    #[arg(value_name = "RUN", default_value = "latest")]
    runs: Vec<String>,
    /// Write to this file, - is stdout [default: linerate-RUN.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Title of the page [default: what it contains]
    #[arg(long, value_name = "TEXT", value_parser = LabelOptions::checked_title)]
    title: Option<String>,
    #[command(flatten)]
    archive: ArchiveOptions,
}

/// Writes the page, and prints its path if the user did not choose it.
pub(crate) fn run(args: &ReportArgs) -> Result<Exit, CommandError> {
    // A device such as /dev/stdout has no extension.
    check_file("--output", args.output.as_deref().filter(|path| path.extension().is_some()), ".html")?;
    write_page(&args.archive, args.title.as_deref(), &args.runs, args.output.as_deref())
}

/// Writes a page of runs to a file, or to stdout for `-`; without a path to a file named after the first run,
/// whose name it prints.
pub(super) fn write_page(
    archive: &ArchiveOptions,
    title: Option<&str>,
    runs: &[String],
    path: Option<&Path>,
) -> Result<Exit, CommandError> {
    let assets = front_end::assets().ok_or_else(|| CommandError::failed(front_end::MISSING))?;
    let archive = archive::open(archive)?;
    let title = title.map(ForeignText::new);
    let page = match ReportSource::load(&archive, runs) {
        // Freeing a million samples takes a while, and the program ends here.
        Ok(page) => ManuallyDrop::new(page),
        Err(ReportSourceError::Archive(error)) => return Err(error.into()),
        Err(error) => return Err(CommandError::usage(error)),
    };
    let reported = page.runs.iter().map(|(record, events)| html::ReportedRun { record, events });
    let plan = page.plan.as_ref();
    let plan = plan.map(|(record, events)| html::ReportedPlan { record, events, left_out: &page.left_out });
    let mut out = Vec::new();
    html::write(title.as_ref(), plan.as_ref(), &reported.collect::<Vec<_>>(), &assets, &mut out)
        .map_err(|error| CommandError::failed(format!("the page could not be written: {error}")))?;
    let Some(path) = path else {
        let file = format!("linerate-{}.html", archive.short_name(&archive.find(&runs[0])?)?);
        write_out(Some(file.as_ref()), &out)?;
        return Ok(stdout::print(format!("written: {file}\n").as_bytes()));
    };
    write_out(Some(path).filter(|path| path.as_os_str() != "-"), &out)
}
