//! How a pump waits for the sockets of its streams.

use linerate_sock::handle::{AsFd, BorrowedFd};
use linerate_sock::poll::{Events, Interest, Poller, poll_few};
use linerate_sock::{Mono, SockError};

/// Most sockets served between two checks for orders.
const EVENTS: usize = 256;

/// How a pump waits for the sockets of its streams.
pub(super) enum SocketWait {
    /// In the receive call of its only socket.
    Direct,
    /// Not at all.
    Spin,
    /// For one socket.
    One,
    /// For many.
    Many { poller: Poller, events: Events },
}

impl SocketWait {
    /// `direct` and `spin` say how the sockets were prepared.
    pub(super) fn new(direct: bool, spin: bool, sockets: &[BorrowedFd<'_>]) -> Result<Self, SockError> {
        if direct {
            return Ok(Self::Direct);
        }
        if spin {
            return Ok(Self::Spin);
        }
        if sockets.len() == 1 {
            return Ok(Self::One);
        }
        let poller = Poller::new()?;
        for (index, socket) in sockets.iter().enumerate() {
            poller.add(socket, index as u64, Interest::READ)?;
        }
        Ok(Self::Many { poller, events: Events::with_capacity(EVENTS) })
    }

    /// Changes what one of many sockets is waited for.
    pub(super) fn watch(&self, index: usize, socket: &impl AsFd, writes: bool) -> Result<(), SockError> {
        let Self::Many { poller, .. } = self else { return Ok(()) };
        poller.modify(socket, index as u64, if writes { Interest::BOTH } else { Interest::READ })
    }

    /// Stops waiting for one of many sockets.
    pub(super) fn forget(&self, socket: &impl AsFd) {
        if let Self::Many { poller, .. } = self {
            // Fails only for a socket that is no longer registered.
            let _ = poller.remove(socket);
        }
    }

    /// Waits until `deadline` at the latest, and puts the indices of the streams to serve into `ready`. `writes`
    /// says whether the only socket is also waited for to be writable.
    pub(super) fn wait(
        &mut self,
        socket: &impl AsFd,
        writes: bool,
        deadline: Mono,
        ready: &mut Vec<usize>,
        streams: usize,
    ) -> Result<(), SockError> {
        ready.clear();
        match self {
            Self::Direct if !writes => ready.push(0),
            Self::Direct | Self::One => {
                let interest = if writes { Interest::BOTH } else { Interest::READ };
                poll_few(&[(socket.as_fd(), interest)], deadline)?;
                ready.push(0);
            }
            Self::Spin => ready.extend(0..streams),
            Self::Many { poller, events } => {
                poller.wait_ns(events, deadline)?;
                ready.extend(events.iter().map(|event| event.token as usize));
            }
        }
        Ok(())
    }
}
