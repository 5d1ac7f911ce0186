//! The seam for encrypted connections: the engine moves payload, and the owner of the connection encrypts it.

use std::fmt;

use linerate_sock::handle::BorrowedFd;
use linerate_sock::{Moved, SockError};

/// The encryption of a TCP connection. It is shared with the owner of the connection, who goes on with it after the flow.
///
/// The socket does not block while a flow has it, and no call waits.
pub trait SecureChannel: fmt::Debug + Send + Sync {
    /// Encrypts from `bytes` and writes the result to the socket; may take fewer bytes. Bytes that were taken count as
    /// sent, even if a part of their records still waits for room in the socket.
    ///
    /// # Errors
    /// The connection is closed.
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<Moved, SockError>;

    /// Writes encrypted bytes that still wait; true if none is left.
    ///
    /// # Errors
    /// The connection is closed.
    fn flush(&self, socket: BorrowedFd<'_>) -> Result<bool, SockError>;

    /// Decrypts what has arrived into `buffer`, and returns how much that is.
    ///
    /// # Errors
    /// The connection was reset, or what has arrived cannot be decrypted.
    fn recv(&self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Moved, SockError>;
}
