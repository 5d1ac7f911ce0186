//! The service manager that started this process, as sd_notify(3) describes it.

use std::io;
use std::time::Duration;

use sd_notify::NotifyState;

/// Divisor of the watchdog's time that gives the interval of heartbeats, as sd_watchdog_enabled(3) recommends.
const BEATS_PER_WATCHDOG_TIME: u32 = 2;

/// Sends the state of a service to its manager. Without a manager, nothing is sent.
///
/// Errors are ignored: a service works without its manager, and the manager notices what is missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServiceManager;

impl ServiceManager {
    /// The service is ready, or has finished reloading; `status` is one line for people.
    pub fn ready(self, status: &str) {
        send(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// The service begins to read its configuration again. [`ServiceManager::ready`] ends that.
    pub fn reloading(self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send(&[NotifyState::Reloading, now]),
            Err(_) => send(&[NotifyState::Reloading]),
        }
    }

    /// The service stops.
    pub fn stopping(self) {
        send(&[NotifyState::Stopping]);
    }

    /// The service works. To be called at every [`ServiceManager::heartbeat_interval`].
    pub fn beat(self) {
        send(&[NotifyState::Watchdog]);
    }

    /// How often the manager wants a heartbeat; absent if it watches no heartbeat of this process.
    #[must_use]
    pub fn heartbeat_interval(self) -> Option<Duration> {
        sd_notify::watchdog_enabled().map(|time| time / BEATS_PER_WATCHDOG_TIME)
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

fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "the service manager was not reached");
    }
}
