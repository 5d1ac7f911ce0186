//! The threads of a server without clients.

use std::time::Duration;

use linerate_sock::clock;

use super::{ServeProcess, TIMEOUT, pause, thread_names};

/// The thread that waits for everything that arrives at the server's ports, and the one that waits for signals.
const IDLE: [&str; 2] = ["linerate", "signals"];

/// Names of the server's threads, sorted.
pub(crate) fn threads(server: &ServeProcess) -> Vec<String> {
    let mut names: Vec<String> =
        thread_names(server.pid()).iter().map(|name| name.trim_end().to_owned()).collect();
    names.sort();
    names
}

/// Waits until the server has only the threads of an idle one.
pub(crate) fn await_idle(server: &ServeProcess) {
    let deadline = clock::now() + TIMEOUT;
    while threads(server) != IDLE {
        assert!(!deadline.has_passed(), "{:?}: {}", threads(server), server.stderr());
        pause(Duration::from_millis(10));
    }
}

/// Number of open files of a process.
pub(crate) fn files_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}
