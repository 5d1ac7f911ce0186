//! The answers as one JSON document: the first one, and the bounds of every number that differs in the others.

use std::collections::BTreeMap;

use linerate_theory::envelope::EnvelopeAnswer;
use serde::Serialize;
use serde_json::{Value, json};

/// Version of the document.
const SCHEMA: &str = "linerate.envelope/2";

/// The smallest and the largest value of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct NumberRange {
    low: f64,
    high: f64,
    /// Whether the number is missing at one of the ends, such as the loss ceiling at a loss of zero.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    absent: bool,
}

/// What a described path can carry.
///
/// With several answers, `bounds` contains every number that differs between them, by its path in the document;
/// ceilings are named by their limits there. `binding_limits` contains all binding limits.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnvelopeDocument(Value);

impl EnvelopeDocument {
    /// The document of the answers; empty without answers. Absent values are left out.
    ///
    /// # Errors
    /// None is expected for documents of numbers and strings.
    pub fn of(answers: &[EnvelopeAnswer]) -> serde_json::Result<Self> {
        let documents = answers.iter().map(document).collect::<serde_json::Result<Vec<Value>>>()?;
        let mut first = documents.first().cloned().unwrap_or_default();
        if let (true, Some(fields)) = (documents.len() > 1, first.as_object_mut()) {
            let mut named: Vec<&Value> = Vec::new();
            for limit in documents.iter().map(|found| &found["binding"]["limit"]) {
                if !named.contains(&limit) {
                    named.push(limit);
                }
            }
            fields.insert("binding_limits".to_owned(), json!(named));
            fields.insert("bounds".to_owned(), serde_json::to_value(bounds(&documents))?);
        }
        Ok(Self(first))
    }
}

fn document(answer: &EnvelopeAnswer) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(answer)?;
    if let Some(fields) = document.as_object_mut() {
        fields.insert("schema".to_owned(), SCHEMA.into());
    }
    if !answer.has_rtt
        && let Some(path) = document.get_mut("path").and_then(Value::as_object_mut)
    {
        path.remove("rtt_s");
    }
    leave_out_nulls(&mut document);
    Ok(document)
}

fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

fn bounds(documents: &[Value]) -> BTreeMap<String, NumberRange> {
    let mut found: BTreeMap<String, (NumberRange, usize)> = BTreeMap::new();
    for document in documents {
        numbers(document, "", &mut |path, value| {
            let fresh = NumberRange { low: value, high: value, absent: false };
            let (bounds, seen) = found.entry(path.to_owned()).or_insert((fresh, 0));
            (bounds.low, bounds.high, *seen) = (bounds.low.min(value), bounds.high.max(value), *seen + 1);
        });
    }
    let range = |(path, (bounds, seen)): (String, (NumberRange, usize))| {
        let absent = seen < documents.len();
        (bounds.low < bounds.high || absent).then_some((path, NumberRange { absent, ..bounds }))
    };
    found.into_iter().filter_map(range).collect()
}

/// Every number of a document with its path.
fn numbers(value: &Value, path: &str, visit: &mut impl FnMut(&str, f64)) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| numbers(field, &format!("{path}/{name}"), visit));
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let name = item["limit"].as_str().map_or_else(|| number.to_string(), str::to_owned);
                numbers(item, &format!("{path}/{name}"), visit);
            }
        }
        Value::Number(number) => number.as_f64().into_iter().for_each(|number| visit(path, number)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use linerate_theory::envelope::{Path, PathDescription, Questions, ValueRange, answers};
    use linerate_units::{Bitrate, Bytes, Ratio, Span};

    use super::*;

    /// A gigabit, over 20 ms.
    fn gigabit() -> PathDescription {
        let link: Bitrate = "1G".parse().unwrap();
        PathDescription { rtt: Some(Span::from_ms(20).into()), ..PathDescription::of_link(link) }
    }

    fn windowed() -> Path {
        Path { window_bytes: Some(65_535.0), ..Path::gigabit() }
    }

    fn of(path: &PathDescription, questions: &Questions) -> Value {
        EnvelopeDocument::of(&answers(path, questions).unwrap()).unwrap().0
    }

    #[test]
    fn without_a_round_trip_nothing_is_reported_that_needs_one() {
        let questions = Questions { transfer: Some(Bytes::new(1_000_000)), ..Questions::default() };
        let found = of(&PathDescription { rtt: None, ..gigabit() }, &questions);
        for absent in ["needs", "startup", "loss", "loss_models", "offered", "burst"] {
            assert!(found.get(absent).is_none(), "{absent}");
        }
        assert!(found["path"].get("rtt_s").is_none() && found["transfer"].get("expected_s").is_none());
        assert_eq!(found["schema"], "linerate.envelope/2");
        assert_eq!(of(&gigabit(), &questions)["path"]["rtt_s"], 0.02);
    }

    #[test]
    fn every_number_that_a_range_moves_has_its_bounds() {
        let rtt = ValueRange::between(Span::from_ms(20), Span::from_ms(25));
        let found = of(&PathDescription { exact: windowed(), rtt, ..gigabit() }, &Questions::default());
        let bounds = &found["bounds"];
        let rate = |rtt: f64| 65_535.0 * 8.0 / rtt;
        let window = &bounds["/ceilings/receiver_window/bitrate_bps"];
        assert!((window["low"].as_f64().unwrap() / rate(0.025) - 1.0).abs() < 1e-9, "{window}");
        assert!((window["high"].as_f64().unwrap() / rate(0.020) - 1.0).abs() < 1e-9, "{window}");
        assert!(bounds.get("/ceilings/link/bitrate_bps").is_none(), "the link is the same");
        assert_eq!(found["binding_limits"], json!(["receiver_window"]));
        let link = ValueRange::between("10M".parse().unwrap(), "1G".parse().unwrap()).unwrap();
        let found = of(&PathDescription { exact: windowed(), link, ..gigabit() }, &Questions::default());
        assert_eq!(found["binding_limits"], json!(["link", "receiver_window"]));
    }

    #[test]
    fn a_ceiling_that_is_only_at_one_end_is_reported() {
        let loss = ValueRange::between(Ratio::default(), Ratio::new(1e-4).unwrap());
        let found = of(&PathDescription { loss, ..gigabit() }, &Questions::default());
        let loss = &found["bounds"]["/ceilings/loss/bitrate_bps"];
        // 1448 * 8 / 0.02 * sqrt(1.5 / 0.0001).
        let rate = 1448.0 * 8.0 / 0.02 * (1.5_f64 / 1e-4).sqrt();
        assert!(
            (loss["low"].as_f64().unwrap() / rate - 1.0).abs() < 1e-6 && loss["absent"] == true,
            "{loss}"
        );
        assert_eq!(found["binding_limits"], json!(["link", "loss"]));
    }

    #[test]
    fn one_answer_has_no_bounds() {
        let found = of(&gigabit(), &Questions::default());
        assert!(found.get("bounds").is_none() && found.get("binding_limits").is_none());
    }
}
