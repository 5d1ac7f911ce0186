//! Bits per second.

use std::fmt;
use std::str::FromStr;

use crate::bytes::Bytes;
use crate::decimal::Decimal;
use crate::parse::{ParseError, Trouble};
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
    /// No bits at all.
    pub const ZERO: Self = Self(0.0);

    /// A rate of `bps` bits per second; absent when that is negative or not finite.
    #[must_use]
    pub fn from_bps(bps: f64) -> Option<Self> {
        (bps.is_finite() && bps >= 0.0).then_some(Self(bps))
    }

    /// The rate at which `bytes` pass in `span`; absent when `span` is zero.
    #[must_use]
    pub fn of(bytes: Bytes, span: Span) -> Option<Self> {
        Self::from_bps(bytes.get() as f64 * 8.0 / span.as_secs_f64())
    }

    /// Bits per second.
    #[must_use]
    pub const fn bps(self) -> f64 {
        self.0
    }

    /// Time in which `bytes` pass at this rate; absent at rate zero or when it exceeds the range of [`Span`].
    #[must_use]
    pub fn time_for(self, bytes: Bytes) -> Option<Span> {
        if self.0 == 0.0 {
            return None;
        }
        Span::from_secs_f64(bytes.get() as f64 * 8.0 / self.0)
    }

    /// The rate with the half-width of the interval in which it lies, as `941.5 +/- 0.4 Mb/s`.
    ///
    /// The half-width has one digit, two where the first is a 1, and is rounded up; the rate is rounded to its last
    /// digit, so that no digit is printed that is not known. Absent when the half-width is 0, which nothing is.
    #[must_use]
    pub fn within(self, half_width: Self) -> Option<String> {
        let (name, size) =
            DECIMAL.into_iter().find(|(_, size)| self.0 / size >= 0.99995).unwrap_or(("b/s", 1.0));
        let (value, half) = (self.0 / size, half_width.0 / size);
        if half <= 0.0 {
            return None;
        }
        let magnitude = half.log10().floor();
        let last = if half / 10_f64.powf(magnitude) < 2.0 { magnitude - 1.0 } else { magnitude };
        // Finer than a bit per second is nothing that anybody measures.
        let last = last.clamp(-9.0, 12.0);
        let (step, digits) = (10_f64.powf(last), (-last).max(0.0) as usize);
        // A half-width that is a whole number of steps but for its binary rounding stays that.
        let half = (half / step - 1e-9).ceil() * step;
        let value = (value / step).round() * step;
        Some(format!("{value:.digits$} +/- {half:.digits$} {name}"))
    }

    /// A text that parses back to the same rate.
    #[must_use]
    pub fn exact(self) -> String {
        format!("{}b/s", self.0)
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Four digits, and the unit that rounding lands in: 999.96 Mb/s is 1.000 Gb/s.
        for (name, size) in DECIMAL {
            let value = self.0 / size;
            if value >= 0.99995 {
                let digits = if value >= 999.95 {
                    0
                } else if value >= 99.995 {
                    1
                } else if value >= 9.9995 {
                    2
                } else {
                    3
                };
                return f.pad(&format!("{value:.digits$} {name}"));
            }
        }
        f.pad(&format!("{:.0} b/s", self.0))
    }
}

impl FromStr for Bitrate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |trouble| ParseError { text: text.trim().to_owned(), trouble, example: EXAMPLE };
        let (number, unit) = Decimal::split(text).map_err(fail)?;
        let factor = unit_factor(unit)
            .ok_or_else(|| fail(Trouble::UnknownUnit { unit: unit.to_owned(), known: KNOWN }))?;
        let bps = number.times(factor).map_err(fail)?;
        Self::from_bps(bps).ok_or_else(|| fail(Trouble::TooLarge))
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
    fn digits_end_where_knowledge_ends() {
        let show =
            |bps: f64, half: f64| Bitrate::from_bps(bps).unwrap().within(Bitrate::from_bps(half).unwrap());
        let shown = |bps, half| show(bps, half).unwrap();
        assert_eq!(shown(941_482_444.7, 0.4e6), "941.5 +/- 0.4 Mb/s");
        assert_eq!(shown(941_482_444.7, 0.31e6), "941.5 +/- 0.4 Mb/s", "never narrower than it is");
        assert_eq!(shown(941_482_444.7, 0.123e6), "941.48 +/- 0.13 Mb/s", "a 1 is not enough");
        assert_eq!(shown(9_414_824_447.0, 163e6), "9.41 +/- 0.17 Gb/s");
        assert_eq!(shown(38.4e9, 4.2e9), "38 +/- 5 Gb/s");
        assert_eq!(shown(846.0e6, 163e6), "850 +/- 170 Mb/s");
        assert_eq!(shown(999_970_000.0, 2e4), "0.99997 +/- 0.00002 Gb/s");
        assert_eq!(shown(12.0, 3.0), "12 +/- 3 b/s");
        assert_eq!(show(1e9, 0.0), None);
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
