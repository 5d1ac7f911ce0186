//! Moves bytes through connected sockets: each call has one outcome.

use crate::SockError;
use crate::system::error_codes::is_pending;

pub use crate::system::stream::{
    discard, recv, recv_stamped, send, send_parts, send_repeated, send_urgent, set_low_water,
    set_nonblocking, set_recv_timeout, set_send_timeout,
};

/// Most repetitions in one call of [`send_repeated`].
pub const MAX_PARTS: usize = 16;

/// Outcome of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Number of bytes, at least one (for datagrams possibly zero).
    Bytes(usize),
    /// Nothing: a non-blocking socket would block, or the socket's timeout expired.
    Pending,
    /// The peer has closed its side: no more bytes will arrive.
    Closed,
}

impl Moved {
    /// The number of bytes, 0 for the other outcomes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Pending | Self::Closed => 0,
        }
    }
}

/// Converts "would block" to an outcome; all other errors remain errors.
pub(crate) fn outcome(result: Result<usize, SockError>) -> Result<Moved, SockError> {
    match result {
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(error) if is_pending(&error.source) => Ok(Moved::Pending),
        Err(error) => Err(error),
    }
}

/// As [`outcome`], but zero bytes mean the end of the stream.
pub(crate) fn outcome_of_reading(result: Result<usize, SockError>, asked: usize) -> Result<Moved, SockError> {
    match outcome(result)? {
        Moved::Bytes(0) if asked > 0 => Ok(Moved::Closed),
        moved => Ok(moved),
    }
}
