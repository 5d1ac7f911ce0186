//! `linerate lab`: an emulated network on this machine, for linerate and other programs.

mod demo;
mod down;
mod exec;
mod kernel;
mod list;
mod programs;
mod set;
mod show;
mod status;
mod switch;
mod topology;
mod up;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use linerate_units::{Span, above_zero};

use crate::exit::Exit;
pub(super) use programs::OwnPrograms;
pub(super) use topology::LabError;

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Bring up a network
    Up(UpArgs),
    /// Run a program on a host of a lab
    #[command(override_usage = "linerate lab exec [OPTIONS] <HOST> -- <CMD>...")]
    Exec(ExecArgs),
    /// Change a link of a running network
    Set(SetArgs),
    /// Show hosts and ports
    Status(StatusArgs),
    /// Remove a lab and everything that belongs to it
    Down(DownArgs),
    /// List the bundled topologies, and the running labs
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Print a bundled topology file, to read it or to start one's own from it
    Show {
        /// Its name
        topology: String,
    },
    /// Bring up two hosts, measure between them, show the verdict and remove everything
    Demo {
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Internal: run the switch of a lab; started by `up`
    Switch(SwitchArgs),
}

#[derive(Debug, Args)]
struct UpArgs {
    /// A bundled topology (see `linerate lab list`), or a topology file
    topology: String,
    /// Set a parameter of the topology, or any of its values, such as link.lag.delay=25ms; may be given more
    /// than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Name of the lab [default: that of the topology]
    #[arg(long)]
    name: Option<String>,
    /// Implementation of the network
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// Print what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
    /// Print the hosts and ports as JSON, as `status` does
    #[arg(long, conflicts_with = "dry_run")]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Implementation of a lab's network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// linerate's own switch: supports every topology, exact to the packet
    #[default]
    Own,
    /// The kernel's bridges, tbf and netem, if available: less exact, and not for every topology
    Kernel,
}

#[derive(Debug, Args)]
struct ExecArgs {
    /// The host
    host: String,
    /// The program and its arguments; the -- before it is optional
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<std::ffi::OsString>,
    #[command(flatten)]
    lab: WhichLab,
}

#[derive(Debug, Args)]
struct SetArgs {
    /// The link to change: link.NAME, or link.NAME.from.NODE for one direction
    target: String,
    /// Keys and values as in a topology file: delay=25ms loss=1e-4
    #[arg(required = true, value_name = "KEY=VALUE")]
    changes: Vec<String>,
    #[command(flatten)]
    lab: WhichLab,
}

#[derive(Debug, Args)]
struct StatusArgs {
    /// The lab [default: the only one that is running]
    name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Repeat every second, or at the given interval, until Ctrl-C
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
        value_parser = above_zero::<Span>)]
    watch: Option<Span>,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, Args)]
struct DownArgs {
    /// The lab [default: the only one that is running]
    name: Option<String>,
    /// All labs of this user
    #[arg(long, conflicts_with = "name")]
    all: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, Args)]
struct SwitchArgs {
    /// Name of the lab
    #[arg(long)]
    name: String,
    /// End when the reader of stdout is gone
    #[arg(long)]
    tied: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Selects one of the running labs.
#[derive(Debug, Args)]
struct WhichLab {
    /// The lab [default: the only one that is running]
    #[arg(long = "lab", value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Location of the state of labs.
#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// Folder for the state of labs [default: /run/linerate, or linerate in the user's runtime directory]
    #[arg(long, value_name = "FOLDER", env = "LINERATE_RUN", hide = true)]
    run_dir: Option<PathBuf>,
}

/// Executes a command.
pub(crate) fn run(args: &LabArgs) -> Exit {
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
