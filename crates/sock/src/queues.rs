//! Socket queue lengths, and the two ways to end a connection.

use std::net::{Shutdown, TcpStream};

use crate::handle::OwnedFd;
use crate::{SockError, sockopt};

pub use crate::system::queues::{readable, unacknowledged};

/// Sends a FIN after the queued bytes; the other direction stays open.
///
/// # Errors
/// The connection is already closed.
pub fn finish_writing(stream: &TcpStream) -> Result<(), SockError> {
    stream.shutdown(Shutdown::Write).map_err(|source| SockError::new("shut down writing", source))
}

/// Closes at once: discards the queued bytes and sends a reset. Leaves no connection in TIME-WAIT.
///
/// # Errors
/// The linger option could not be set; the socket is then closed in the ordinary way.
pub fn abort(stream: impl Into<OwnedFd>) -> Result<(), SockError> {
    let fd: OwnedFd = stream.into();
    sockopt::set_linger_abort(&fd)
}
