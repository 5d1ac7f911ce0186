//! Spans of time, and instants counted from the start of a run.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

use crate::decimal::Decimal;
use crate::parse::{ParseError, ParseErrorKind};

/// A span of time, never negative.
///
/// # Units
/// nanoseconds
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

/// An instant: nanoseconds since the start of the run, on the clock of the host that reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

const EXAMPLE: &str = "10 or 10s, 250ms, 2m, 1h";
const KNOWN: &str = "ns us ms s m h (a bare number is seconds)";
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Span {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// A span of `ns` nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// The span nearest to `secs` seconds; `None` if that is negative, not finite or beyond 584 years.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Option<Self> {
        let ns = (secs * 1e9).round();
        (ns.is_finite() && ns >= 0.0 && ns < u64::MAX as f64).then_some(Self(ns as u64))
    }

    /// Nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The same span as a [`Duration`].
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// This span minus `other`, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This span times `times`, at most the largest span.
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// A text that parses back to the same span.
    #[must_use]
    pub fn exact(self) -> String {
        for (name, size) in UNITS.into_iter().skip(2) {
            if self.0.is_multiple_of(size) {
                return format!("{}{name}", self.0 / size);
            }
        }
        format!("{}ns", self.0)
    }

    /// The number of this span in the unit in which `reference` is printed, and that unit: several spans in one text
    /// have one unit.
    #[must_use]
    pub fn in_unit_of(self, reference: Self) -> (String, &'static str) {
        // Minutes and hours are printed in seconds too.
        let (unit, size) =
            UNITS.into_iter().skip(2).find(|(_, size)| reference.0 >= *size).unwrap_or(("s", 1_000_000_000));
        let value = self.0 as f64 / size as f64;
        let places = match value {
            _ if self.0.is_multiple_of(size) => 0,
            value if value < 9.995 => 2,
            _ => 1,
        };
        (format!("{value:.places$}"), unit)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.in_unit_of(*self);
        f.pad(&format!("{number} {unit}"))
    }
}

impl FromStr for Span {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |trouble| ParseError { text: text.trim().to_owned(), trouble, example: EXAMPLE };
        let (number, unit) = Decimal::split(text).map_err(fail)?;
        let unit = match unit {
            "" | "sec" => "s",
            "min" => "m",
            "µs" => "us",
            other => other,
        };
        let factor = UNITS
            .into_iter()
            .find_map(|(name, size)| (name == unit).then_some(size))
            .ok_or_else(|| fail(ParseErrorKind::UnknownUnit { unit: unit.to_owned(), known: KNOWN }))?;
        number.times_whole(factor, "nanoseconds").map(Self).map_err(fail)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Timestamp {
    /// The start of the run.
    pub const START: Self = Self(0);

    /// The instant `ns` nanoseconds after the start of the run.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the start of the run.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Timestamp {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub for Timestamp {
    type Output = Span;

    fn sub(self, earlier: Self) -> Span {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_parse_to_the_nanosecond() {
        let ns = |text: &str| text.parse::<Span>().unwrap().as_ns();
        assert_eq!(ns("10"), 10_000_000_000);
        assert_eq!(ns("0.021"), 21_000_000);
        assert_eq!(ns("250ms"), 250_000_000);
        assert_eq!(ns("1.5us"), 1_500);
        assert_eq!(ns("2m"), 120_000_000_000);
        assert_eq!(ns("1h"), 3_600_000_000_000);
        assert_eq!(
            "0.5ns".parse::<Span>().unwrap_err().trouble,
            ParseErrorKind::NotWhole { of: "nanoseconds" }
        );
        assert_eq!("-3".parse::<Span>().unwrap_err().trouble, ParseErrorKind::Negative);
        assert!("1d".parse::<Span>().unwrap_err().to_string().contains("'d'"));
    }

    #[test]
    fn people_see_three_digits() {
        assert_eq!(Span::from_ns(21_345_678).to_string(), "21.3 ms");
        assert_eq!(Span::from_ns(1_234).to_string(), "1.23 us");
        assert_eq!(Span::from_secs(10).to_string(), "10 s");
        assert_eq!(Span::ZERO.to_string(), "0 s");
    }

    #[test]
    fn instants_never_run_backwards() {
        let early = Timestamp::from_ns(5);
        let late = early + Span::from_ns(7);
        assert_eq!(late - early, Span::from_ns(7));
        assert_eq!(early - late, Span::ZERO);
        assert_eq!(Span::from_secs_f64(-1.0), None);
        assert_eq!(Span::from_secs_f64(f64::INFINITY), None);
    }

    proptest! {
        #[test]
        fn exact_text_round_trips(ns in any::<u64>(), shift in 0_u32..60) {
            let span = Span::from_ns(ns >> shift);
            prop_assert_eq!(span.exact().parse::<Span>().unwrap(), span);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = text.parse::<Span>();
        }
    }
}
