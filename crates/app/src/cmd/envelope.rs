//! `linerate envelope`: what a described path can carry, and what it needs for that.

use linerate_report::envelope::{EnvelopeDocument, text};
use linerate_theory::envelope::{PathError, answers};
use linerate_theory::typed::EnvelopeOptions;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{stdout, terminal};

/// Show what a described path can carry, and what it needs for that
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EnvelopeArgs {
    #[command(flatten)]
    options: EnvelopeOptions,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Computes and prints the envelope.
pub(crate) fn run(args: &EnvelopeArgs) -> Result<Exit, CommandError> {
    let answers = answers(&args.options.path(), &args.options.questions())
        .map_err(|error| CommandError::usage(format!("{}: {error}", argument(&error))))?;
    if args.json {
        let unwritable =
            |error| CommandError::failed(format!("the document could not be written as JSON: {error}"));
        let document = EnvelopeDocument::of(&answers).map_err(unwritable)?;
        return Ok(stdout::print_json(&document));
    }
    Ok(stdout::print(text(terminal::stdout_page(), &answers).as_bytes()))
}

/// The arguments of which one causes an error.
fn argument(error: &PathError) -> String {
    error.properties().iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(" or ")
}
