//! The values of nuttcp's options: numbers with suffixes, and which argument is a value.

use std::net::IpAddr;

use linerate_units::Span;

use super::{NuttcpInvocation, mistake};

use crate::nuttcp::options::{LEAST, MAX_TIME, MEAN, MOST, RateLimit};

/// Whether an option that ends without a value takes the next argument as its value. `after` is the argument
/// after that.
pub(super) fn takes(option: &str, next: &str, after: Option<&str>) -> bool {
    match option {
        // The value is optional, and a host may follow.
        "n" | "T" | "i" | "wb" => is_quantity(next),
        "j" | "o" | "b" => {
            let letters = next.chars().all(|letter| "maxorc".contains(letter) || letter.is_ascii_digit());
            letters && after.is_some_and(|after| after.starts_with('-'))
        }
        "I" | "p" | "P" | "N" | "l" | "R" | "w" | "ws" | "M" | "c" | "g" | "xP" | "xc" | "xcs" => {
            !next.starts_with('-')
        }
        _ => false,
    }
}

/// Whether a text is a number with at most two letters after it, and no address.
fn is_quantity(text: &str) -> bool {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number = !digits.is_empty() && digits.parse::<f64>().is_ok();
    number && text.len() - digits.len() <= 2 && text.parse::<IpAddr>().is_err()
}

/// Parses the integer at the start of a text like atoi(3): 0 if there is none.
pub(super) fn whole(text: &str) -> u64 {
    let digits = text.find(|c: char| !c.is_ascii_digit()).map_or(text, |end| &text[..end]);
    digits.parse().unwrap_or(if digits.is_empty() { 0 } else { u64::MAX })
}

/// Parses the integer at the start of a text in the notation of C: decimal, `0x` hexadecimal, `0` octal.
pub(super) fn c_integer(text: &str) -> u64 {
    let (digits, base) = match (text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")), text) {
        (Some(hex), _) => (hex, 16),
        (None, octal) if octal.starts_with('0') => (octal, 8),
        (None, decimal) => (decimal, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], base).unwrap_or(if end == 0 { 0 } else { u64::MAX })
}

/// Parses bytes with a binary suffix (k, m, g, t, p; b for bytes); `unit` is the unit of a bare number.
pub(super) fn binary(text: &str, unit: u64) -> u64 {
    let scale = match text.chars().last().map(|last| last.to_ascii_lowercase()) {
        Some('b') => 1,
        Some('k') => 1 << 10,
        Some('m') => 1 << 20,
        Some('g') => 1 << 30,
        Some('t') => 1 << 40,
        Some('p') => 1 << 50,
        _ => unit,
    };
    whole(text).saturating_mul(scale)
}

/// Parses a rate: kbit/s, decimal m and g, or packets (p, also kp and mp).
pub(super) fn rate(text: &str) -> RateLimit {
    let number = leading_number(text);
    let mut suffix = text.chars().rev();
    let scale = |letter: Option<char>| match letter.map(|letter| letter.to_ascii_lowercase()) {
        Some('k') => 1e3,
        Some('m') => 1e6,
        _ => 1.0,
    };
    let rate = match suffix.next() {
        Some('p') => RateLimit::Pps((number * scale(suffix.next())) as u64),
        Some('m' | 'M') => RateLimit::Kbps((number * 1e3).round() as u64),
        Some('g' | 'G') => RateLimit::Kbps((number * 1e6).round() as u64),
        _ => RateLimit::Kbps(number.round() as u64),
    };
    if matches!(rate, RateLimit::Kbps(0) | RateLimit::Pps(0)) { RateLimit::Unlimited } else { rate }
}

/// Parses a time in seconds, or in minutes, hours or days with a letter; absent if it is 0. `name` is that of the
/// value in messages.
pub(super) fn seconds(name: &str, text: &str) -> Result<Option<Span>, NuttcpInvocation> {
    let scale = match text.chars().last().map(|last| last.to_ascii_lowercase()) {
        Some('m') => 60.0,
        Some('h') => 3600.0,
        Some('d') => 86_400.0,
        _ => 1.0,
    };
    let seconds = leading_number(text) * scale;
    match Span::from_secs_f64(seconds).filter(|time| *time <= MAX_TIME) {
        Some(time) => Ok(Some(time).filter(|time| *time > Span::ZERO)),
        None => {
            let most = MAX_TIME.as_secs_f64();
            mistake(format!("invalid {name} = {seconds:.6}: give at most {most} seconds"))
        }
    }
}

fn leading_number(text: &str) -> f64 {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().unwrap_or(0.0)
}

/// `30`, or `5/30/60`: shortest, default and longest time, seconds.
pub(super) fn idle_limits(text: &str) -> Option<[Span; 3]> {
    let mut given = Vec::new();
    for part in text.split('/') {
        let seconds = part.parse::<f64>().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds))?;
        given.push(Span::from_secs_f64(seconds)?);
    }
    match given.as_slice() {
        [only] => Some([*only; 3]),
        [shortest, default, longest] if shortest <= default && default <= longest => {
            Some([*shortest, *default, *longest])
        }
        _ => None,
    }
}

/// The bits of `-j` and `-o` for their letters; `default` if there is none of `m`, `a` and `x`.
pub(super) fn statistics(letters: &str, default: u64) -> u64 {
    let bit = |letter: char, bit: u64| if letters.contains(letter) { bit } else { 0 };
    let chosen = bit('m', LEAST) | bit('a', MEAN) | bit('x', MOST);
    if chosen == 0 { default } else { chosen }
}

/// A port with an optional source port before it: `source:port`.
pub(super) fn ports(text: &str) -> (Option<u64>, u64) {
    match text.split_once(':') {
        Some((source, port)) => (Some(whole(source)), whole(port)),
        None => (None, whole(text)),
    }
}

/// Most CPUs of an affinity mask, as in nuttcp.
const MAX_CPUS: u32 = 1024;

/// The number of a CPU; `name` is that of the value in messages.
pub(super) fn cpu(name: &str, text: &str) -> Result<Option<u32>, NuttcpInvocation> {
    let starts = text.starts_with(|first: char| first.is_ascii_digit());
    let number = u32::try_from(whole(text)).ok().filter(|cpu| starts && *cpu < MAX_CPUS);
    number.map_or_else(|| mistake(format!("invalid {name} = {text}")), |cpu| Ok(Some(cpu)))
}

/// The type-of-service byte: from a DSCP, a precedence (`p`) or the whole byte (`t`).
pub(super) fn service_class(value: &str) -> Result<u8, NuttcpInvocation> {
    let number = c_integer(value);
    let (name, limit, shift) = match value.chars().last() {
        Some('p' | 'P') => ("precedence", 7, 5),
        Some('t' | 'T') => ("tos", 255, 0),
        _ => ("dscp", 63, 2),
    };
    if number > limit {
        return mistake(format!("invalid {name} = {number}"));
    }
    Ok((number << shift) as u8)
}

/// A port that needs no privilege; `name` is that of the value in messages.
pub(super) fn checked_port(number: u64, name: &str) -> Result<u16, NuttcpInvocation> {
    let port = u16::try_from(number).ok().filter(|port| *port >= 1024);
    port.map_or_else(|| mistake(format!("invalid {name} = {number}")), Ok)
}
