//! Quantities as somebody types them.

use std::ops::RangeInclusive;

use linerate_units::{Bitrate, Bytes, Ratio, Span};

/// Rates and ratios are kept as floats: far from every network, their exact form has more digits than are read.
const USUAL_RANGE: RangeInclusive<f64> = 1e-9..=1e18;

/// What is understood is understood again from its exact form, as the same quantity.
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
