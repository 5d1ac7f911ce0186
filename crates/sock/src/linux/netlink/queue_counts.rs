//! Counters of the queueing discipline at the root of an interface.

use super::{attributes, dump, string, word};
use crate::SockError;
use crate::iface::{ClassCounts, QueueCounts, TokenBucket};

const TCMSG: usize = 20;
const PARENT_AT: usize = 12;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;

/// Counters of the root discipline of an interface; absent if there is none with counters.
pub(crate) fn root_counts(index: u32) -> Result<Option<QueueCounts>, SockError> {
    let mut found = of_root(index, decode)?;
    if let Some(found) = found.as_mut().filter(|found| found.kind == "htb") {
        found.classes = classes(index)?;
    }
    Ok(found)
}

/// Packets that wait in the root discipline of an interface; a GSO frame counts once. Absent if it does not tell.
pub(crate) fn root_waiting(index: u32) -> Result<Option<u32>, SockError> {
    of_root(index, decode_waiting)
}

/// What `decode` finds in the first message about a discipline in which it finds something. It gets the message and the
/// number of the interface, and checks both interface and parent.
pub(super) fn of_root<T>(
    index: u32,
    decode: impl Fn(&[u8], u32) -> Option<T>,
) -> Result<Option<T>, SockError> {
    let mut found = None;
    dump(libc::RTM_GETQDISC, &[0; TCMSG], |kind, body| {
        if kind == libc::RTM_NEWQDISC && found.is_none() {
            found = decode(body, index);
        }
        found.is_some()
    })?;
    Ok(found)
}

/// `qlen` of `gnet_stats_queue` (`linux/gen_stats.h`).
fn decode_waiting(body: &[u8], index: u32) -> Option<u32> {
    if word(body, 4) != Some(index) || word(body, PARENT_AT) != Some(TC_H_ROOT) {
        return None;
    }
    word(find(find(body.get(TCMSG..)?, TCA_STATS2)?, TCA_STATS_QUEUE)?, 0)
}

/// Kinds of all disciplines of an interface that hold or distribute what it sends, as the kernel lists them.
pub(crate) fn kinds(index: u32) -> Result<Vec<String>, SockError> {
    let mut kinds = Vec::new();
    dump(libc::RTM_GETQDISC, &[0; TCMSG], |kind, body| {
        kinds.extend((kind == libc::RTM_NEWQDISC).then(|| kind_for_sending(body, index)).flatten());
        false
    })?;
    Ok(kinds)
}

/// `clsact` and `ingress` have no queue.
fn kind_for_sending(body: &[u8], index: u32) -> Option<String> {
    if word(body, 4) != Some(index) {
        return None;
    }
    let kind = string(find(body.get(TCMSG..)?, TCA_KIND)?);
    (!matches!(kind.as_str(), "clsact" | "ingress")).then_some(kind)
}

/// The `htb` classes of an interface.
fn classes(index: u32) -> Result<Vec<ClassCounts>, SockError> {
    let mut about = [0; TCMSG];
    about[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut classes = Vec::new();
    dump(libc::RTM_GETTCLASS, &about, |kind, body| {
        classes.extend((kind == libc::RTM_NEWTCLASS).then(|| decode_class(body, index)).flatten());
        false
    })?;
    Ok(classes)
}

/// Decodes a class of `htb`.
///
/// # Source
/// `linux/pkt_sched.h`: `tc_htb_opt`, `TCA_HTB_*`
fn decode_class(body: &[u8], index: u32) -> Option<ClassCounts> {
    const HANDLE_AT: usize = 8;
    const PARAMETERS: u16 = 1;
    const CEILING_AT: usize = 20;
    const BURST_AT: usize = 28;
    const CEILING_IN_64_BITS: u16 = 7;
    if word(body, 4) != Some(index) {
        return None;
    }
    let rest = body.get(TCMSG..)?;
    let options = find(rest, libc::TCA_OPTIONS)
        .filter(|_| find(rest, TCA_KIND).map(string).as_deref() == Some("htb"))?;
    let ceiling = bucket(options, PARAMETERS, CEILING_AT, BURST_AT, CEILING_IN_64_BITS)?;
    let bytes = find(find(rest, TCA_STATS2)?, TCA_STATS_BASIC)?.first_chunk()?;
    Some(ClassCounts { handle: word(body, HANDLE_AT)?, bytes: u64::from_ne_bytes(*bytes), ceiling })
}

/// A rate and its burst, which the kernel reports as the time that the rate needs to send it.
///
/// # Source
/// `net/sched/sch_tbf.c`, `sch_htb.c`: `PSCHED_NS2TICKS`; `net/pkt_sched.h`: `PSCHED_SHIFT` is 6
fn bucket(
    options: &[u8],
    parameters: u16,
    at: usize,
    burst_at: usize,
    in_64_bits: u16,
) -> Option<TokenBucket> {
    const TICK_NS: u128 = 64;
    let bytes_per_s = bytes_per_s(options, parameters, at, in_64_bits)?;
    let ticks = word(find(options, parameters)?, burst_at)?;
    let burst = u128::from(bytes_per_s) * u128::from(ticks) * TICK_NS / 1_000_000_000;
    let burst_bytes = u64::try_from(burst).unwrap_or(u64::MAX);
    Some(TokenBucket { rate_bps: bytes_per_s.saturating_mul(8), burst_bytes })
}

/// A rate in the format of the kernel's schedulers: 32 bits in a structure, or a 64-bit attribute for larger
/// rates.
fn bytes_per_s(options: &[u8], parameters: u16, at: usize, in_64_bits: u16) -> Option<u64> {
    let large = find(options, in_64_bits).and_then(|value| Some(u64::from_ne_bytes(*value.first_chunk()?)));
    large.or_else(|| word(find(options, parameters)?, at).map(u64::from))
}

fn find(from: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(from).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

fn decode(body: &[u8], index: u32) -> Option<QueueCounts> {
    const DROPS_AT: usize = 8;
    // `linux/pkt_sched.h`: tc_tbf_qopt, TCA_TBF_*
    const TBF_PARAMETERS: u16 = 1;
    const TBF_RATE_AT: usize = 8;
    const TBF_BURST_AT: usize = 28;
    const TBF_RATE_IN_64_BITS: u16 = 4;
    if word(body, 4) != Some(index) || word(body, PARENT_AT) != Some(TC_H_ROOT) {
        return None;
    }
    let rest = body.get(TCMSG..)?;
    let kind = string(find(rest, TCA_KIND)?);
    // It has no queue and no counters.
    if kind == "noqueue" {
        return None;
    }
    let stats = find(rest, TCA_STATS2)?;
    let basic = find(stats, TCA_STATS_BASIC)?;
    let bytes = u64::from_ne_bytes(*basic.first_chunk()?);
    let dropped = find(stats, TCA_STATS_QUEUE).and_then(|queue| word(queue, DROPS_AT)).unwrap_or_default();
    let bucket = find(rest, libc::TCA_OPTIONS)
        .filter(|_| kind == "tbf")
        .and_then(|options| bucket(options, TBF_PARAMETERS, TBF_RATE_AT, TBF_BURST_AT, TBF_RATE_IN_64_BITS));
    Some(QueueCounts { kind, bytes, packets: word(basic, 8)?, dropped, bucket, classes: Vec::new() })
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
            bucket: None,
            classes: Vec::new(),
        };
        assert_eq!(decode(&message(4, u32::MAX, b"fq\0"), 4), Some(expected));
        assert_eq!(decode(&message(4, 0x1_0000, b"fq\0"), 4), None);
        assert_eq!(decode(&message(5, u32::MAX, b"fq\0"), 4), None);
        assert_eq!(decode(&message(4, u32::MAX, b"noqueue\0"), 4), None, "it has no queue");
        assert_eq!(decode_waiting(&message(4, u32::MAX, b"fq\0"), 4), Some(1));
        assert_eq!(decode_waiting(&message(4, 0x1_0000, b"fq\0"), 4), None);
    }

    /// The answer for `tc qdisc add dev NAME root tbf rate 50mbit burst 32kb`: 32768 bytes at 6.25 MB/s take
    /// 5.24288 ms, 81,920 ticks of 64 ns.
    #[test]
    fn the_rate_of_a_token_bucket_is_read_in_32_and_in_64_bits_and_its_burst_in_ticks() {
        let parameters = |rate: u32, ticks: u32| {
            let mut all = [0; 36];
            all[8..12].copy_from_slice(&rate.to_ne_bytes());
            all[28..32].copy_from_slice(&ticks.to_ne_bytes());
            attribute(1, &all)
        };
        let read = |options: &[u8]| {
            let mut body = message(4, u32::MAX, b"tbf\0");
            body.extend(attribute(2, options));
            decode(&body, 4).unwrap().bucket
        };
        let bucket = |rate_bps, burst_bytes| Some(TokenBucket { rate_bps, burst_bytes });
        assert_eq!(read(&parameters(6_250_000, 81_920)), bucket(50_000_000, 32_768));
        // 50 Gb/s: 1 ms is 15,625 ticks and 6.25 MB.
        let large = [parameters(u32::MAX, 15_625), attribute(4, &6_250_000_000u64.to_ne_bytes())].concat();
        assert_eq!(read(&large), bucket(50_000_000_000, 6_250_000));
        assert_eq!(read(&attribute(1, &[0; 20])), None, "cut off");
    }

    #[test]
    fn a_class_of_htb_has_its_ceiling_and_the_bucket_of_that() {
        let mut body = message(4, 0x1_0000, b"htb\0");
        body[8..12].copy_from_slice(&0x1_0010u32.to_ne_bytes());
        // Rate and ceiling (12 bytes each, the value last), buffer, buffer of the ceiling, quantum, level,
        // priority.
        let parameters =
            [&[0; 20][..], &2_500_000u32.to_ne_bytes(), &[0; 4], &10_000u32.to_ne_bytes(), &[0; 12]].concat();
        body.extend(attribute(2, &attribute(1, &parameters)));
        // 640 µs at 2.5 MB/s.
        let ceiling = TokenBucket { rate_bps: 20_000_000, burst_bytes: 1600 };
        let expected = ClassCounts { handle: 0x1_0010, bytes: 5_000_000_000, ceiling };
        assert_eq!(decode_class(&body, 4), Some(expected));
        assert_eq!(decode_class(&body, 5), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..150)) {
            let _ = (decode(&bytes, 0), decode_class(&bytes, 0), kind_for_sending(&bytes, 0));
            let _ = decode_waiting(&bytes, 0);
        }
    }
}
