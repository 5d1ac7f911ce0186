//! `linerate compare`: whether one configuration is better than another.

use std::path::PathBuf;

use linerate_model::{ArchiveOptions, ForeignText, LabelOptions};
use linerate_report::compare::{CompareDocument, text};
use linerate_report::html;
use linerate_runner::{CompareError, CompareRequest};

use super::import;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output_format::{check_file, write_out};
use crate::{archive, front_end, stdout, terminal};

/// Compare configurations
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Runs or result files; the first one is the base. A name that several runs share means all of them, as repeats
    /// of one configuration. Otherwise separate repeats by commas, and prefix a name with =, such as new=3f2a,77b1
    #[arg(value_name = "[NAME=]RUN", required = true)]
    runs: Vec<String>,
    /// Compare the values of this axis of a plan that was run
    #[arg(long, value_name = "AXIS")]
    axis: Option<String>,
    /// Quantities to compare, by their names in plans; may be given more than once [default: goodput,
    /// retransmits, loss, jitter, rtt, rtt_p95, cpu_sender, cpu_receiver]
    #[arg(short, long = "quantity", value_name = "NAME", value_delimiter = ',')]
    quantities: Vec<String>,
    /// Show all quantities, including those without a significant difference
    #[arg(short, long)]
    all: bool,
    /// Also write a page to this file, which must end in .html
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Title of the page [default: what is compared]
    #[arg(long, value_name = "TEXT", requires = "report", value_parser = LabelOptions::checked_title)]
    title: Option<String>,
    /// Print as JSON
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    archive: ArchiveOptions,
}

/// Compares, and prints the table.
pub(crate) fn run(args: &CompareArgs) -> Result<Exit, CommandError> {
    check_file("--report", args.report.as_deref(), ".html")?;
    let request = CompareRequest {
        runs: &args.runs,
        axis: args.axis.as_deref(),
        quantities: &args.quantities,
        archive: &|| archive::store(&args.archive),
        read_file: Some(&|path| import::logs(path).map_err(Into::into)),
    };
    let compared = request.compare().map_err(|error| match error {
        CompareError::Archive(error) => error.into(),
        error => CommandError::of(error.needs_correction(), error),
    })?;
    if let Some(path) = &args.report {
        let title = args.title.as_deref().map(ForeignText::new);
        let assets = front_end::assets().ok_or_else(|| CommandError::failed(front_end::MISSING))?;
        let mut page = Vec::new();
        html::write_comparison(title.as_ref(), &compared, &assets, &mut page)
            .map_err(CommandError::failed)?;
        write_out(Some(path), &page)?;
    }
    let all = args.all || !args.quantities.is_empty();
    Ok(match args.json {
        true => stdout::print_json(&CompareDocument::new(&compared)),
        false => stdout::print(text(terminal::stdout_page(), &compared, all).as_bytes()),
    })
}
