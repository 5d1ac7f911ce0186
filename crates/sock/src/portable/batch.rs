//! Datagrams, one in each call.

use std::mem::MaybeUninit;
use std::net::SocketAddr;

use socket2::SockRef;

use super::error_codes::{is_too_long, unsupported};
use crate::SockError;
use crate::datagram::{Ancillary, Datagram};
use crate::handle::AsFd;
use crate::stream::{Moved, outcome};

/// Sends `bytes` as datagrams of `segment_size` bytes each, cut by the kernel.
///
/// # Errors
/// Always: this system does not cut datagrams. [`SockError::refuses_segments`] says so, and whole datagrams pass.
pub fn send_segments(_fd: &impl AsFd, _bytes: &[u8], _segment_size: u16) -> Result<Moved, SockError> {
    Err(unsupported("send segments"))
}

/// A received datagram, in memory of its own.
#[derive(Debug)]
pub struct RecvBatch {
    /// One byte more than the room for a datagram shows that a datagram was longer.
    bytes: Vec<u8>,
    /// Received bytes, which are one more than the room if the datagram was longer, and where they are from.
    received: Option<(usize, Option<SocketAddr>)>,
}

impl RecvBatch {
    /// Allocates a datagram of `bytes_each` bytes; this system receives only one of the `messages` in a call.
    #[must_use]
    pub fn new(_messages: usize, bytes_each: usize) -> Self {
        Self { bytes: vec![0; bytes_each + 1], received: None }
    }

    /// Waits for one datagram according to the socket's mode and timeout, and returns the number of messages; 0 if
    /// there was none.
    ///
    /// # Errors
    /// The peer of a connected socket answered "port unreachable".
    pub fn recv(&mut self, fd: &impl AsFd) -> Result<usize, SockError> {
        self.received = None;
        let fd = fd.as_fd();
        let socket = SockRef::from(&fd);
        let length = self.bytes.len();
        // SAFETY: initialised bytes are valid as possibly uninitialised ones, and socket2 writes only received bytes.
        let buffer = unsafe {
            std::slice::from_raw_parts_mut(self.bytes.as_mut_ptr().cast::<MaybeUninit<u8>>(), length)
        };
        let received = match socket.recv_from(buffer) {
            Ok((received, source)) => Ok((received, source.as_socket())),
            Err(error) if is_too_long(&error) => Ok((length, None)),
            Err(error) => Err(SockError::new("receive a datagram", error)),
        };
        match received {
            Ok(datagram) => {
                self.received = Some(datagram);
                Ok(1)
            }
            Err(error) => outcome(Err(error)).map(|_| 0),
        }
    }

    /// The message of the last call; `None` beyond what it returned.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Datagram<'_>> {
        let (length, source) = self.received.filter(|_| index == 0)?;
        let bytes = &self.bytes[..length.min(self.bytes.len() - 1)];
        Some(Datagram { bytes, length, source, ancillary: Ancillary::default() })
    }

    /// The messages of the last call.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.get(0).into_iter()
    }
}
