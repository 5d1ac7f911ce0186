//! Where a command line begins and an exit code comes out.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::{args, cmd, exit};

/// Runs a command line; what `main` calls.
pub fn main(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    match args::Cli::try_parse_from(argv) {
        Ok(cli) => cmd::run(cli).into(),
        Err(error) => {
            // Help and version are no errors and go to stdout; clap knows which is which.
            let _ = error.print();
            if error.use_stderr() { exit::Exit::Usage.into() } else { ExitCode::SUCCESS }
        }
    }
}
