//! Bits per second.

use std::fmt;
use std::str::FromStr;

use crate::bytes::Bytes;
use crate::decimal::Decimal;
use crate::parse::{ParseError, ParseErrorKind};
use crate::time::Span;

/// Bits per second; finite and never negative.
///
/// A bit rate is a quotient of two measurements, so it is a real number, not a count.
///
/// # Units
/// bit/s
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Bitrate(f64);

const EXAMPLE: &str = "100M, 2.5Gb/s, 80k (decimal: 1M is 1000000 bit/s)";
const KNOWN: &str = "k M G T with or without b/s, bit/s or bps (decimal), MB/s (8 x 10^6 bit/s), MiB/s";
const DECIMAL: [(&str, f64); 4] = [("Tb/s", 1e12), ("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3)];

impl Bitrate {
    /// Zero.
    pub const ZERO: Self = Self(0.0);

    /// A rate of `bps` bits per second; `None` if that is negative or not finite.
    #[must_use]
    pub fn from_bps(bps: f64) -> Option<Self> {
        (bps.is_finite() && bps >= 0.0).then_some(Self(bps))
    }

    /// The rate of `bytes` in `span`; `None` if `span` is zero.
    #[must_use]
    pub fn of(bytes: Bytes, span: Span) -> Option<Self> {
        Self::from_bps(bytes.get() as f64 * 8.0 / span.as_secs_f64())
    }

    /// Bits per second.
    #[must_use]
    pub const fn bps(self) -> f64 {
        self.0
    }

    /// Time that `bytes` take at this rate; `None` at rate zero or beyond the range of [`Span`].
    #[must_use]
    pub fn time_for(self, bytes: Bytes) -> Option<Span> {
        if self.0 == 0.0 {
            return None;
        }
        Span::from_secs_f64(bytes.get() as f64 * 8.0 / self.0)
    }

    /// The rate with its interval; `None` if the half-width is 0, which means unknown.
    #[must_use]
    pub fn within(self, half_width: Self) -> Option<RateInterval> {
        (half_width.0 > 0.0).then_some(RateInterval { rate: self, half_width, above: Self(0.0) })
    }

    /// A text that parses back to the same rate.
    #[must_use]
    pub fn exact(self) -> String {
        format!("{}b/s", self.0)
    }

    /// The number of this rate in the unit in which `reference` is printed and with its decimal places, and that
    /// unit: several rates in one text have one unit.
    ///
    /// ```
    /// use linerate_units::Bitrate;
    /// let (rate, high) = (Bitrate::from_bps(940e6).unwrap(), Bitrate::from_bps(1.034e9).unwrap());
    /// assert_eq!(high.in_unit_of(rate), ("1034.0".to_owned(), "Mb/s"));
    /// ```
    #[must_use]
    pub fn in_unit_of(self, reference: Self) -> (String, &'static str) {
        let ((unit, size), places) = (reference.unit_and_size(), reference.places());
        (format!("{:.places$}", self.0 / size), unit)
    }

    /// The unit after rounding: 999.96 Mb/s is 1.000 Gb/s.
    fn unit_and_size(self) -> (&'static str, f64) {
        DECIMAL.into_iter().find(|(_, size)| self.0 / size >= 0.99995).unwrap_or(("b/s", 1.0))
    }

    /// Decimal places of this rate with four digits.
    fn places(self) -> usize {
        let (name, size) = self.unit_and_size();
        match self.0 / size {
            _ if name == "b/s" => 0,
            value if value >= 999.95 => 0,
            value if value >= 99.995 => 1,
            value if value >= 9.9995 => 2,
            _ => 3,
        }
    }
}

/// A rate and its interval, such as `941.5 Mb/s (941.1 to 941.9)`.
///
/// The rate has four digits, or as many as its ends, however uncertain it is. The ends are printed to the
/// second digit of the half-width, or to the last digit of the rate if that is precise enough. They are rounded
/// outwards, so the interval is never too narrow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateInterval {
    rate: Bitrate,
    half_width: Bitrate,
    above: Bitrate,
}

impl RateInterval {
    /// Raises the upper end by this rate.
    #[must_use]
    pub const fn extended_upwards(self, above: Bitrate) -> Self {
        Self { above, ..self }
    }

    /// Lower end; 0 if the half-width is larger than the rate.
    #[must_use]
    pub fn low(&self) -> Bitrate {
        Bitrate((self.rate.0 - self.half_width.0).max(0.0))
    }

    /// Upper end.
    #[must_use]
    pub fn high(&self) -> Bitrate {
        Bitrate((self.rate.0 + self.half_width.0 + self.above.0).min(f64::MAX))
    }

    /// Both ends, such as `941.1 to 941.9 Mb/s`.
    #[must_use]
    pub fn ends(&self) -> String {
        let (low, high, _) = self.digits();
        format!("{low} to {high} {}", self.rate.unit_and_size().0)
    }

    /// Both ends as numbers, and their decimal places.
    fn digits(&self) -> (String, String, usize) {
        let (_, size) = self.rate.unit_and_size();
        let half = self.half_width.0 / size;
        // The second digit of the half-width, unless the fourth digit of the rate is precise enough. Nothing is
        // measured more precisely than 1e-9 of the unit.
        let second = (half.log10().floor() - 1.0).clamp(-9.0, 12.0);
        let fourth = -(self.rate.places() as f64);
        let last = if half >= 2.0 * 10_f64.powf(fourth) { second.max(fourth) } else { second };
        let (step, places) = (10_f64.powf(last), (-last).max(0.0) as usize);
        // An end that is a whole number of steps except for its binary rounding is kept.
        let low = (self.low().0 / size / step + 1e-6).floor() * step;
        let high = (self.high().0 / size / step - 1e-6).ceil() * step;
        (format!("{low:.places$}"), format!("{high:.places$}"), places)
    }
}

impl fmt::Display for RateInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((name, size), (low, high, places)) = (self.rate.unit_and_size(), self.digits());
        let (value, places) = (self.rate.0 / size, places.max(self.rate.places()));
        f.pad(&format!("{value:.places$} {name} ({low} to {high})"))
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.in_unit_of(*self);
        f.pad(&format!("{number} {unit}"))
    }
}

impl FromStr for Bitrate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |trouble| ParseError { text: text.trim().to_owned(), trouble, example: EXAMPLE };
        let (number, unit) = Decimal::split(text).map_err(fail)?;
        let factor = unit_factor(unit)
            .ok_or_else(|| fail(ParseErrorKind::UnknownUnit { unit: unit.to_owned(), known: KNOWN }))?;
        let bps = number.times(factor).map_err(fail)?;
        Self::from_bps(bps).ok_or_else(|| fail(ParseErrorKind::TooLarge))
    }
}

fn unit_factor(unit: &str) -> Option<u64> {
    match unit {
        "kB/s" | "KB/s" => return Some(8_000),
        "MB/s" => return Some(8_000_000),
        "GB/s" => return Some(8_000_000_000),
        "KiB/s" => return Some(8 << 10),
        "MiB/s" => return Some(8 << 20),
        "GiB/s" => return Some(8 << 30),
        "B/s" => return Some(8),
        _ => {}
    }
    let prefix = ["bit/s", "bits/s", "b/s", "bps", "bit", ""].iter().find_map(|s| unit.strip_suffix(s))?;
    match prefix {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "m" | "M" => Some(1_000_000),
        "g" | "G" => Some(1_000_000_000),
        "t" | "T" => Some(1_000_000_000_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> f64 {
        text.parse::<Bitrate>().unwrap().bps()
    }

    #[test]
    fn rates_are_decimal() {
        assert_eq!(parse("100M"), 1e8);
        assert_eq!(parse("2.5G"), 2.5e9);
        assert_eq!(parse("1Gbit"), 1e9);
        assert_eq!(parse("1Gbps"), 1e9);
        assert_eq!(parse("10 Mb/s"), 1e7);
        assert_eq!(parse("1 MB/s"), 8e6);
        assert_eq!(parse("1 MiB/s"), 8_388_608.0);
        assert_eq!(parse("0"), 0.0);
    }

    #[test]
    fn nonsense_is_named() {
        for text in ["", "fast", "-1M", "10Z", "10 furlongs", "1e999"] {
            let error = text.parse::<Bitrate>().unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn people_see_four_digits() {
        let show = |bps| Bitrate::from_bps(bps).unwrap().to_string();
        assert_eq!(show(941_482_444.733), "941.5 Mb/s");
        assert_eq!(show(9_414_824_447.0), "9.415 Gb/s");
        assert_eq!(show(94_148_244.0), "94.15 Mb/s");
        assert_eq!(show(999_960_000.0), "1.000 Gb/s");
        assert_eq!(show(12.0), "12 b/s");
    }

    #[test]
    fn what_was_received_is_printed_whatever_is_known_of_it() {
        let show = |bps: f64, half: f64| {
            Bitrate::from_bps(bps)
                .unwrap()
                .within(Bitrate::from_bps(half).unwrap())
                .map(|found| found.to_string())
        };
        let shown = |bps, half| show(bps, half).unwrap();
        assert_eq!(shown(939.7e6, 22.4e6), "939.7 Mb/s (917 to 963)");
        assert_eq!(shown(941_482_444.7, 0.4e6), "941.5 Mb/s (941.0 to 941.9)");
        assert_eq!(shown(941_482_444.7, 0.12e6), "941.48 Mb/s (941.36 to 941.61)", "finer where it is known");
        assert_eq!(shown(941.5e6, 4.2e6), "941.5 Mb/s (937.3 to 945.7)");
        assert_eq!(shown(9_414_824_447.0, 163e6), "9.415 Gb/s (9.25 to 9.58)");
        assert_eq!(shown(900e6, 300e6), "900.0 Mb/s (600 to 1200)", "the rate keeps its digits");
        assert_eq!(shown(3e6, 4e6), "3.000 Mb/s (0.0 to 7.0)", "nothing is received less than not at all");
        assert_eq!(shown(999_970_000.0, 2e4), "0.999970 Gb/s (0.999950 to 0.999990)");
        assert_eq!(shown(12.0, 3.0), "12 b/s (9 to 15)");
        assert_eq!(show(1e9, 0.0), None);
    }

    proptest! {
        #[test]
        fn printed_ends_hold_the_ends(bps in 1.0_f64..4e11, part in 1e-6_f64..0.9) {
            let rate = Bitrate::from_bps(bps).unwrap();
            let found = rate.within(Bitrate::from_bps(bps * part).unwrap()).unwrap();
            let text = found.ends();
            let (low, rest) = text.split_once(" to ").unwrap();
            let (high, unit) = rest.split_once(' ').unwrap();
            let read = |number: &str| format!("{number}{unit}").parse::<Bitrate>().unwrap().bps();
            prop_assert!(read(low) <= found.low().bps() * (1.0 + 1e-6) && read(high) >= found.high().bps() * (1.0 - 1e-6), "{text}");
            prop_assert!(read(high) - read(low) <= 2.0 * bps * part * 1.51 + 2.0, "{text}");
        }
    }

    #[test]
    fn quotients_have_a_domain() {
        assert_eq!(Bitrate::of(Bytes::new(125), Span::from_secs(1)).unwrap().bps(), 1000.0);
        assert_eq!(Bitrate::of(Bytes::new(125), Span::ZERO), None);
        assert_eq!(Bitrate::from_bps(f64::NAN), None);
        assert_eq!(Bitrate::from_bps(-1.0), None);
        let second = Bitrate::from_bps(8e6).unwrap().time_for(Bytes::new(1_000_000));
        assert_eq!(second, Some(Span::from_secs(1)));
        assert_eq!(Bitrate::ZERO.time_for(Bytes::new(1)), None);
    }

    proptest! {
        #[test]
        fn exact_text_round_trips(whole in 0_u64..400_000_000_000, thousandths in 0_u32..1000) {
            let rate = Bitrate::from_bps(whole as f64 + f64::from(thousandths) / 1000.0).unwrap();
            prop_assert_eq!(rate.exact().parse::<Bitrate>().unwrap(), rate);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = text.parse::<Bitrate>();
        }
    }
}
