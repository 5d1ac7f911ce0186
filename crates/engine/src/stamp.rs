//! The header of a datagram, written and read where the layout says.

use linerate_proto::{SeqField, StampLayout, TimeForm};

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
    if let Some(at) = layout.tag_at {
        put(datagram, at, &tag);
    }
}

/// Writes what differs from datagram to datagram.
#[inline]
pub(crate) fn write(datagram: &mut [u8], layout: &StampLayout, stream: u32, stamp: Stamp) {
    match layout.seq {
        SeqField::Wide { at, first } => put(datagram, at, &stamp.seq.wrapping_add(first).to_be_bytes()),
        SeqField::Narrow { at, first } | SeqField::Signed { at, first } => {
            put(datagram, at, &(stamp.seq.wrapping_add(first) as u32).to_be_bytes());
        }
        SeqField::Halves { low_at, high_at, first } => {
            let seq = stamp.seq.wrapping_add(first);
            put(datagram, low_at, &(seq as u32).to_be_bytes());
            put(datagram, high_at, &((seq >> 32) as u32).to_be_bytes());
        }
        SeqField::Bytes { at } => {
            let sent = stamp.seq.wrapping_add(1).wrapping_mul(datagram.len() as u64);
            put(datagram, at, &sent.to_le_bytes());
        }
        SeqField::Absent => {}
    }
    if let Some(time) = layout.time {
        match time.form {
            TimeForm::Nanoseconds => put(datagram, time.at, &stamp.sent_ns.to_be_bytes()),
            TimeForm::Monotonic | TimeForm::Wall => {
                let (seconds, rest) = (stamp.sent_ns / 1_000_000_000, stamp.sent_ns % 1_000_000_000);
                put(datagram, time.at, &(seconds as u32).to_be_bytes());
                put(datagram, time.at + 4, &((rest / 1000) as u32).to_be_bytes());
            }
        }
    }
    if let Some(at) = layout.stream_at {
        put(datagram, at, &stream.to_be_bytes());
    }
}

/// Reads a datagram; absent when it is not of this test.
#[inline]
pub(crate) fn read(datagram: &[u8], layout: &StampLayout, tag: [u8; 8]) -> Option<Stamp> {
    if datagram.len() < layout.length || layout.tag_at.is_some_and(|at| get(datagram, at) != Some(tag)) {
        return None;
    }
    let narrow = |at| get(datagram, at).map(u32::from_be_bytes);
    let seq = match layout.seq {
        SeqField::Wide { at, first } => u64::from_be_bytes(get(datagram, at)?).wrapping_sub(first),
        SeqField::Narrow { at, first } | SeqField::Signed { at, first } => {
            u64::from(narrow(at)?.wrapping_sub(first as u32))
        }
        SeqField::Halves { low_at, high_at, first } => {
            (u64::from(narrow(high_at)?) << 32 | u64::from(narrow(low_at)?)).wrapping_sub(first)
        }
        SeqField::Bytes { at } => {
            (u64::from_le_bytes(get(datagram, at)?) / datagram.len().max(1) as u64).wrapping_sub(1)
        }
        SeqField::Absent => 0,
    };
    let sent_ns = match layout.time {
        None => 0,
        Some(time) => match time.form {
            TimeForm::Nanoseconds => u64::from_be_bytes(get(datagram, time.at)?),
            TimeForm::Monotonic | TimeForm::Wall => {
                u64::from(narrow(time.at)?) * 1_000_000_000 + u64::from(narrow(time.at + 4)?) * 1000
            }
        },
    };
    Some(Stamp { seq, sent_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_proto::TimeField;
    use proptest::prelude::*;

    const LAYOUT: StampLayout = StampLayout {
        tag_at: Some(0),
        seq: SeqField::Wide { at: 8, first: 0 },
        time: Some(TimeField { at: 16, form: TimeForm::Nanoseconds }),
        stream_at: Some(24),
        length: 32,
    };
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
            form in 0usize..5,
        ) {
            let seq = [
                SeqField::Wide { at: at / 2, first: 1 },
                SeqField::Narrow { at: at / 2, first: 1 },
                SeqField::Halves { low_at: at, high_at: at / 2, first: 1 },
                SeqField::Bytes { at },
                SeqField::Absent,
            ][form];
            let time = Some(TimeField { at, form: [TimeForm::Nanoseconds, TimeForm::Wall][form % 2] });
            let layout = StampLayout { tag_at: Some(at), seq, time, stream_at: Some(at), length };
            write(&mut bytes, &layout, 1, Stamp { seq: 1, sent_ns: 1 });
            let _ = read(&bytes, &layout, TAG);
        }
    }
}
