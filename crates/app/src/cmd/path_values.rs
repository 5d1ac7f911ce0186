//! Values that describe a path on a command line, within what a path can be; for `value_parser`.

use std::fmt::Display;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::envelope::Congestion;
use linerate_units::{Bitrate, ParseError, Ratio, Span};

/// Faster than any link for long; above it products of rate and time leave what can be counted.
const FASTEST_BPS: f64 = 1e15;
/// Longer than any round trip on Earth, for the same reason.
const LONGEST_RTT: Span = Span::from_secs(3600);

/// Parses a quantity and refuses zero.
pub(crate) fn above_zero<T>(text: &str) -> Result<T, String>
where
    T: FromStr<Err: Display> + Default + PartialOrd,
{
    let value: T = text.parse().map_err(|error: T::Err| error.to_string())?;
    if value > T::default() { Ok(value) } else { Err("it must be above zero".to_owned()) }
}

/// A rate that a link may have.
pub(super) fn link_rate(text: &str) -> Result<Bitrate, String> {
    let rate: Bitrate = above_zero(text)?;
    if rate.bps() <= FASTEST_BPS { Ok(rate) } else { Err("no link is faster than 1000T".to_owned()) }
}

/// A round trip.
pub(super) fn round_trip(text: &str) -> Result<Span, String> {
    let rtt: Span = above_zero(text)?;
    if rtt <= LONGEST_RTT { Ok(rtt) } else { Err("no round trip is longer than 1h".to_owned()) }
}

/// A share below the whole.
pub(super) fn probability(text: &str) -> Result<Ratio, String> {
    let ratio: Ratio = text.parse().map_err(|error: ParseError| error.to_string())?;
    if ratio.get() < 1.0 { Ok(ratio) } else { Err("it must be below 1, which is 100 %".to_owned()) }
}

/// A tunnel by its name.
pub(super) fn tunnel() -> impl TypedValueParser<Value = Encapsulation> {
    PossibleValuesParser::new(Encapsulation::ALL.map(Encapsulation::name))
        .try_map(|name| Encapsulation::from_name(&name).ok_or("unknown tunnel"))
}

/// A congestion control by its name.
pub(super) fn congestion() -> impl TypedValueParser<Value = Congestion> {
    PossibleValuesParser::new([Congestion::Reno, Congestion::Cubic, Congestion::Bbr].map(Congestion::name))
        .try_map(|name| Congestion::from_name(&name).ok_or("unknown congestion control"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_refused_and_the_smallest_value_is_not() {
        assert_eq!(above_zero::<Span>("1ns"), Ok(Span::from_ns(1)));
        assert!(above_zero::<Span>("0").is_err());
        assert!(above_zero::<Bitrate>("0G").is_err());
        assert!(above_zero::<Bitrate>("fast").unwrap_err().contains("fast"));
    }

    #[test]
    fn the_largest_values_pass_and_larger_ones_do_not() {
        assert!(link_rate("1000T").is_ok() && link_rate("1001T").is_err());
        assert!(round_trip("1h").is_ok() && round_trip("3601s").is_err());
        assert!(probability("0").is_ok() && probability("99.9%").is_ok() && probability("100%").is_err());
    }
}
