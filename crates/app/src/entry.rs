//! Where a command line begins and an exit code comes out.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::{args, cmd, exit};

/// Runs a command line; what `main` calls. Under the name of a tool that we stand in for it is that tool's.
pub fn main(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let argv: Vec<OsString> = argv.into_iter().collect();
    if let Some((name, arguments)) = argv.split_first()
        && let Some(tool) = cmd::Tool::called(name)
    {
        return tool.run(&name.to_string_lossy(), arguments).into();
    }
    match args::Cli::try_parse_from(argv) {
        Ok(cli) => cmd::run(cli).into(),
        Err(error) => {
            // Help and version are no errors and go to stdout; clap knows which is which.
            let _ = error.print();
            if error.use_stderr() { exit::Exit::Usage.into() } else { ExitCode::SUCCESS }
        }
    }
}
