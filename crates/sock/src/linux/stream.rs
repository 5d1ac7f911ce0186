//! Moves bytes through connected sockets, with the system calls of Linux.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use super::call::{retry, set};
use super::cmsg;
use crate::SockError;
use crate::datagram::Ancillary;
use crate::stream::{MAX_PARTS, Moved, outcome, outcome_of_reading};

/// Sends from `bytes`; may send fewer. On a datagram socket the slice is one datagram.
///
/// # Errors
/// The connection is closed, or a datagram is refused (too long, or the peer's port was unreachable).
pub fn send(fd: &impl AsFd, bytes: &[u8]) -> Result<Moved, SockError> {
    send_with(fd, bytes, 0)
}

/// Sends `bytes` `times` times in a row, at most [`MAX_PARTS`] times; may send fewer bytes.
///
/// # Errors
/// As [`send`].
pub fn send_repeated(fd: &impl AsFd, bytes: &[u8], times: usize) -> Result<Moved, SockError> {
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let parts = [part; MAX_PARTS];
    // SAFETY: an all-zero message header is valid: without address, parts and control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_ptr().cast_mut();
    message.msg_iovlen = times.min(MAX_PARTS) as _;
    let raw = fd.as_fd().as_raw_fd();
    outcome(retry("send", || {
        // SAFETY: the header points to `parts`, which describe `bytes`; the kernel only reads them.
        unsafe { libc::sendmsg(raw, &raw const message, libc::MSG_NOSIGNAL) }
    }))
}

/// Sends from several slices in a row, at most the first [`MAX_PARTS`]; may send fewer bytes.
///
/// # Errors
/// As [`send`].
pub fn send_parts(fd: &impl AsFd, parts: &[IoSlice<'_>]) -> Result<Moved, SockError> {
    // SAFETY: an all-zero message header is valid: without address, parts and control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // The standard library guarantees that a slice has the layout of `iovec`.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len().min(MAX_PARTS) as _;
    let raw = fd.as_fd().as_raw_fd();
    outcome(retry("send", || {
        // SAFETY: the header points to `parts`, which describe memory that the kernel only reads.
        unsafe { libc::sendmsg(raw, &raw const message, libc::MSG_NOSIGNAL) }
    }))
}

/// Sends one byte as urgent data (RFC 9293 §3.8.5), after the bytes sent before.
///
/// # Errors
/// As [`send`].
pub fn send_urgent(fd: &impl AsFd, byte: u8) -> Result<Moved, SockError> {
    send_with(fd, &[byte], libc::MSG_OOB)
}

pub(crate) fn send_with(fd: &impl AsFd, bytes: &[u8], flags: i32) -> Result<Moved, SockError> {
    let raw = fd.as_fd().as_raw_fd();
    outcome(retry("send", || {
        // SAFETY: pointer and length describe `bytes`, which the kernel only reads.
        unsafe { libc::send(raw, bytes.as_ptr().cast(), bytes.len(), flags | libc::MSG_NOSIGNAL) }
    }))
}

/// Receives into `buffer`. On a datagram socket an empty datagram reads as [`Moved::Closed`].
///
/// # Errors
/// The connection was reset.
pub fn recv(fd: &impl AsFd, buffer: &mut [u8]) -> Result<Moved, SockError> {
    let raw = fd.as_fd().as_raw_fd();
    let result = retry("receive", || {
        // SAFETY: pointer and length describe `buffer`, which is exclusively ours.
        unsafe { libc::recv(raw, buffer.as_mut_ptr().cast(), buffer.len(), 0) }
    });
    outcome_of_reading(result, buffer.len())
}

/// Removes up to `most` bytes from a TCP receive queue without copying them (`MSG_TRUNC`).
///
/// This measures the network stack without the last copy. It does not transfer data, and results must mention
/// it.
///
/// # Errors
/// The connection was reset.
pub fn discard(fd: &impl AsFd, most: usize) -> Result<Moved, SockError> {
    let raw = fd.as_fd().as_raw_fd();
    let result = retry("receive and discard", || {
        // SAFETY: TCP's MSG_TRUNC accepts a null buffer; the kernel writes nothing.
        unsafe { libc::recv(raw, std::ptr::null_mut(), most, libc::MSG_TRUNC) }
    });
    outcome_of_reading(result, most)
}

/// Receives into `buffer` as [`recv`] does. Also returns when the last of these bytes arrived at this host,
/// nanoseconds of the realtime clock, if the socket has [`crate::sockopt::set_timestamping`] for received packets
/// and the kernel had enabled it by then.
///
/// # Errors
/// The connection was reset.
pub fn recv_stamped(fd: &impl AsFd, buffer: &mut [u8]) -> Result<(Moved, Option<u64>), SockError> {
    let length = buffer.len();
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
    let mut control = [0u64; STAMP_WORDS];
    // SAFETY: all zero is a valid msghdr: null pointers with length 0.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    let raw = fd.as_fd().as_raw_fd();
    let result = retry("receive", || {
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the header points to `part`, which describes `buffer`, and to `control`; all are alive and
        // exclusively ours, and the kernel writes at most their lengths.
        unsafe { libc::recvmsg(raw, &raw mut header, 0) }
    });
    let moved = outcome_of_reading(result, length)?;
    let mut bytes = [0; STAMP_WORDS * size_of::<u64>()];
    for (target, word) in bytes.chunks_exact_mut(size_of::<u64>()).zip(control) {
        target.copy_from_slice(&word.to_ne_bytes());
    }
    let stamp = Ancillary::parse(cmsg::filled(&bytes, header.msg_controllen)).arrived_at_ns;
    Ok((moved, stamp.filter(|_| moved.bytes() > 0)))
}

/// Room for the control message of a timestamp (three `timespec`s and a header), and as much again.
const STAMP_WORDS: usize = 16;

/// How long a blocking receive waits before it returns [`Moved::Pending`]; `None` waits forever.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_recv_timeout(fd: &impl AsFd, timeout: Option<Duration>) -> Result<(), SockError> {
    set("set SO_RCVTIMEO", fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, timeval(timeout))
}

/// How long a blocking send waits before it returns [`Moved::Pending`]; `None` waits forever.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_send_timeout(fd: &impl AsFd, timeout: Option<Duration>) -> Result<(), SockError> {
    set("set SO_SNDTIMEO", fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, timeval(timeout))
}

/// A blocking receive waits until this number of bytes has arrived, the stream has ended, or the socket's
/// timeout has expired; the kernel does not wake the thread before. The kernel's default is 1. The mark is
/// limited to half of the receive buffer.
///
/// # Errors
/// This kind of socket does not support it.
pub fn set_low_water(fd: &impl AsFd, bytes: usize) -> Result<(), SockError> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    set("set SO_RCVLOWAT", fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// The kernel takes zero as "forever", so the shortest timeout is one microsecond.
fn timeval(timeout: Option<Duration>) -> libc::timeval {
    let us = timeout.map_or(0, |span| span.as_micros().clamp(1, i64::MAX as u128) as i64);
    libc::timeval { tv_sec: us / 1_000_000, tv_usec: us % 1_000_000 }
}

/// Makes calls on this descriptor return [`Moved::Pending`] instead of blocking, or block again.
///
/// # Errors
/// The descriptor does not support it.
pub fn set_nonblocking(fd: &impl AsFd, on: bool) -> Result<(), SockError> {
    let mut flag = libc::c_int::from(on);
    // SAFETY: FIONBIO reads one C int.
    let ret = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::FIONBIO, &raw mut flag) };
    super::call::check("set non-blocking mode", ret).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_of_nothing_is_not_the_kernels_forever() {
        assert_eq!(timeval(Some(Duration::ZERO)).tv_usec, 1);
        assert_eq!(timeval(None).tv_usec, 0);
        let time = timeval(Some(Duration::from_millis(2500)));
        assert_eq!((time.tv_sec, time.tv_usec), (2, 500_000));
    }
}
