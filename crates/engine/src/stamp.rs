//! The header of a datagram, written and read where the layout says.

use linerate_proto::StampLayout;

/// What a datagram says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Number within its stream, from 0.
    pub(crate) seq: u64,
    /// When it was sent, ns of the sender's monotonic clock.
    pub(crate) sent_ns: u64,
}

fn put(datagram: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(field) = datagram.get_mut(at..at + bytes.len()) {
        field.copy_from_slice(bytes);
    }
}

fn get<const N: usize>(datagram: &[u8], at: usize) -> Option<[u8; N]> {
    datagram.get(at..)?.first_chunk().copied()
}

/// Writes what stays the same for every datagram of a test.
pub(crate) fn write_tag(datagram: &mut [u8], layout: &StampLayout, tag: [u8; 8]) {
    put(datagram, layout.tag_at, &tag);
}

/// Writes what differs from datagram to datagram.
#[inline]
pub(crate) fn write(datagram: &mut [u8], layout: &StampLayout, stream: u32, stamp: Stamp) {
    put(datagram, layout.seq_at, &stamp.seq.to_be_bytes());
    put(datagram, layout.time_at, &stamp.sent_ns.to_be_bytes());
    put(datagram, layout.stream_at, &stream.to_be_bytes());
}

/// Reads a datagram; absent when it is not of this test.
#[inline]
pub(crate) fn read(datagram: &[u8], layout: &StampLayout, tag: [u8; 8]) -> Option<Stamp> {
    if datagram.len() < layout.length || get(datagram, layout.tag_at) != Some(tag) {
        return None;
    }
    Some(Stamp {
        seq: u64::from_be_bytes(get(datagram, layout.seq_at)?),
        sent_ns: u64::from_be_bytes(get(datagram, layout.time_at)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAYOUT: StampLayout = StampLayout { tag_at: 0, seq_at: 8, time_at: 16, stream_at: 24, length: 32 };
    const TAG: [u8; 8] = *b"thistest";

    #[test]
    fn the_fields_stand_where_the_layout_says_most_significant_byte_first() {
        let mut datagram = [0; 40];
        write_tag(&mut datagram, &LAYOUT, TAG);
        let stamp = Stamp { seq: 0x0102, sent_ns: 0x0304_0506_0708_090A };
        write(&mut datagram, &LAYOUT, 7, stamp);
        assert_eq!(datagram[..16], *b"thistest\0\0\0\0\0\0\x01\x02");
        assert_eq!(datagram[16..28], [3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 7]);
        assert_eq!(read(&datagram, &LAYOUT, TAG), Some(stamp));
        assert_eq!(read(&datagram, &LAYOUT, *b"another!"), None);
        assert_eq!(read(&datagram[..31], &LAYOUT, TAG), None, "too short to be ours");
    }

    proptest! {
        #[test]
        fn no_bytes_and_no_layout_make_it_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..60), at in 0usize..80, length in 0usize..80,
        ) {
            let layout = StampLayout { tag_at: at, seq_at: at / 2, time_at: at, stream_at: at, length };
            write(&mut bytes, &layout, 1, Stamp { seq: 1, sent_ns: 1 });
            let _ = read(&bytes, &layout, TAG);
        }
    }
}
