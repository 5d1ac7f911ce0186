//! Socket queue lengths, and the two ways to end a connection.

use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::call::check;
use crate::{SockError, sockopt};

/// Bytes in the send queue: unsent, or sent and not acknowledged.
const SIOCOUTQ: libc::Ioctl = 0x5411;
/// Bytes in the receive queue.
const SIOCINQ: libc::Ioctl = 0x541B;

fn count(op: &'static str, fd: &impl AsFd, request: libc::Ioctl) -> Result<u64, SockError> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: both requests writes one C int, and `bytes` is one.
    let ret = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), request, &raw mut bytes) };
    check(op, ret)?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Bytes in the send queue: unsent, or not acknowledged by the peer.
///
/// # Errors
/// The descriptor is not a socket with a queue.
pub fn unacknowledged(fd: &impl AsFd) -> Result<u64, SockError> {
    count("read the send queue (SIOCOUTQ)", fd, SIOCOUTQ)
}

/// Bytes that can be read at once (for UDP the size of the next datagram).
///
/// # Errors
/// The descriptor is not a socket with a queue.
pub fn readable(fd: &impl AsFd) -> Result<u64, SockError> {
    count("read the receive queue (SIOCINQ)", fd, SIOCINQ)
}

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
