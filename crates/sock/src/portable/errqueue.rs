//! Sockets of this system have no error queue.

use crate::SockError;
use crate::errqueue::Notice;
use crate::handle::AsFd;

/// Takes one notice off the queue: there never is one.
///
/// # Errors
/// None.
pub fn take(_fd: &impl AsFd) -> Result<Option<Notice>, SockError> {
    Ok(None)
}
