//! Lengths of the queues of a socket, as far as the system tells them.

use super::error_codes::unsupported;
use crate::SockError;
use crate::handle::AsFd;

/// Bytes in the send queue: unsent, or not acknowledged by the peer.
///
/// # Errors
/// The descriptor is not a socket with a queue, or the system does not tell.
pub fn unacknowledged(fd: &impl AsFd) -> Result<u64, SockError> {
    const OP: &str = "read the send queue";
    #[cfg(target_vendor = "apple")]
    {
        let bytes = crate::unix::call::get::<i32>(OP, fd, libc::SOL_SOCKET, libc::SO_NWRITE)?;
        u64::try_from(bytes).map_err(|_| unsupported(OP))
    }
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = fd;
        Err(unsupported(OP))
    }
}

/// Bytes that can be read at once (for UDP the size of the next datagram).
///
/// # Errors
/// The descriptor is not a socket with a queue, or the system does not tell.
pub fn readable(fd: &impl AsFd) -> Result<u64, SockError> {
    const OP: &str = "read the receive queue";
    #[cfg(unix)]
    {
        use std::os::fd::AsRawFd;
        let mut bytes: libc::c_int = 0;
        // SAFETY: FIONREAD writes one C int, and `bytes` is one.
        let ret = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
        crate::unix::call::check(OP, ret)?;
        u64::try_from(bytes).map_err(|_| unsupported(OP))
    }
    #[cfg(windows)]
    {
        super::windows::socket::readable(OP, fd)
    }
}
