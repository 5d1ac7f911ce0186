//! `linerate report`: archived runs, or a plan with its runs, as one page.

use std::io;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use clap::Args;
use linerate_archive::Store;
use linerate_model::{ForeignText, LabelOptions};
use linerate_report::html;
use linerate_runner::whole_file;
use linerate_runner::{ReportSource, ReportSourceError};

use crate::args::ArchiveArgs;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output_format::not_written;
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
    archive: ArchiveArgs,
}

/// Writes the page, and prints its path if the user did not choose it.
pub(crate) fn run(args: &ReportArgs) -> Result<Exit, CommandError> {
    write_page(&args.archive, args.title.as_deref(), &args.runs, args.output.as_deref())
}

/// Writes a page of runs to a file, or to stdout for `-`; without a path to a file named after the first run,
/// whose name it prints.
pub(super) fn write_page(
    archive: &ArchiveArgs,
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
    if path.is_some_and(|path| path.as_os_str() == "-") {
        let mut out = Vec::new();
        write(title.as_ref(), &page, &assets, &mut out)
            .map_err(|error| CommandError::failed(format!("the page could not be printed: {error}")))?;
        return Ok(stdout::print(&out));
    }
    let file = match path {
        Some(path) => path.to_owned(),
        None => PathBuf::from(format!("linerate-{}.html", archive.short_name(&archive.find(&runs[0])?)?)),
    };
    whole_file(&file, |out| write(title.as_ref(), &page, &assets, out))
        .map_err(|error| not_written(&file, &error))?;
    Ok(match path {
        Some(_) => Exit::Done,
        None => stdout::print(format!("written: {}\n", file.display()).as_bytes()),
    })
}

fn write(
    title: Option<&ForeignText>,
    page: &ReportSource,
    assets: &html::Assets<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let runs: Vec<html::ReportedRun<'_>> =
        page.runs.iter().map(|(record, events)| html::ReportedRun { record, events }).collect();
    let plan = page.plan.as_ref();
    let plan = plan.map(|(record, events)| html::ReportedPlan { record, events, left_out: &page.left_out });
    html::write(title, plan.as_ref(), &runs, assets, out)
}
