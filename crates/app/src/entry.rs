//! Entry point: from the command line to the exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::Cli;
use crate::cmd::completions;
use crate::cmd::stand_in::StandInTool;
use crate::config_file::ConfiguredServe;
use crate::exit::Exit;
use crate::{mistyped, print, stdout};

/// Runs a command line. Under the name of a tool with a stand-in, it runs the stand-in.
pub fn main(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut argv: Vec<OsString> = argv.into_iter().collect();
    if let Some((name, arguments)) = argv.split_first()
        && let Some(tool) = StandInTool::called(name)
    {
        return tool.run(&name.to_string_lossy(), arguments).into();
    }
    // The parser would take a tool's own `--` if nothing comes before it.
    if let [_, name, first, ..] = &argv[..]
        && first == "--"
        && StandInTool::called(name).is_some()
    {
        argv.insert(2, "--".into());
    }
    if let Some(exit) = completions::answer(&argv, Cli::command) {
        return exit.into();
    }
    let configured = match ConfiguredServe::read(&argv) {
        Ok(configured) => configured,
        Err(error) => return error.report().into(),
    };
    let argv = configured.as_ref().map_or(argv, |configured| configured.words.clone());
    match Cli::try_parse_from(&argv) {
        Ok(cli) => cli.execute(configured).into(),
        Err(error) => {
            let error = mistyped::explained(error, &argv);
            // Help and version are not errors and go to stdout; clap knows the difference.
            if !error.use_stderr() {
                return stdout::printed(error.print()).into();
            }
            print::usage_error(&error.render(), &argv);
            if let Some(configured) = configured {
                print::note(format!("options of {} are included", configured.config.path().display()));
            }
            Exit::Usage.into()
        }
    }
}

/// The command line, for the pages that describe it.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}
