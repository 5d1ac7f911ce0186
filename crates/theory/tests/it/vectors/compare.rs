//! Compares a calculated value with an expected one, of any JSON shape.

use serde::Deserialize;
use serde_json::Value;

/// Allowed deviation of a number; `rel` 0 requires equality.
#[derive(Deserialize)]
pub(crate) struct Tolerance {
    #[serde(default)]
    rel: f64,
    #[serde(default)]
    abs: f64,
}

/// Describes the difference; `None` if `got` is within tolerance.
pub(crate) fn difference(got: &Value, expected: &Value, tolerance: &Tolerance) -> Option<String> {
    match (got, expected) {
        (Value::Number(_), Value::Number(_)) => {
            let (got, expected) = (got.as_f64()?, expected.as_f64()?);
            let allowed = (tolerance.rel * expected.abs()).max(tolerance.abs);
            ((got - expected).abs() > allowed)
                .then(|| format!("got {got}, expected {expected} within {allowed}"))
        }
        (Value::Array(got), Value::Array(expected)) if got.len() == expected.len() => {
            got.iter().zip(expected).find_map(|(g, e)| difference(g, e, tolerance))
        }
        (Value::Object(got), Value::Object(expected)) if got.keys().eq(expected.keys()) => {
            got.iter().find_map(|(key, g)| {
                difference(g, &expected[key], tolerance).map(|fault| format!("{key}: {fault}"))
            })
        }
        _ => (got != expected).then(|| format!("got {got}, expected {expected}")),
    }
}

#[test]
fn vectors_comparison_sees_differences() {
    let tolerance = Tolerance { rel: 1e-9, abs: 0.0 };
    let check = |got: &str, expected: &str| {
        let parse = |text| serde_json::from_str::<Value>(text).unwrap();
        difference(&parse(got), &parse(expected), &tolerance)
    };
    assert_eq!(check("[1, {\"a\": 2.0}]", "[1, {\"a\": 2}]"), None);
    assert!(check("1.00001", "1").is_some());
    assert!(check("[1]", "[1, 2]").is_some());
    assert!(check("{\"a\": 1}", "{\"b\": 1}").is_some());
    assert!(check("true", "false").is_some());
}
