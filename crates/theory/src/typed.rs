//! Values as people type them, within plausible bounds: properties of a path, and published figures to check.
//!
//! ```
//! use linerate_theory::typed::{TypedFigure, between, link_rate};
//!
//! assert_eq!(between(link_rate)("1G..10G").unwrap().ends().len(), 2);
//! assert!(link_rate("941").unwrap_err().to_string().contains("no unit"));
//! // The last digit of 966.5M is a tenth of a megabit per second.
//! assert_eq!(TypedFigure::rate("966.5M").unwrap().step.round(), 1e5);
//! ```

#[cfg(feature = "clap")]
mod check_options;
#[cfg(feature = "clap")]
mod envelope_options;
mod figure;

use linerate_units::{AboveZeroError, Bitrate, Bytes, ParseError, Ratio, Span, above_zero};

use crate::envelope::{Cpu, TransferDeadline, ValueRange};
use crate::host;

#[cfg(feature = "clap")]
pub use check_options::{FigureOptions, PathOptions};
#[cfg(feature = "clap")]
pub use envelope_options::{EnvelopeOptions, congestion, tunnel};
pub use figure::{TypedFigure, TypedFigures, describes_path_only};

/// Faster than any link in the foreseeable future; above it, products of rate and time would overflow.
const MAX_RATE_BPS: f64 = 1e15;
/// Longer than any round-trip time on Earth, for the same reason.
const MAX_RTT: Span = Span::from_secs(3600);

/// A text that is no usable value, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypedValueError {
    /// It is not a quantity.
    #[error(transparent)]
    NotAQuantity(#[from] ParseError),
    /// It is not a quantity above zero.
    #[error(transparent)]
    NotAboveZero(#[from] AboveZeroError),
    /// A rate that was probably not meant in bit/s.
    #[error("'{0}' has no unit; add b/s, k, M, G or T, for example {0}M")]
    RateWithoutUnit(String),
    /// A time that was probably not meant in seconds.
    #[error("'{0}' has no unit; add ns, us, ms or s, for example {0}ms")]
    TimeWithoutUnit(String),
    /// Faster than any link.
    #[error("give at most 1000T")]
    RateTooLarge,
    /// Longer than any round-trip time.
    #[error("give at most 1h")]
    RoundTripTooLong,
    /// A probability of 1 or more.
    #[error("it must be below 1, which is 100 %")]
    Certain,
    /// It is not a number.
    #[error("'{0}' is not a number of kilometres")]
    NotKilometres(String),
    /// Longer than any path on Earth, or not above zero.
    #[error("give 0 to 1000000 km")]
    NoDistance,
    /// A range whose end is below its start.
    #[error("the end of the range is below its start; give the smaller value first")]
    Reversed,
    /// A transfer without a time or an amount.
    #[error("give a time and an amount, for example 8h:2TB")]
    NoDeadline,
    /// A transfer of nothing, or in no time.
    #[error("time and amount must be above zero")]
    EmptyDeadline,
    /// A CPU with fewer or more values than it has.
    #[error("give the clock rate and the cycles per packet and per byte, for example 3G:10000:2")]
    NoProcessor,
    /// It is not a number.
    #[error("'{0}' is not a number of cycles")]
    NotCycles(String),
    /// Less than nothing, or more than any CPU takes.
    #[error("cycles cannot be negative")]
    CyclesOutOfRange,
    /// A CPU without cores.
    #[error("give at least one core")]
    NoCore,
    /// A CPU that needs no time for a packet.
    #[error("the cycles per packet must be above zero")]
    NoCycles,
    /// A slot without a rate or a number of lanes.
    #[error("give transfers per second and lanes, for example 8G:4")]
    NoSlot,
    /// It is not a number of lanes.
    #[error("'{0}' lanes")]
    NotLanes(String),
    /// A slot without lanes.
    #[error("give at least one lane")]
    NoLane,
    /// It is not a count.
    #[error("'{0}' is not a count (example: 83000 or 83k)")]
    NotACount(String),
    /// A count above any that can be true.
    #[error("'{0}' is too large (example: 83000 or 83k)")]
    CountTooLarge(String),
}

type Parsed<T> = Result<T, TypedValueError>;

/// A rate without a unit is accepted from this value on, bit/s.
const MIN_BARE_BPS: f64 = 1e6;

/// Rejects a small rate without a unit, as it was probably not meant in bit/s.
fn with_rate_unit(text: &str) -> Parsed<()> {
    let plain: Option<f64> = text.trim().parse().ok();
    match plain.filter(|bps| bps.is_finite() && *bps > 0.0 && *bps < MIN_BARE_BPS) {
        Some(_) => Err(TypedValueError::RateWithoutUnit(text.trim().to_owned())),
        None => Ok(()),
    }
}

/// The rate of a link, such as `1G`.
///
/// # Errors
/// It is not a rate with a unit, zero, or above 1000 Tb/s.
pub fn link_rate(text: &str) -> Parsed<Bitrate> {
    with_rate_unit(text)?;
    rate_of_any_size(text)
}

fn rate_of_any_size(text: &str) -> Parsed<Bitrate> {
    let rate: Bitrate = above_zero(text)?;
    if rate.bps() <= MAX_RATE_BPS { Ok(rate) } else { Err(TypedValueError::RateTooLarge) }
}

/// A round-trip time, such as `21ms`.
///
/// # Errors
/// It is not a time with a unit, zero, or longer than an hour.
pub fn round_trip(text: &str) -> Parsed<Span> {
    let plain: Option<f64> = text.trim().parse().ok();
    if plain.is_some_and(|seconds| seconds.is_finite() && seconds > 0.0) {
        return Err(TypedValueError::TimeWithoutUnit(text.trim().to_owned()));
    }
    let rtt: Span = above_zero(text)?;
    if rtt <= MAX_RTT { Ok(rtt) } else { Err(TypedValueError::RoundTripTooLong) }
}

/// A ratio below 1, such as `0.01%`.
///
/// # Errors
/// It is not a ratio, or 1 or more.
pub fn probability(text: &str) -> Parsed<Ratio> {
    let ratio: Ratio = text.parse()?;
    if ratio.get() < 1.0 { Ok(ratio) } else { Err(TypedValueError::Certain) }
}

/// Longer than any path on Earth.
const MAX_PATH_KM: f64 = 1e6;

/// A distance in kilometres, such as `1000` or `16346 km`.
///
/// # Errors
/// It is not a number above zero, or longer than any path on Earth.
pub fn kilometres(text: &str) -> Parsed<f64> {
    let number = text.strip_suffix("km").unwrap_or(text).trim();
    let value: f64 = number.parse().map_err(|_| TypedValueError::NotKilometres(text.to_owned()))?;
    if value > 0.0 && value <= MAX_PATH_KM { Ok(value) } else { Err(TypedValueError::NoDistance) }
}

/// Separator of the two ends of a range.
const RANGE_SEPARATOR: &str = "..";

/// A parser of `20ms` or `20ms..25ms`, with `parse` for each end.
pub fn between<T: Copy + PartialOrd + 'static>(
    parse: fn(&str) -> Parsed<T>,
) -> impl Fn(&str) -> Parsed<ValueRange<T>> + Clone + Send + Sync + 'static {
    move |text| {
        let Some((low, high)) = text.split_once(RANGE_SEPARATOR) else { return parse(text).map(Into::into) };
        ValueRange::between(parse(low)?, parse(high)?).ok_or(TypedValueError::Reversed)
    }
}

/// A rate of any size above zero, such as that of a disk.
///
/// # Errors
/// It is not a rate, or zero.
pub fn positive_rate(text: &str) -> Parsed<Bitrate> {
    Ok(above_zero(text)?)
}

/// A printed amount, such as `6.57GiB`.
///
/// # Errors
/// It is not an amount, or zero.
pub fn amount(text: &str) -> Parsed<Bytes> {
    let bytes = Bytes::nearest(text)?;
    if bytes == Bytes::default() { Err(AboveZeroError::Zero.into()) } else { Ok(bytes) }
}

/// An amount of data in a time, such as `8h:2TB`.
///
/// # Errors
/// One of them is missing, wrong or zero.
pub fn deadline(text: &str) -> Parsed<TransferDeadline> {
    let (time, bytes) = text.split_once(':').ok_or(TypedValueError::NoDeadline)?;
    let within: Span = time.parse()?;
    let bytes = Bytes::nearest(bytes)?;
    if within == Span::ZERO || bytes == Bytes::default() {
        return Err(TypedValueError::EmptyDeadline);
    }
    Ok(TransferDeadline { bytes, within })
}

/// A CPU with the costs of a packet, such as `3G:10000:2` or `3G:10000:2:4`: clock rate, cycles per packet and
/// per byte, cores.
///
/// # Errors
/// A value is missing or impossible.
pub fn processor(text: &str) -> Parsed<Cpu> {
    let parts: Vec<&str> = text.split(':').collect();
    let (clock, packet, byte, cores) = match parts[..] {
        [clock, packet, byte] => (clock, packet, byte, "1"),
        [clock, packet, byte, cores] => (clock, packet, byte, cores),
        _ => return Err(TypedValueError::NoProcessor),
    };
    let cycles = |text: &str| {
        let value: f64 = text.parse().map_err(|_| TypedValueError::NotCycles(text.to_owned()))?;
        if (0.0..1e12).contains(&value) { Ok(value) } else { Err(TypedValueError::CyclesOutOfRange) }
    };
    let cores = cores.parse().ok().filter(|cores| *cores > 0).ok_or(TypedValueError::NoCore)?;
    let cpu = Cpu {
        frequency_hz: scaled(clock.strip_suffix("Hz").unwrap_or(clock))?,
        cores,
        cycles_per_packet: cycles(packet)?,
        cycles_per_byte: cycles(byte)?,
    };
    if cpu.cycles_per_packet + cpu.cycles_per_byte > 0.0 {
        return Ok(cpu);
    }
    Err(TypedValueError::NoCycles)
}

/// Capacity of a PCI Express slot, bit/s, from `8G:4`: transfers per second of each lane, and number of lanes.
///
/// # Errors
/// A value is missing or impossible.
pub fn slot(text: &str) -> Parsed<f64> {
    let (transfers, lanes) = text.split_once(':').ok_or(TypedValueError::NoSlot)?;
    let lanes: u32 =
        lanes.trim_start_matches('x').parse().map_err(|_| TypedValueError::NotLanes(lanes.to_owned()))?;
    let transfers = scaled(transfers.strip_suffix("T/s").unwrap_or(transfers))?;
    host::pcie_rate_bps(transfers, f64::from(lanes)).ok_or(TypedValueError::NoLane)
}

/// A number above zero with a decimal prefix, such as `8G`.
fn scaled(text: &str) -> Parsed<f64> {
    // The parser for rates accepts these prefixes.
    rate_of_any_size(text).map(Bitrate::bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_asks_for_one_and_names_the_units() {
        for text in ["1", "941", " 21 ", "0.5"] {
            let (rate, rtt) = (link_rate(text).unwrap_err(), round_trip(text).unwrap_err());
            let (rate, rtt) = (rate.to_string(), rtt.to_string());
            assert!(rate.contains("no unit") && rate.contains("G or T"), "{rate}");
            assert!(rtt.contains("no unit") && rtt.contains("ms or s"), "{rtt}");
        }
        assert!(link_rate("1b/s").is_ok() && link_rate("1000000000").is_ok(), "as bits per second");
        assert!(round_trip("21ms").is_ok() && round_trip("1s").is_ok());
    }

    #[test]
    fn hosts_and_distances_as_people_write_them() {
        let cpu = processor("1.8GHz:10000:2").unwrap();
        assert_eq!((cpu.frequency_hz, cpu.cores, cpu.cycles_per_packet), (1.8e9, 1, 10_000.0));
        assert_eq!(processor("3G:0:2:16").unwrap().cores, 16);
        for wrong in
            ["3G", "3G:1", "3G:0:0", "3G:-1:2", "3G:1:2:0", "0:1:2", "3G:1:2:3:4", "x:1:2", "3G:NaN:2"]
        {
            assert!(processor(wrong).is_err(), "{wrong}");
        }
        // Four lanes of 8 GT/s, with 128b/130b coding and 85 % for payload.
        assert!((slot("8G:4").unwrap() / (32e9 * 128.0 / 130.0 * 0.85) - 1.0).abs() < 1e-9);
        assert_eq!(slot("8GT/s:x4"), slot("8G:4"));
        for wrong in ["8G", "8G:0", "8G:x", "0:4", "8G:-1"] {
            assert!(slot(wrong).is_err(), "{wrong}");
        }
        assert_eq!(kilometres("1000"), Ok(1000.0));
        assert_eq!(kilometres("16346 km"), Ok(16_346.0));
        for wrong in ["0", "-1", "far", "NaN", "1e99", "inf"] {
            assert!(kilometres(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_has_two_ends_and_a_value_one() {
        let read = between(round_trip);
        assert_eq!(read("21ms").unwrap().ends(), [Span::from_ms(21)]);
        assert_eq!(read("20ms..25ms").unwrap().ends(), [Span::from_ms(20), Span::from_ms(25)]);
        assert_eq!(read("20ms..20ms").unwrap().ends().len(), 1);
        for wrong in ["25ms..20ms", "20ms..", "..20ms", "20ms...25ms", "20ms..0", "20ms..2h"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_deadline_has_a_time_and_an_amount() {
        let wanted =
            TransferDeadline { bytes: Bytes::new(2_000_000_000_000), within: Span::from_secs(8 * 3600) };
        assert_eq!(deadline("8h:2TB"), Ok(wanted));
        for wrong in ["8h", "8h:", ":2TB", "0s:1B", "8h:0", "8 bells:1B"] {
            assert!(deadline(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_largest_values_pass_and_larger_ones_do_not() {
        assert!(link_rate("1000T").is_ok() && link_rate("1001T").is_err());
        assert!(round_trip("1h").is_ok() && round_trip("3601s").is_err());
        assert!(probability("0").is_ok() && probability("99.9%").is_ok() && probability("100%").is_err());
    }
}
