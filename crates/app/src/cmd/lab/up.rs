//! `linerate lab up`.

use clap::{Args, ValueEnum};
use linerate_emu::topology::Topology;
use linerate_lab::control_protocol::Status;
use linerate_lab::{LabHandle, LabName, StateDir, overview, script, up_by_kernel};
use linerate_plan::Source;
use linerate_runner::lab::{self, read_topology};

use super::programs::OwnPrograms;
use super::status;
use super::which_lab::{lab_name, topology};
use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{print, stdout};

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
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
    place: RunFolder,
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

pub(super) fn run(args: &UpArgs) -> Result<Exit, CommandError> {
    let source = topology(&args.topology)?;
    let topology = read_topology(&source, &args.set).map_err(CommandError::usage)?;
    let name = args.name.clone().unwrap_or_else(|| topology.name.clone());
    match (args.backend, args.dry_run) {
        (Backend::Kernel, _) => up_in_kernel(&topology, &lab_name(&name)?, args),
        (Backend::Own, true) => Ok(stdout::print(overview(&topology, &name).as_bytes())),
        (Backend::Own, false) => up(&source, &name, args),
    }
}

/// Brings up a lab with our own switch.
fn up(source: &Source, name: &str, args: &UpArgs) -> Result<Exit, CommandError> {
    let state = args.place.open().map_err(CommandError::failed)?;
    let (lab, status) = start(source, &args.set, &lab_name(name)?, &state)?;
    let printed = status::print(&status, args.json);
    let hosts: Vec<&str> = status.hosts.iter().map(|host| host.name.as_str()).collect();
    if let [first, .., last] = hosts.as_slice()
        && !args.json
    {
        let lab = lab.name();
        print::note(format!(
            "\nup; next, for example:\n  linerate lab exec --lab {lab} {last} -- linerate serve &\n  \
             linerate lab exec --lab {lab} {first} -- linerate test {last}\n  linerate lab down {lab}"
        ));
    }
    Ok(printed)
}

/// Brings up a lab of the kernel's bridges and queueing disciplines.
fn up_in_kernel(topology: &Topology, name: &LabName, args: &UpArgs) -> Result<Exit, CommandError> {
    if args.dry_run {
        return Ok(stdout::print(script(topology, name).as_bytes()));
    }
    let state = args.place.open().map_err(CommandError::failed)?;
    let status = up_by_kernel(topology, name, &state).map_err(CommandError::failed)?;
    Ok(status::print(&status, args.json))
}

/// Removes the remains of killed labs, so that their names are free, and brings up a lab.
pub(super) fn start(
    source: &Source,
    set: &[String],
    name: &LabName,
    state: &StateDir,
) -> Result<(LabHandle, Status), CommandError> {
    for text in state.sweep().map_err(CommandError::failed)? {
        print::note(text);
    }
    lab::start(&OwnPrograms, source, set, name, state).map_err(CommandError::failed)
}
