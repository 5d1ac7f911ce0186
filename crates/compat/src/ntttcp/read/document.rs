//! The JSON object of `-j`, in which every number is a string.

use linerate_model::import::{Claim, ForeignTest, Quantity};
use linerate_model::metrics::Side;
use linerate_units::Span;

use super::{describe, put};
use crate::import::json::JsonNode;
use crate::import::number::number;
use crate::import::parsed_test::{ParsedTest, figure};

/// Whether a JSON object is a result of NTttcp.
pub(crate) fn is_document(root: &JsonNode) -> bool {
    root.get("ntttcps").is_some() || root.get("ntttcpr").is_some()
}

/// Parses one object.
pub(crate) fn read(root: &JsonNode, parsed: &mut ParsedTest) {
    for (key, side) in [("ntttcps", Side::Sender), ("ntttcpr", Side::Receiver)] {
        if let Some(inner) = root.get(key) {
            let test = one(inner, side, parsed);
            parsed.add(test);
        }
    }
}

fn one(root: &JsonNode, side: Side, parsed: &mut ParsedTest) -> ForeignTest {
    let mut test = ForeignTest::default();
    let version = root.get("version").and_then(JsonNode::text).unwrap_or_default();
    parsed.version(version);
    let kilo = kilo(version);
    if let Some(asked) = root.get("parameters") {
        let count = |key: &str| asked.get(key).and_then(JsonNode::count).filter(|count| *count > 0);
        test.spec.traffic.udp = asked.get("udp").and_then(JsonNode::text) == Some("True");
        test.spec.traffic.duration = count("runTime").map(Span::from_secs);
        test.spec.traffic.omit = count("warmupTime").map(Span::from_secs);
    }
    for (number, thread) in root.get("threads").map_or(&[][..], JsonNode::items).iter().enumerate() {
        let mut claim = Claim {
            line: thread.line,
            quote: format!("threads[{number}]").into(),
            stream: thread.get("index").and_then(JsonNode::count).and_then(|index| u32::try_from(index).ok()),
            ..Claim::default()
        };
        rates(thread, kilo, &mut claim, parsed);
        put(&mut test, claim);
    }
    let mut claim = Claim { line: root.line, quote: "totals".into(), ..Claim::default() };
    if let Some(total) = root.get("totalBytes") {
        claim.line = total.line;
        value(total, Quantity::Bytes, kilo * kilo, &mut claim, parsed);
    }
    rates(root, kilo, &mut claim, parsed);
    for (key, quantity, factor) in [
        ("cycles", Quantity::CyclesPerByte, 1.0),
        ("avgPacketsPerInterrupt", Quantity::PacketsPerInterrupt, 1.0),
        ("tcpAverageRtt metric", Quantity::RoundTrip, 1e-6),
    ] {
        if let Some(node) = root.get(key) {
            value(node, quantity, factor, &mut claim, parsed);
        }
    }
    let again = root.get("tcp_retransmits").map_or(&[][..], JsonNode::items);
    if let Some(segments) = again.iter().find(|node| metric(node) == Some("retrans_segs")) {
        value(segments, Quantity::Retransmits, 1.0, &mut claim, parsed);
    }
    put(&mut test, claim);
    describe(&mut test, side);
    test
}

/// Bytes per KB of the program of this version.
pub(super) fn kilo(version: &str) -> f64 {
    if version.ends_with("-linux") { 1000.0 } else { 1024.0 }
}

/// Bits per second in one unit; `kilo` is the number of bytes per KB.
pub(super) fn rate(metric: &str, kilo: f64) -> Option<f64> {
    Some(match metric {
        "Bps" => 8.0,
        "KB/s" => 8.0 * kilo,
        "MB/s" => 8.0 * kilo * kilo,
        "mbps" => 1e6,
        _ => return None,
    })
}

fn metric(node: &JsonNode) -> Option<&str> {
    node.get("metric").and_then(JsonNode::text)
}

/// Parses the time and the rate.
fn rates(node: &JsonNode, kilo: f64, claim: &mut Claim, parsed: &mut ParsedTest) {
    if let Some(time) = node.get("realTime") {
        value(time, Quantity::Seconds, 1.0, claim, parsed);
    }
    // The rate is given in several units; the last known one is the most precise.
    let forms = node.get("throughputs").map_or(&[][..], JsonNode::items);
    for form in forms.iter().rev() {
        if let Some(factor) = metric(form).and_then(|metric| rate(metric, kilo)) {
            value(form, Quantity::Bitrate, factor, claim, parsed);
            return;
        }
    }
}

fn value(node: &JsonNode, quantity: Quantity, factor: f64, claim: &mut Claim, parsed: &mut ParsedTest) {
    let Some(text) = node.get("value").and_then(JsonNode::written) else { return };
    // One of them ends with a wrong unit.
    let amount = text.split_whitespace().next().unwrap_or_default();
    match number(amount, true) {
        Ok(printed) => {
            let count = quantity == Quantity::Retransmits;
            let printed = if count { printed.exact() } else { printed.times(factor) };
            let unit = metric(node).unwrap_or_default();
            claim.figures.push(figure(quantity, printed, format!("{amount} {unit}").trim_end()));
        }
        Err(why) => parsed.unread(node.line, None, why),
    }
}
