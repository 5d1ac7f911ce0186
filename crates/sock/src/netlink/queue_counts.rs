//! What the queueing discipline at the root of an interface has counted.

use super::{attributes, dump, string, word};
use crate::SockError;

const TCMSG: usize = 20;
const PARENT_AT: usize = 12;
const TC_H_ROOT: u32 = u32::MAX;

/// Counts of a queueing discipline since it was made.
///
/// Bytes and packets are those that have left it, each segment of a bundle with headers of its own.
///
/// # Source
/// `linux/gen_stats.h`: `TCA_STATS_BASIC`, `TCA_STATS_QUEUE`; packets and drops are of 32 bits there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Its name: "fq", "pfifo_fast".
    pub kind: String,
    /// Bytes, with the link-layer header.
    pub bytes: u64,
    /// Packets, wrapping.
    pub packets: u32,
    /// Packets thrown away, wrapping.
    pub dropped: u32,
}

/// Looks up the one at the root of an interface; absent where there is none that counts.
pub(crate) fn root_counts(index: u32) -> Result<Option<QueueCounts>, SockError> {
    let mut found = None;
    dump(libc::RTM_GETQDISC, &[0; TCMSG], |kind, body| {
        if kind == libc::RTM_NEWQDISC && found.is_none() {
            found = decode(body, index);
        }
        found.is_some()
    })?;
    Ok(found)
}

fn decode(body: &[u8], index: u32) -> Option<QueueCounts> {
    const TCA_KIND: u16 = 1;
    const TCA_STATS2: u16 = 7;
    const TCA_STATS_BASIC: u16 = 1;
    const TCA_STATS_QUEUE: u16 = 3;
    const DROPS_AT: usize = 8;
    if word(body, 4) != Some(index) || word(body, PARENT_AT) != Some(TC_H_ROOT) {
        return None;
    }
    let rest = body.get(TCMSG..)?;
    let find = |from, wanted: u16| attributes(from).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let kind = string(find(rest, TCA_KIND)?);
    // It has no queue, so nothing is counted.
    if kind == "noqueue" {
        return None;
    }
    let stats = find(rest, TCA_STATS2)?;
    let basic = find(stats, TCA_STATS_BASIC)?;
    let bytes = u64::from_ne_bytes(*basic.first_chunk()?);
    let dropped = find(stats, TCA_STATS_QUEUE).and_then(|queue| word(queue, DROPS_AT)).unwrap_or_default();
    Some(QueueCounts { kind, bytes, packets: word(basic, 8)?, dropped })
}

#[cfg(test)]
mod tests {
    use super::super::attribute;
    use super::*;
    use proptest::prelude::*;

    fn message(index: u32, parent: u32, kind: &[u8]) -> Vec<u8> {
        let mut body = vec![0; TCMSG];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body[12..16].copy_from_slice(&parent.to_ne_bytes());
        let basic = [&5_000_000_000u64.to_ne_bytes()[..], &77u32.to_ne_bytes(), &[0; 4]].concat();
        let queue: Vec<u8> = [1u32, 2, 3, 4, 5].iter().flat_map(|number| number.to_ne_bytes()).collect();
        body.extend(attribute(1, kind));
        body.extend(attribute(7, &[attribute(1, &basic), attribute(3, &queue)].concat()));
        body
    }

    #[test]
    fn only_the_root_of_the_interface_counts() {
        let expected = QueueCounts { kind: "fq".to_owned(), bytes: 5_000_000_000, packets: 77, dropped: 3 };
        assert_eq!(decode(&message(4, u32::MAX, b"fq\0"), 4), Some(expected));
        assert_eq!(decode(&message(4, 0x1_0000, b"fq\0"), 4), None);
        assert_eq!(decode(&message(5, u32::MAX, b"fq\0"), 4), None);
        assert_eq!(decode(&message(4, u32::MAX, b"noqueue\0"), 4), None, "it has no queue");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..150)) {
            let _ = decode(&bytes, 0);
        }
    }
}
