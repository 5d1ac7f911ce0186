//! A lab run by the kernel: commands of iproute2 instead of the switch of this crate.

use std::fs;
use std::path::Path;
use std::process::Command;

use linerate_sock::proc;
use linerate_sock::userns::effective_user;

use crate::control_protocol::{HostStatus, KeepingUp, LinkStatus, Status};
use crate::folder::LabFolder;
use crate::journal::{self, LabJournal};
use crate::lab_resources::{UserNotes, make_netns, open_journal};
use crate::state_dir::{LabHandle, StateDir};
use crate::{LabName, LabResourceError, Privilege, congestion, undo};
use linerate_emu::fabric::PacketAccounting;
use linerate_emu::topology::Topology;
use linerate_emu::topology::kernel::{self, Commands, commands};

/// The file in the folder of such a lab with its status, written when the lab is complete.
const FILE: &str = "kernel.json";

/// Why the kernel cannot run a lab.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A lab of that name is up, a name is taken, or permission is missing.
    #[error(transparent)]
    Resources(#[from] LabResourceError),
    /// Only root may create it.
    #[error(
        "--backend kernel needs root (`sudo`); linerate's own switch works without root on most systems: \
         leave --backend out"
    )]
    NotRoot,
    /// A command failed.
    #[error(
        "`{command}` failed: {why}; everything created so far was removed. This kernel lacks a feature that \
         the topology needs; leave out --backend kernel to use linerate's own switch"
    )]
    Refused {
        /// In shell syntax.
        command: String,
        /// The output of the program.
        why: String,
    },
}

/// Builds a network with the means of the kernel.
///
/// # Errors
/// A name is taken or a command fails; everything is removed again.
pub fn up_by_kernel(topology: &Topology, name: &LabName, place: &StateDir) -> Result<Status, KernelError> {
    if effective_user() != 0 {
        return Err(KernelError::NotRoot);
    }
    let folder = LabFolder::claim(place.run_dir(), name)?;
    if stands(folder.path()) {
        return Err(LabResourceError::Running(name.clone()).into());
    }
    undo::clear(&folder)?;
    let built = build(topology, name, &place.lab(name.clone()));
    if built.is_err() {
        // The first error is reported; whatever could not be removed now is in the journal for the next call.
        let _ = undo::clear(&folder).and_then(|_| folder.remove());
    }
    built
}

fn build(topology: &Topology, name: &LabName, handle: &LabHandle) -> Result<Status, KernelError> {
    let folder = handle.folder();
    let mut journal = LabJournal::create(&folder)?;
    let record = &mut |entry: &_| journal.note(entry);
    let token = open_journal(name, record)?;
    let mut notes = UserNotes::default();
    for host in &topology.hosts {
        let netns = make_netns(&host.name, Some(&name.netns(&host.name)), &token, record)?;
        congestion::set_default(host, &netns, Privilege::Root, record, &mut notes)?;
    }
    for switch in &topology.switches {
        make_netns(&switch.name, Some(&name.netns(&switch.name)), &token, record)?;
    }
    handle.write_names(topology)?;
    let Commands { up, cannot, .. } = commands(topology, name.as_str());
    for command in &up {
        run(&command.argv).map_err(|why| KernelError::Refused { command: command.to_string(), why })?;
    }
    let status = status_of(topology, name, [notes.into_texts(), cannot].concat());
    let path = folder.join(FILE);
    let text = serde_json::to_string(&status).unwrap_or_default();
    fs::write(&path, text).map_err(LabResourceError::folder(&path, "writing"))?;
    Ok(status)
}

/// The commands, as a shell script with comments on the differences from the topology.
#[must_use]
pub fn script(topology: &Topology, name: &LabName) -> String {
    let plan = commands(topology, name.as_str());
    let lines = |commands: &[kernel::KernelCommand]| {
        commands.iter().map(|command| format!("{command}\n")).collect::<String>()
    };
    let up = [plan.resources, plan.up].concat();
    let cannot: String = plan.cannot.iter().map(|what| format!("# differs: {what}\n")).collect();
    format!("{cannot}# up\n{}# down\n{}", lines(&up), lines(&plan.down))
}

/// The status of the lab of a folder, if it is run by the kernel; `None` for any other.
pub(super) fn status(folder: &Path) -> Option<Status> {
    let status = serde_json::from_str(&fs::read_to_string(folder.join(FILE)).ok()?).ok()?;
    // Nothing of it survives a reboot.
    let made_in = journal::read(folder).ok()?.opening()?.boot_id.clone();
    (proc::sysctl(undo::BOOT_ID)? == made_in).then_some(status)
}

/// True if the lab of a folder is run by the kernel.
pub(super) fn stands(folder: &Path) -> bool {
    status(folder).is_some()
}

fn run(argv: &[String]) -> Result<(), String> {
    let Some((program, arguments)) = argv.split_first() else { return Ok(()) };
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{error} (is iproute2 installed?)"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "))
}

fn status_of(topology: &Topology, name: &LabName, cannot: Vec<String>) -> Status {
    let host = |host: &linerate_emu::topology::TopologyHost| HostStatus {
        name: host.name.clone(),
        address: format!("{}/{}", host.v4.0, host.v4.1),
        address6: format!("{}/{}", host.v6.0, host.v6.1),
        netns: name.netns(&host.name),
    };
    Status {
        name: name.to_string(),
        topology: topology.name.clone(),
        seed: topology.seed,
        pid: None,
        rootless: false,
        up_ns: None,
        hosts: topology.hosts.iter().map(host).collect(),
        switches: topology.switches.iter().map(|switch| switch.name.clone()).collect(),
        links: LinkStatus::all_of(topology),
        ports: Vec::new(),
        packet_accounting: PacketAccounting::default(),
        keeping_up: KeepingUp::default(),
        notes: cannot,
    }
}
