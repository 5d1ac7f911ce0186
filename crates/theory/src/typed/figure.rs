//! Published figures as people type them, with their precision.

use linerate_model::import::{Claim, ClaimScope, Figure, ForeignTest, Quantity};
use linerate_model::metrics::Side;
use linerate_units::{Bitrate, Ratio, Span, above_zero};

use super::{Parsed, TypedValueError, amount, round_trip, with_rate_unit};

/// A figure as typed.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedFigure {
    /// Value in the unit of its quantity.
    pub value: f64,
    /// Value of one unit in the last typed digit.
    pub step: f64,
    /// The typed text.
    pub text: String,
}

/// Largest count, above which a number in `f64` is no longer plausible.
const MAX_COUNT: f64 = 1e18;

impl TypedFigure {
    /// A rate, bit/s, such as `966.5M`.
    ///
    /// # Errors
    /// It is not a rate with a unit, or zero.
    pub fn rate(text: &str) -> Parsed<Self> {
        with_rate_unit(text)?;
        Ok(Self::new(text, above_zero::<Bitrate>(text)?.bps()))
    }

    /// A time, seconds, such as `10s`.
    ///
    /// # Errors
    /// It is not a time, or zero.
    pub fn time(text: &str) -> Parsed<Self> {
        Ok(Self::new(text, above_zero::<Span>(text)?.as_secs_f64()))
    }

    /// A round-trip time, seconds, such as `21ms`.
    ///
    /// # Errors
    /// As for [`round_trip`].
    pub fn round_trip(text: &str) -> Parsed<Self> {
        Ok(Self::new(text, round_trip(text)?.as_secs_f64()))
    }

    /// Printed bytes, such as `6.57GiB`.
    ///
    /// # Errors
    /// As for [`amount`].
    pub fn bytes(text: &str) -> Parsed<Self> {
        Ok(Self::new(text, amount(text)?.get() as f64))
    }

    /// A count, with or without a decimal prefix, such as `83k`.
    ///
    /// # Errors
    /// It is not a count, or above 10^18.
    pub fn count(text: &str) -> Parsed<Self> {
        let text = text.trim();
        let wrong = || TypedValueError::NotACount(text.to_owned());
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let factor = match unit.trim() {
            "" => 1.0,
            "k" | "K" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            _ => return Err(wrong()),
        };
        let value = number.parse::<f64>().map_err(|_| wrong())? * factor;
        if value > MAX_COUNT {
            return Err(TypedValueError::CountTooLarge(text.to_owned()));
        }
        Ok(Self::new(text, value))
    }

    /// A share such as `23%`, which may exceed 1 when several cores are added.
    ///
    /// # Errors
    /// It is not a ratio.
    pub fn share(text: &str) -> Parsed<Self> {
        Ok(Self::new(text, text.parse::<Ratio>()?.get()))
    }

    /// The last digit is significant, except in a round number such as 1G or 10s, which counts as three digits.
    fn new(text: &str, value: f64) -> Self {
        let text = text.trim();
        let digits: String =
            text.trim_start_matches('+').chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let decimals = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len().min(300));
        let plain: f64 = digits.parse().unwrap_or(0.0);
        let round = decimals == 0 && digits.trim_start_matches('0').trim_end_matches('0').len() <= 1;
        let step = if round || plain <= 0.0 {
            value / 1000.0
        } else {
            10f64.powi(-i32::try_from(decimals).unwrap_or(300)) * (value / plain)
        };
        Self { value, step, text: text.to_owned() }
    }
}

/// The typed figures of one test; those that are not typed are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TypedFigures {
    /// Payload per second, bit/s.
    pub rate: Option<TypedFigure>,
    /// Packets per second.
    pub pps: Option<TypedFigure>,
    /// Payload of the whole test, bytes.
    pub bytes: Option<TypedFigure>,
    /// Duration of the whole test, s.
    pub duration: Option<TypedFigure>,
    /// Packets of the whole test.
    pub packets: Option<TypedFigure>,
    /// Lost packets.
    pub lost: Option<TypedFigure>,
    /// Retransmitted segments.
    pub retransmits: Option<TypedFigure>,
    /// Congestion window, bytes.
    pub cwnd: Option<TypedFigure>,
    /// Read or write calls.
    pub calls: Option<TypedFigure>,
    /// Bytes per call; absent where it is the payload of a datagram.
    pub length: Option<TypedFigure>,
    /// Busy share of the CPUs.
    pub cpu: Option<TypedFigure>,
    /// Payload of a full segment, bytes.
    pub mss: Option<TypedFigure>,
    /// RTT, s; absent where there is no distance to compare it with.
    pub rtt: Option<TypedFigure>,
    /// MTU, bytes: a figure only if there is an MSS to compare it with.
    pub mtu: Option<u32>,
    /// The side that counted.
    pub side: Option<Side>,
}

impl TypedFigures {
    /// The figures as a test with one line, each with its option of `linerate check`; absent if none is typed.
    #[must_use]
    pub fn test(&self) -> Option<ForeignTest> {
        let all = [
            ("--rate", Quantity::Bitrate, &self.rate),
            ("--pps", Quantity::PacketRate, &self.pps),
            ("--bytes", Quantity::Bytes, &self.bytes),
            ("--duration", Quantity::Seconds, &self.duration),
            ("--packets", Quantity::Packets, &self.packets),
            ("--lost", Quantity::Lost, &self.lost),
            ("--retransmits", Quantity::Retransmits, &self.retransmits),
            ("--cwnd", Quantity::CongestionWindow, &self.cwnd),
            ("--calls", Quantity::Calls, &self.calls),
            ("--length", Quantity::MessageSize, &self.length),
            ("--cpu", Quantity::CpuLocal, &self.cpu),
            ("--mss", Quantity::Mss, &self.mss),
            ("--rtt", Quantity::RoundTrip, &self.rtt),
        ];
        let typed = all.iter().filter_map(|(name, quantity, typed)| Some((name, *quantity, typed.as_ref()?)));
        let quote: Vec<String> =
            typed.clone().map(|(name, _, typed)| format!("{name} {}", typed.text)).collect();
        let mut figures: Vec<Figure> = typed
            .map(|(_, quantity, TypedFigure { value, step, text })| Figure {
                quantity,
                value: *value,
                step: *step,
                printed: text.clone().into(),
            })
            .collect();
        if figures.is_empty() {
            return None;
        }
        figures.extend(self.mtu.filter(|_| self.mss.is_some()).map(|mtu| Figure {
            quantity: Quantity::Mtu,
            value: f64::from(mtu),
            step: 0.0,
            printed: mtu.to_string().into(),
        }));
        let (quote, scope) = (quote.join(" ").into(), ClaimScope::Total);
        let claim = Claim { quote, scope, side: self.side, figures, ..Claim::default() };
        Some(ForeignTest { claims: vec![claim], ..ForeignTest::default() })
    }
}

/// Whether all figures of a typed test only describe the path. They cannot be checked against files, whose path
/// they describe.
#[must_use]
pub fn describes_path_only(test: &ForeignTest) -> bool {
    let described = [Quantity::MessageSize, Quantity::Mss, Quantity::Mtu, Quantity::Seconds];
    test.claims.iter().flat_map(|claim| &claim.figures).all(|figure| described.contains(&figure.quantity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digit_counts() {
        let step = |text: &str| TypedFigure::rate(text).unwrap().step;
        assert!((step("966.5M") - 1e5).abs() < 1.0);
        assert!((step("941M") - 1e6).abs() < 1.0);
        assert!((step("9.5G") - 1e8).abs() < 1.0);
        assert!((step("1G") - 1e6).abs() < 1.0, "a round number has three digits");
        assert!((TypedFigure::count("83000").unwrap().step - 1.0).abs() < 1e-9);
        assert!((TypedFigure::bytes("1.5K").unwrap().step - 102.4).abs() < 1e-9);
        assert!((TypedFigure::time("21ms").unwrap().step - 1e-3).abs() < 1e-12);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for text in ["", "nan", "inf", "-5", "5 furlongs", "1e400", "1.2.3"] {
            assert!(TypedFigure::count(text).unwrap_err().to_string().contains(text), "{text}");
        }
        let long = "9".repeat(400);
        for parse in [TypedFigure::count, TypedFigure::rate, TypedFigure::bytes] {
            assert!(parse(&long).is_err());
        }
        assert!(TypedFigure::rate("0").is_err());
    }

    #[test]
    fn figures_that_describe_the_path_are_no_claim_of_their_own() {
        let (rate, mss) = (TypedFigure::rate("941M").ok(), TypedFigure::bytes("1448").ok());
        let path = TypedFigures { mss, mtu: Some(1500), ..TypedFigures::default() };
        assert!(describes_path_only(&path.test().unwrap()));
        let test = TypedFigures { rate, ..path }.test().unwrap();
        assert!(!describes_path_only(&test));
        assert_eq!(test.claims[0].quote, "--rate 941M --mss 1448");
        let quantities: Vec<Quantity> = test.claims[0].figures.iter().map(|figure| figure.quantity).collect();
        assert_eq!(quantities, [Quantity::Bitrate, Quantity::Mss, Quantity::Mtu]);
        assert_eq!(TypedFigures { mtu: Some(1500), ..TypedFigures::default() }.test(), None);
    }
}
