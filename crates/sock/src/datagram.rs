//! A received datagram, and what the kernel says about it.

use std::net::{IpAddr, SocketAddr};

/// Metadata of a received datagram; each only if the corresponding socket option is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ancillary {
    /// Size of the merged datagrams in bytes (the last may be shorter); absent for a single one.
    pub segment_size: Option<u16>,
    /// Receive time, nanoseconds of the realtime clock.
    pub arrived_at_ns: Option<u64>,
    /// Datagrams that this socket has dropped so far for lack of buffer space; wraps at 2^32.
    pub dropped: Option<u32>,
    /// Traffic-class byte of the packet, with ECN in its lowest two bits.
    pub tos: Option<u8>,
    /// The address of this host that it was sent to, if an answer can come from there; IPv4 addresses on a socket of IPv6
    /// are mapped.
    pub destination: Option<IpAddr>,
}

/// One received datagram, or several merged by the kernel (GRO).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// The received bytes.
    pub bytes: &'a [u8],
    /// Its length; larger than `bytes` if the buffer was too small.
    pub length: usize,
    /// Source address.
    pub source: Option<SocketAddr>,
    /// The kernel's control messages.
    pub ancillary: Ancillary,
}

impl<'a> Datagram<'a> {
    /// Size of the merged datagrams, or the length of a single one.
    #[must_use]
    pub fn segment_size(&self) -> usize {
        self.ancillary.segment_size.map_or(self.length, usize::from)
    }

    /// Number of datagrams in this message.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.length.div_ceil(self.segment_size().max(1)).max(1)
    }

    /// Number of datagrams before the last `rest` received bytes, which begin with a datagram; all of them if there is no
    /// rest of a message with payload.
    #[must_use]
    pub fn split_before(&self, rest: usize) -> usize {
        (self.bytes.len().saturating_sub(rest)).div_ceil(self.segment_size().max(1))
    }

    /// The individual datagrams, as far as they were received. A datagram without payload is one, too.
    pub fn split(&self) -> impl Iterator<Item = &'a [u8]> {
        let empty = (self.length == 0).then_some(&[][..]);
        self.bytes.chunks(self.segment_size().max(1)).chain(empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(length: usize, segment_size: Option<u16>, bytes: &[u8]) -> Datagram<'_> {
        let ancillary = Ancillary { segment_size, ..Ancillary::default() };
        Datagram { bytes, length, source: None, ancillary }
    }

    #[test]
    fn joined_datagrams_are_counted_and_split_at_their_size() {
        let joined = datagram(10, Some(4), b"aaaabbbbcc");
        assert_eq!(joined.segments(), 3);
        assert_eq!(joined.split().collect::<Vec<_>>(), [&b"aaaa"[..], b"bbbb", b"cc"]);
        assert_eq!(datagram(10, None, b"aaaabbbbcc").segments(), 1);
        assert_eq!(datagram(0, None, b"").segments(), 1, "an empty datagram is one");
        assert_eq!(datagram(0, None, b"").split().collect::<Vec<_>>(), [b""]);
        assert_eq!(datagram(9, Some(0), b"").segments(), 9, "nonsense does not divide by zero");
    }
}
