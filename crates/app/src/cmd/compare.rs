//! `linerate compare`: whether one configuration is better than another.

mod load;

use linerate_plan::{Pairing, compare_with_base, quantities, values_of_axis};
use linerate_report::compare::{CompareDocument, Compared, text};

use super::archived::{archive, failed};
use super::page::{self, Page};
use crate::args::ArchiveArgs;
use crate::exit::Exit;
use crate::{print, terminal};
use load::LoadError;

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
    let compared = match compared(args) {
        Ok(compared) => compared,
        Err(LoadError::Usage(why)) => {
            print::error(why);
            return Exit::Usage;
        }
        Err(LoadError::Input(why)) => {
            print::error(why);
            return Exit::Failed;
        }
        Err(LoadError::Archive(error)) => return failed(&error),
    };
    if args.json {
        return page::print_json(&CompareDocument::new(&compared));
    }
    let view = terminal::stdout_view();
    let page = Page::new(view.width, view.colour);
    page::print(text(page, &compared, args.all || !args.quantities.is_empty()).as_bytes())
}

fn compared(args: &CompareArgs) -> Result<Compared, LoadError> {
    let wanted =
        quantities(&args.quantities).map_err(|why| LoadError::Usage(format!("--quantity: {why}")))?;
    let mut loader = load::Loader::new(|| archive(&args.archive));
    let (base, others, pairing) = match &args.axis {
        Some(axis) => {
            let [plan] = &args.runs[..] else {
                let why = "--axis compares the values of an axis within one run of a plan; name one run";
                return Err(LoadError::Usage(why.to_owned()));
            };
            let record = loader.plan(plan)?;
            let (mut values, pairing) = values_of_axis(&record, axis)
                .map_err(|error| LoadError::Usage(format!("--axis: {error}")))?;
            let base = values.remove(0);
            (base, values, pairing)
        }
        None => {
            let mut all =
                args.runs.iter().map(|typed| loader.candidate(typed)).collect::<Result<Vec<_>, _>>()?;
            if all.len() < 2 {
                let why =
                    "a comparison needs at least two configurations; name two, or give --axis of a plan";
                return Err(LoadError::Usage(why.to_owned()));
            }
            let base = all.remove(0);
            (base, all, Pairing::None)
        }
    };
    if let Some(empty) = std::iter::once(&base).chain(&others).find(|one| one.is_empty()) {
        return Err(LoadError::Input(format!("{}: the run has no results", empty.name)));
    }
    let table = compare_with_base(&base, &others, &wanted, pairing);
    if table.rows.is_empty() {
        return Err(LoadError::Input(format!(
            "{} and the other configuration have no quantity in common: their flows or points differ",
            base.name
        )));
    }
    Ok(Compared { base, others, table })
}
