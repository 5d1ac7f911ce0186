//! Values of options: numbers with a suffix, and pairs.

use std::net::IpAddr;

use crate::netperf::options::NetperfFamily;

/// A number with a suffix: K, M and G are powers of 1024, k, m and g powers of 1000.
pub(super) fn number(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'k', 'm', 'g']);
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(factor)
}

/// A number of at least 0 that fits into a word of the protocol.
pub(super) fn size(text: &str) -> Option<u32> {
    number(text).and_then(|number| i32::try_from(number).ok()).and_then(|number| u32::try_from(number).ok())
}

/// Two values: `a,b`, `a,`, `,b`, and `a` for both.
pub(super) fn both(text: &str) -> [Option<&str>; 2] {
    match text.split_once(',') {
        Some((first, second)) => [first, second].map(|part| Some(part).filter(|part| !part.is_empty())),
        None => [Some(text), Some(text)],
    }
}

/// Two values: `a,b`, `a,`, `,b`, and `a` for the first.
pub(super) fn separate(text: &str) -> [Option<&str>; 2] {
    let (first, second) = text.split_once(',').unwrap_or((text, ""));
    [first, second].map(|part| Some(part).filter(|part| !part.is_empty()))
}

/// The family of addresses: anything with a 6, with a 4 or `inet`, or `unspec` and 0 for both.
pub(super) fn family(text: &str) -> Option<NetperfFamily> {
    let text = text.to_ascii_lowercase();
    match &text {
        text if text.contains('6') => Some(NetperfFamily::V6),
        text if text.contains("inet") || text.contains('4') => Some(NetperfFamily::V4),
        text if text.contains("unspec") || text.contains('0') => Some(NetperfFamily::Any),
        _ => None,
    }
}

/// A local address: none for the unspecified address.
pub(super) fn local(text: &str) -> Option<Option<IpAddr>> {
    let address: IpAddr = text.parse().ok()?;
    Some(Some(address).filter(|address| !address.is_unspecified()))
}
