//! Departure times of datagrams, which these systems do not have.

use super::error_codes::unsupported;
use crate::clock::Mono;
use crate::departure::DepartureClock;
use crate::{AsFd, SockError};

/// Datagrams with departure times.
pub struct DepartureBatch;

impl DepartureBatch {
    /// Room for `most` datagrams.
    #[must_use]
    pub const fn new(_clock: DepartureClock, _most: usize) -> Self {
        Self
    }

    /// Lets the datagrams of a socket carry departure times.
    ///
    /// # Errors
    /// Always: no queue of these systems holds datagrams.
    pub fn enable(_fd: &impl AsFd, _clock: DepartureClock) -> Result<(), SockError> {
        Err(unsupported("set SO_TXTIME"))
    }

    /// Sends nothing.
    ///
    /// # Errors
    /// Always, as [`Self::enable`].
    pub fn send(
        &mut self,
        _fd: &impl AsFd,
        _bytes: &[u8],
        _length: usize,
        _departures: impl Iterator<Item = Mono>,
    ) -> Result<usize, SockError> {
        Err(unsupported("send datagrams with departure times"))
    }
}
