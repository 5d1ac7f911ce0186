//! Waiting for descriptors, many or a few, and waking the thread that waits.

use crate::SockError;
use crate::clock::Mono;
use crate::handle::AsFd;

pub use crate::system::poll::{EventFd, Events, Poller, poll_few};

/// Events to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Wake when a read would not block.
    pub read: bool,
    /// Wake when a write would not block.
    pub write: bool,
}

impl Interest {
    /// Reading only.
    pub const READ: Self = Self { read: true, write: false };
    /// Writing only.
    pub const WRITE: Self = Self { read: false, write: true };
    /// Both.
    pub const BOTH: Self = Self { read: true, write: true };
    /// Errors only (they are always reported), for example the error queue of a socket.
    pub const ERROR: Self = Self { read: false, write: false };
}

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token it was added with.
    pub token: u64,
    /// A read would not block (bytes, end of stream, or an error).
    pub read: bool,
    /// A write would not block.
    pub write: bool,
    /// An error, or something in the error queue.
    pub error: bool,
    /// The connection is closed in both directions.
    pub hang_up: bool,
}

/// Waits for one descriptor; false at the deadline. Has the accuracy of the kernel's timers.
///
/// # Errors
/// None is expected.
pub fn wait_for(fd: &impl AsFd, interest: Interest, deadline: Mono) -> Result<bool, SockError> {
    let ready = poll_few(&[(fd.as_fd(), interest)], deadline)?;
    Ok(ready.first().copied().unwrap_or(false))
}
