//! `linerate compare`: whether one configuration is better than another.

use linerate_archive::Store;
use linerate_report::compare::{CompareDocument, text};
use linerate_runner::{CompareError, CompareRequest};

use super::archived::{archive, failed};
use super::import;
use super::page::{self, Page};
use crate::args::ArchiveArgs;
use crate::exit::Exit;
use crate::{print, terminal};

/// Compare configurations
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Runs or result files; the first one is the base. Separate repeats of one configuration by commas, and
    /// prefix a name with =, such as new=3f2a,77b1
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
    /// Print as JSON
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    archive: ArchiveArgs,
}

/// Executes the command.
pub(crate) fn run(args: &CompareArgs) -> Exit {
    let request = CompareRequest {
        runs: &args.runs,
        axis: args.axis.as_deref(),
        quantities: &args.quantities,
        archive: &|| archive(&args.archive).map(|found| Box::new(found) as Box<dyn Store>),
        read_file: &|path| import::logs(path).map_err(Into::into),
    };
    let compared = match request.compare() {
        Ok(compared) => compared,
        Err(CompareError::Archive(error)) => return failed(&error),
        Err(error) => {
            print::error(&error);
            return if error.needs_correction() { Exit::Usage } else { Exit::Failed };
        }
    };
    if args.json {
        return page::print_json(&CompareDocument::new(&compared));
    }
    let view = terminal::stdout_view();
    let page = Page::new(view.width, view.colour);
    page::print(text(page, &compared, args.all || !args.quantities.is_empty()).as_bytes())
}
