//! Formats numbers for people, if the unit is in a name or a column must be aligned.

use linerate_model::FlowRecord;
use linerate_units::{Bitrate, Bytes, Ratio, Span};

/// Sign for a missing value.
pub(crate) const ABSENT: &str = "-";

/// A value, or [`ABSENT`].
pub(crate) fn or_absent<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| value.to_string())
}

/// The rate of a flow, with its interval if known.
pub(crate) fn known_to(flow: &FlowRecord, rate: Bitrate) -> String {
    let within = flow.uncertainty.as_ref().and_then(|known| known.around(rate));
    within.map_or_else(|| rate.to_string(), |within| within.to_string())
}

/// A nominal rate without trailing zeros: `1 Gb/s`, `2.5 Gb/s`.
pub(crate) fn nominal(rate: Bitrate) -> String {
    let text = rate.to_string();
    let Some((number, unit)) = text.split_once(' ') else { return text };
    if !number.contains('.') {
        return text;
    }
    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// A whole percentage; a host's load is not known more precisely.
pub(crate) fn percent(ratio: Ratio) -> String {
    format!("{:.0} %", ratio.get() * 100.0)
}

/// A named number of the evidence. The end of its name gives the unit.
pub(crate) fn named(name: &str, value: f64) -> String {
    let (label, text) = if let Some(label) = name.strip_suffix("_bps") {
        (label, Bitrate::from_bps(value).map(|v| v.to_string()))
    } else if let Some(label) = name.strip_suffix("_bytes") {
        let whole = (0.0..1.8e19).contains(&value).then_some(Bytes::new(value as u64));
        (label, whole.map(|v| v.to_string()))
    } else if let Some(label) = name.strip_suffix("_ns") {
        (label, Span::from_secs_f64(value / 1e9).map(|v| v.to_string()))
    } else {
        (name, None)
    };
    format!("{} {}", label.replace(['_', '.'], " "), text.unwrap_or_else(|| number(value)))
}

/// A number in a unit of the metric catalogue or of a method's table; without a known unit, the plain number.
pub(crate) fn in_unit(unit: Option<&str>, value: f64) -> String {
    let (number, name) = in_unit_of(unit, value, value);
    labelled(&number, name)
}

/// A value with its unit, followed by the ends of its interval: `940.0 Mb/s (846.0 to 1034.0)`.
pub(crate) fn within(unit: Option<&str>, value: f64, ends: (f64, f64)) -> String {
    let [value, low, high] = in_one_unit(unit, value, ends);
    format!("{value} ({low} to {high})")
}

/// A value with its unit, and the numbers of both ends of its interval in the same unit. It is that of the value,
/// or that of the upper end if the value is 0.
pub(crate) fn in_one_unit(unit: Option<&str>, value: f64, (low, high): (f64, f64)) -> [String; 3] {
    let reference = if value > 0.0 { value } else { high };
    let number = |value| end_of(unit, value, reference);
    let (shown, name) = in_unit_of(unit, value, reference);
    [labelled(&shown, name), number(low), number(high)]
}

/// A range in the unit of its upper end: `80.0 to 941.4 Mb/s`; in two units if the lower end would lose its digits.
pub(crate) fn range(unit: Option<&str>, low: f64, high: f64) -> String {
    format!("{} to {}", end_of(unit, low, high), in_unit(unit, high))
}

/// Fewest significant digits, and most digits before the point, of a number in the unit of another value.
const MIN_DIGITS: usize = 2;
const MAX_WHOLE_DIGITS: usize = 4;

/// A value in the unit of `reference`, without the unit; with its own unit if it would lose its digits there, or have
/// too many.
fn end_of(unit: Option<&str>, value: f64, reference: f64) -> String {
    let (own, own_unit) = in_unit_of(unit, value, value);
    let (number, name) = in_unit_of(unit, value, reference);
    let digits = number.trim_start_matches(['0', '.', '-']).chars().filter(char::is_ascii_digit).count();
    let whole = number.split('.').next().map_or(0, str::len);
    let fits = value == 0.0 || (digits >= MIN_DIGITS && whole <= MAX_WHOLE_DIGITS);
    if fits || own_unit == name { number } else { labelled(&own, own_unit) }
}

/// Two values with an arrow between them in the unit of the larger one, as long as the smaller one is not 0 there:
/// `0.03 -> 3.40 ms`.
pub(crate) fn from_to(unit: Option<&str>, from: f64, to: f64) -> String {
    let largest = from.max(to);
    let (number, name) = in_unit_of(unit, from, largest);
    let (last, _) = in_unit_of(unit, to, largest);
    let lost =
        |value: f64, number: &str| value > 0.0 && !number.contains(|c: char| c.is_ascii_digit() && c != '0');
    if lost(from, &number) || lost(to, &last) {
        return format!("{} -> {}", in_unit(unit, from), in_unit(unit, to));
    }
    format!("{number} -> {}", labelled(&last, name))
}

fn labelled(number: &str, unit: &str) -> String {
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

/// A value as a number in the unit in which `reference` is printed, and the name of that unit, which is empty for a
/// plain number.
fn in_unit_of(unit: Option<&str>, value: f64, reference: f64) -> (String, &'static str) {
    let whole = |value: f64| (0.0..1.8e19).contains(&value).then_some(value as u64);
    let wholes = || whole(value).zip(whole(reference));
    let text = match unit {
        Some("bit/s") => Bitrate::from_bps(value)
            .zip(Bitrate::from_bps(reference))
            .map(|(value, reference)| value.in_unit_of(reference)),
        Some("bytes") => wholes()
            .map(|(value, reference)| (Bytes::new(value), Bytes::new(reference)))
            .map(|(value, reference)| value.in_unit_of(reference)),
        Some("ns") => wholes()
            .map(|(value, reference)| (Span::from_ns(value), Span::from_ns(reference)))
            .map(|(value, reference)| value.in_unit_of(reference)),
        Some("octets") => whole(value).map(|value| (value.to_string(), "B")),
        Some("ratio") => Ratio::new(value).map(|value| (value.percent(), "%")),
        Some("%") => Some((format!("{value:.2}"), "%")),
        Some("frames/s") => Some((format!("{value:.0}"), "frames/s")),
        // The product of rate and distance is shown in terabit-metres per second.
        Some("bit m/s") => Some((format!("{:.3}", value / 1e12), "Tb m/s")),
        _ => None,
    };
    text.unwrap_or_else(|| (number(value), ""))
}

/// A number with four significant digits.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let magnitude = value.abs().log10().floor();
    if (-4.0..6.0).contains(&magnitude) {
        let digits = (3.0 - magnitude).max(0.0) as usize;
        let text = format!("{value:.digits$}");
        return if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() };
    }
    format!("{value:.3e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_the_unit() {
        assert_eq!(named("link_bps", 941_482_444.7), "link 941.5 Mb/s");
        assert_eq!(named("snd_wnd_bytes", 3_145_728.0), "snd wnd 3 MiB");
        assert_eq!(named("min_rtt_ns", 210_000.0), "min rtt 210 us");
        assert_eq!(named("share", 0.5), "share 0.5");
        assert_eq!(named("segments", 12_345_678.0), "segments 12345678");
        assert_eq!(named("p", 2.857e-5), "p 2.857e-5");
        assert_eq!(named("slope_bps", -1.5), "slope -1.5");
        assert_eq!(named("ratio", f64::NAN), "ratio -");
        assert_eq!(named("busy", 0.12345), "busy 0.1235");
    }

    #[test]
    fn a_number_is_shown_in_its_unit() {
        assert_eq!(in_unit(Some("bit/s"), 941_482_444.7), "941.5 Mb/s");
        assert_eq!(in_unit(Some("bytes"), 65_536.0), "64 KiB");
        assert_eq!(in_unit(Some("ns"), 1_500_000.0), "1.50 ms");
        assert_eq!(in_unit(Some("ratio"), 0.25), "25.0 %");
        assert_eq!((in_unit(Some("1"), 17.0), in_unit(None, 0.5)), ("17".to_owned(), "0.5".to_owned()));
        assert_eq!(in_unit(Some("bytes"), -1.5), "-1.5");
    }

    #[test]
    fn an_interval_has_the_unit_of_its_value() {
        let shown = |unit, value, low, high| within(Some(unit), value, (low, high));
        assert_eq!(shown("bit/s", 940e6, 846e6, 1.034e9), "940.0 Mb/s (846.0 to 1034.0)");
        assert_eq!(shown("bit/s", 1.034e9, 940e6, 1.1e9), "1.034 Gb/s (0.940 to 1.100)");
        assert_eq!(shown("ns", 900_000.0, 210_000.0, 1_300_000.0), "900 us (210 to 1300)");
        assert_eq!(shown("ns", 1_200_000.0, 950_000.0, 2_000_000.0), "1.20 ms (0.95 to 2)");
        assert_eq!(shown("bytes", 1_048_576.0, 65_536.0, 2_097_152.0), "1 MiB (64 KiB to 2)");
        assert_eq!(shown("ratio", 0.25, 0.0, 0.5), "25.0 % (0.0 to 50.0)");
        assert_eq!(shown("1", 17.0, 3.0, 40.5), "17 (3 to 40.5)");
        assert_eq!(shown("ns", 0.0, 0.0, 210_000.0), "0 us (0 to 210)", "0 has no unit of its own");
        assert_eq!(shown("ns", 0.0, 0.0, 0.0), "0 s (0 to 0)");
    }

    #[test]
    fn a_range_has_the_unit_of_its_upper_end() {
        assert_eq!(range(Some("bit/s"), 80e6, 941.4e6), "80.0 to 941.4 Mb/s");
        assert_eq!(range(Some("bit/s"), 940e6, 1.034e9), "0.940 to 1.034 Gb/s");
        assert_eq!(range(Some("ratio"), 0.007, 0.111), "0.7 to 11.1 %");
        // A starved flow is not a dead one.
        assert_eq!(range(Some("bit/s"), 8e3, 9.4e9), "8.000 kb/s to 9.400 Gb/s");
        assert_eq!(range(Some("bit/s"), 0.0, 9.4e9), "0.000 to 9.400 Gb/s");
        assert_eq!(within(Some("ns"), 4e6, (5e3, 6e6)), "4 ms (5 us to 6)");
        assert_eq!(within(Some("ns"), 9e5, (2e5, 3e9)), "900 us (200 to 3 s)");
        assert_eq!(within(Some("ns"), 1e9, (1e9, 2e9)), "1 s (1 to 2)");
    }

    #[test]
    fn two_values_have_one_unit_unless_one_would_be_lost() {
        let times = |from, to| from_to(Some("ns"), from, to);
        assert_eq!(times(24_300.0, 4_440_000.0), "0.02 -> 4.44 ms");
        assert_eq!(times(210_000.0, 900_000.0), "210 -> 900 us");
        assert_eq!(times(99_960_000.0, 12_345_000.0), "100.0 -> 12.3 ms");
        assert_eq!(times(4_000.0, 3e9), "4 us -> 3 s");
        assert_eq!(times(0.0, 3e9), "0 -> 3 s");
        assert_eq!(times(0.0, 0.0), "0 -> 0 s");
    }

    /// The script of the page is tested with the same file.
    #[test]
    fn quantities_are_printed_as_the_vectors_say() {
        let text = include_str!("../../../fixtures/units.json");
        let vectors: serde_json::Value = serde_json::from_str(text).unwrap();
        let vectors = vectors["vectors"].as_array().unwrap();
        assert!(vectors.len() > 30);
        for vector in vectors {
            let (unit, value) = (vector["unit"].as_str(), vector["value"].as_f64().unwrap());
            assert_eq!(in_unit(unit, value), vector["text"].as_str().unwrap(), "{vector}");
        }
    }

    #[test]
    fn nominal_rates_have_no_idle_digits() {
        let show = |bps| nominal(Bitrate::from_bps(bps).unwrap());
        assert_eq!(show(1e9), "1 Gb/s");
        assert_eq!(show(2.5e9), "2.5 Gb/s");
        assert_eq!(show(1e11), "100 Gb/s");
        assert_eq!(show(100.0), "100 b/s");
    }
}
