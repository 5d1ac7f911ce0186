//! Value parsers for properties of a path, within plausible bounds.

use std::fmt::Display;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::envelope::{Congestion, Cpu, TransferDeadline, ValueRange};
use linerate_theory::host;
use linerate_units::{Bitrate, Bytes, ParseError, Ratio, Span};

/// Faster than any link in the foreseeable future; above it, products of rate and time would overflow.
const MAX_RATE_BPS: f64 = 1e15;
/// Longer than any round-trip time on Earth, for the same reason.
const MAX_RTT: Span = Span::from_secs(3600);

/// Parses a quantity and refuses zero.
pub(crate) fn above_zero<T>(text: &str) -> Result<T, String>
where
    T: FromStr<Err: Display> + Default + PartialOrd,
{
    let value: T = text.parse().map_err(|error: T::Err| error.to_string())?;
    if value > T::default() { Ok(value) } else { Err("it must be above zero".to_owned()) }
}

/// A rate without a unit is accepted from this value on, bit/s.
const MIN_BARE_BPS: f64 = 1e6;

/// Rejects a small rate without a unit, as it was probably not meant in bit/s.
pub(super) fn with_rate_unit(text: &str) -> Result<(), String> {
    let plain: Option<f64> = text.trim().parse().ok();
    match plain.filter(|bps| bps.is_finite() && *bps > 0.0 && *bps < MIN_BARE_BPS) {
        Some(_) => Err(format!("'{0}' has no unit; add b/s, k, M, G or T, for example {0}M", text.trim())),
        None => Ok(()),
    }
}

/// The rate of a link.
pub(super) fn link_rate(text: &str) -> Result<Bitrate, String> {
    with_rate_unit(text)?;
    rate_of_any_size(text)
}

fn rate_of_any_size(text: &str) -> Result<Bitrate, String> {
    let rate: Bitrate = above_zero(text)?;
    if rate.bps() <= MAX_RATE_BPS { Ok(rate) } else { Err("give at most 1000T".to_owned()) }
}

/// A round-trip time.
pub(super) fn round_trip(text: &str) -> Result<Span, String> {
    let plain: Option<f64> = text.trim().parse().ok();
    if plain.is_some_and(|seconds| seconds.is_finite() && seconds > 0.0) {
        return Err(format!("'{0}' has no unit; add ns, us, ms or s, for example {0}ms", text.trim()));
    }
    let rtt: Span = above_zero(text)?;
    if rtt <= MAX_RTT { Ok(rtt) } else { Err("give at most 1h".to_owned()) }
}

/// A ratio below 1.
pub(super) fn probability(text: &str) -> Result<Ratio, String> {
    let ratio: Ratio = text.parse().map_err(|error: ParseError| error.to_string())?;
    if ratio.get() < 1.0 { Ok(ratio) } else { Err("it must be below 1, which is 100 %".to_owned()) }
}

/// Longer than any path on Earth.
const MAX_PATH_KM: f64 = 1e6;

/// A distance in kilometres.
pub(super) fn kilometres(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("km").unwrap_or(text).trim();
    let value: f64 = number.parse().map_err(|_| format!("'{text}' is not a number of kilometres"))?;
    if value > 0.0 && value <= MAX_PATH_KM { Ok(value) } else { Err("give 0 to 1000000 km".to_owned()) }
}

/// Separator of the two ends of a range.
const RANGE_SEPARATOR: &str = "..";

/// Parses `20ms` or `20ms..25ms` with `parse` for each end; for `value_parser`.
pub(super) fn between<T: Copy + PartialOrd + 'static>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<ValueRange<T>, String> + Clone + Send + Sync + 'static {
    move |text| {
        let Some((low, high)) = text.split_once(RANGE_SEPARATOR) else { return parse(text).map(Into::into) };
        ValueRange::between(parse(low)?, parse(high)?)
            .ok_or_else(|| "the end of the range is below its start; give the smaller value first".to_owned())
    }
}

/// A printed amount, such as `6.57GiB`.
pub(super) fn amount(text: &str) -> Result<Bytes, String> {
    let bytes = Bytes::nearest(text).map_err(|error| error.to_string())?;
    if bytes == Bytes::default() { Err("it must be above zero".to_owned()) } else { Ok(bytes) }
}

/// An amount of data in a time, such as `8h:2TB`.
pub(super) fn deadline(text: &str) -> Result<TransferDeadline, String> {
    let (time, bytes) = text.split_once(':').ok_or("give a time and an amount, for example 8h:2TB")?;
    let within: Span = time.parse().map_err(|error: ParseError| error.to_string())?;
    let bytes = Bytes::nearest(bytes).map_err(|error| error.to_string())?;
    if within == Span::ZERO || bytes == Bytes::default() {
        return Err("time and amount must be above zero".to_owned());
    }
    Ok(TransferDeadline { bytes, within })
}

/// A CPU with the costs of a packet, such as `3G:10000:2` or `3G:10000:2:4`.
pub(super) fn processor(text: &str) -> Result<Cpu, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (clock, packet, byte, cores) = match parts[..] {
        [clock, packet, byte] => (clock, packet, byte, "1"),
        [clock, packet, byte, cores] => (clock, packet, byte, cores),
        _ => {
            return Err("give the clock rate and the cycles per packet and per byte, for example 3G:10000:2"
                .to_owned());
        }
    };
    let cycles = |text: &str| {
        let value: f64 = text.parse().map_err(|_| format!("'{text}' is not a number of cycles"))?;
        if (0.0..1e12).contains(&value) { Ok(value) } else { Err("cycles cannot be negative".to_owned()) }
    };
    let cores = cores.parse().ok().filter(|cores| *cores > 0).ok_or("give at least one core")?;
    let cpu = Cpu {
        frequency_hz: scaled(clock.strip_suffix("Hz").unwrap_or(clock))?,
        cores,
        cycles_per_packet: cycles(packet)?,
        cycles_per_byte: cycles(byte)?,
    };
    if cpu.cycles_per_packet + cpu.cycles_per_byte > 0.0 {
        return Ok(cpu);
    }
    Err("the cycles per packet must be above zero".to_owned())
}

/// Capacity of a slot, bit/s, from `8G:4`: transfers per second of each lane, and number of lanes.
pub(super) fn slot(text: &str) -> Result<f64, String> {
    let (transfers, lanes) = text.split_once(':').ok_or(
        "give transfers per second and lanes, for example \
                                                         8G:4",
    )?;
    let lanes: u32 = lanes.trim_start_matches('x').parse().map_err(|_| format!("'{lanes}' lanes"))?;
    let transfers = scaled(transfers.strip_suffix("T/s").unwrap_or(transfers))?;
    host::pcie_rate_bps(transfers, f64::from(lanes)).ok_or_else(|| "give at least one lane".to_owned())
}

/// A number above zero with a decimal prefix, such as `8G`.
fn scaled(text: &str) -> Result<f64, String> {
    // The parser for rates accepts these prefixes.
    rate_of_any_size(text).map(Bitrate::bps)
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
    fn a_number_without_a_unit_asks_for_one_and_names_the_units() {
        for text in ["1", "941", " 21 ", "0.5"] {
            let (rate, rtt) = (link_rate(text).unwrap_err(), round_trip(text).unwrap_err());
            assert!(rate.contains("no unit") && rate.contains("G or T"), "{rate}");
            assert!(rtt.contains("no unit") && rtt.contains("ms or s"), "{rtt}");
        }
        assert!(link_rate("1b/s").is_ok() && link_rate("1000000000").is_ok(), "as bits per second");
        assert!(round_trip("21ms").is_ok() && round_trip("1s").is_ok());
    }

    #[test]
    fn zero_is_refused_and_the_smallest_value_is_not() {
        assert_eq!(above_zero::<Span>("1ns"), Ok(Span::from_ns(1)));
        assert!(above_zero::<Span>("0").is_err());
        assert!(above_zero::<Bitrate>("0G").is_err());
        assert!(above_zero::<Bitrate>("fast").unwrap_err().contains("fast"));
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
