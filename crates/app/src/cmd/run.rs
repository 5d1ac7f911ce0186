//! `linerate run`: runs a plan, on real hosts or in an emulated network.

mod claim;
mod drive;
mod hosts;
mod lab;
pub(super) mod outcome;
mod prepare;
mod screen;
mod settings;
mod sinks;
mod trial;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use linerate_model::World;
use linerate_units::Span;

use super::lab::PlaceArgs;
use crate::args::ArchiveArgs;
use crate::exit::Exit;
use crate::print;
use crate::signals::Signals;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A bundled plan (see `linerate plan`), or a plan file; with --resume RUN, the plan of that run
    #[arg(required_unless_present = "resume")]
    plan: Option<String>,
    /// Where to run it: on the hosts in the plan, or in an emulated network [default: hosts, if all of them
    /// have addresses]
    #[arg(long, value_enum)]
    world: Option<WorldName>,
    /// The network to emulate instead of the plan's: a bundled topology, or a topology file
    #[arg(long, value_name = "TOPOLOGY")]
    topology: Option<String>,
    /// Set a value of the plan, such as test.duration=5s, repeats=3, axis.window=64K,1M or
    /// host.a.address=192.0.2.1; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Refuse the plan if it would take longer [default: max_time of the plan]
    #[arg(long, value_name = "SECONDS", value_parser = super::above_zero::<Span>)]
    max_time: Option<Span>,
    /// Continue an interrupted plan: the run with this name, or the newest unfinished one of the plan
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,
    /// File with the token of the hosts' agents (linerate serve --agent-token-file)
    #[arg(long, value_name = "FILE")]
    agent_token_file: Option<PathBuf>,
    /// Leave the emulated network running
    #[arg(long)]
    keep_lab: bool,
    /// Print the result as one JSON document
    #[arg(short = 'J', long, conflicts_with = "json_stream", help_heading = "Output")]
    json: bool,
    /// Print the event logs of the plan and its runs while running, one JSON object per line
    #[arg(long, help_heading = "Output")]
    json_stream: bool,
    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    /// Also write a report to this file; its extension selects the format: .html (with all runs), .json, .csv,
    /// .md or .txt
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Where a plan is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WorldName {
    /// On real hosts, each with `linerate serve --agent-token-file`
    Hosts,
    /// In an emulated network on this machine
    Lab,
}

impl From<WorldName> for World {
    fn from(name: WorldName) -> Self {
        match name {
            WorldName::Hosts => Self::Hosts,
            WorldName::Lab => Self::Lab,
        }
    }
}

/// Why a plan cannot be run, and the exit code.
#[derive(Debug)]
struct RunError {
    lines: Vec<String>,
    exit: Exit,
}

impl RunError {
    /// An error in the plan or a host: nothing was measured.
    #[expect(clippy::needless_pass_by_value, reason = "so that map_err can name it")]
    fn usage(text: impl ToString) -> Self {
        Self { lines: vec![text.to_string()], exit: Exit::Usage }
    }

    /// A failure during execution.
    #[expect(clippy::needless_pass_by_value, reason = "so that map_err can name it")]
    fn failed(text: impl ToString) -> Self {
        Self { lines: vec![text.to_string()], exit: Exit::Failed }
    }

    fn text(&self) -> String {
        self.lines.join("; ")
    }

    fn report(self) -> Exit {
        for line in self.lines.iter().flat_map(|line| line.lines()) {
            // Lines quoted from a plan follow their message.
            if line.starts_with("    ") { print::note(line) } else { print::error(line) }
        }
        self.exit
    }
}

/// Executes the command.
pub(crate) fn run(args: &RunArgs) -> Exit {
    let prepared = match prepare::prepare(args) {
        Ok(prepared) => prepared,
        Err(trouble) => return trouble.report(),
    };
    let Ok(signals) = Signals::catch() else {
        print::error("cannot catch signals");
        return Exit::Failed;
    };
    match drive::drive(args, &prepared, &signals) {
        Ok(exit) => exit,
        Err(trouble) => signals.which().map_or_else(|| trouble.report(), Exit::Interrupted),
    }
}
