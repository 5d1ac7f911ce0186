//! The folder of a lab while it is up, and its lock file, which tells whether the lab is up.

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use linerate_sock::journal::{Lock, is_taken};
use linerate_sock::userns::effective_user;

use crate::{LabResourceError, journal};

const LOCK: &str = "lock";
/// The parent folder of root's labs.
const ROOT_RUN_DIR: &str = "/run/linerate";
/// Not accessible to others: the contents of the folder determine what the next call removes.
const PRIVATE_MODE: u32 = 0o700;

/// Name of a lab: part of file names and of namespace names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabName(String);

/// A text that is not a name of a lab.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a valid name of a lab; use 1 to 32 characters from a-z, 0-9 and -, and begin with a \
         letter or digit"
)]
pub struct LabNameError(String);

impl LabName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name of the namespace of a host.
    pub(super) fn netns(&self, host: &str) -> String {
        format!("linerate-{self}-{host}")
    }
}

impl FromStr for LabName {
    type Err = LabNameError;

    fn from_str(text: &str) -> Result<Self, LabNameError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let good = (1..=32).contains(&text.len())
            && text.bytes().all(|byte| plain(byte) || byte == b'-')
            && text.bytes().next().is_some_and(plain);
        if good { Ok(Self(text.to_owned())) } else { Err(LabNameError(text.to_owned())) }
    }
}

impl fmt::Display for LabName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The parent folder of this user's labs: `/run/linerate` for root, otherwise `linerate` in the user's runtime
/// folder, otherwise a per-user folder in the one for temporary files.
///
/// # Errors
/// The first or the last of these belongs to another user or is accessible to others.
pub fn run_dir() -> Result<PathBuf, LabResourceError> {
    let user = effective_user();
    if user == 0 {
        return ours_if_there(ROOT_RUN_DIR.into(), user);
    }
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    if let Some(runtime) = given.filter(|path| path.is_absolute() && path.is_dir()) {
        return Ok(runtime.join("linerate"));
    }
    let path = std::env::temp_dir().join(format!("linerate-{user}"));
    make(&path)?;
    check_ours(&path, user)?;
    Ok(path)
}

/// A folder that does not exist, or that only this user can write to. A service of another user may have been given the
/// folder.
fn ours_if_there(path: PathBuf, user: u32) -> Result<PathBuf, LabResourceError> {
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path),
        _ => check_ours(&path, user).map(|()| path),
    }
}

/// In a folder that everybody may write to, another user could have created it first.
fn check_ours(path: &Path, user: u32) -> Result<(), LabResourceError> {
    let about = fs::symlink_metadata(path).map_err(LabResourceError::folder(path, "checking the folder"))?;
    let ours = about.is_dir() && about.uid() == user && about.mode() & 0o077 == 0;
    if ours { Ok(()) } else { Err(LabResourceError::NotOurs(path.to_owned())) }
}

fn make(path: &Path) -> Result<(), LabResourceError> {
    let made = DirBuilder::new().recursive(true).mode(PRIVATE_MODE).create(path);
    made.map_err(LabResourceError::folder(path, "creating the folder"))
}

/// Folder of all labs.
pub(super) fn labs_dir(run_dir: &Path) -> PathBuf {
    run_dir.join("labs")
}

/// Folder of a lab, whether it is up or not.
#[must_use]
pub fn folder_of(run_dir: &Path, lab: &LabName) -> PathBuf {
    labs_dir(run_dir).join(lab.as_str())
}

/// Names of the labs that have a folder: those that are up, and those whose switch was killed.
///
/// # Errors
/// The folder may not be read.
pub fn labs(run_dir: &Path) -> Result<Vec<LabName>, LabResourceError> {
    let path = labs_dir(run_dir);
    let entries = match fs::read_dir(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(LabResourceError::folder(&path, "reading the folder"))?,
    };
    let mut names: Vec<LabName> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    names.sort();
    Ok(names)
}

/// True if the switch of the lab runs.
#[must_use]
pub fn is_up(run_dir: &Path, lab: &LabName) -> bool {
    is_taken(&folder_of(run_dir, lab).join(LOCK))
}

/// Number of the process that is, or was, the switch of the lab; `None` if there is no such lab.
#[must_use]
pub fn switch_pid(run_dir: &Path, lab: &LabName) -> Option<u32> {
    Some(journal::read(&folder_of(run_dir, lab)).ok()?.opening()?.switch_pid)
}

/// The folder of a lab, locked by this process. The lock is released on drop, at the latest when the process
/// ends.
#[derive(Debug)]
pub(super) struct LabFolder {
    path: PathBuf,
    lab: LabName,
    _lock: Lock,
}

impl LabFolder {
    /// Creates the folder if necessary, and locks it.
    pub(super) fn claim(run_dir: &Path, lab: &LabName) -> Result<Self, LabResourceError> {
        loop {
            make(&folder_of(run_dir, lab))?;
            // `None`: the process that had it has just removed it.
            if let Some(folder) = Self::take(run_dir, lab)? {
                return Ok(folder);
            }
        }
    }

    /// Locks the folder of a lab that is not up; `None` if there is none.
    pub(super) fn take(run_dir: &Path, lab: &LabName) -> Result<Option<Self>, LabResourceError> {
        let path = folder_of(run_dir, lab);
        let place = path.join(LOCK);
        match Lock::take(&place) {
            Ok(Some(lock)) => Ok(Some(Self { path, lab: lab.clone(), _lock: lock })),
            Ok(None) => Err(LabResourceError::Running(lab.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LabResourceError::folder(&place, "taking the lock")(error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn lab(&self) -> &LabName {
        &self.lab
    }

    /// Removes everything in the folder except the lock.
    pub(super) fn empty(&self) -> Result<(), LabResourceError> {
        let reading = || LabResourceError::folder(&self.path, "reading the folder");
        for entry in fs::read_dir(&self.path).map_err(reading())? {
            let path = entry.map_err(reading())?.path();
            if path.ends_with(LOCK) {
                continue;
            }
            let removed = if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.map_err(LabResourceError::folder(&path, "removing"))?;
        }
        Ok(())
    }

    /// Removes the folder and everything in it, the lock last: leftovers thus always have a free lock.
    pub(super) fn remove(self) -> Result<(), LabResourceError> {
        self.empty()?;
        let lock = self.path.join(LOCK);
        fs::remove_file(&lock).map_err(LabResourceError::folder(&lock, "removing"))?;
        fs::remove_dir(&self.path).map_err(LabResourceError::folder(&self.path, "removing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn lab(name: &str) -> LabName {
        name.parse().unwrap()
    }

    #[test]
    fn names_fit_into_file_names() {
        for good in ["a", "pair", "science-dmz-2", "4x", &"x".repeat(32)] {
            assert_eq!(lab(good).as_str(), good);
        }
        for bad in ["", "-a", "A", "a b", "a/b", "..", "ä", "a_b", &"x".repeat(33)] {
            assert!(bad.parse::<LabName>().is_err(), "{bad}");
        }
        assert_eq!(lab("pair").netns("a"), "linerate-pair-a");
    }

    #[test]
    fn a_folder_is_held_by_one_and_free_when_that_one_is_gone() {
        let run = tempfile::tempdir().unwrap();
        let pair = lab("pair");
        assert!(LabFolder::take(run.path(), &pair).unwrap().is_none());
        assert!(!is_up(run.path(), &pair) && labs(run.path()).unwrap().is_empty());
        let held = LabFolder::claim(run.path(), &pair).unwrap();
        assert!(is_up(run.path(), &pair));
        let error = LabFolder::claim(run.path(), &pair).unwrap_err();
        assert!(matches!(&error, LabResourceError::Running(name) if *name == pair), "{error}");
        assert_eq!(error.to_string().matches("lab down pair").count(), 1);
        drop(held);
        // A concurrent test may just have forked, and its child also holds the lock until it executes its
        // program.
        while is_up(run.path(), &pair) {
            std::thread::yield_now();
        }
        assert_eq!(labs(run.path()).unwrap(), vec![pair.clone()]);
        let left = LabFolder::take(run.path(), &pair).unwrap().unwrap();
        fs::create_dir_all(left.path().join("deep/er")).unwrap();
        fs::write(left.path().join("journal"), "x").unwrap();
        left.remove().unwrap();
        assert!(!folder_of(run.path(), &pair).exists());
        assert_eq!(labs(run.path()).unwrap(), []);
    }

    #[test]
    fn a_folder_that_was_removed_while_it_was_held_can_be_claimed_anew() {
        let run = tempfile::tempdir().unwrap();
        let pair = lab("pair");
        let held = LabFolder::claim(run.path(), &pair).unwrap();
        fs::remove_dir_all(held.path()).unwrap();
        let again = LabFolder::claim(run.path(), &pair).unwrap();
        drop(held);
        assert!(is_up(run.path(), &pair), "the old lock is not the new one");
        again.remove().unwrap();
    }

    #[test]
    fn folders_are_closed_to_others_and_one_that_is_not_is_refused() {
        let run = tempfile::tempdir().unwrap();
        let user = effective_user();
        let folder = LabFolder::claim(run.path(), &lab("pair")).unwrap();
        check_ours(folder.path(), user).unwrap();
        assert!(matches!(check_ours(folder.path(), user + 1), Err(LabResourceError::NotOurs(_))));
        let open = run.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let link = run.path().join("link");
        symlink(folder.path(), &link).unwrap();
        for path in [open, link] {
            assert!(matches!(check_ours(&path, user), Err(LabResourceError::NotOurs(_))), "{path:?}");
        }
    }

    #[test]
    fn a_folder_that_was_given_to_a_service_of_another_user_is_not_obeyed() {
        let run = tempfile::tempdir().unwrap();
        let (user, missing) = (effective_user(), run.path().join("linerate"));
        assert_eq!(ours_if_there(missing.clone(), user).unwrap(), missing);
        make(&missing).unwrap();
        assert_eq!(ours_if_there(missing.clone(), user).unwrap(), missing);
        let given = ours_if_there(missing, user + 1);
        assert!(matches!(given, Err(LabResourceError::NotOurs(_))), "{given:?}");
    }
}
