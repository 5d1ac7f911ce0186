//! What waits in a socket's buffers, and the two ways to end a connection.

use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::call::check;
use crate::{SockError, sockopt};

/// Bytes that left this socket's application and were sent but not yet acknowledged, plus those not yet sent.
const SIOCOUTQ: libc::Ioctl = 0x5411;
/// Bytes in the send buffer that were never sent.
const SIOCOUTQNSD: libc::Ioctl = 0x894B;
/// Bytes that wait to be read.
const SIOCINQ: libc::Ioctl = 0x541B;

fn count(op: &'static str, fd: &impl AsFd, request: libc::Ioctl) -> Result<u64, SockError> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: each of the three requests writes one C int, and `bytes` is one.
    let ret = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), request, &raw mut bytes) };
    check(op, ret)?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Bytes in the send queue: unsent ones and those the peer has not acknowledged.
///
/// # Errors
/// When the descriptor is not a socket that counts its queue.
pub fn unacknowledged(fd: &impl AsFd) -> Result<u64, SockError> {
    count("read the send queue (SIOCOUTQ)", fd, SIOCOUTQ)
}

/// Bytes in the send queue that were not sent yet.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn unsent(fd: &impl AsFd) -> Result<u64, SockError> {
    count("read the unsent queue (SIOCOUTQNSD)", fd, SIOCOUTQNSD)
}

/// Bytes that can be read at once (for UDP: the size of the next datagram).
///
/// # Errors
/// When the descriptor is not a socket that counts its queue.
pub fn readable(fd: &impl AsFd) -> Result<u64, SockError> {
    count("read the receive queue (SIOCINQ)", fd, SIOCINQ)
}

/// Sends FIN after the queued bytes; the other direction stays open.
///
/// # Errors
/// When the connection is already gone.
pub fn finish_writing(stream: &TcpStream) -> Result<(), SockError> {
    stream.shutdown(Shutdown::Write).map_err(|source| SockError::new("shut down writing", source))
}

/// Closes at once: queued bytes are thrown away and the peer gets a reset. Leaves no connection in TIME-WAIT.
///
/// # Errors
/// When the linger option could not be set; the socket is closed all the same, in the ordinary way.
pub fn abort(stream: impl Into<OwnedFd>) -> Result<(), SockError> {
    let fd: OwnedFd = stream.into();
    sockopt::set_linger_abort(&fd)
}
