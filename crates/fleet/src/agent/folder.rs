//! What an agent must not forget, in files.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linerate_runner::lasting_private_file;
use linerate_sock::files::file_system_id;

/// How the names of files end that were being written when a process was killed. Runs have no dots in their names.
const UNFINISHED: [&str; 2] = ["new", "part"];

/// Why something cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct AgentFolderError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Where an agent keeps what it must not forget.
pub trait AgentFolder: Send {
    /// Keeps a file, in place of one with its name. It is whole or not there, also after a power failure.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&mut self, name: &str, content: &[u8]) -> Result<(), AgentFolderError>;

    /// Removes a file, if it is there.
    fn remove(&mut self, name: &str);

    /// Gives a file another name, if it is there.
    fn rename(&mut self, from: &str, to: &str);

    /// The content of a file; absent if it is not there or cannot be read.
    fn read_one(&mut self, name: &str) -> Option<Vec<u8>>;

    /// Where it is: another text for a copy of it. Of a folder that cannot be copied, an empty one.
    fn place(&self) -> String {
        String::new()
    }

    /// The names and lengths of all files that were written whole.
    ///
    /// # Errors
    /// They cannot be read.
    fn list(&mut self) -> Result<Vec<(String, u64)>, AgentFolderError>;
}

/// A folder on a disk.
#[derive(Debug)]
pub struct DiskFolder {
    path: PathBuf,
}

impl DiskFolder {
    /// The folder at a path; it is created if it is missing.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn open(path: &Path) -> Result<Self, AgentFolderError> {
        let made = std::fs::create_dir_all(path);
        made.map_err(|source| AgentFolderError { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned() })
    }
}

impl AgentFolder for DiskFolder {
    fn write(&mut self, name: &str, content: &[u8]) -> Result<(), AgentFolderError> {
        let path = self.path.join(name);
        lasting_private_file(&path, content).map_err(|source| AgentFolderError { path, source })
    }

    fn remove(&mut self, name: &str) {
        // One that is gone has been removed.
        let _ = std::fs::remove_file(self.path.join(name));
    }

    fn rename(&mut self, from: &str, to: &str) {
        let _ = std::fs::rename(self.path.join(from), self.path.join(to));
    }

    fn read_one(&mut self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path.join(name)).ok()
    }

    /// The machine, the file system, and the number of the folder there. The number of a disk may change with each start
    /// of the machine, that of a file system does not.
    fn place(&self) -> String {
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let file_system = file_system_id(&self.path).unwrap_or_default();
        let inode = std::fs::metadata(&self.path).map_or(0, |about| about.ino());
        format!("{} {file_system:x} {inode}", machine.trim())
    }

    fn list(&mut self) -> Result<Vec<(String, u64)>, AgentFolderError> {
        let failed = |path: &Path, source| AgentFolderError { path: path.to_owned(), source };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(|error| failed(&self.path, error))? {
            let entry = entry.map_err(|error| failed(&self.path, error))?;
            let path = entry.path();
            if path.extension().is_some_and(|ending| UNFINISHED.iter().any(|one| ending == *one)) {
                let _ = std::fs::remove_file(&path);
                continue;
            }
            let about = entry.metadata().map_err(|error| failed(&path, error))?;
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(name) = name.filter(|_| about.is_file()) {
                files.push((name.to_owned(), about.len()));
            }
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_somewhere_else_and_a_folder_with_another_name_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let place = |name: &str| DiskFolder::open(&path(name)).unwrap().place();
        let first = place("a");
        assert_eq!(first, place("a"));
        assert_ne!(first, place("b"));
        std::fs::rename(path("a"), path("c")).unwrap();
        assert_eq!(first, place("c"));
    }

    #[test]
    fn what_an_interrupted_write_left_is_no_file_of_the_agent() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = DiskFolder::open(folder.path()).unwrap();
        disk.write("result-1a", b"whole").unwrap();
        std::fs::write(folder.path().join("result-2b.new"), "{").unwrap();
        std::fs::write(folder.path().join("memory.new.part"), "").unwrap();
        assert_eq!(disk.list().unwrap(), [("result-1a".to_owned(), 5)]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
