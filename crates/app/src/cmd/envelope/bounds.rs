//! The JSON document: one answer, or several with the bounds of every number.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::answer::Answer;

/// The smallest and the largest value of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Bounds {
    low: f64,
    high: f64,
    /// Whether the number is missing at one of the ends, such as the loss ceiling at a loss of zero.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    absent: bool,
}

/// The document of the first answer. With several answers, `bounds` contains every number that differs between
/// them, by its path in the document; ceilings are named by their limits there. `binding_limits` contains all
/// binding limits.
///
/// # Errors
/// None is expected for documents of numbers and strings.
pub(super) fn document(answers: &[Answer]) -> serde_json::Result<Value> {
    let documents = answers.iter().map(Answer::document).collect::<serde_json::Result<Vec<Value>>>()?;
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
    Ok(first)
}

fn bounds(documents: &[Value]) -> BTreeMap<String, Bounds> {
    let mut found: BTreeMap<String, (Bounds, usize)> = BTreeMap::new();
    for document in documents {
        numbers(document, "", &mut |path, value| {
            let fresh = Bounds { low: value, high: value, absent: false };
            let (bounds, seen) = found.entry(path.to_owned()).or_insert((fresh, 0));
            (bounds.low, bounds.high, *seen) = (bounds.low.min(value), bounds.high.max(value), *seen + 1);
        });
    }
    let told = |(path, (bounds, seen)): (String, (Bounds, usize))| {
        let absent = seen < documents.len();
        (bounds.low < bounds.high || absent).then_some((path, Bounds { absent, ..bounds }))
    };
    found.into_iter().filter_map(told).collect()
}

/// Every number of a document with its path.
fn numbers(value: &Value, path: &str, tell: &mut impl FnMut(&str, f64)) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| numbers(field, &format!("{path}/{name}"), tell));
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let name = item["limit"].as_str().map_or_else(|| number.to_string(), str::to_owned);
                numbers(item, &format!("{path}/{name}"), tell);
            }
        }
        Value::Number(number) => number.as_f64().into_iter().for_each(|number| tell(path, number)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::typed;
    use super::super::{Answer, paths};
    use super::*;

    fn of(line: &str) -> Value {
        let args = typed(line);
        let answers: Vec<Answer> = paths(&args).iter().map(|path| Answer::to(&args, path).unwrap()).collect();
        document(&answers).unwrap()
    }

    #[test]
    fn every_number_that_a_range_moves_has_its_bounds() {
        let found = of("--link 1G --rtt 20ms..25ms --window 65535");
        let bounds = &found["bounds"];
        let rate = |rtt: f64| 65_535.0 * 8.0 / rtt;
        let window = &bounds["/ceilings/receiver_window/bitrate_bps"];
        assert!((window["low"].as_f64().unwrap() / rate(0.025) - 1.0).abs() < 1e-9, "{window}");
        assert!((window["high"].as_f64().unwrap() / rate(0.020) - 1.0).abs() < 1e-9, "{window}");
        assert!(bounds.get("/ceilings/link/bitrate_bps").is_none(), "the link is the same");
        assert_eq!(found["binding_limits"], json!(["receiver_window"]));
        let found = of("--link 10M..1G --rtt 20ms --window 65535");
        assert_eq!(found["binding_limits"], json!(["link", "receiver_window"]));
    }

    #[test]
    fn a_ceiling_that_is_only_at_one_end_is_told() {
        let found = of("--link 1G --rtt 20ms --loss 0..0.01%");
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
        let found = of("--link 1G --rtt 20ms..20ms");
        assert!(found.get("bounds").is_none() && found.get("binding_limits").is_none());
    }
}
