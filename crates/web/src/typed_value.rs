//! Values of a request that are written as on the command line.

use std::fmt::Display;
use std::ops::RangeInclusive;

use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::envelope::Congestion;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;

use crate::problem::{HttpProblem, INVALID_SETTING};

/// Most characters of a value.
const MAX_VALUE_CHARS: usize = 100;

/// A value as the command line takes it, such as `1G` or `20ms..25ms`; a number stands for its digits. An empty text is
/// as good as none.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "give a text such as \"1G\", or a number")]
pub(crate) enum TypedValue {
    Text(String),
    Number(Number),
}

/// Reads the value of a field, if it is given.
///
/// # Errors
/// The field cannot have this value.
pub(crate) fn read<T, E: Display>(
    field: &str,
    value: Option<&TypedValue>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, HttpProblem> {
    let wrong = |text: String| HttpProblem::new(INVALID_SETTING, text).at(field);
    let text = match value {
        None => return Ok(None),
        Some(TypedValue::Text(text)) => text.trim().to_owned(),
        Some(TypedValue::Number(number)) => number.to_string(),
    };
    if text.chars().count() > MAX_VALUE_CHARS {
        return Err(
            wrong(format!("a value has at most {MAX_VALUE_CHARS} characters")).limit(MAX_VALUE_CHARS as u64)
        );
    }
    if text.is_empty() {
        return Ok(None);
    }
    parse(&text).map(Some).map_err(|error| wrong(error.to_string()))
}

/// A parser of whole numbers within these bounds.
pub(crate) fn whole(bounds: RangeInclusive<u32>) -> impl Fn(&str) -> Result<u32, String> {
    move |text| {
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        number.ok_or_else(|| format!("give a whole number from {} to {}", bounds.start(), bounds.end()))
    }
}

/// A tunnel by its name.
pub(crate) fn tunnel(text: &str) -> Result<Encapsulation, String> {
    let names = || Encapsulation::ALL.map(Encapsulation::name).join(", ");
    Encapsulation::from_name(text).ok_or_else(|| format!("there is no such tunnel; give one of {}", names()))
}

/// A congestion control by its name.
pub(crate) fn congestion(text: &str) -> Result<Congestion, String> {
    let wrong = || "the model of that congestion control is not known; give reno, cubic or bbr".to_owned();
    Congestion::from_name(text).ok_or_else(wrong)
}

/// Refuses the first of these fields that is given although `other` excludes it.
///
/// # Errors
/// One of them is given.
pub(crate) fn exclude(other: &str, given: &[(&str, bool)]) -> Result<(), HttpProblem> {
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((field, _)) => {
            let text = format!("{field} has no meaning with {other}; remove one of them");
            Err(HttpProblem::new(INVALID_SETTING, text).at(*field))
        }
    }
}

/// Refuses `field` if it is given without `other`.
///
/// # Errors
/// It is given alone.
pub(crate) fn require(field: &str, given: bool, other: &str, has_other: bool) -> Result<(), HttpProblem> {
    if !given || has_other {
        return Ok(());
    }
    let text = format!("{field} needs {other} too; give both of them");
    Err(HttpProblem::new(INVALID_SETTING, text).at(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Option<TypedValue> {
        serde_json::from_str(json).ok()
    }

    #[test]
    fn texts_and_numbers_are_values_and_blanks_are_none() {
        let mtu = |json| read("mtu", value(json).as_ref(), whole(68..=65_535));
        assert_eq!(mtu(r#""1500""#), Ok(Some(1500)));
        assert_eq!(mtu("1500"), Ok(Some(1500)));
        assert_eq!(mtu(r#""  ""#), Ok(None));
        for wrong in ["67", "-1", "1500.5", r#""many""#, "1e99"] {
            let problem = mtu(wrong).unwrap_err();
            assert_eq!((problem.field.as_deref(), problem.status), (Some("mtu"), 422), "{wrong}");
            assert!(problem.detail.contains("68 to 65535"), "{problem:?}");
        }
        assert!(mtu(&format!("\"{}\"", "9".repeat(101))).unwrap_err().detail.contains("100 characters"));
        assert_eq!((value("[1]"), value("true")), (None, None));
    }
}
