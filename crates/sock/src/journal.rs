//! Journals of what has to be undone: a file of lines each of which is on the disk before its writer goes on, and a lock
//! beside it that says whether the writer lives.
//!
//! What the lines say is the writer's business.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use crate::clock;

/// Whoever writes here decides what a later process removes or changes.
const PRIVATE_MODE: u32 = 0o600;

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    /// Begins a journal where none is.
    ///
    /// # Errors
    /// `AlreadyExists` where one is: it is never written over. What the system says of the file or its folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(PRIVATE_MODE).open(path)?;
        // The file's name must be on the disk too.
        File::open(path.parent().unwrap_or(path))?.sync_all()?;
        Ok(Self { file })
    }

    /// Goes on with the journal that is there. A last line that was cut off says nothing and is cut away: it must not
    /// swallow the next one.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn reopen(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(whole(&fs::read(path)?) as u64)?;
        file.sync_data()?;
        Ok(Self { file })
    }

    /// Writes a line, given without its end, and waits until it is on the disk.
    ///
    /// # Errors
    /// What the system says of the file. The line may be cut off then.
    pub fn note(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.file.sync_data()
    }
}

/// The whole lines of a journal; absent where there is none. A last line that was cut off is left out: its writer did not
/// go on.
///
/// # Errors
/// What the system says of the file; `InvalidData` for one that is no text.
pub fn lines(path: &Path) -> io::Result<Option<Vec<String>>> {
    let mut bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    // Where it was cut off may be within a letter.
    bytes.truncate(whole(&bytes));
    let text = String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Some(text.lines().map(str::to_owned).collect()))
}

/// How many bytes its whole lines have.
fn whole(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

/// A lock that this process has. It goes with the value, at the latest when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock in the file at a path, which is made if there is none; absent while another process keeps it. One who
    /// only looks ([`is_taken`]) has it for a moment, as has a child of the one who had it until it runs its program: such
    /// are waited for.
    ///
    /// # Errors
    /// `NotFound` when the folder is not there; what else the system says of the file.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let file =
                OpenOptions::new().write(true).create(true).truncate(false).mode(PRIVATE_MODE).open(path)?;
            if !lock_soon(&file)? {
                return Ok(None);
            }
            // Else the one who had it has just removed it: a lock on a file that is not there any more holds nothing.
            let held = file.metadata()?;
            if fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino())) {
                return Ok(Some(Self { _file: file }));
            }
        }
    }
}

fn lock_soon(file: &File) -> io::Result<bool> {
    // One that puts back what a killed process has left has it for longer, too.
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

/// True if a living process has the lock in that file.
#[must_use]
pub fn is_taken(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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
    fn a_cut_off_line_is_left_out_and_the_next_one_is_not_lost_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        for cut in ["", "t", "tw", "two"] {
            fs::write(&path, format!("one\n{cut}")).unwrap();
            assert_eq!(lines(&path).unwrap().unwrap(), ["one"], "{cut}");
            Journal::reopen(&path).unwrap().note("three").unwrap();
            assert_eq!(lines(&path).unwrap().unwrap(), ["one", "three"], "{cut}");
        }
        // Half of a letter of several bytes.
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
        // A test beside this one may just have forked, and its child has the lock too until it runs its program.
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
                // It has the file open, in most rounds, when that is removed, and gets the lock of what is no file.
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
