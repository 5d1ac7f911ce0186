//! One function per socket option. [`crate::options`] applies those that must precede the handshake.

pub use crate::system::sockopt::*;

/// A flow label in the format of a socket address: network byte order, the upper 12 bits zero.
#[must_use]
pub fn flow_info(label: u32) -> u32 {
    (label & 0x000f_ffff).to_be()
}

/// Packets to timestamp in software, with the realtime clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamping {
    /// Received packets, on entry from the driver; the timestamp is a control message of the datagram.
    pub receive: bool,
    /// Sent packets, when passed to the driver; the timestamp arrives in [`crate::errqueue`], numbered per
    /// datagram.
    pub send: bool,
    /// Bytes of TCP, when the peer has acknowledged them.
    pub acknowledged: bool,
}

/// The memory of a socket for what it has received, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveMemory {
    /// Taken by everything that the program has not read: with the kernel's own data of each packet, and with TCP
    /// segments that wait for a missing one.
    pub taken: u32,
    /// The receive buffer, as SO_RCVBUF reads it.
    pub buffer: u32,
}
