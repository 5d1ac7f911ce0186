//! A temporary directory for a test, which is removed afterwards.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty directory, removed on drop.
pub(crate) struct ArchiveTestFolder(PathBuf);

impl ArchiveTestFolder {
    /// Creates one that is unique among all tests and processes.
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("linerate-archive-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A path inside it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for ArchiveTestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
