//! Our own results: the document `linerate.result/2` and event logs, also those of version 1.

mod v1;

use linerate_model::import::{Claim, ClaimScope, ControlEnd, Figure, ForeignTest, Quantity};
use linerate_model::{Event, ForeignText, RunRecord, Side, Tally};

use linerate_units::Span;

use super::json::JsonNode;
use super::number::{Printed, number};
use super::parsed_test::{ParsedTest, figure};
use linerate_model::{Direction, RunLabels};

/// Whether a JSON object is a result document.
pub(super) fn is_document(root: &JsonNode) -> bool {
    root.get("schema").and_then(JsonNode::text).is_some_and(|schema| schema.starts_with("linerate.result/"))
}

/// Whether a JSON object is an event of a log.
pub(super) fn is_event(root: &JsonNode) -> bool {
    root.get("run").is_some() && root.get("seq").is_some() && root.get("body").is_some()
}

/// Reads a result document; `text` is its complete text.
pub(super) fn read(root: &JsonNode, text: &str, parsed: &mut ParsedTest) {
    let mut test = ForeignTest { written_by: Some(ControlEnd::Client), ..ForeignTest::default() };
    if let Some(run) = root.get("run") {
        let of = |key| run.get(key).and_then(JsonNode::text).map(ForeignText::from);
        (test.started_at, test.target) = (of("started_at"), of("target"));
        if let Some(version) = of("linerate") {
            parsed.version(&version);
        }
        test.error = of("reason");
        let section = run_section(text).unwrap_or_default();
        test.spec = serde_json::from_value(section["spec"].clone()).unwrap_or_default();
        test.labels = serde_json::from_value(section).unwrap_or_else(|_| RunLabels::default()).checked();
    }
    for (at, flow) in root.get("flows").map_or(&[][..], JsonNode::items).iter().enumerate() {
        let direction = match flow.get("direction").and_then(JsonNode::text) {
            Some("download") => Some(Direction::Download),
            Some("upload") => Some(Direction::Upload),
            _ => None,
        };
        for (key, side) in [("receiver", Side::Receiver), ("sender", Side::Sender)] {
            let Some(half) = flow.get(key) else { continue };
            let mut claim = Claim {
                line: half.line,
                quote: format!("flows[{at}].{key}").into(),
                direction,
                side: Some(side),
                ..Claim::default()
            };
            claim.figures = figures(half, HALF, parsed);
            if side == Side::Receiver
                && let Some(udp) = flow.get("udp")
            {
                claim.figures.extend(figures(udp, UDP, parsed));
            }
            if !claim.figures.is_empty() {
                test.claims.push(claim);
            }
        }
    }
    parsed.add(test);
}

fn run_section(text: &str) -> Option<serde_json::Value> {
    let mut document: serde_json::Value = serde_json::from_str(text).ok()?;
    v1::upgrade(&mut document);
    document.get_mut("run").map(serde_json::Value::take)
}

const HALF: &[(&str, Quantity, f64)] = &[
    ("seconds", Quantity::Seconds, 1.0),
    ("bytes", Quantity::Bytes, 1.0),
    ("bitrate_bps", Quantity::Bitrate, 1.0),
    ("retransmits", Quantity::Retransmits, 1.0),
    ("packets", Quantity::Packets, 1.0),
];

const UDP: &[(&str, Quantity, f64)] = &[
    ("packets", Quantity::Packets, 1.0),
    ("lost", Quantity::Lost, 1.0),
    ("out_of_order", Quantity::OutOfOrder, 1.0),
    ("loss_ratio", Quantity::LossRatio, 1.0),
    ("jitter_ns", Quantity::Jitter, 1e-9),
];

fn figures(node: &JsonNode, keys: &[(&str, Quantity, f64)], parsed: &mut ParsedTest) -> Vec<Figure> {
    let mut found = Vec::new();
    for (key, quantity, factor) in keys {
        let Some(value) = node.get(key) else { continue };
        match value.written().map(|written| (written, number(written, true))) {
            Some((written, Ok(printed))) => {
                found.push(figure(*quantity, printed.exact().times(*factor), format!("{key} {written}")));
            }
            Some((_, Err(why))) => parsed.unread(value.line, None, format!("{key}: {why}")),
            None => {}
        }
    }
    found
}

/// An event log that is read line by line.
#[derive(Debug, Default)]
pub(super) struct EventLogReader {
    record: RunRecord,
    first_line: u32,
    run: Option<ForeignText>,
}

impl EventLogReader {
    /// Reads one line of the log.
    pub(super) fn take(&mut self, text: &str, line: u32, parsed: &mut ParsedTest) {
        let event = match Event::read(text) {
            Ok(event) => event,
            Err(error) => {
                // The line number of the error relates to a text of one line, and it has a column only if that is not JSON.
                let column = Some(error.column() as u32).filter(|column| *column > 0);
                parsed.unread(line, column, format!("not an event of a log: {error}"));
                return;
            }
        };
        if self.run.as_ref().is_some_and(|run| *run != event.run) {
            self.close(parsed);
        }
        if self.run.is_none() {
            (self.run, self.first_line) = (Some(event.run.clone()), line);
        }
        self.record.apply(&event);
    }

    /// Ends a run, even if its log has no end event.
    pub(super) fn close(&mut self, parsed: &mut ParsedTest) {
        let Self { record, first_line, run } = std::mem::take(self);
        if run.is_none() {
            return;
        }
        let mut test = ForeignTest { written_by: Some(ControlEnd::Client), ..ForeignTest::default() };
        if let Some(start) = &record.start {
            parsed.version(&start.linerate);
            (test.started_at, test.target) = (Some(start.started_at.clone()), Some(start.target.clone()));
            test.spec = start.spec.clone();
        }
        test.error.clone_from(&record.reason);
        for flow in &record.flows {
            for (side, tally) in [(Side::Receiver, &flow.receiver), (Side::Sender, &flow.sender)] {
                let Some(tally) = tally else { continue };
                test.claims.push(Claim {
                    line: first_line,
                    quote: format!("flow {} {:?}", flow.plan.flow, side).to_lowercase().into(),
                    scope: ClaimScope::Total,
                    direction: Some(flow.plan.direction),
                    side: Some(side),
                    figures: of_tally(tally),
                    ..Claim::default()
                });
            }
        }
        parsed.add(test);
    }
}

fn of_tally(tally: &Tally) -> Vec<Figure> {
    let exact = |quantity, value: f64| {
        let printed = Printed { value, step: 0.0, decimals: 0 };
        figure(quantity, printed, value.to_string())
    };
    let mut found = vec![exact(Quantity::Bytes, tally.bytes.get() as f64)];
    if tally.elapsed > Span::ZERO {
        found.push(exact(Quantity::Seconds, tally.elapsed.as_secs_f64()));
        found.push(exact(Quantity::Bitrate, tally.bitrate.bps()));
    }
    found.extend(tally.retransmits.map(|count| exact(Quantity::Retransmits, count as f64)));
    if let Some(udp) = &tally.udp {
        found.push(exact(Quantity::Packets, udp.packets as f64));
        found.extend(udp.jitter.map(|jitter| exact(Quantity::Jitter, jitter.as_secs_f64())));
    }
    found
}
