//! Figures typed on the command line, with their precision.

use std::fmt::Display;
use std::str::FromStr;

use linerate_model::import::{Claim, ClaimScope, Figure, ForeignTest, Quantity};
use linerate_units::{Bitrate, Bytes, ParseError, Ratio, Span};

use super::CheckArgs;
use crate::cmd::above_zero;

/// A quantity as typed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Typed {
    /// Value in the unit of the quantity.
    pub(super) value: f64,
    /// Value of one unit in the last typed digit.
    pub(super) step: f64,
    /// The typed text.
    pub(super) text: String,
}

/// A quantity that converts to a number.
pub(super) trait Number {
    /// The number in the unit of the quantity.
    fn number(self) -> f64;
}

impl Number for Bitrate {
    fn number(self) -> f64 {
        self.bps()
    }
}

impl Number for Span {
    fn number(self) -> f64 {
        self.as_secs_f64()
    }
}

/// Parses printed bytes, such as `6.57GiB`, and their precision.
pub(super) fn bytes(text: &str) -> Result<Typed, String> {
    let bytes = Bytes::nearest(text).map_err(|error| error.to_string())?;
    if bytes == Bytes::default() {
        return Err("it must be above zero".to_owned());
    }
    Ok(with_step(text, bytes.get() as f64))
}

/// Parses a quantity and its precision.
pub(super) fn typed<T>(text: &str) -> Result<Typed, String>
where
    T: FromStr<Err: Display> + Default + PartialOrd + Number,
{
    let value = above_zero::<T>(text)?.number();
    Ok(with_step(text, value))
}

/// Parses a count, with or without a decimal prefix.
pub(super) fn count(text: &str) -> Result<Typed, String> {
    const EXAMPLE: &str = "(example: 83000 or 83k)";
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return Err(format!("'{text}' is not a count {EXAMPLE}")),
    };
    let value: f64 = number.parse().map_err(|_| format!("'{text}' is not a count {EXAMPLE}"))?;
    let value = value * factor;
    if value > 1e18 {
        return Err(format!("'{text}' is too large {EXAMPLE}"));
    }
    Ok(with_step(text, value))
}

/// Parses a share, which may exceed 1 when several cores are added.
pub(super) fn share(text: &str) -> Result<Typed, String> {
    let ratio: Ratio = text.parse().map_err(|error: ParseError| error.to_string())?;
    Ok(with_step(text, ratio.get()))
}

/// The last digit is significant, except in a round number such as 1G or 10s, which counts as three digits.
fn with_step(text: &str, value: f64) -> Typed {
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
    Typed { value, step, text: text.to_owned() }
}

/// The typed figures as a test with one line; absent if none is typed.
pub(super) fn claim(args: &CheckArgs) -> Option<ForeignTest> {
    let path = &args.path;
    // The round-trip time is a figure to check only if there is a distance to compare it with.
    let rtt = path.rtt.as_ref().filter(|_| path.distance.is_some());
    let length = path.length.as_ref().filter(|_| !path.udp);
    let table = [
        ("--rate", Quantity::Bitrate, args.rate.as_ref()),
        ("--pps", Quantity::PacketRate, args.pps.as_ref()),
        ("--bytes", Quantity::Bytes, args.bytes.as_ref()),
        ("--duration", Quantity::Seconds, args.duration.as_ref()),
        ("--packets", Quantity::Packets, args.packets.as_ref()),
        ("--lost", Quantity::Lost, args.lost.as_ref()),
        ("--retransmits", Quantity::Retransmits, args.retransmits.as_ref()),
        ("--cwnd", Quantity::CongestionWindow, args.cwnd.as_ref()),
        ("--calls", Quantity::Calls, args.calls.as_ref()),
        ("--length", Quantity::MessageSize, length),
        ("--cpu", Quantity::CpuLocal, args.cpu.as_ref()),
        ("--mss", Quantity::Mss, path.mss.as_ref()),
        ("--rtt", Quantity::RoundTrip, rtt),
    ];
    let mut figures = Vec::new();
    let mut quote = Vec::new();
    for (flag, quantity, typed) in table {
        let Some(Typed { value, step, text }) = typed else { continue };
        quote.push(format!("{flag} {text}"));
        figures.push(Figure { quantity, value: *value, step: *step, printed: text.clone().into() });
    }
    let counts = [Quantity::MessageSize, Quantity::Mss, Quantity::Seconds];
    // Some figures cannot be checked alone; together with files they describe the files' path.
    let alone = figures.iter().all(|figure| counts.contains(&figure.quantity));
    if figures.is_empty() || (alone && !args.files.is_empty()) {
        return None;
    }
    figures.extend(mtu(args));
    let claim = Claim {
        quote: quote.join(" ").into(),
        scope: ClaimScope::Total,
        side: args.side(),
        figures,
        ..Claim::default()
    };
    Some(ForeignTest { claims: vec![claim], ..ForeignTest::default() })
}

/// The MTU, if there is an MSS to compare it with.
fn mtu(args: &CheckArgs) -> Option<Figure> {
    let mtu = args.path.mtu.filter(|_| args.path.mss.is_some())?;
    let (value, printed) = (f64::from(mtu), mtu.to_string());
    Some(Figure { quantity: Quantity::Mtu, value, step: 0.0, printed: printed.into() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;

    #[test]
    fn the_last_digit_counts() {
        let step = |text: &str| typed::<Bitrate>(text).unwrap().step;
        assert!((step("966.5M") - 1e5).abs() < 1.0);
        assert!((step("941M") - 1e6).abs() < 1.0);
        assert!((step("9.5G") - 1e8).abs() < 1.0);
        assert!((step("1G") - 1e6).abs() < 1.0, "a round number has three digits");
        assert!((count("83000").unwrap().step - 1.0).abs() < 1e-9);
        assert!((bytes("1.5K").unwrap().step - 102.4).abs() < 1e-9);
        assert!((typed::<Span>("21ms").unwrap().step - 1e-3).abs() < 1e-12);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for text in ["", "nan", "inf", "-5", "5 furlongs", "1e400", "1.2.3"] {
            assert!(count(text).unwrap_err().contains(text), "{text}");
        }
        let long = "9".repeat(400);
        assert!(count(&long).is_err() && typed::<Bitrate>(&long).is_err() && bytes(&long).is_err());
        assert!(typed::<Bitrate>("0").is_err());
    }

    #[test]
    fn flags_that_describe_the_path_make_no_claim_beside_files() {
        assert_eq!(claim(&args("--mss 1448 file.txt")), None);
        assert_eq!(claim(&args("--link 1G file.txt")), None);
        let claims = claim(&args("--rate 941M --mss 1448 file.txt")).unwrap().claims;
        assert_eq!(claims[0].quote, "--rate 941M --mss 1448");
    }
}
