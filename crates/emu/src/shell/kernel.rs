//! A lab that the kernel carries: commands of iproute2 instead of a switch of our own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_sock::netns::{self, Named};
use serde::{Deserialize, Serialize};

use super::place::{LabHandle, Place};
use super::wire::{HostStatus, KeepingUp, Status};
use super::{GroundError, LabName};
use crate::fabric::Books;
use crate::topology::Topology;
use crate::topology::kernel::{self, commands};

/// What such a lab keeps in its folder: how to remove it, and who is in it.
const FILE: &str = "kernel.json";

/// Why the kernel does not carry a lab.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A name is taken, or a folder cannot be made.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// A lab of that name is there.
    #[error(
        "there is a lab \"{0}\"; end it with `linerate lab down {0}`, or choose another name with --name"
    )]
    Running(LabName),
    /// A command was refused.
    #[error(
        "`{command}` failed: {why}; everything made before was removed. A kernel without this part cannot carry the \
         topology: linerate's own switch can, without --backend kernel"
    )]
    Refused {
        /// As for a shell.
        command: String,
        /// What the program said.
        why: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    down: Vec<Vec<String>>,
    status: Status,
}

/// Builds a network by the kernel's means.
///
/// # Errors
/// A name is taken or the kernel refuses a command; nothing is left then.
pub fn up_by_kernel(topology: &Topology, name: &LabName, place: &Place) -> Result<Status, KernelError> {
    let handle = place.lab(name.clone());
    let folder = handle.folder();
    if handle.is_up() || folder.exists() {
        return Err(KernelError::Running(name.clone()));
    }
    let nodes = topology.hosts.iter().map(|h| &h.name).chain(topology.switches.iter().map(|s| &s.name));
    for node in nodes {
        let netns = name.netns(node);
        if !matches!(netns::open_named(&netns), Ok(Named::Free)) {
            return Err(GroundError::NameTaken { name: netns }.into());
        }
    }
    let plan = commands(topology, name.as_str());
    let status = status_of(topology, name, plan.cannot.clone());
    // Written before the first command: whatever happens, `down` knows what to remove.
    fs::create_dir_all(&folder).map_err(GroundError::folder(&folder, "making the folder"))?;
    let down = plan.down.iter().map(|command| command.argv.clone()).collect();
    let kept = Kept { down, status };
    let path = folder.join(FILE);
    let text = serde_json::to_string(&kept).unwrap_or_default();
    fs::write(&path, text).map_err(GroundError::folder(&path, "writing"))?;
    handle.write_names(topology)?;
    for command in &plan.up {
        if let Err(why) = run(&command.argv) {
            remove(&folder, &kept)?;
            return Err(KernelError::Refused { command: command.to_string(), why });
        }
    }
    Ok(kept.status)
}

/// What it would do, as a script for a shell with remarks on what it cannot do.
#[must_use]
pub fn script(topology: &Topology, name: &LabName) -> String {
    let plan = commands(topology, name.as_str());
    let lines = |commands: &[kernel::Command]| {
        commands.iter().map(|command| format!("{command}\n")).collect::<String>()
    };
    let cannot: String = plan.cannot.iter().map(|what| format!("# differs: {what}\n")).collect();
    format!("{cannot}# up\n{}# down\n{}", lines(&plan.up), lines(&plan.down))
}

/// The status of a lab that the kernel carries; `None` for any other.
pub(super) fn status(handle: &LabHandle) -> Option<Status> {
    read(&handle.folder()).map(|kept| kept.status)
}

/// Removes such a lab; false if it is none.
pub(super) fn down(handle: &LabHandle) -> Result<bool, GroundError> {
    let folder = handle.folder();
    let Some(kept) = read(&folder) else { return Ok(false) };
    remove(&folder, &kept)?;
    Ok(true)
}

fn read(folder: &Path) -> Option<Kept> {
    serde_json::from_str(&fs::read_to_string(folder.join(FILE)).ok()?).ok()
}

fn remove(folder: &PathBuf, kept: &Kept) -> Result<(), GroundError> {
    for command in &kept.down {
        // Some of it may never have been made.
        let _ = run(command);
    }
    fs::remove_dir_all(folder).map_err(GroundError::folder(folder, "removing"))
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
    let host = |host: &crate::topology::Host| HostStatus {
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
        ports: Vec::new(),
        books: Books::default(),
        keeping_up: KeepingUp::default(),
        notes: cannot,
    }
}
