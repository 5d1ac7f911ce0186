//! In place of `lab_port_observer` on systems other than Linux, which have no emulated networks.

use linerate_control::{PortObservations, PortObserver, PortObserverError};
use linerate_sock::Mono;

/// The switch of an emulated network: it has no value.
#[derive(Debug)]
pub enum LabPortObserver {}

impl LabPortObserver {
    /// The switch of the emulated network that this program runs in: always absent.
    #[must_use]
    pub const fn from_environment() -> Option<Self> {
        None
    }
}

impl PortObserver for LabPortObserver {
    fn observe(&self, _from: Mono, _to: Mono) -> Result<PortObservations, PortObserverError> {
        match *self {}
    }
}
