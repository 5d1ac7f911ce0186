//! What the queueing discipline at the root of an interface has counted.

use super::{attributes, dump, string, word};
use crate::SockError;

const TCMSG: usize = 20;
const PARENT_AT: usize = 12;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;

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
    /// The rate that it is set to, bit/s: of `tbf`, or the ceiling of the class of `htb` that carried the most.
    pub rate_bps: Option<u64>,
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
    if let Some(found) = found.as_mut().filter(|found| found.kind == "htb") {
        found.rate_bps = class_ceiling_bps(index)?;
    }
    Ok(found)
}

/// The lowest ceiling among the classes of `htb` through which nearly everything went, bit/s.
fn class_ceiling_bps(index: u32) -> Result<Option<u64>, SockError> {
    let mut about = [0; TCMSG];
    about[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut classes = Vec::new();
    dump(libc::RTM_GETTCLASS, &about, |kind, body| {
        classes.extend((kind == libc::RTM_NEWTCLASS).then(|| decode_class(body, index)).flatten());
        false
    })?;
    Ok(ceiling_of(&classes))
}

/// Bytes and ceiling of each class; a leaf's bytes are its parents' too.
fn ceiling_of(classes: &[(u64, u64)]) -> Option<u64> {
    let most = classes.iter().map(|(bytes, _)| *bytes).max()?;
    classes.iter().filter(|(bytes, _)| *bytes >= most / 10 * 9).map(|(_, ceiling)| *ceiling).min()
}

/// Bytes and ceiling, bit/s, of a class of `htb`.
///
/// # Source
/// `linux/pkt_sched.h`: `tc_htb_opt`, `TCA_HTB_*`
fn decode_class(body: &[u8], index: u32) -> Option<(u64, u64)> {
    const PARAMETERS: u16 = 1;
    const CEILING_AT: usize = 20;
    const CEILING_IN_64_BITS: u16 = 7;
    if word(body, 4) != Some(index) {
        return None;
    }
    let rest = body.get(TCMSG..)?;
    let options = find(rest, libc::TCA_OPTIONS)
        .filter(|_| find(rest, TCA_KIND).map(string).as_deref() == Some("htb"))?;
    let ceiling = bytes_per_s(options, PARAMETERS, CEILING_AT, CEILING_IN_64_BITS)?;
    let bytes = find(find(rest, TCA_STATS2)?, TCA_STATS_BASIC)?.first_chunk()?;
    Some((u64::from_ne_bytes(*bytes), ceiling.saturating_mul(8)))
}

/// A rate as the kernel's schedulers tell it: 32 bits in a structure, 64 where those do not hold it.
fn bytes_per_s(options: &[u8], parameters: u16, at: usize, in_64_bits: u16) -> Option<u64> {
    let large = find(options, in_64_bits).and_then(|value| Some(u64::from_ne_bytes(*value.first_chunk()?)));
    large.or_else(|| word(find(options, parameters)?, at).map(u64::from))
}

fn find(from: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(from).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

fn decode(body: &[u8], index: u32) -> Option<QueueCounts> {
    const TCA_STATS_QUEUE: u16 = 3;
    const DROPS_AT: usize = 8;
    // `linux/pkt_sched.h`: tc_tbf_qopt, TCA_TBF_*
    const TBF_PARAMETERS: u16 = 1;
    const TBF_RATE_AT: usize = 8;
    const TBF_RATE_IN_64_BITS: u16 = 4;
    if word(body, 4) != Some(index) || word(body, PARENT_AT) != Some(TC_H_ROOT) {
        return None;
    }
    let rest = body.get(TCMSG..)?;
    let kind = string(find(rest, TCA_KIND)?);
    // It has no queue, so nothing is counted.
    if kind == "noqueue" {
        return None;
    }
    let stats = find(rest, TCA_STATS2)?;
    let basic = find(stats, TCA_STATS_BASIC)?;
    let bytes = u64::from_ne_bytes(*basic.first_chunk()?);
    let dropped = find(stats, TCA_STATS_QUEUE).and_then(|queue| word(queue, DROPS_AT)).unwrap_or_default();
    let rate_bps = find(rest, libc::TCA_OPTIONS)
        .filter(|_| kind == "tbf")
        .and_then(|options| bytes_per_s(options, TBF_PARAMETERS, TBF_RATE_AT, TBF_RATE_IN_64_BITS))
        .map(|rate| rate.saturating_mul(8));
    Some(QueueCounts { kind, bytes, packets: word(basic, 8)?, dropped, rate_bps })
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
        let expected = QueueCounts {
            kind: "fq".to_owned(),
            bytes: 5_000_000_000,
            packets: 77,
            dropped: 3,
            rate_bps: None,
        };
        assert_eq!(decode(&message(4, u32::MAX, b"fq\0"), 4), Some(expected));
        assert_eq!(decode(&message(4, 0x1_0000, b"fq\0"), 4), None);
        assert_eq!(decode(&message(5, u32::MAX, b"fq\0"), 4), None);
        assert_eq!(decode(&message(4, u32::MAX, b"noqueue\0"), 4), None, "it has no queue");
    }

    #[test]
    fn the_rate_of_a_token_bucket_is_read_in_32_and_in_64_bits() {
        for rate in [6_250_000u64, 6_250_000_000] {
            let mut body = message(4, u32::MAX, b"tbf\0");
            body.extend(attribute(2, &crate::routing::token_bucket_options(rate, 32_000, 100_000)));
            assert_eq!(decode(&body, 4).unwrap().rate_bps, Some(8 * rate));
        }
        let mut body = message(4, u32::MAX, b"tbf\0");
        let parameters = [&[0; 8][..], &6_250_000u32.to_ne_bytes(), &[0; 24]].concat();
        body.extend(attribute(2, &attribute(1, &parameters)));
        assert_eq!(decode(&body, 4).unwrap().rate_bps, Some(50_000_000), "as tc sets it below 2^32 bytes/s");
    }

    #[test]
    fn the_class_that_carries_the_flow_tells_the_rate() {
        // The root class, the flow's leaf below it, and a leaf that carries little.
        assert_eq!(
            ceiling_of(&[(1000, 1_000_000_000), (990, 20_000_000), (10, 1_000_000)]),
            Some(20_000_000)
        );
        assert_eq!(ceiling_of(&[]), None);
        let mut body = message(4, 0x1_0000, b"htb\0");
        let parameters = [&[0; 20][..], &2_500_000u32.to_ne_bytes(), &[0; 20]].concat();
        body.extend(attribute(2, &attribute(1, &parameters)));
        assert_eq!(decode_class(&body, 4), Some((5_000_000_000, 20_000_000)));
        assert_eq!(decode_class(&body, 5), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..150)) {
            let _ = (decode(&bytes, 0), decode_class(&bytes, 0));
        }
    }
}
