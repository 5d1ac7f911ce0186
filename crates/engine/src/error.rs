//! Errors that prevent the start of a flow.

use linerate_sock::SockError;

/// Why a flow could not be started. Later failures are in the tally.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The caller passed no socket.
    #[error("the flow has no socket; open at least one stream")]
    NoSockets,
    /// The datagram is shorter than its header.
    #[error("a datagram of {length} bytes is too short for its header of {needed}; give a larger -l")]
    DatagramTooShort {
        /// Bytes of the datagram.
        length: usize,
        /// Bytes that the header needs.
        needed: usize,
    },
    /// A block is longer than the engine allows.
    #[error("blocks of {length} bytes are longer than {most}; give a smaller -l")]
    BlockTooLong {
        /// Bytes of the block.
        length: u64,
        /// Most bytes.
        most: u64,
    },
    /// A flow has more streams than the engine serves.
    #[error("{streams} streams in one flow are more than {most}; give a smaller -P")]
    TooManyStreams {
        /// Streams of the flow.
        streams: usize,
        /// Most streams.
        most: usize,
    },
    /// Some streams are encrypted and others are not.
    #[error("{channels} of {streams} streams are encrypted; all of them have to be, or none")]
    Channels {
        /// Streams with a channel.
        channels: usize,
        /// All of them.
        streams: usize,
    },
    /// This host refused a setting that the flow requires.
    #[error("this host could not prepare the data sockets")]
    Sock(#[from] SockError),
    /// This host could not create a thread.
    #[error("this host could not start a data thread: {}", .0.source)]
    Thread(#[source] SockError),
}
