//! Commands of the program that share an archive.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Done, Folder, Process, TIMEOUT, linerate};

/// An archive, and the working directory of commands that use it.
pub(crate) struct TestDir {
    pub(crate) folder: Folder,
    work: PathBuf,
}

impl TestDir {
    /// Commands run in the folder of the archive.
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let work = folder.path().to_owned();
        Self { folder, work }
    }

    /// Commands run in a folder of `fixtures`.
    pub(crate) fn in_fixtures(name: &str) -> Self {
        Self { folder: Folder::new(), work: fixtures().join(name) }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = linerate();
        command
            .args(args)
            .current_dir(&self.work)
            .env("LINERATE_ARCHIVE", self.folder.file("archive.sqlite"));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.run_with(args, b"")
    }

    /// Runs a command with this text at its standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Done {
        Process::start_with(self.command(args), input).finish(TIMEOUT)
    }

    /// The document of a command that must succeed.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let done = self.run(args);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.json()
    }
}

/// The folder `fixtures` of the repository.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}
