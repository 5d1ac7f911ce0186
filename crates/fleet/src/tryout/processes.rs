//! The processes of a fleet for trying out, in a file, so that what a killed coordinator leaves can be ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use linerate_runner::whole_private_file;
use linerate_sock::clock;
use linerate_sock::process::{PidFd, Signal, is_running};
use serde::{Deserialize, Serialize};

use super::child::CHILD_GRACE;
use super::error::TryOutError;
use super::{PID_FILE, STOP_TIMEOUT, TOKEN_FILE};
use crate::engines::{LocalServerError, end_left_servers, process_with};

const STATE_FILE: &str = "processes.json";
/// The file with the location of the archive. It stays when the fleet ends.
const LOCATION_FILE: &str = "archive";

/// The processes of a fleet.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FleetProcesses {
    pub(super) coordinator: u32,
    /// Each is a `linerate serve`.
    pub(super) servers: Vec<u32>,
    /// Each is a `linerate agent run`.
    pub(super) agents: Vec<u32>,
    pub(super) postgres: Option<u32>,
    pub(super) nats: Option<u32>,
    /// Whether all of them have been started, and the coordinator leads: others can use the calendar then.
    pub(super) ready: bool,
}

/// The file with the processes of the fleet that this process starts. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct ProcessesFile {
    folder: PathBuf,
    processes: FleetProcesses,
}

impl ProcessesFile {
    pub(super) fn create(folder: &Path) -> Result<Self, TryOutError> {
        let processes = FleetProcesses { coordinator: std::process::id(), ..FleetProcesses::default() };
        let mut file = Self { folder: folder.to_owned(), processes };
        file.update(|_| ())?;
        Ok(file)
    }

    pub(super) fn update(&mut self, change: impl FnOnce(&mut FleetProcesses)) -> Result<(), TryOutError> {
        change(&mut self.processes);
        let document = serde_json::to_vec(&self.processes).unwrap_or_default();
        let unusable = |source| TryOutError::Folder { folder: self.folder.clone(), source };
        whole_private_file(&self.folder.join(STATE_FILE), &document).map_err(unusable)
    }

    /// Notes that the fleet is up.
    pub(super) fn note_ready(&mut self) -> Result<(), TryOutError> {
        if self.processes.ready { Ok(()) } else { self.update(|all| all.ready = true) }
    }
}

impl Drop for ProcessesFile {
    fn drop(&mut self) {
        // A folder that is gone has none.
        let _ = fs::remove_file(self.folder.join(STATE_FILE));
    }
}

/// The processes of the fleet in a folder; absent if none is known to be up.
pub(super) fn processes(folder: &Path) -> Option<FleetProcesses> {
    serde_json::from_slice(&fs::read(folder.join(STATE_FILE)).ok()?).ok()
}

/// Whether a fleet is up in a folder.
#[must_use]
pub fn is_up(folder: &Path) -> bool {
    processes(folder).is_some_and(|processes| leads(processes.coordinator, folder))
}

/// Whether a number still belongs to the coordinator that had it, which has locked the folder.
fn leads(process: u32, folder: &Path) -> bool {
    let held = fs::File::open(folder.join(PID_FILE))
        .is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)));
    held && is_running(process)
}

/// Ends the fleet in a folder, also what a killed coordinator has left.
///
/// # Errors
/// None is up there, or it does not end.
pub fn take_down(folder: &Path) -> Result<(), TryOutError> {
    let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let processes = processes(folder).ok_or_else(|| TryOutError::NotUp(folder.to_owned()))?;
    let coordinator = processes.coordinator;
    if leads(coordinator, folder)
        && let Ok(process) = PidFd::open(coordinator)
    {
        // Fails if it has ended in the meantime.
        let _ = process.signal(Signal::Terminate);
        if !process.wait(clock::now() + STOP_TIMEOUT).unwrap_or(false) {
            return Err(TryOutError::Stuck { process: coordinator });
        }
    }
    Ok(end_leftovers(folder)?)
}

/// Ends the processes of a fleet whose coordinator is gone.
pub(super) fn end_leftovers(folder: &Path) -> Result<(), LocalServerError> {
    let known = processes(folder).unwrap_or_default();
    // A number may belong to another process now. Ours have the token file of the folder on their command lines.
    let token = folder.join(TOKEN_FILE);
    let left = known.servers.into_iter().chain(known.agents);
    let left: Vec<PidFd> = left.filter_map(|one| Some(process_with(one, &token)?.0)).collect();
    for process in &left {
        // Fails if it has ended in the meantime.
        let _ = process.signal(Signal::Terminate);
    }
    let until = clock::now() + CHILD_GRACE;
    for process in &left {
        if !process.wait(until).unwrap_or(false) {
            let _ = process.signal(Signal::Kill);
            let _ = process.wait(clock::now() + CHILD_GRACE);
        }
    }
    // What does not end is known to the next try.
    end_left_servers(folder)?;
    let _ = fs::remove_file(folder.join(STATE_FILE));
    Ok(())
}

/// Keeps where the archive of the fleet in a folder is.
pub(super) fn keep_location(folder: &Path, archive: &str) -> io::Result<()> {
    whole_private_file(&folder.join(LOCATION_FILE), archive.as_bytes())
}

/// Where the archive of the fleet in a folder is; absent if there was never one.
pub(super) fn kept_location(folder: &Path) -> Option<String> {
    fs::read_to_string(folder.join(LOCATION_FILE)).ok().filter(|location| !location.is_empty())
}
