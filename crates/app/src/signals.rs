//! Ctrl-C, SIGTERM and SIGHUP as a flag that loops check.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linerate_runner::CancelToken;
use linerate_sock::{clock, process, thread};
use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals as Coming;
use signal_hook::{flag, low_level};

use crate::command_error::CommandError;

/// Signals that end a measurement: closed terminal, Ctrl-C, stopped service.
const STOP_SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// Those of a service for which SIGHUP means something else.
pub(crate) const SERVICE_STOP_SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// A second signal within this time is the same order: timeout(1) signals its child, and then its process group.
const SAME_ORDER: Duration = Duration::from_millis(500);

/// The signals to handle: SIGHUP only if it is not ignored, as under nohup(1).
pub(crate) fn ending() -> Vec<i32> {
    STOP_SIGNALS.into_iter().filter(|signal| *signal != SIGHUP || !process::ignores(SIGHUP)).collect()
}

/// The signal that arrived, if any. A second one, half a second later, ends the process at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// Starts to catch the signals.
    ///
    /// # Errors
    /// The host refuses handlers or threads.
    pub(crate) fn catch() -> Result<Self, CommandError> {
        Self::catch_these(&ending(), |_| ())
    }

    /// Starts to catch these signals, in a new thread, which also calls `act` for each.
    ///
    /// # Errors
    /// The host refuses handlers or threads.
    pub(crate) fn catch_these(
        which: &[i32],
        act: impl Fn(i32) + Send + 'static,
    ) -> Result<Self, CommandError> {
        let signals = Self::default();
        let (caught, first) = (signals.clone(), OnceLock::new());
        Self::hand_over(which, move |signal| {
            if clock::now().since(*first.get_or_init(clock::now)) > SAME_ORDER {
                low_level::exit(128 + signal);
            }
            caught.which.store(signal as usize, Ordering::SeqCst);
            caught.stop.store(true, Ordering::SeqCst);
            act(signal);
        })?;
        Ok(signals)
    }

    /// Calls `act` for each of these signals in a new thread, instead of their default action.
    ///
    /// # Errors
    /// The host refuses handlers or threads.
    pub(crate) fn hand_over(signals: &[i32], act: impl Fn(i32) + Send + 'static) -> Result<(), CommandError> {
        WaitingSignals::catch(signals)?.hand_over(act)
    }

    /// Ignores the signals that end a program, and those with which a service manager ends all processes of a service
    /// that hangs.
    ///
    /// # Errors
    /// The host refuses handlers.
    pub(crate) fn ignore() -> std::io::Result<()> {
        let nobody = Arc::new(AtomicBool::new(false));
        let all = STOP_SIGNALS.into_iter().chain([SIGQUIT, SIGABRT]);
        all.map(|signal| flag::register(signal, Arc::clone(&nobody))).try_for_each(|done| done.map(drop))
    }

    /// Cancelled when a signal has arrived.
    pub(crate) fn cancel(&self) -> CancelToken {
        CancelToken::from(Arc::clone(&self.stop))
    }

    /// The signal that arrived.
    pub(crate) fn which(&self) -> Option<u8> {
        u8::try_from(self.which.load(Ordering::SeqCst)).ok().filter(|signal| *signal != 0)
    }
}

/// Signals that are kept, from when they are caught, until somebody acts on them.
#[derive(Debug)]
pub(crate) struct WaitingSignals(Coming);

impl WaitingSignals {
    /// Starts to catch these signals.
    ///
    /// # Errors
    /// The host refuses handlers.
    pub(crate) fn catch(signals: &[i32]) -> Result<Self, CommandError> {
        Coming::new(signals).map(Self).map_err(|error| waiting_failed(&error))
    }

    /// Calls `act` in a new thread for each that has come since then, or comes.
    ///
    /// # Errors
    /// The host refuses threads.
    pub(crate) fn hand_over(mut self, act: impl Fn(i32) + Send + 'static) -> Result<(), CommandError> {
        let handler = thread::spawn("signals", move || self.0.forever().for_each(act));
        handler.map(drop).map_err(|error| waiting_failed(&error.source))
    }
}

fn waiting_failed(error: &std::io::Error) -> CommandError {
    CommandError::failed(format!("cannot wait for signals: {error}"))
}
