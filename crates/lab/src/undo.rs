//! Removal of a lab from its journal alone: after an error or after a kill, and repeatable.
//!
//! Nothing is removed because of its name alone. A namespace belongs to the lab if its `lo` has the token of
//! the journal, a process if it is in such a namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use linerate_sock::netns::{self, NameState, NetnsId, with_netns_fd};
use linerate_sock::{SockError, iface, proc, process};

use crate::folder::{LabFolder, folder_of, labs};
use crate::journal::{self, LabJournalEntry, LabJournalHeader};
use crate::{LabName, LabResourceError, kernel};

/// A random number of each boot.
pub(super) const BOOT_ID: &str = "kernel.random.boot_id";
/// How long programs in a lab have to end by themselves.
const STOP_GRACE: Duration = Duration::from_millis(300);

/// A lab that was found without its switch.
#[derive(Debug)]
pub struct Swept {
    /// Its name.
    pub lab: LabName,
    /// What was left in place because it belongs to somebody else, or why the lab could not be removed.
    pub outcome: Result<Vec<String>, LabResourceError>,
}

/// Removes every lab whose switch no longer runs, and returns them.
///
/// # Errors
/// The folder of labs may not be read.
pub fn sweep(run_dir: &Path) -> Result<Vec<Swept>, LabResourceError> {
    let mut swept = Vec::new();
    for lab in labs(run_dir)? {
        // A lab of the kernel needs no process.
        if kernel::stands(&folder_of(run_dir, &lab)) {
            continue;
        }
        match undo(run_dir, &lab) {
            Ok(None) | Err(LabResourceError::Running(_)) => {}
            Ok(Some(left)) => swept.push(Swept { lab, outcome: Ok(left) }),
            Err(error) => swept.push(Swept { lab, outcome: Err(error) }),
        }
    }
    Ok(swept)
}

/// Removes a lab whose switch no longer runs. Returns what was left in place because it belongs to somebody
/// else, `None` if there is no such lab.
///
/// # Errors
/// Its switch runs, or something cannot be removed; the journal is then kept.
pub fn undo(run_dir: &Path, lab: &LabName) -> Result<Option<Vec<String>>, LabResourceError> {
    let Some(folder) = LabFolder::take(run_dir, lab)? else { return Ok(None) };
    let left = clear(&folder)?;
    folder.remove()?;
    Ok(Some(left))
}

/// Removes everything that the journal in a folder names, then the journal. Returns what was left in place.
pub(super) fn clear(folder: &LabFolder) -> Result<Vec<String>, LabResourceError> {
    let found = journal::read(folder.path())?;
    let mut clearing = Clearing { lab: folder.lab(), left: Vec::new(), failed: None };
    if let Some(opening) =
        found.opening().filter(|opening| proc::sysctl(BOOT_ID).as_ref() == Some(&opening.boot_id))
    {
        clearing.all(opening, &found.0);
    }
    match clearing.failed {
        Some(error) => Err(error),
        None => folder.empty().map(|()| clearing.left),
    }
}

/// A removal that continues after an error, and reports the first.
struct Clearing<'a> {
    lab: &'a LabName,
    left: Vec<String>,
    failed: Option<LabResourceError>,
}

impl Clearing<'_> {
    /// First ends the programs of all namespaces, concurrently; then removes the resources in reverse order of
    /// creation.
    fn all(&mut self, opening: &LabJournalHeader, entries: &[LabJournalEntry]) {
        self.end_programs(entries, &opening.token);
        let withdrawn: BTreeSet<&str> = entries
            .iter()
            .filter_map(|entry| {
                if let LabJournalEntry::NotOurs { name } = entry { Some(name.as_str()) } else { None }
            })
            .collect();
        for entry in entries.iter().rev() {
            match entry {
                LabJournalEntry::Opening(_)
                | LabJournalEntry::NotOurs { .. }
                | LabJournalEntry::Namespace { .. } => {}
                LabJournalEntry::Sysctl { name, before, ours } => self.restore(name, before, ours),
                LabJournalEntry::Name { name } if withdrawn.contains(name.as_str()) => {}
                LabJournalEntry::Name { name } => self.free_name(name, &opening.token),
            }
        }
    }

    fn keep(&mut self, what: String, result: Result<(), SockError>) {
        if let Err(source) = result {
            let lab = self.lab.to_string();
            self.failed.get_or_insert(LabResourceError::Stuck { lab, what, source });
        }
    }

    /// Only if it still has the lab's value: later changes are somebody else's.
    fn restore(&mut self, name: &str, before: &str, ours: &str) {
        // The kernel returns lists in an order of its own.
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>();
        let what = format!("a change of the setting {name}");
        // Another lab may have set the same value, and change it between reading and setting.
        let _held = match proc::lock_sysctl(name) {
            Ok(held) => held,
            Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => return self.keep(what, Err(error)),
        };
        if proc::sysctl(name).is_some_and(|now| words(&now) == words(ours)) {
            self.keep(what, proc::set_sysctl(name, before));
        }
    }

    fn end_programs(&mut self, entries: &[LabJournalEntry], token: &str) {
        let mut open = BTreeMap::new();
        for entry in entries {
            let LabJournalEntry::Namespace { name, device, inode } = entry else { continue };
            let id = NetnsId { device: *device, inode: *inode };
            // While the namespace is open here, its inode number cannot be reused.
            let fd = name.as_deref().and_then(|name| ours(name, token));
            open.insert(id, fd.filter(|fd| NetnsId::of(fd).is_ok_and(|open| open == id)));
        }
        let ids = open.keys().copied().collect();
        let ended = process::end_in_netns(&ids, STOP_GRACE, |pid, id| {
            open.get(&id).is_some_and(Option::is_some) || token_of_process(pid).as_deref() == Some(token)
        });
        self.keep("a program in it".to_owned(), ended.map(|_| ()));
    }

    fn free_name(&mut self, name: &str, token: &str) {
        let found = match netns::open_named(name) {
            Ok(found) => found,
            Err(error) => return self.keep(format!("the namespace {name}"), Err(error)),
        };
        let free = match found {
            NameState::Free => return,
            NameState::Namespace(fd) => token_of(&fd).is_ok_and(|found| found.as_deref() == Some(token)),
            // The file was about to become the mount point. A file with contents is not one of those.
            NameState::Unmounted => netns::path_of(name)
                .ok()
                .and_then(|path| fs::symlink_metadata(path).ok())
                .is_some_and(|about| about.is_file() && about.len() == 0),
        };
        if free {
            self.keep(format!("the namespace {name}"), netns::unpin(name));
        } else {
            self.left.push(format!(
                "the network namespace {name} now belongs to another program and was not \
                               removed"
            ));
        }
    }
}

/// The namespace of that name, if it has the token.
fn ours(name: &str, token: &str) -> Option<OwnedFd> {
    match netns::open_named(name).ok()? {
        NameState::Namespace(fd) if token_of(&fd).ok()?.as_deref() == Some(token) => Some(fd),
        _ => None,
    }
}

fn token_of(netns: &OwnedFd) -> Result<Option<String>, SockError> {
    with_netns_fd(netns, || iface::link("lo").map(|lo| lo.alias)).and_then(|alias| alias)
}

/// The token of the namespace of a process.
///
/// A caller that may not enter it, such as the owner of a lab without root, can still read it through the
/// process's own `/sys`, which programs in a lab get.
fn token_of_process(pid: u32) -> Option<String> {
    let of_process = netns::of_process(pid).ok()?;
    token_of(&of_process).unwrap_or_else(|_| {
        let alias = fs::read_to_string(format!("/proc/{pid}/root/sys/class/net/lo/ifalias")).ok()?;
        Some(alias.trim_end().to_owned())
    })
}
