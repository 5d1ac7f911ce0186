//! A socket's error queue, where the kernel reports on sent packets.

pub use crate::system::errqueue::*;

/// Where a sent packet was timestamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampPoint {
    /// On entry to the queueing discipline.
    Scheduled,
    /// When passed to the driver.
    Sent,
    /// On acknowledgement by the peer (TCP).
    Acknowledged,
}

/// A report on something that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The kernel no longer uses the buffers of these zero-copy sends, counted from 0 per socket.
    ZeroCopy {
        /// First completed send.
        first: u32,
        /// Last completed send.
        last: u32,
        /// Whether the kernel copied the bytes after all.
        copied: bool,
    },
    /// The timestamp of a packet.
    Timestamp {
        /// Number of the datagram on its socket, from 0; for TCP the number of the last byte.
        id: u32,
        /// Nanoseconds of the realtime clock.
        at_ns: u64,
        /// Where it was timestamped.
        stage: TimestampPoint,
    },
    /// An ICMP message from a router or the peer; only with `IP_RECVERR`.
    Icmp {
        /// The corresponding error of a socket call.
        errno: i32,
        /// ICMP type.
        kind: u8,
        /// ICMP code.
        code: u8,
        /// MTU in bytes for "too big" messages.
        info: u32,
    },
}
