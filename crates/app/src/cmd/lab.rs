//! `linerate lab`: an emulated network on this machine, for linerate and other programs.

mod demo;
mod down;
mod exec;
mod list;
mod programs;
mod set;
mod show;
mod status;
mod switch;
mod up;
mod which_lab;

use clap::{Args, Subcommand};

use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::exit::Exit;
pub(super) use programs::OwnPrograms;

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Bring up a network
    Up(up::UpArgs),
    /// Run a program on a host of a lab
    #[command(override_usage = "linerate lab exec [OPTIONS] <HOST> -- <CMD>...")]
    Exec(exec::ExecArgs),
    /// Change a link of a running network
    Set(set::SetArgs),
    /// Show hosts and ports
    Status(status::StatusArgs),
    /// Remove a lab and everything that belongs to it
    Down(down::DownArgs),
    /// List the bundled topologies, and the running labs
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: RunFolder,
    },
    /// Print a bundled topology file, to read it or to start one's own from it
    Show {
        /// Its name
        topology: String,
    },
    /// Bring up two hosts, measure between them, show the verdict and remove everything
    Demo {
        #[command(flatten)]
        place: RunFolder,
    },
    /// Internal: run the switch of a lab; started by `up`
    Switch(switch::SwitchArgs),
}

/// Executes a command.
pub(crate) fn run(args: &LabArgs) -> Result<Exit, CommandError> {
    match &args.command {
        LabCommand::Up(args) => up::run(args),
        LabCommand::Exec(args) => exec::run(args),
        LabCommand::Set(args) => set::run(args),
        LabCommand::Status(args) => status::run(args),
        LabCommand::Down(args) => down::run(args),
        LabCommand::List { json, place } => list::run(*json, place),
        LabCommand::Show { topology } => show::run(topology),
        LabCommand::Demo { place } => demo::run(place),
        LabCommand::Switch(args) => switch::run(args),
    }
}
