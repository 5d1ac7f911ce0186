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

/// A number in a unit of the metric catalogue; without a known unit, the plain number.
pub(crate) fn in_unit(unit: Option<&str>, value: f64) -> String {
    let whole = (0.0..1.8e19).contains(&value).then_some(value as u64);
    let text = match unit {
        Some("bit/s") => Bitrate::from_bps(value).map(|v| v.to_string()),
        Some("bytes") => whole.map(|v| Bytes::new(v).to_string()),
        Some("ns") => whole.map(|v| Span::from_ns(v).to_string()),
        Some("ratio") => Ratio::new(value).map(|v| v.to_string()),
        _ => None,
    };
    text.unwrap_or_else(|| number(value))
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
