//! A folder for what a task needs only while it runs.

use std::fs;
use std::path::{Path, PathBuf};

/// An empty folder of this process, removed on drop with its content. Its path is short, because it may
/// contain sockets, whose paths have a length limit.
pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    /// Creates the folder; its name contains `name` and the process id.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
    pub(crate) fn create(name: &str) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("linerate-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_and_its_content_are_removed() {
        let folder = TempFolder::create("temp-folder").unwrap();
        let file = folder.file("a");
        fs::write(&file, "x").unwrap();
        assert!(folder.path().is_dir() && file.exists());
        drop(folder);
        assert!(!file.exists() && file.parent().is_some_and(|parent| !parent.exists()));
    }
}
