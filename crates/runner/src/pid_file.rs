//! The file with the process id of a server.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Result, Seek, Write};
use std::path::{Path, PathBuf};

use linerate_sock::files::{are_same, only_for_owner};
use linerate_sock::process::{has_ended, is_running};

/// Most bytes that are read of an existing file.
const MAX_READ_BYTES: u64 = 16;

/// A file with the id of this process, which is locked, and removed when it is dropped.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    file: File,
}

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum PidFileError {
    /// It names a process that is running.
    #[error("it names a process that is running")]
    Taken,
    /// An error of the operating system, or what is at the path is not an ordinary file.
    #[error(transparent)]
    System(#[from] Error),
}

impl PidFile {
    /// Writes the file, readable for its owner only. An existing one is overwritten unless it names another running
    /// process. What a symbolic link points to is never written: in a folder such as `/tmp`, anybody can place one.
    ///
    /// # Errors
    /// [`PidFileError`].
    pub fn create(path: &Path) -> std::result::Result<Self, PidFileError> {
        let file = open(path)?;
        // Of two processes that start at the same moment, one gets the lock. Some network file systems have none.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(PidFileError::Taken);
        }
        let mut pid_file = Self { path: path.to_owned(), file };
        if !pid_file.is_at_path() {
            return Err(not_ordinary().into());
        }
        match named_process(&pid_file.file) {
            // After a restart of a container, a stale file may have our own number.
            Some(pid) if pid != std::process::id() && is_running(pid) && !has_ended(pid) => {
                return Err(PidFileError::Taken);
            }
            _ => pid_file.write()?,
        }
        Ok(pid_file)
    }

    /// Whether the path leads to this file without a link.
    fn is_at_path(&self) -> bool {
        let (found, own) = (fs::symlink_metadata(&self.path), self.file.metadata());
        found.is_ok_and(|found| own.is_ok_and(|own| are_same(&found, &own)))
    }

    fn write(&mut self) -> Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(std::process::id().to_string().as_bytes())
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another process may have replaced or overwritten it.
        if self.is_at_path() && named_process(&self.file) == Some(std::process::id()) {
            // A file that somebody has removed meanwhile is not needed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens an ordinary file, or creates one. No link is followed to create one, and pipes and devices are not opened.
fn open(path: &Path) -> Result<File> {
    let mut how = OpenOptions::new();
    only_for_owner(how.read(true).write(true));
    match how.clone().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => return other,
    }
    if fs::symlink_metadata(path)?.is_file() { how.open(path) } else { Err(not_ordinary()) }
}

fn not_ordinary() -> Error {
    Error::new(ErrorKind::InvalidInput, "it is a link or no ordinary file")
}

/// The process id at the start of a file.
fn named_process(mut file: &File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(MAX_READ_BYTES).read_to_string(&mut text).ok()?;
    let text = text.trim_start();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use linerate_sock::clock;
    use linerate_sock::process::PidFd;

    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::process::Command;

    fn own() -> String {
        std::process::id().to_string()
    }

    fn in_a_folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        (folder, path)
    }

    #[test]
    fn it_names_this_process_for_its_owner_and_is_removed_at_the_end() {
        let (_folder, path) = in_a_folder();
        let file = PidFile::create(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), own());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn one_of_a_running_process_is_left_alone() {
        let (_folder, path) = in_a_folder();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let text = format!(" {}\n", other.id());
        fs::write(&path, &text).unwrap();
        assert!(matches!(PidFile::create(&path), Err(PidFileError::Taken)));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        other.kill().unwrap();
        // Until it is waited for, it keeps its number.
        let process = PidFd::open(other.id()).unwrap();
        assert!(process.wait(clock::now() + std::time::Duration::from_secs(60)).unwrap());
        drop(PidFile::create(&path).unwrap());
        other.wait().unwrap();
        fs::write(&path, &text).unwrap();
        let _file = PidFile::create(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), own(), "the process has ended");
    }

    #[test]
    fn one_that_is_just_being_written_is_left_alone() {
        let (_folder, path) = in_a_folder();
        let first = PidFile::create(&path).unwrap();
        first.file.set_len(0).unwrap();
        assert!(matches!(PidFile::create(&path), Err(PidFileError::Taken)));
    }

    #[test]
    fn a_stale_one_is_overwritten() {
        let (_folder, path) = in_a_folder();
        // No process has the second number, and the fourth is the result of a crash in a container.
        for stale in ["", "4194305 and a longer text", "-1", &own(), "words", "\u{fe}"] {
            fs::write(&path, stale).unwrap();
            let _file = PidFile::create(&path).unwrap_or_else(|error| panic!("{stale:?}: {error}"));
            assert_eq!(fs::read_to_string(&path).unwrap(), own());
        }
    }

    #[test]
    fn nothing_is_written_through_a_link_or_into_a_device() {
        let (folder, path) = in_a_folder();
        let target = folder.path().join("target");
        symlink(&target, &path).unwrap();
        assert!(matches!(PidFile::create(&path), Err(PidFileError::System(_))));
        assert!(!target.exists(), "not even created");
        fs::write(&target, "precious").unwrap();
        assert!(matches!(PidFile::create(&path), Err(PidFileError::System(_))));
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert!(path.is_symlink());
        assert!(matches!(PidFile::create(Path::new("/dev/null")), Err(PidFileError::System(_))));
        assert!(matches!(PidFile::create(folder.path()), Err(PidFileError::System(_))));
    }

    #[test]
    fn the_file_of_a_successor_is_not_removed() {
        let (_folder, path) = in_a_folder();
        let replaced = PidFile::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, own()).unwrap();
        drop(replaced);
        assert!(path.exists(), "another file");
        fs::remove_file(&path).unwrap();
        let overwritten = PidFile::create(&path).unwrap();
        fs::write(&path, "1").unwrap();
        drop(overwritten);
        assert!(path.exists(), "another process");
    }
}
