//! The location of a network namespace's journal, and the lock that shows whether its process is alive.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use linerate_sock::journal::{Lock, is_taken};
use linerate_sock::netns::{self, NetnsId};
use linerate_sock::proc;

use super::journal::{JournalError, failed};

/// Not accessible to other users: the files here determine what the next start changes.
const PRIVATE_MODE: u32 = 0o700;

/// A random number that the kernel generates at every boot.
pub(super) fn boot_id() -> String {
    proc::sysctl("kernel.random.boot_id").unwrap_or_default()
}

/// The files of the calling thread's network namespace in a folder.
#[derive(Debug, Clone)]
pub(super) struct JournalDir {
    pub(super) folder: PathBuf,
    pub(super) journal: PathBuf,
    lock: PathBuf,
}

impl JournalDir {
    pub(super) fn here(folder: &Path) -> Self {
        // Every namespace has its own settings. Its cookie is not reused before the next boot. If the kernel
        // has no cookies, the inode number is used, which may be reused.
        let name = netns::cookie().map(|cookie| cookie.to_string()).or_else(|| {
            let here = netns::of_this_thread().and_then(|fd| NetnsId::of(&fd)).ok()?;
            Some(format!("inode-{}", here.inode))
        });
        let name = name.unwrap_or_else(|| "unknown".to_owned());
        Self {
            folder: folder.to_owned(),
            journal: folder.join(format!("{name}.journal")),
            lock: folder.join(format!("{name}.lock")),
        }
    }

    /// Whether a process changed settings here, or was about to, and has not cleaned up.
    pub(super) fn is_used(&self) -> bool {
        self.journal.exists() || self.lock.exists()
    }

    /// True if a living process holds the lock.
    pub(super) fn is_taken(&self) -> bool {
        is_taken(&self.lock)
    }

    /// Takes the lock; absent if another process holds it.
    pub(super) fn take(self) -> Result<Option<HeldJournal>, JournalError> {
        let made = DirBuilder::new().recursive(true).mode(PRIVATE_MODE).create(&self.folder);
        made.map_err(failed(&self.folder))?;
        let lock = Lock::take(&self.lock).map_err(failed(&self.lock))?;
        Ok(lock.map(|lock| HeldJournal { place: self, _lock: lock }))
    }
}

/// The journal's files, locked by this process. Dropping the value or ending the process releases the lock.
#[derive(Debug)]
pub(super) struct HeldJournal {
    pub(super) place: JournalDir,
    _lock: Lock,
}

impl HeldJournal {
    /// Removes the journal and then the lock file, when nothing is left to restore.
    pub(super) fn clear(self) -> Result<(), JournalError> {
        for path in [&self.place.journal, &self.place.lock] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(path)(error)),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_place_at_a_time_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let place = JournalDir::here(&folder.path().join("settings"));
        assert!(!place.is_used() && !place.is_taken() && !place.folder.exists(), "looking makes nothing");
        let held = place.clone().take().unwrap().unwrap();
        assert!(place.is_taken() && place.is_used());
        assert!(place.clone().take().unwrap().is_none());
        fs::write(&place.journal, "x").unwrap();
        held.clear().unwrap();
        assert_eq!(fs::read_dir(&place.folder).unwrap().count(), 0);
        let again = place.clone().take().unwrap().unwrap();
        drop(again);
        // A concurrent test may just have forked, and its child holds the lock too until it executes its
        // program.
        while place.is_taken() {
            std::thread::yield_now();
        }
    }
}
