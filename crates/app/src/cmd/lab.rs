//! `linerate lab`: an emulated network on this machine, for linerate and for other people's programs.

mod demo;
mod down;
mod exec;
mod kernel;
mod list;
mod set;
mod show;
mod status;
mod switch;
pub(super) mod topology;
pub(super) mod up;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use linerate_units::Span;

use crate::exit::Exit;

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
    /// Change a link while it runs
    Set(SetArgs),
    /// Show hosts and ports
    Status(StatusArgs),
    /// Remove a lab and everything that belongs to it
    Down(DownArgs),
    /// List the topologies that come along, and the labs that are up
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Print a topology file that comes along, to read it or to begin one's own with
    Show {
        /// Its name
        topology: String,
    },
    /// Bring up two hosts, measure between them, show the verdict, remove everything
    Demo {
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Be the switch of a lab (what `up` starts)
    #[command(hide = true)]
    Switch(SwitchArgs),
    /// Print the JSON Schema of topology files (for the build)
    #[command(hide = true)]
    Schema,
    /// Print the reference of topology files (for the build)
    #[command(hide = true)]
    Reference,
}

#[derive(Debug, Args)]
struct UpArgs {
    /// A topology that comes along (see `linerate lab list`), or a topology file
    topology: String,
    /// Set a parameter of the topology, or any of its values, as link.trunk.delay=25ms; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Name of the lab [default: that of the topology]
    #[arg(long)]
    name: Option<String>,
    /// What carries the packets
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// Print what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the hosts and ports as JSON, as `status` does
    #[arg(long, conflicts_with = "dry_run")]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// What carries the packets of a lab.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// linerate's own switch: every topology, exact to the packet
    #[default]
    Own,
    /// The kernel's bridges, tbf and netem, where the kernel has them: less exact, and not every topology
    Kernel,
}

#[derive(Debug, Args)]
struct ExecArgs {
    /// The host
    host: String,
    /// The program and its arguments; the -- before it may be left out
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<std::ffi::OsString>,
    #[command(flatten)]
    lab: WhichLab,
}

#[derive(Debug, Args)]
struct SetArgs {
    /// What to change: link.NAME, or link.NAME.from.NODE for one direction
    target: String,
    /// Keys and values as in a topology file: delay=25ms loss=1e-4
    #[arg(required = true, value_name = "KEY=VALUE")]
    changes: Vec<String>,
    #[command(flatten)]
    lab: WhichLab,
}

#[derive(Debug, Args)]
struct StatusArgs {
    /// The lab [default: the only one that is up]
    name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Show it again and again, every second or as often as said, until Ctrl-C
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
        value_parser = super::above_zero::<Span>)]
    watch: Option<Span>,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, Args)]
struct DownArgs {
    /// The lab [default: the only one that is up]
    name: Option<String>,
    /// Every lab of this user
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
    /// End when whoever reads from here is gone
    #[arg(long)]
    tied: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Which of the labs that are up.
#[derive(Debug, Args)]
struct WhichLab {
    /// The lab [default: the only one that is up]
    #[arg(long = "lab", value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Where labs keep what they must not forget.
#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// Folder for the state of labs [default: /run/linerate, or linerate in the user's run-time folder]
    #[arg(long, value_name = "FOLDER", env = "LINERATE_RUN", hide = true)]
    run_dir: Option<PathBuf>,
}

/// Carries out a command.
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
        LabCommand::Schema => show::schema(),
        LabCommand::Reference => show::reference(),
    }
}
