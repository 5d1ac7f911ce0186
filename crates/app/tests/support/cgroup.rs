//! Groups of processes that the kernel limits (cgroups of version 1).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A group with limits, removed on drop; its processes must have ended by then.
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// A group of a controller (`cpu`, `blkio`) with these limits, by file; absent where the kernel has none of them.
    pub(crate) fn with_limits(controller: &str, limits: &[(&str, String)]) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("linerate-test-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let group = Self(Path::new("/sys/fs/cgroup").join(controller).join(name));
        fs::create_dir(&group.0).ok()?;
        limits.iter().try_for_each(|(file, limit)| fs::write(group.0.join(file), limit)).ok()?;
        Some(group)
    }

    /// A command that runs in the group.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        command.args(["-c", &script, "sh", program]);
        command
    }

    /// Moves a running process into the group.
    pub(crate) fn take(&self, process: u32) {
        fs::write(self.0.join("cgroup.procs"), process.to_string()).unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
