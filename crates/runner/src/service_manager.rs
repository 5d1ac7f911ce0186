//! The service manager that started this process, as sd_notify(3) describes it.
//!
//! The crate sd-notify waits for a manager that does not read, and knows no abstract sockets; a server may do neither.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::OnceLock;
use std::time::Duration;

use linerate_sock::clock;

/// Divisor of the watchdog's time that gives the interval of heartbeats, as sd_watchdog_enabled(3) recommends.
const BEATS_PER_WATCHDOG_TIME: u32 = 2;

/// Shortest interval of heartbeats.
const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(10);

/// The priority of a line in the journal, as syslog(3) numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalPriority {
    /// Something could not be done.
    Error = 3,
    /// Something may not be as it should be.
    Warning = 4,
    /// Anything else that is worth a line.
    Information = 6,
}

impl JournalPriority {
    /// The text with this priority at the start of each line, if standard error leads to the journal; otherwise the text
    /// alone.
    #[must_use]
    pub fn on_stderr(self, text: String) -> String {
        static JOURNAL: OnceLock<bool> = OnceLock::new();
        if *JOURNAL.get_or_init(|| ServiceManager.keeps_a_journal()) {
            self.on_each_line(&text)
        } else {
            text
        }
    }

    fn on_each_line(self, text: &str) -> String {
        text.split_inclusive('\n').map(|line| format!("<{}>{line}", self as u8)).collect()
    }
}

/// Writes texts of one priority to standard error. Each write is one text of whole lines.
#[derive(Debug)]
pub struct PriorityWriter<W> {
    /// Standard error.
    pub stderr: W,
    /// The priority of the lines.
    pub priority: JournalPriority,
}

impl<W: io::Write> io::Write for PriorityWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = self.priority.on_stderr(String::from_utf8_lossy(bytes).into_owned());
        self.stderr.write_all(text.as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stderr.flush()
    }
}

/// Sends the state of a service to its manager. Without a manager, nothing is sent.
///
/// Nothing waits for the manager, and errors are ignored: a service works without it, and it notices what is missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServiceManager;

impl ServiceManager {
    /// The service is ready, or has finished reloading; `status` is one line for people.
    pub fn ready(self, status: &str) {
        send(&format!("READY=1\nSTATUS={}\n", status.replace('\n', " ")));
    }

    /// The service begins to read its configuration again. [`ServiceManager::ready`] ends that.
    pub fn reloading(self) {
        send(&format!("RELOADING=1\nMONOTONIC_USEC={}\n", clock::now().0 / 1000));
    }

    /// The service stops.
    pub fn stopping(self) {
        send("STOPPING=1\n");
    }

    /// The service works. To be called at every [`ServiceManager::heartbeat_interval`].
    pub fn beat(self) {
        send("WATCHDOG=1\n");
    }

    /// How often the manager wants a heartbeat; absent if it watches no heartbeat of this process.
    #[must_use]
    pub fn heartbeat_interval(self) -> Option<Duration> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let watched = std::env::var_os("WATCHDOG_PID")
            .is_none_or(|_| number("WATCHDOG_PID") == Some(u64::from(std::process::id())));
        let time = number("WATCHDOG_USEC").filter(|time| watched && *time > 0)?;
        Some((Duration::from_micros(time) / BEATS_PER_WATCHDOG_TIME).max(MIN_HEARTBEAT_INTERVAL))
    }

    /// Whether standard error leads to the journal, whose lines may begin with their priority.
    #[must_use]
    pub fn keeps_a_journal(self) -> bool {
        let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
        stream.to_str().zip(stderr_identity().ok()).is_some_and(|(stream, own)| stream == own)
    }
}

/// Device and inode of standard error, in the form of `JOURNAL_STREAM`.
fn stderr_identity() -> io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata("/dev/stderr")?;
    Ok(format!("{}:{}", file.dev(), file.ino()))
}

fn send(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let sent = || -> io::Result<()> {
        let address = match socket.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
        };
        let own = UnixDatagram::unbound()?;
        own.set_nonblocking(true)?;
        own.send_to_addr(state.as_bytes(), &address).map(drop)
    };
    if let Err(error) = sent() {
        tracing::debug!(%error, "the service manager was not reached");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_journal_has_a_priority_and_keeps_its_end() {
        assert_eq!(JournalPriority::Error.on_each_line("one\n  two\n"), "<3>one\n<3>  two\n");
        assert_eq!(JournalPriority::Information.on_each_line("one"), "<6>one");
    }
}
