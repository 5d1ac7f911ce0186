//! Ctrl-C and SIGTERM as a flag that loops look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use linerate_sock::thread;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals as Coming;

/// Which signal has come, if any. A second one ends the process at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// Begins to catch them.
    ///
    /// # Errors
    /// The host refuses handlers.
    pub(crate) fn catch() -> std::io::Result<Self> {
        let signals = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the second signal finds the flag set by the first.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&signals.stop))?;
            flag::register_usize(signal, Arc::clone(&signals.which), signal as usize)?;
            flag::register(signal, Arc::clone(&signals.stop))?;
        }
        Ok(signals)
    }

    /// Calls `act` whenever one comes, from a thread of its own.
    ///
    /// # Errors
    /// The host refuses handlers or threads.
    pub(crate) fn on_each(act: impl Fn() + Send + 'static) -> std::io::Result<()> {
        let mut coming = Coming::new([SIGINT, SIGTERM])?;
        thread::spawn("signals", move || coming.forever().for_each(|_| act()))
            .map(drop)
            .map_err(|error| error.source)
    }

    /// Hands each of these to `act`, from a thread of its own, instead of what they do otherwise.
    ///
    /// # Errors
    /// The host refuses handlers or threads.
    pub(crate) fn hand_over(signals: &[i32], act: impl Fn(i32) + Send + 'static) -> std::io::Result<()> {
        let mut coming = Coming::new(signals)?;
        thread::spawn("signals", move || coming.forever().for_each(act))
            .map(drop)
            .map_err(|error| error.source)
    }

    /// Set as soon as one has come.
    pub(crate) fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// The signal that has come.
    pub(crate) fn which(&self) -> Option<u8> {
        u8::try_from(self.which.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }
}
