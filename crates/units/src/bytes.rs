//! A count of bytes.

use std::fmt;
use std::str::FromStr;

use crate::decimal::Decimal;
use crate::parse::{ParseError, ParseErrorKind};

/// A count of bytes.
///
/// # Units
/// bytes
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

const EXAMPLE: &str = "64K or 64KiB (65536 bytes), 1MB (1000000 bytes)";
const KNOWN: &str = "K M G T (binary), KiB MiB GiB TiB (binary), kB MB GB TB (decimal), B";
const BINARY: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl Bytes {
    /// A count of `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Parses a printed figure, such as `6.57GiB`, as the nearest whole number of bytes. A fraction of bytes
    /// without a larger unit is an error, as in [`FromStr`], which requires an exact value.
    ///
    /// # Errors
    /// The text is no count of bytes.
    pub fn nearest(text: &str) -> Result<Self, ParseError> {
        let fail = |trouble| ParseError { text: text.trim().to_owned(), trouble, example: EXAMPLE };
        let (number, unit) = Decimal::split(text).map_err(fail)?;
        match factor(unit).map_err(fail)? {
            1 => number.times_whole(1, "bytes"),
            factor => number.times_nearest(factor),
        }
        .map(Self)
        .map_err(fail)
    }

    /// A text that parses back to the same count.
    #[must_use]
    pub fn exact(self) -> String {
        for (name, size) in BINARY {
            if self.0 >= size && self.0.is_multiple_of(size) {
                return format!("{}{name}", self.0 / size);
            }
        }
        format!("{}B", self.0)
    }

    /// The number of this count in the unit in which `reference` is printed, and that unit: several counts in one
    /// text have one unit.
    #[must_use]
    pub fn in_unit_of(self, reference: Self) -> (String, &'static str) {
        let (unit, size) = BINARY.into_iter().find(|(_, size)| reference.0 >= *size).unwrap_or(("B", 1));
        let places = if self.0.is_multiple_of(size) { 0 } else { 2 };
        (format!("{:.places$}", self.0 as f64 / size as f64), unit)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.in_unit_of(*self);
        f.pad(&format!("{number} {unit}"))
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |trouble| ParseError { text: text.trim().to_owned(), trouble, example: EXAMPLE };
        let (number, unit) = Decimal::split(text).map_err(fail)?;
        let factor = factor(unit).map_err(fail)?;
        number.times_whole(factor, "bytes").map(Self).map_err(fail)
    }
}

/// Bytes per unit.
fn factor(unit: &str) -> Result<u64, ParseErrorKind> {
    Ok(match unit {
        "" | "B" | "b" => 1,
        "k" | "K" | "KiB" | "kiB" | "Ki" => 1 << 10,
        "m" | "M" | "MiB" | "Mi" => 1 << 20,
        "g" | "G" | "GiB" | "Gi" => 1 << 30,
        "t" | "T" | "TiB" | "Ti" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        other => return Err(ParseErrorKind::UnknownUnit { unit: other.to_owned(), known: KNOWN }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> u64 {
        text.parse::<Bytes>().unwrap().get()
    }

    #[test]
    fn bare_letters_are_binary_and_named_decimal_units_are_decimal() {
        assert_eq!(parse("64K"), 65_536);
        assert_eq!(parse("64KiB"), 65_536);
        assert_eq!(parse("64kB"), 64_000);
        assert_eq!(parse("1.5M"), 1_572_864);
        assert_eq!(parse("1G"), 1_073_741_824);
        assert_eq!(parse("2TB"), 2_000_000_000_000);
        assert_eq!(parse(" 1e3 "), 1_000);
    }

    #[test]
    fn printed_figures_are_the_nearest_whole_count() {
        let nearest = |text: &str| Bytes::nearest(text).map(Bytes::get);
        // 6.57 x 2^30 = 7054483783.68
        assert_eq!(nearest("6.57GiB"), Ok(7_054_483_784));
        assert_eq!(nearest("1.3K"), Ok(1331));
        assert_eq!(nearest("64K"), Ok(65_536));
        assert!(matches!(nearest("1.5").unwrap_err().trouble, ParseErrorKind::NotWhole { .. }));
        assert!(nearest("-1K").is_err() && nearest("99999999999G").is_err());
    }

    #[test]
    fn what_cannot_be_kept_exactly_is_refused_and_named() {
        let trouble = |text: &str| text.parse::<Bytes>().unwrap_err().trouble;
        assert_eq!(trouble("1.3K"), ParseErrorKind::NotWhole { of: "bytes" });
        assert_eq!(trouble("-1"), ParseErrorKind::Negative);
        assert_eq!(trouble(""), ParseErrorKind::Empty);
        assert_eq!(trouble("K"), ParseErrorKind::NotANumber);
        assert_eq!(trouble("99999999999999999999"), ParseErrorKind::TooLarge);
        assert_eq!(trouble("18446744073709551615K"), ParseErrorKind::TooLarge);
        assert!(matches!(trouble("1X"), ParseErrorKind::UnknownUnit { .. }));
        let message = "12Q".parse::<Bytes>().unwrap_err().to_string();
        assert!(message.contains("'Q'") && message.contains("KiB"), "{message}");
    }

    #[test]
    fn people_see_binary_labels() {
        assert_eq!(Bytes::new(65_536).to_string(), "64 KiB");
        assert_eq!(Bytes::new(1_448).to_string(), "1.41 KiB");
        assert_eq!(Bytes::new(999).to_string(), "999 B");
        assert_eq!(format!("{:>8}", Bytes::new(1)), "     1 B");
    }

    proptest! {
        #[test]
        fn exact_text_round_trips(count in any::<u64>(), shift in 0_u32..50) {
            let bytes = Bytes::new(count >> shift);
            prop_assert_eq!(bytes.exact().parse::<Bytes>().unwrap(), bytes);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = text.parse::<Bytes>();
        }
    }
}
