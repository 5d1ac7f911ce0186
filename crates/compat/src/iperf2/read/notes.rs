//! Parses notes about a connection and its buffers, in parentheses and in banners.

use linerate_model::import::{Figure, Quantity};

use crate::import::bracket::byte_unit;
use crate::import::date::checked;
use crate::import::line::NumberedLine;
use crate::import::number::number;
use crate::import::parsed_test::figure;

/// `TCP window size:  128 KByte (default)`, `UDP buffer size: 2.00 MByte (WARNING: requested 1.00 MByte)`.
pub(super) fn window(rest: &str, quantity: Quantity) -> Option<Figure> {
    let mut words = rest.split_whitespace();
    let (amount, unit) = (words.next()?, words.next()?);
    let printed = number(amount, false).ok()?.times(byte_unit(unit)?);
    Some(figure(quantity, printed, format!("{amount} {unit}")))
}

/// `(icwnd/mss/irtt=14/1448/20)`: kilobytes, bytes, microseconds.
pub(super) fn first_window(line: NumberedLine<'_>) -> Vec<Figure> {
    let Some(values) = line.after("(icwnd/mss/irtt=").and_then(|rest| rest.split(')').next()) else {
        return Vec::new();
    };
    let wanted = [(Quantity::Mss, 1.0), (Quantity::RoundTrip, 1e-6)];
    let found = values.split('/').skip(1).zip(wanted).filter_map(|(text, (quantity, factor))| {
        let printed = number(text, false).ok()?;
        let printed = if quantity == Quantity::Mss { printed.exact() } else { printed };
        (printed.value > 0.0).then(|| figure(quantity, printed.times(factor), text))
    });
    found.collect()
}

/// `on 2026-11-21 19:17:33 (UTC)`, with milliseconds in later versions; absent for any other time zone.
pub(super) fn started(line: NumberedLine<'_>) -> Option<String> {
    let rest = line.text.rsplit_once(" on ")?.1;
    let mut words = rest.split_whitespace();
    let (date, time, zone) = (words.next()?, words.next()?, words.next()?);
    let time = time.split('.').next().unwrap_or_default();
    (zone == "(UTC)").then(|| checked(&format!("{date}T{time}Z"))).flatten()
}

/// The enhanced columns of a TCP sender after the rate: calls, retransmits, window, round trip.
pub(super) fn tcp_sender(tail: &str) -> Vec<Figure> {
    let mut found = Vec::new();
    let mut words = tail.split_whitespace();
    let mut put = |quantity, text: &str, factor: f64| {
        if let Ok(printed) = number(text, true) {
            let count = matches!(quantity, Quantity::Calls | Quantity::Retransmits);
            let printed = if count { printed.exact() } else { printed.times(factor) };
            found.push(figure(quantity, printed, text));
        }
    };
    let Some((calls, _)) = words.next().and_then(|word| word.split_once('/')) else { return found };
    put(Quantity::Calls, calls, 1.0);
    if let Some(again) = words.next() {
        put(Quantity::Retransmits, again, 1.0);
    }
    let Some(window) = words.next() else { return found };
    // `206K/8051(1005)`, or `0K(0)/14K(10)/49(24)` in 2.2.
    let parts: Vec<&str> = window.split('/').collect();
    let (Some(cwnd), Some(rtt)) = (parts.len().checked_sub(2).and_then(|at| parts.get(at)), parts.last())
    else {
        return found;
    };
    if let Some((cwnd, _)) = cwnd.split_once('K') {
        put(Quantity::CongestionWindow, cwnd, 1024.0);
    }
    let (mean, rest) = rtt.split_once('(').unwrap_or((rtt, ""));
    put(Quantity::RoundTrip, mean, 1e-6);
    if let Some((variation, _)) = rest.split_once(')') {
        put(Quantity::RoundTripVariation, variation, 1e-6);
    }
    found
}

/// Packets per second: `16578 pps`.
pub(super) fn packet_rate(tail: &str) -> Option<Figure> {
    let (before, _) = tail.split_once(" pps")?;
    let text = before.split_whitespace().next_back()?;
    Some(figure(Quantity::PacketRate, number(text, false).ok()?, format!("{text} pps")))
}
