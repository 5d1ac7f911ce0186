//! Undo journals: a file in which each line is on disk before its writer continues, and a lock file that shows
//! whether the writer is alive.
//!
//! The writer decides on the content of the lines.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use crate::clock;

/// The journal determines what a later process removes or changes, so only its owner may write to it.
const PRIVATE_MODE: u32 = 0o600;

/// A journal open for writing.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// Bytes of the lines that are on disk.
    length: u64,
}

impl Journal {
    /// Creates a journal.
    ///
    /// # Errors
    /// `AlreadyExists` if there is one, which is never overwritten; system errors of the file or its folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(PRIVATE_MODE).open(path)?;
        // The directory entry must be on disk too.
        File::open(path.parent().unwrap_or(path))?.sync_all()?;
        Ok(Self { file, length: 0 })
    }

    /// Continues an existing journal. Removes an incomplete last line, so that it does not merge with the next
    /// one.
    ///
    /// # Errors
    /// System errors of the file.
    pub fn reopen(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).open(path)?;
        let length = whole(&fs::read(path)?) as u64;
        file.set_len(length)?;
        file.sync_data()?;
        Ok(Self { file, length })
    }

    /// Appends a line, passed without its newline, and waits until it is on disk.
    ///
    /// # Errors
    /// System errors of the file. The line may then be incomplete; the next one does not merge with it.
    pub fn note(&mut self, line: &str) -> io::Result<()> {
        self.file.set_len(self.length)?;
        let line = format!("{line}\n");
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        self.length += line.len() as u64;
        Ok(())
    }
}

/// The complete lines of a journal; absent if there is no journal. An incomplete last line is ignored, as its
/// writer did not continue.
///
/// # Errors
/// System errors of the file; `InvalidData` if it is not UTF-8.
pub fn lines(path: &Path) -> io::Result<Option<Vec<String>>> {
    let mut bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    // The file may end within a multi-byte character.
    bytes.truncate(whole(&bytes));
    let text = String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Some(text.lines().map(str::to_owned).collect()))
}

/// Number of bytes in complete lines.
fn whole(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

/// A lock held by this process. Dropping it, or the end of the process in any way, releases it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock in the file `path`, which is created if necessary; absent if another process keeps it.
    /// [`is_taken`] holds it for a moment, and so does a child of the holder between fork and exec; this waits
    /// for both.
    ///
    /// # Errors
    /// `NotFound` if the folder does not exist; other system errors of the file.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let file =
                OpenOptions::new().write(true).create(true).truncate(false).mode(PRIVATE_MODE).open(path)?;
            if !lock_soon(&file)? {
                return Ok(None);
            }
            // The previous holder may have just removed the file; a lock on a removed file protects nothing.
            let held = file.metadata()?;
            if fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino())) {
                return Ok(Some(Self { _file: file }));
            }
        }
    }
}

fn lock_soon(file: &File) -> io::Result<bool> {
    // Also long enough for a process that restores what a killed one has left.
    const MAX_LOCK_ATTEMPTS: u32 = 250;
    const LOCK_RETRY_DELAY: Duration = Duration::from_millis(2);
    for _ in 0..MAX_LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => clock::sleep_until(clock::now() + LOCK_RETRY_DELAY),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// Whether a living process holds the lock in that file.
#[must_use]
pub fn is_taken(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_a_full_disk_has_left_of_a_line_does_not_merge_with_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::create(&path).unwrap();
        journal.note("one").unwrap();
        journal.file.write_all(b"tw").unwrap();
        journal.note("three").unwrap();
        assert_eq!(lines(&path).unwrap().unwrap(), ["one", "three"]);
        let mut journal = Journal::reopen(&path).unwrap();
        journal.file.write_all(b"fo").unwrap();
        journal.note("five").unwrap();
        assert_eq!(lines(&path).unwrap().unwrap(), ["one", "three", "five"]);
    }

    #[test]
    fn a_journal_is_never_written_over_and_for_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert_eq!(lines(&path).unwrap(), None);
        let mut journal = Journal::create(&path).unwrap();
        assert_eq!(lines(&path).unwrap(), Some(Vec::new()));
        journal.note("one").unwrap();
        journal.note("two").unwrap();
        assert_eq!(lines(&path).unwrap().unwrap(), ["one", "two"]);
        assert_eq!(Journal::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, PRIVATE_MODE);
    }

    #[test]
    fn a_truncated_line_is_left_out_and_the_next_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        for cut in ["", "t", "tw", "two"] {
            fs::write(&path, format!("one\n{cut}")).unwrap();
            assert_eq!(lines(&path).unwrap().unwrap(), ["one"], "{cut}");
            Journal::reopen(&path).unwrap().note("three").unwrap();
            assert_eq!(lines(&path).unwrap().unwrap(), ["one", "three"], "{cut}");
        }
        // Half of a multi-byte character.
        fs::write(&path, b"one\n\xc3").unwrap();
        assert_eq!(lines(&path).unwrap().unwrap(), ["one"]);
        Journal::reopen(&path).unwrap().note("two").unwrap();
        assert_eq!(lines(&path).unwrap().unwrap(), ["one", "two"]);
        fs::write(&path, b"on").unwrap();
        assert_eq!(lines(&path).unwrap().unwrap(), [""; 0], "not even one line");
    }

    #[test]
    fn one_has_the_lock_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!is_taken(&path) && !path.exists(), "looking makes nothing");
        let held = Lock::take(&path).unwrap().unwrap();
        assert!(is_taken(&path) && Lock::take(&path).unwrap().is_none());
        drop(held);
        // A parallel test may have just forked; its child holds the lock too until it calls exec.
        while is_taken(&path) {
            std::thread::yield_now();
        }
        assert!(Lock::take(&path).unwrap().is_some());
        let nowhere = Lock::take(&folder.path().join("gone/lock")).unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_lock_of_a_removed_file_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        for round in 0..20 {
            let old = Lock::take(&path).unwrap().unwrap();
            std::thread::scope(|scope| {
                // In most rounds it has the file open when that is removed, and gets the lock of the removed
                // file.
                let next = scope.spawn(|| {
                    loop {
                        if let Some(lock) = Lock::take(&path).unwrap() {
                            return lock;
                        }
                    }
                });
                clock::sleep_until(clock::now() + Duration::from_millis(3));
                fs::remove_file(&path).unwrap();
                drop(old);
                let new = next.join().unwrap();
                assert!(is_taken(&path), "round {round}");
                fs::remove_file(&path).unwrap();
                drop(new);
            });
        }
    }
}
