//! `linerate report`: archived runs, or a plan with its runs, as one page.

use std::io;
use std::path::{Path, PathBuf};

use linerate_archive::Store;
use linerate_report::html;
use linerate_runner::{ReportSource, ReportSourceError};

use super::archived::{archive, failed};
use super::format::whole_file;
use super::page;
use crate::args::ReportArgs;
use crate::exit::Exit;
use crate::{front_end, print};

pub(crate) fn run(args: &ReportArgs) -> Exit {
    let Some(assets) = front_end::assets() else {
        print::error(front_end::MISSING);
        return Exit::Failed;
    };
    let loaded = archive(&args.archive).map_err(Into::into).and_then(|archive| {
        let page = ReportSource::load(&archive, &args.runs)?;
        let short = archive.short_name(&archive.find(&args.runs[0])?)?;
        Ok((short, page))
    });
    let (short, page) = match loaded {
        Ok(loaded) => loaded,
        Err(ReportSourceError::Archive(error)) => return failed(&error),
        Err(error) => {
            print::error(error);
            return Exit::Usage;
        }
    };
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("linerate-{short}.html")));
    // Freeing a million samples takes a while, and the program ends here.
    let page = std::mem::ManuallyDrop::new(page);
    finish(&path, args.output.is_none(), |out| write(&page, &assets, out))
}

fn write(page: &ReportSource, assets: &html::Assets<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let runs: Vec<html::ReportedRun<'_>> =
        page.runs.iter().map(|(record, events)| html::ReportedRun { record, events }).collect();
    let plan = page.plan.as_ref();
    let plan = plan.map(|(record, events)| html::ReportedPlan { record, events, left_out: &page.left_out });
    html::write(plan.as_ref(), &runs, assets, out)
}

/// Writes to a file, or to stdout for `-`; prints the path if the user did not choose it.
fn finish(path: &Path, say_where: bool, write: impl Fn(&mut dyn io::Write) -> io::Result<()>) -> Exit {
    if path.as_os_str() == "-" {
        let mut out = Vec::new();
        return match write(&mut out) {
            Ok(()) => page::print(&out),
            Err(error) => {
                print::error(format!("the page could not be printed: {error}"));
                Exit::Failed
            }
        };
    }
    match whole_file(path, write) {
        Ok(()) => {
            if say_where {
                page::print(format!("written: {}\n", path.display()).as_bytes())
            } else {
                Exit::Done
            }
        }
        Err(error) => {
            print::error(format!("{} could not be written: {error}", path.display()));
            Exit::Failed
        }
    }
}
