//! Shares and relative errors.

use std::fmt;
use std::str::FromStr;

use crate::decimal::Decimal;
use crate::parse::{ParseError, ParseErrorKind};

/// A share or a relative error; finite and never negative. 1 is the whole.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ratio(f64);

const EXAMPLE: &str = "1% or 0.01";

impl Ratio {
    /// A ratio of `value`; `None` if that is negative or not finite.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then_some(Self(value))
    }

    /// The ratio; 1 is the whole.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// A text that parses back to the same ratio.
    #[must_use]
    pub fn exact(self) -> String {
        format!("{}", self.0)
    }

    /// The number of percent that is printed, without its sign.
    #[must_use]
    pub fn percent(self) -> String {
        match self.0 * 100.0 {
            p if p == 0.0 || p >= 0.1 => format!("{p:.1}"),
            p if p >= 0.01 => format!("{p:.3}"),
            p => format!("{p:.2e}"),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} %", self.percent()))
    }
}

impl FromStr for Ratio {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |trouble| ParseError { text: text.trim().to_owned(), trouble, example: EXAMPLE };
        let (number, unit) = Decimal::split(text).map_err(fail)?;
        let value = match unit {
            "" => number.times(1),
            "%" => number.hundredth(),
            other => Err(ParseErrorKind::UnknownUnit { unit: other.to_owned(), known: "% or none" }),
        };
        Self::new(value.map_err(fail)?).ok_or_else(|| fail(ParseErrorKind::TooLarge))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percent_and_plain_are_the_same_ratio() {
        assert_eq!("1%".parse::<Ratio>().unwrap().get(), 0.01);
        assert_eq!("1e-4".parse::<Ratio>().unwrap().get(), 1e-4);
        assert_eq!("-1%".parse::<Ratio>().unwrap_err().trouble, ParseErrorKind::Negative);
        assert!("1 pct".parse::<Ratio>().is_err());
    }

    #[test]
    fn a_percentage_is_rounded_once() {
        for tenths in 1..10_000_u32 {
            let [percent, plain] = [format!("{tenths}e-1%"), format!("{tenths}e-3")];
            assert_eq!(percent.parse::<Ratio>(), plain.parse::<Ratio>(), "{percent}");
        }
        assert_eq!("1e-37%".parse::<Ratio>().unwrap_err().trouble, ParseErrorKind::TooFine);
    }

    #[test]
    fn people_see_percent() {
        assert_eq!(Ratio::new(0.9994).unwrap().to_string(), "99.9 %");
        assert_eq!(Ratio::new(0.0).unwrap().to_string(), "0.0 %");
        assert_eq!(Ratio::new(5.26e-4).unwrap().to_string(), "0.053 %");
        assert_eq!(Ratio::new(2.86e-5).unwrap().to_string(), "2.86e-3 %");
    }

    proptest! {
        #[test]
        fn exact_text_round_trips(thousandths in 0_u32..2_000_000) {
            let ratio = Ratio::new(f64::from(thousandths) / 1000.0).unwrap();
            prop_assert_eq!(ratio.exact().parse::<Ratio>().unwrap(), ratio);
        }
    }
}
