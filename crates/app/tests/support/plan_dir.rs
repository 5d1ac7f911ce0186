//! A plan in a folder of the test.

use std::process::Command;

use serde_json::Value;

use super::{Done, Folder, Process, TIMEOUT, linerate};

/// A plan in a folder with the archive and the state of labs; labs are removed on drop.
pub(crate) struct PlanDir {
    pub(crate) folder: Folder,
}

impl PlanDir {
    pub(crate) fn new(plan: &str) -> Self {
        let folder = Folder::new();
        std::fs::write(folder.file("plan.toml"), plan).unwrap();
        Self { folder }
    }

    /// The program, with this archive and these labs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = linerate();
        command.env("LINERATE_ARCHIVE", self.folder.file("archive.sqlite"));
        command.env("LINERATE_RUN", self.folder.file("run")).args(args);
        command
    }

    pub(crate) fn done(&self, args: &[&str]) -> Done {
        Process::start(self.command(args)).finish(TIMEOUT)
    }

    /// Runs the plan in the lab.
    pub(crate) fn run_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(&["run", &self.folder.file("plan.toml"), "--world", "lab"]);
        command.args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        Process::start(self.run_command(args)).finish(3 * TIMEOUT)
    }

    /// The newest plan in the archive.
    pub(crate) fn shown(&self) -> Value {
        let done = self.done(&["show", "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.json()
    }
}

impl Drop for PlanDir {
    fn drop(&mut self) {
        let _ = self.command(&["lab", "down", "--all"]).output();
    }
}
