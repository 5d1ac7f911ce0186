//! A folder for what a task needs only while it runs.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// An empty folder that nobody else has, also not another task of this process, removed on drop with its content. Its path
/// is short, because it may contain sockets, whose paths have a length limit.
pub(crate) struct TempFolder(TempDir);

impl TempFolder {
    /// Creates the folder; its name contains `name`.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
    pub(crate) fn create(name: &str) -> Result<Self, String> {
        let created = tempfile::Builder::new().prefix(&format!("linerate-{name}-")).tempdir();
        created.map(Self).map_err(|error| format!("cannot create a temporary folder: {error}"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_and_its_content_are_removed_and_nothing_of_another_one() {
        let [folder, other] = ["temp-folder"; 2].map(|name| TempFolder::create(name).unwrap());
        let file = folder.file("a");
        fs::write(&file, "x").unwrap();
        assert!(folder.path().is_dir() && file.exists());
        drop(other);
        assert!(file.exists());
        drop(folder);
        assert!(!file.exists() && file.parent().is_some_and(|parent| !parent.exists()));
    }
}
