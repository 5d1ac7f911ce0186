//! The seam for connections that are encrypted: the engine moves payload, and whoever opened the connection has the keys.

use std::fmt;

use linerate_sock::handle::BorrowedFd;
use linerate_sock::{Moved, SockError};

/// The encryption of a TCP connection. It is shared with the owner of the connection, who goes on with it after the flow.
///
/// The socket does not block while a flow has it, and no call waits.
pub trait SecureChannel: fmt::Debug + Send + Sync {
    /// Encrypts from `bytes`, and passes that to the kernel after what was encrypted before. Bytes that were taken count
    /// as sent, although the kernel may not have room for all of their records yet.
    ///
    /// # Errors
    /// The connection is closed.
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<Moved, SockError>;

    /// Passes what was encrypted to the kernel; true if all of it is there.
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
