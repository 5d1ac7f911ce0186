//! Parsing and printing of quantities as in iperf 2.

use super::settings::Iperf2Format;

/// Four significant digits, four characters wide.
pub(super) fn four(value: f64) -> String {
    if value < 0.9995 {
        format!("{value:4.3}")
    } else if value < 9.995 {
        format!("{value:4.2}")
    } else if value < 99.95 {
        format!("{value:4.1}")
    } else {
        format!("{value:4.0}")
    }
}

/// Bytes with a binary prefix, without the plural.
pub(super) fn bytes(value: f64, format: Iperf2Format) -> String {
    let fixed = match format {
        Iperf2Format::Bits(power) | Iperf2Format::Bytes(power) => Some(power),
        Iperf2Format::AdaptiveBits | Iperf2Format::AdaptiveBytes => None,
    };
    scaled(value, 1024.0, fixed, "Byte")
}

/// A rate of bytes per second, without the plural and the second.
pub(super) fn rate(bytes_per_second: f64, format: Iperf2Format) -> String {
    match format {
        Iperf2Format::AdaptiveBits => scaled(bytes_per_second * 8.0, 1000.0, None, "bit"),
        Iperf2Format::Bits(power) => scaled(bytes_per_second * 8.0, 1000.0, Some(power), "bit"),
        Iperf2Format::AdaptiveBytes => scaled(bytes_per_second, 1024.0, None, "Byte"),
        Iperf2Format::Bytes(power) => scaled(bytes_per_second, 1024.0, Some(power), "Byte"),
    }
}

fn scaled(value: f64, step: f64, fixed: Option<u8>, unit: &str) -> String {
    const PREFIXES: [&str; 6] = ["", "K", "M", "G", "T", "P"];
    let mut value = value;
    let mut power = 0;
    let more = |value: f64, power: usize| match fixed {
        Some(fixed) => power < usize::from(fixed),
        None => value >= step,
    };
    while power + 1 < PREFIXES.len() && more(value, power) {
        value /= step;
        power += 1;
    }
    let prefix = PREFIXES.get(power).copied().unwrap_or("");
    format!("{} {prefix}{unit}", four(value))
}

/// What may follow a number and its prefix, in lower case. iperf 2 ignores everything after the first letter; another word
/// is more likely a mistake. `bps` is none of them, because 2.1.8 takes it for a number of packets after `-b`.
const UNITS: [&str; 11] =
    ["", "b", "bit", "bits", "byte", "bytes", "ib", "bit/s", "bits/s", "bit/sec", "bits/sec"];

/// Parses a number with a prefix and a unit that has no meaning, as in `256KB`: k, m, g, t are decimal, K, M, G, T binary.
pub(super) fn quantity(text: &str) -> Option<u64> {
    scaled_number(text, |prefix| match prefix {
        'k' => Some(1e3),
        'm' => Some(1e6),
        'g' => Some(1e9),
        't' => Some(1e12),
        'K' => Some(1024.0),
        'M' => Some(1_048_576.0),
        'G' => Some(1_073_741_824.0),
        'T' => Some(1_099_511_627_776.0),
        _ => None,
    })
}

/// Parses a rate of `--fq-rate` and returns bits: k, m, g are decimal bits, K, M, G decimal bytes.
pub(super) fn bits_of_bits_or_bytes(text: &str) -> Option<u64> {
    scaled_number(text, |prefix| match prefix {
        'k' => Some(1e3),
        'm' => Some(1e6),
        'g' => Some(1e9),
        'K' => Some(8e3),
        'M' => Some(8e6),
        'G' => Some(8e9),
        _ => None,
    })
}

fn scaled_number(text: &str, factor: impl Fn(char) -> Option<f64>) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.len() - after_number(text).len());
    let prefix = unit.chars().next().and_then(&factor);
    let unit = if prefix.is_some() { unit.get(1..)? } else { unit };
    if !UNITS.contains(&unit.to_ascii_lowercase().as_str()) {
        return None;
    }
    let value = number.parse::<f64>().ok()? * prefix.unwrap_or(1.0);
    (value.is_finite() && (0.0..=9e18).contains(&value)).then_some(value as u64)
}

/// What follows the number: its digits, and an exponent.
fn after_number(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-'));
    let exponent = rest.strip_prefix(['e', 'E']).map(|digits| digits.trim_start_matches(['+', '-']));
    match exponent {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
            digits.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_printed_as_in_the_real_reports() {
        // From outputs of 2.1.8: 5242880 bytes, 267540 bytes, 1116 bytes, one byte below 1 MiB, and 1 MiB.
        let auto = Iperf2Format::default();
        for (value, text) in [
            (5_242_880.0, "5.00 MByte"),
            (267_540.0, " 261 KByte"),
            (1116.0, "1.09 KByte"),
            (1_048_575.0, "1024 KByte"),
            (1_048_576.0, "1.00 MByte"),
            (100.0, " 100 Byte"),
        ] {
            assert_eq!(bytes(value, auto), text);
        }
        assert_eq!(bytes(131_072.0, Iperf2Format::Bits(2)), "0.125 MByte");
        assert_eq!(rate(1_048_576.0 / 8.0, auto), "1.05 Mbit");
        assert_eq!(rate(802_000.0 / 8.0, auto), " 802 Kbit");
        assert_eq!(rate(1_048_576.0, Iperf2Format::Bytes(2)), "1.00 MByte");
    }

    #[test]
    fn suffixes_are_decimal_in_lower_and_binary_in_upper_case() {
        for (text, value) in [
            ("1k", Some(1000)),
            ("1K", Some(1024)),
            ("5M", Some(5_242_880)),
            ("1.5m", Some(1_500_000)),
            ("8", Some(8)),
            ("1e3", Some(1000)),
            // Read by 2.1.8 as window and length.
            ("256KB", Some(262_144)),
            ("1.5MB", Some(1_572_864)),
            ("10mbit", Some(10_000_000)),
            ("10Mb", Some(10_485_760)),
            ("100B", Some(100)),
            ("64KiB", Some(65_536)),
            ("5Mbits/sec", Some(5_242_880)),
            ("10Mbps", None),
            ("10xy", None),
            ("10mm", None),
            ("", None),
            ("k", None),
            ("-1", None),
            ("1e400", None),
            ("1ü", None),
        ] {
            assert_eq!(quantity(text), value, "{text}");
        }
    }

    #[test]
    fn a_pacing_rate_in_upper_case_is_in_decimal_bytes() {
        // From headers of 2.1.8, which have the rate in bytes.
        for (text, bits) in [
            ("10m", Some(10_000_000)),
            ("10M", Some(80_000_000)),
            ("10K", Some(80_000)),
            ("8k", Some(8000)),
            ("80g", Some(80_000_000_000)),
            ("1000", Some(1000)),
            ("10mbit", Some(10_000_000)),
            ("", None),
            ("m", None),
            ("1e400", None),
            ("nan", None),
        ] {
            assert_eq!(bits_of_bits_or_bytes(text), bits, "{text}");
        }
    }
}
