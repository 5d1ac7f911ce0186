//! `linerate envelope`.

use crate::exit::Exit;

/// What a described path could carry
#[derive(Debug, clap::Args)]
pub(crate) struct EnvelopeArgs {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &EnvelopeArgs) -> Exit {
    let _ = args.json;
    Exit::Done
}
