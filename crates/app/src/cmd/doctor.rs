//! `linerate doctor`.

use crate::exit::Exit;

/// What this host can do, and what is badly set on it
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DoctorArgs) -> Exit {
    let _ = args.json;
    Exit::Done
}
