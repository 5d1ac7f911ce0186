//! Parsers for option values as in iperf3, with their errors.

use std::net::Ipv6Addr;

use linerate_units::Span;

use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::numbers::{leading_float, leading_int, rate, size};
use crate::iperf3::settings::ControlKeepAlive;

/// The error of an option of SCTP, which this program does not speak.
pub(super) fn no_sctp(option: &str) -> Iperf3Error {
    Iperf3Error::because(Iperf3ErrorNumber::NO_SCTP, 0, format!("leave out {option}"))
}

/// An integer within bounds.
pub(super) fn within(
    text: &str,
    least: u32,
    most: u32,
    otherwise: Iperf3ErrorNumber,
) -> Result<u32, Iperf3Error> {
    let value = u32::try_from(leading_int(text)).ok();
    value.filter(|value| (least..=most).contains(value)).ok_or(Iperf3Error::new(otherwise))
}

/// A port number.
pub(super) fn port(text: &str) -> Result<u16, Iperf3Error> {
    let value = u16::try_from(leading_int(text)).ok();
    value.filter(|port| *port > 0).ok_or(Iperf3Error::new(Iperf3ErrorNumber::BAD_PORT))
}

/// A size, with a letter for powers of 1024.
pub(super) fn sized(text: &str) -> Result<u64, Iperf3Error> {
    size(text).ok_or(Iperf3Error::because(Iperf3ErrorNumber::BAD_UNIT, 0, text))
}

/// A rate in bit/s, with a letter for powers of 1000.
pub(super) fn rated(text: &str) -> Result<u64, Iperf3Error> {
    rate(text).ok_or(Iperf3Error::because(Iperf3ErrorNumber::BAD_UNIT, 0, text))
}

/// Milliseconds within bounds.
pub(super) fn milliseconds(
    text: &str,
    least: u32,
    otherwise: Iperf3ErrorNumber,
) -> Result<Span, Iperf3Error> {
    Ok(Span::from_ms(within(text, least, 86_400_000, otherwise)?.into()))
}

/// Seconds with a fraction: zero or within bounds.
pub(super) fn seconds(text: &str, otherwise: Iperf3ErrorNumber) -> Result<Span, Iperf3Error> {
    let value = leading_float(text).map_or(0.0, |(value, _)| value);
    if value == 0.0 {
        return Ok(Span::default());
    }
    let span = Some(value).filter(|value| (0.1..=60.0).contains(value)).and_then(Span::from_secs_f64);
    span.ok_or(Iperf3Error::new(otherwise))
}

/// `RATE` or `RATE/REST`.
pub(super) fn split_rate(text: &str) -> Result<(u64, Option<&str>), Iperf3Error> {
    match text.split_once('/') {
        Some((rate, rest)) => Ok((rated(rate)?, Some(rest))),
        None => Ok((rated(text)?, None)),
    }
}

/// `HOST` or `HOST%DEVICE`; after a link-local IPv6 address the part after `%` is its scope.
pub(super) fn host_and_device(text: &str) -> (String, Option<String>) {
    let (host, device) = local_and_device(text);
    match host.parse::<Ipv6Addr>() {
        Ok(address) if address.is_unicast_link_local() => (text.to_owned(), None),
        _ => (host, device),
    }
}

/// The same for a local address: a socket of that device needs no scope.
pub(super) fn local_and_device(text: &str) -> (String, Option<String>) {
    match text.split_once('%') {
        Some((host, device)) => (host.to_owned(), Some(device.to_owned())),
        None => (text.to_owned(), None),
    }
}

/// `CPU` or `CPU,CPU OF THE SERVER`, from 0 to 1024.
pub(super) fn affinity(text: &str) -> Result<(u32, Option<u32>), Iperf3Error> {
    let one = |text: &str| {
        let cpu = text.trim().parse::<u32>().ok().filter(|cpu| *cpu <= 1024);
        cpu.ok_or(Iperf3Error::new(Iperf3ErrorNumber::AFFINITY))
    };
    match text.split_once(',') {
        Some((ours, theirs)) => Ok((one(ours)?, Some(one(theirs)?))),
        None => Ok((one(text)?, None)),
    }
}

/// `IDLE/INTERVAL/COUNT`; each part may be missing.
pub(super) fn keep_alive(text: &str) -> Result<ControlKeepAlive, Iperf3Error> {
    let mut parts =
        text.split('/').map(|part| u32::try_from(leading_int(part)).ok().filter(|value| *value > 0));
    let mut next = || parts.next().flatten();
    let (idle, interval, count) = (next(), next(), next());
    if let (Some(idle), Some(interval), Some(count)) = (idle, interval, count)
        && u64::from(idle) <= u64::from(interval) * u64::from(count)
    {
        return Err(Iperf3Error::new(Iperf3ErrorNumber::KEEP_ALIVE));
    }
    let seconds = |value: Option<u32>| value.map(|value| Span::from_secs(value.into()));
    Ok(ControlKeepAlive { idle: seconds(idle), interval: seconds(interval), count })
}

/// A number in C's notation: decimal, `0` for octal, `0x` for hexadecimal.
fn c_number(text: &str) -> Option<u32> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        u32::from_str_radix(hex, 16).ok()
    } else if text.len() > 1 && text.starts_with('0') {
        u32::from_str_radix(text, 8).ok()
    } else {
        text.parse().ok()
    }
}

/// The type-of-service byte.
pub(super) fn tos(text: &str) -> Result<u8, Iperf3Error> {
    c_number(text)
        .and_then(|value| u8::try_from(value).ok())
        .ok_or(Iperf3Error::new(Iperf3ErrorNumber::BAD_TOS))
}

/// The type-of-service byte of a DSCP, by number or name (RFC 2474, RFC 2597, RFC 3246, RFC 5865; RFC 1349 for
/// the three old names).
pub(super) fn dscp(text: &str) -> Result<u8, Iperf3Error> {
    let name = text.to_ascii_lowercase();
    let number = c_number(&name).filter(|value| *value < 64).and_then(|value| u8::try_from(value << 2).ok());
    number.or_else(|| named_tos(&name)).ok_or(Iperf3Error::new(Iperf3ErrorNumber::BAD_DSCP))
}

fn named_tos(name: &str) -> Option<u8> {
    match name.as_bytes() {
        b"lowdelay" => Some(0x10),
        b"throughput" => Some(0x08),
        b"reliability" => Some(0x04),
        b"ef" => Some(46 << 2),
        b"va" => Some(44 << 2),
        [b'c', b's', class @ b'0'..=b'7'] => Some((class - b'0') << 5),
        [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
            Some(((class - b'0') << 5) | ((drop - b'0') << 3))
        }
        _ => None,
    }
}

/// An IPv6 flow label.
pub(super) fn flow_label(text: &str) -> Result<u32, Iperf3Error> {
    c_number(text)
        .filter(|label| (1..=0xf_ffff).contains(label))
        .ok_or(Iperf3Error::new(Iperf3ErrorNumber::FLOW_LABEL))
}
