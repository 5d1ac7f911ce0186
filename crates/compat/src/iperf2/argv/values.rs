//! The values of iperf 2's options: times, units and rates.

use linerate_units::Span;

use super::{Iperf2EarlyExit, error, usage_error};
use crate::iperf2::numbers::quantity;
use crate::iperf2::settings::{Iperf2Format, Iperf2Rate, Iperf2Settings, MAX_TIME};

/// Shortest interval of reports, as in 2.1.8 without fast sampling.
const MIN_INTERVAL: Span = Span::from_ms(5);

/// Longest interval of reports, seconds: 2.1.8 has 32 bits for its microseconds.
const MAX_INTERVAL: f64 = 4_294.967_295;

/// Applies the interval of reports; one that is too short is lengthened.
pub(super) fn interval(settings: &mut Iperf2Settings, value: &str) -> Result<(), Iperf2EarlyExit> {
    if value.parse::<f64>().is_ok_and(|seconds| seconds > MAX_INTERVAL) {
        return Err(error(&format!(
            "Too large value of '{value}' for -i interval, max is {MAX_INTERVAL:.6}"
        )));
    }
    let given = seconds("interval", value)?.filter(|span| *span > Span::ZERO);
    if given.is_some_and(|span| span < MIN_INTERVAL) {
        let text = "WARNING: interval too small, increasing to 5.0000 milliseconds.\n";
        settings.warnings.push_str(text);
    }
    settings.interval = given.map(|span| span.max(MIN_INTERVAL));
    Ok(())
}

/// Parses seconds since 1970 with a fraction of up to nine digits. A binary fraction would not be exact.
pub(super) fn epoch_time(value: &str) -> Option<Span> {
    let (seconds, fraction) = value.split_once('.').unwrap_or((value, ""));
    let digits = fraction.bytes().all(|digit| digit.is_ascii_digit()) && fraction.len() <= 9;
    let nanos = format!("{fraction:0<9}").parse::<u64>().ok().filter(|_| digits)?;
    Some(Span::from_secs(u64::from(seconds.parse::<u32>().ok()?)) + Span::from_ns(nanos))
}

/// Parses seconds with a fraction, as many as the header can carry.
pub(super) fn seconds(name: &str, value: &str) -> Result<Option<Span>, Iperf2EarlyExit> {
    let span = value.parse::<f64>().ok().and_then(Span::from_secs_f64).filter(|span| *span <= MAX_TIME);
    let short = name != "interval" && span.is_some_and(|span| span > Span::ZERO && span < Span::from_ms(5));
    if value.parse::<f64>().is_err() {
        return Err(error(&match name {
            "interval" if value == "f" => {
                "iperf: reports per frame, -i f, are not supported; give seconds".to_owned()
            }
            "txdelay-time" => format!("iperf: invalid value for --txdelay-time: {value}; give seconds"),
            "interval" => format!("Invalid value of '{value}' for -i interval"),
            _ => format!("ERROR: -t value of '{value}' not recognized"),
        }));
    }
    match span {
        Some(span) if !short => Ok(Some(span)),
        _ => {
            let most = MAX_TIME.as_secs_f64();
            Err(usage_error(&format!("invalid value for --{name}: {value}; give 0.005 to {most} seconds")))
        }
    }
}

/// Parses a unit; 2.1.8 looks at its first letter only, so that `mbits` means `m`.
pub(super) fn format(value: &str) -> Result<Iperf2Format, Iperf2EarlyExit> {
    Ok(match value.as_bytes().first() {
        Some(b'a') => Iperf2Format::AdaptiveBits,
        Some(b'A') => Iperf2Format::AdaptiveBytes,
        Some(b'b') => Iperf2Format::Bits(0),
        Some(b'k') => Iperf2Format::Bits(1),
        Some(b'm') => Iperf2Format::Bits(2),
        Some(b'g') => Iperf2Format::Bits(3),
        Some(b'B') => Iperf2Format::Bytes(0),
        Some(b'K') => Iperf2Format::Bytes(1),
        Some(b'M') => Iperf2Format::Bytes(2),
        Some(b'G') => Iperf2Format::Bytes(3),
        _ => return Err(usage_error(&format!("invalid format {value}; give k, m, g, a, K, M, G or A"))),
    })
}

pub(super) fn rate(value: &str) -> Result<Iperf2Rate, Iperf2EarlyExit> {
    let wrong = || usage_error(&format!("invalid rate {value}; give bits per second as 10m, or 500pps"));
    if value.contains(',') {
        return Err(usage_error(
            "-b MEAN,DEVIATION, a rate that varies, is not supported; give the mean alone",
        ));
    }
    // 2.1.8 takes everything up to the first `p` as a number of packets.
    let rate = match value.strip_suffix("pps").or_else(|| value.strip_suffix(['p', 'P'])) {
        Some(packets) => Iperf2Rate::Packets(quantity(packets).ok_or_else(wrong)?),
        None => Iperf2Rate::Bits(quantity(value).ok_or_else(wrong)?),
    };
    match rate {
        Iperf2Rate::Bits(0) | Iperf2Rate::Packets(0) => Err(wrong()),
        rate => Ok(rate),
    }
}
