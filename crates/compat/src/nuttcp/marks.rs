//! The retransmission marks that a transmitter writes into its blocks.

use crate::stand_in::Noted;

/// Offset of a block's mark, and of a datagram's byte count.
pub(super) const MARK_AT: usize = 24;

/// Shortest block or datagram that has room for them, bytes.
pub(super) const MARKED_LENGTH: u64 = 32;

/// The second word of the first block if the first word counts retransmissions of this connection: `RTRN`.
pub(super) const OF_CONNECTION: u32 = 0x5254_524E;

/// The same for those of the whole host: `HRTR`.
const OF_HOST: u32 = 0x4852_5452;

/// First version in which the second word of further blocks is the congestion window.
const WITH_CWND: super::NuttcpVersion = super::NuttcpVersion::new(80_000);

/// The counts of the transmitter's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marked {
    /// Segments retransmitted since the start.
    pub(super) retrans: u64,
    /// Whether they are those of the whole host.
    pub(super) of_host: bool,
    /// Congestion window, KB; absent if the transmitter does not report it.
    pub(super) cwnd: Option<u64>,
}

/// The counts of a transmitter's kernel in an interval and since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TransmitterCounts {
    pub(super) interval: Marked,
    pub(super) total: Marked,
}

impl Marked {
    /// Splits off what was added since `shown`, and updates `shown`.
    pub(super) fn take_new(self, shown: &mut u64) -> TransmitterCounts {
        let before = std::mem::replace(shown, self.retrans);
        TransmitterCounts {
            interval: Self { retrans: self.retrans.saturating_sub(before), ..self },
            total: self,
        }
    }

    /// Reads the marks of a stream; absent if its blocks have none. The first mark shows the byte order.
    pub(super) fn read(noted: &Noted, peer: super::NuttcpVersion) -> Option<Self> {
        let word = |note: &[u8; 8], at: usize, swapped: bool| {
            let bytes = [note[at], note[at + 1], note[at + 2], note[at + 3]];
            if swapped { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let orders = [false, true];
        let (swapped, kind) = orders
            .map(|swapped| (swapped, word(&noted.first, 4, swapped)))
            .into_iter()
            .find(|(_, kind)| [OF_CONNECTION, OF_HOST].contains(kind))?;
        let second = word(&noted.last, 4, swapped);
        Some(Self {
            retrans: word(&noted.last, 0, swapped).into(),
            of_host: kind == OF_HOST,
            cwnd: Some(second.into()).filter(|_| peer >= WITH_CWND && second != kind),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nuttcp::NuttcpVersion;

    const OLD: NuttcpVersion = NuttcpVersion::new(60_102);
    const NEW: NuttcpVersion = NuttcpVersion::new(80_202);

    fn read(first: &[u8; 8], last: &[u8; 8], peer: NuttcpVersion) -> Option<Marked> {
        Marked::read(&Noted { first: *first, last: *last }, peer)
    }

    #[test]
    fn a_mark_is_read_in_the_order_that_the_first_block_shows() {
        let marked = |retrans, of_host, cwnd| Some(Marked { retrans, of_host, cwnd });
        assert_eq!(read(b"\0\0\0\0NRTR", b"\x05\0\0\0\xDF\0\0\0", NEW), marked(5, false, Some(0xDF)));
        assert_eq!(read(b"\0\0\0\0RTRN", b"\0\0\x01\x02\0\0\0\xDF", NEW), marked(258, false, Some(0xDF)));
        assert_eq!(read(b"\0\0\0\0RTRH", b"\x07\0\0\0RTRH", NEW), marked(7, true, None));
        assert_eq!(read(b"\0\0\0\0NRTR", b"\x05\0\0\0\x38\x39\x3A\x3B", OLD), marked(5, false, None));
    }

    #[test]
    fn zeros_and_the_bare_pattern_tell_nothing() {
        assert_eq!(read(&[0; 8], &[0; 8], NEW), None);
        assert_eq!(read(b"89:;<=>?", b"89:;<=>?", OLD), None);
    }
}
