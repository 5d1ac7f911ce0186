//! Moves bytes through connected sockets, with the calls of socket2.

use std::io::{self, IoSlice, Read};
use std::time::Duration;

use socket2::SockRef;

use super::error_codes::unsupported;
use crate::SockError;
use crate::handle::AsFd;
use crate::stream::{MAX_PARTS, Moved, outcome, outcome_of_reading};

/// Repeats a call that a signal interrupted.
fn retry(op: &'static str, mut call: impl FnMut() -> io::Result<usize>) -> Result<usize, SockError> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map_err(|source| SockError::new(op, source)),
        }
    }
}

/// Sends from `bytes`; may send fewer. On a datagram socket the slice is one datagram.
///
/// # Errors
/// The connection is closed, or a datagram is refused (too long, or the peer's port was unreachable).
pub fn send(fd: &impl AsFd, bytes: &[u8]) -> Result<Moved, SockError> {
    let fd = fd.as_fd();
    let socket = SockRef::from(&fd);
    outcome(retry("send", || socket.send(bytes)))
}

/// Sends `bytes` `times` times in a row, at most [`MAX_PARTS`] times; may send fewer bytes.
///
/// # Errors
/// As [`send`].
pub fn send_repeated(fd: &impl AsFd, bytes: &[u8], times: usize) -> Result<Moved, SockError> {
    let parts = [IoSlice::new(bytes); MAX_PARTS];
    let fd = fd.as_fd();
    let socket = SockRef::from(&fd);
    outcome(retry("send", || socket.send_vectored(&parts[..times.min(MAX_PARTS)])))
}

/// Sends from several slices in a row, at most the first [`MAX_PARTS`]; may send fewer bytes.
///
/// # Errors
/// As [`send`].
pub fn send_parts(fd: &impl AsFd, parts: &[IoSlice<'_>]) -> Result<Moved, SockError> {
    let fd = fd.as_fd();
    let socket = SockRef::from(&fd);
    outcome(retry("send", || socket.send_vectored(&parts[..parts.len().min(MAX_PARTS)])))
}

/// Sends one byte as urgent data (RFC 9293 §3.8.5), after the bytes sent before.
///
/// # Errors
/// As [`send`].
pub fn send_urgent(fd: &impl AsFd, byte: u8) -> Result<Moved, SockError> {
    let fd = fd.as_fd();
    let socket = SockRef::from(&fd);
    outcome(retry("send", || socket.send_out_of_band(&[byte])))
}

/// Receives into `buffer`. On a datagram socket an empty datagram reads as [`Moved::Closed`].
///
/// # Errors
/// The connection was reset.
pub fn recv(fd: &impl AsFd, buffer: &mut [u8]) -> Result<Moved, SockError> {
    let fd = fd.as_fd();
    let socket = SockRef::from(&fd);
    let asked = buffer.len();
    outcome_of_reading(retry("receive", || (&*socket).read(buffer)), asked)
}

/// Removes bytes from a TCP receive queue without copying them.
///
/// # Errors
/// Always: this system copies what is received.
pub fn discard(_fd: &impl AsFd, _most: usize) -> Result<Moved, SockError> {
    Err(unsupported("receive and discard"))
}

/// Receives into `buffer` as [`recv`] does; the time of arrival is absent.
///
/// # Errors
/// The connection was reset.
pub fn recv_stamped(fd: &impl AsFd, buffer: &mut [u8]) -> Result<(Moved, Option<u64>), SockError> {
    recv(fd, buffer).map(|moved| (moved, None))
}

/// How long a blocking receive waits before it returns [`Moved::Pending`]; `None` waits forever.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_recv_timeout(fd: &impl AsFd, timeout: Option<Duration>) -> Result<(), SockError> {
    let fd = fd.as_fd();
    let set = SockRef::from(&fd).set_read_timeout(timeout.map(not_forever));
    set.map_err(|source| SockError::new("set SO_RCVTIMEO", source))
}

/// How long a blocking send waits before it returns [`Moved::Pending`]; `None` waits forever.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_send_timeout(fd: &impl AsFd, timeout: Option<Duration>) -> Result<(), SockError> {
    let fd = fd.as_fd();
    let set = SockRef::from(&fd).set_write_timeout(timeout.map(not_forever));
    set.map_err(|source| SockError::new("set SO_SNDTIMEO", source))
}

/// Zero means "forever", so the shortest timeout is what the system can still tell from it.
fn not_forever(timeout: Duration) -> Duration {
    timeout.max(if cfg!(windows) { Duration::from_millis(1) } else { Duration::from_micros(1) })
}

/// A blocking receive waits until this number of bytes has arrived.
///
/// # Errors
/// Always: it is not implemented for this system.
pub fn set_low_water(_fd: &impl AsFd, _bytes: usize) -> Result<(), SockError> {
    Err(unsupported("set SO_RCVLOWAT"))
}

/// Makes calls on this descriptor return [`Moved::Pending`] instead of blocking, or block again.
///
/// # Errors
/// The descriptor does not support it.
pub fn set_nonblocking(fd: &impl AsFd, on: bool) -> Result<(), SockError> {
    let fd = fd.as_fd();
    let set = SockRef::from(&fd).set_nonblocking(on);
    set.map_err(|source| SockError::new("set non-blocking mode", source))
}
