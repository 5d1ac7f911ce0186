//! One record of the JSON: a stream or a sum, for an interval or the whole test.

use linerate_model::Direction;
use linerate_model::import::{Claim, ClaimScope, Figure, Quantity};
use linerate_model::metrics::Side;
use linerate_units::Span;

use crate::import::json::{JsonContent, JsonNode};
use crate::import::number::number;
use crate::import::parsed_test::{ParsedTest, figure};

/// The meaning of a record, by its position in the document.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordContext<'a> {
    pub(super) path: &'a str,
    pub(super) scope: ClaimScope,
    pub(super) direction: Option<Direction>,
    pub(super) side: Option<Side>,
    /// The quantities that are valid in this record; others are zeros because only the other end knows them.
    pub(super) only: Option<&'a [Quantity]>,
}

/// The keys, their quantities, and the factor to our units.
const KEYS: &[(&str, Quantity, f64)] = &[
    ("seconds", Quantity::Seconds, 1.0),
    ("bytes", Quantity::Bytes, 1.0),
    ("bits_per_second", Quantity::Bitrate, 1.0),
    ("retransmits", Quantity::Retransmits, 1.0),
    ("snd_cwnd", Quantity::CongestionWindow, 1.0),
    ("rtt", Quantity::RoundTrip, 1e-6),
    ("mean_rtt", Quantity::RoundTrip, 1e-6),
    ("rttvar", Quantity::RoundTripVariation, 1e-6),
    ("pmtu", Quantity::Mtu, 1.0),
    ("jitter_ms", Quantity::Jitter, 1e-3),
    ("lost_packets", Quantity::Lost, 1.0),
    ("packets", Quantity::Packets, 1.0),
    ("lost_percent", Quantity::LossRatio, 0.01),
    ("out_of_order", Quantity::OutOfOrder, 1.0),
];

/// Quantities that are written as 0 or -1 by a sender whose operating system does not have them.
const UNKNOWN_AS_ZERO: &[Quantity] =
    &[Quantity::RoundTrip, Quantity::RoundTripVariation, Quantity::CongestionWindow, Quantity::Mtu];

/// The claim of a record; without figures if none could be parsed.
pub(super) fn claim(node: &JsonNode, place: RecordContext<'_>, parsed: &mut ParsedTest) -> Claim {
    let mut claim = Claim {
        line: node.line,
        quote: place.path.into(),
        scope: place.scope,
        stream: node.get("socket").and_then(JsonNode::count).and_then(|socket| u32::try_from(socket).ok()),
        direction: place.direction,
        side: place.side,
        start: span(node, "start"),
        end: span(node, "end"),
        omitted: node.get("omitted").and_then(JsonNode::flag).unwrap_or(false),
        figures: Vec::new(),
    };
    for (key, quantity, factor) in KEYS {
        if place.only.is_some_and(|only| !only.contains(quantity)) || claim.figure(*quantity).is_some() {
            continue;
        }
        if let Some(found) = node.get(key).and_then(|value| read(value, key, *quantity, *factor, parsed)) {
            claim.figures.push(found);
        }
    }
    own_seconds(&mut claim);
    claim
}

/// Relative tolerance between a quotient of printed doubles and the printed rate.
const DOUBLES: f64 = 1e-6;

/// Corrects the duration of a stream's receiver: up to 3.12 its `seconds` are the sender's, and only `end` is
/// its own. The rate shows which of the two it was computed from.
fn own_seconds(claim: &mut Claim) {
    let value = |quantity| claim.figure(quantity).map(|figure: &Figure| figure.value);
    let (Some(start), Some(end)) = (claim.start, claim.end) else { return };
    let (Some(bytes), Some(rate)) = (value(Quantity::Bytes), value(Quantity::Bitrate)) else { return };
    let length = end.as_secs_f64() - start.as_secs_f64();
    let makes = |seconds: f64| (bytes * 8.0 / seconds / rate - 1.0).abs() < DOUBLES;
    if claim.side != Some(Side::Receiver) || !makes(length) {
        return;
    }
    let printed = claim.figures.iter_mut().find(|figure| figure.quantity == Quantity::Seconds);
    if let Some(printed) = printed.filter(|printed| !makes(printed.value)) {
        (printed.value, printed.printed) = (length, format!("end - start {length:.6}").into());
    }
}

fn span(node: &JsonNode, key: &str) -> Option<Span> {
    let printed = number(node.get(key)?.written()?, true).ok()?;
    Span::from_secs_f64(printed.value)
}

/// Parses one figure; adds a remark if its value is not a number.
pub(super) fn read(
    node: &JsonNode,
    key: &str,
    quantity: Quantity,
    factor: f64,
    parsed: &mut ParsedTest,
) -> Option<Figure> {
    let JsonContent::Number(written) = &node.value else {
        parsed.unread(node.line, None, format!("{key} is not a number"));
        return None;
    };
    let printed = match number(written, true) {
        Ok(printed) => printed.exact().times(factor),
        Err(why) => {
            parsed.unread(node.line, None, format!("{key}: {why}"));
            return None;
        }
    };
    let unknown = printed.value < 0.0 || (printed.value == 0.0 && UNKNOWN_AS_ZERO.contains(&quantity));
    (!unknown).then(|| figure(quantity, printed, format!("{key} {written}")))
}
