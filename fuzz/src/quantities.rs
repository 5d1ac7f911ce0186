//! Quantities as somebody types them.

use linerate_units::{Bitrate, Bytes, Ratio, Span};

/// A bit in thirty years.
const SLOWEST_BPS: f64 = 1e-9;
/// All the links of this world.
const FASTEST_BPS: f64 = 1e18;

/// What is understood is understood again from its exact form, as the same quantity.
pub fn units(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(value) = text.parse::<Bytes>() {
        assert_eq!(value.exact().parse(), Ok(value));
    }
    // A rate is kept as a float: far from every network its exact form has more digits than are read.
    if let Ok(value) = text.parse::<Bitrate>()
        && (SLOWEST_BPS..=FASTEST_BPS).contains(&value.bps())
    {
        assert_eq!(value.exact().parse(), Ok(value));
    }
    if let Ok(value) = text.parse::<Span>() {
        assert_eq!(value.exact().parse(), Ok(value));
    }
    if let Ok(value) = text.parse::<Ratio>() {
        assert_eq!(value.exact().parse(), Ok(value));
    }
}
