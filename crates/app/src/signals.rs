//! Ctrl-C, SIGTERM and SIGHUP as a flag that loops look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use linerate_sock::thread;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals as Coming;

/// Those that end a measurement: a terminal that goes away, Ctrl-C, a service that is stopped.
const STOP_SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// Those of them that are to be heard: under nohup(1) the end of the terminal ends nothing.
fn ending() -> impl Iterator<Item = i32> {
    STOP_SIGNALS.into_iter().filter(|signal| *signal != SIGHUP || !linerate_sock::process::ignores(SIGHUP))
}

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
        for signal in ending() {
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
        let mut coming = Coming::new(ending())?;
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

    /// Lets those that end a program pass by.
    ///
    /// # Errors
    /// The host refuses handlers.
    pub(crate) fn ignore() -> std::io::Result<()> {
        let nobody = Arc::new(AtomicBool::new(false));
        STOP_SIGNALS.into_iter().try_for_each(|signal| flag::register(signal, Arc::clone(&nobody)).map(drop))
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
