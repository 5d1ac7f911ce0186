//! Lengths of the queues of a socket.

use std::os::fd::{AsFd, AsRawFd};

use super::call::check;
use crate::SockError;

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
