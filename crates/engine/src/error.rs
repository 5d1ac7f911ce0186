//! Why a flow could not be started.

use std::io;

use linerate_sock::SockError;

/// Why a flow could not be started. What goes wrong later is in the tally.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The caller gave no socket.
    #[error("the flow has no socket; open at least one stream")]
    NoSockets,
    /// The datagram is shorter than its header.
    #[error("a datagram of {length} bytes cannot hold its header of {needed}; ask for longer ones with -l")]
    DatagramTooShort {
        /// Bytes of the datagram.
        length: usize,
        /// Bytes that the header needs.
        needed: usize,
    },
    /// This host refused a setting without which the flow cannot run.
    #[error("this host could not prepare the data sockets")]
    Sock(#[from] SockError),
    /// This host refused a thread.
    #[error("this host could not start a data thread; raise its limit of processes (ulimit -u)")]
    Thread(#[source] io::Error),
}
