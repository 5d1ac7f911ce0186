//! What is known of settings that were changed for a coordinator and are restored.

use std::io;

use serde::Serialize;

#[cfg(doc)]
use crate::restore_leftovers;

/// The result of restoring the settings that an agent left changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Restored {
    /// The restored settings with their values.
    pub put_back: Vec<String>,
    /// The settings that were not restored, and why.
    pub left: Vec<String>,
}

/// What the journal contains about settings in this network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftovers {
    /// The process that wrote the journal; absent if the journal does not name it.
    pub pid: Option<u32>,
    /// Whether that process is alive: then the settings are in force and not leftovers.
    pub is_alive: bool,
    /// Each setting with its current value and the value to restore.
    pub settings: Vec<String>,
}

/// Starts processes that restore settings when the agent is killed.
pub trait Guardians: Send + Sync + std::fmt::Debug {
    /// Starts one. It must call [`restore_leftovers`] as soon as this process has ended for any reason, and
    /// then exit.
    ///
    /// # Errors
    /// It could not be started.
    fn start(&self) -> io::Result<Box<dyn Guardian>>;
}

/// A process that waits for the end of this one. It exits when this is dropped.
pub trait Guardian: Send + std::fmt::Debug {}
