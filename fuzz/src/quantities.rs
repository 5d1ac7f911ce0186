//! Quantities as a user types them.

use std::ops::RangeInclusive;

use linerate_units::{Bitrate, Bytes, Ratio, Span};

/// Rates and ratios are floats: outside of the range of real networks, their exact form has more digits than
/// are parsed.
const USUAL_RANGE: RangeInclusive<f64> = 1e-9..=1e18;

/// A quantity that parses also parses from its exact form, to the same quantity.
pub fn units(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(value) = text.parse::<Bytes>() {
        assert_eq!(value.exact().parse(), Ok(value));
    }
    if let Ok(value) = text.parse::<Span>() {
        assert_eq!(value.exact().parse(), Ok(value));
    }
    if let Some(value) = text.parse::<Bitrate>().ok().filter(|value| USUAL_RANGE.contains(&value.bps())) {
        assert_eq!(value.exact().parse(), Ok(value));
    }
    if let Some(value) = text.parse::<Ratio>().ok().filter(|value| USUAL_RANGE.contains(&value.get())) {
        assert_eq!(value.exact().parse(), Ok(value));
    }
}
