//! A summary as a table cell.

use linerate_model::PointSummary;
use linerate_units::{Bitrate, Bytes, Span};

/// A value with its unit.
pub(super) fn figure(unit: Option<&str>, value: f64) -> String {
    let whole = (0.0..1.8e19).contains(&value).then_some(value as u64);
    let shown = match unit {
        Some("bit/s") => Bitrate::from_bps(value).map(|rate| rate.to_string()),
        Some("ns") => whole.map(|ns| Span::from_ns(ns).to_string()),
        Some("bytes") => whole.map(|bytes| Bytes::new(bytes).to_string()),
        Some("%") => Some(format!("{value:.2} %")),
        Some("frames/s") => Some(format!("{value:.0} frames/s")),
        // The product of rate and distance is shown in terabit-metres per second.
        Some("bit m/s") => Some(format!("{:.3} Tb m/s", value / 1e12)),
        _ => None,
    };
    shown.unwrap_or_else(|| plain(value))
}

fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    if value.abs() < 1e-3 {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The median, followed by the spread of the trials: the interval of the median, or their range.
pub(super) fn spread(summary: &PointSummary) -> String {
    let unit = summary.unit.as_deref();
    let Some(median) = summary.median else { return text_values(summary) };
    let shown = figure(unit, median);
    let ends = summary.interval.map(|interval| (interval.low, interval.high));
    let range =
        || (summary.values.len() > 1).then(|| Some((summary.smallest()?, summary.largest()?))).flatten();
    let Some(ends) = ends.or_else(range) else { return shown };
    within(unit, median, ends)
}

/// A value, followed by the ends of its interval.
pub(super) fn within(unit: Option<&str>, middle: f64, (low, high): (f64, f64)) -> String {
    let shown = figure(unit, middle);
    let (low, high) = (figure(unit, low), figure(unit, high));
    let behind = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    // The unit appears once if all three have the same.
    let same = behind(&low) == behind(&shown) && behind(&high) == behind(&shown);
    let bare = |text: &str| match (same, text.split_once(' ')) {
        (true, Some((number, _))) => number.to_owned(),
        _ => text.to_owned(),
    };
    format!("{shown} ({} to {})", bare(&low), bare(&high))
}

/// The words of the trials, each once, with counts if they differ.
pub(super) fn text_values(summary: &PointSummary) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for word in &summary.words {
        match counted.iter_mut().find(|(known, _)| known == word) {
            Some((_, count)) => *count += 1,
            None => counted.push((word, 1)),
        }
    }
    match counted.as_slice() {
        [(only, _)] => (*only).to_owned(),
        several => {
            several.iter().map(|(word, count)| format!("{word} x{count}")).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The median only.
pub(super) fn middle(summary: &PointSummary) -> String {
    match (summary.quantity.as_str(), summary.median) {
        ("share" | "loss" | "cpu_sender" | "cpu_receiver", Some(median)) => {
            format!("{:.1} %", median * 100.0)
        }
        ("segment", Some(median)) => format!("{median:.0}"),
        (_, Some(median)) => figure(summary.unit.as_deref(), median),
        (_, None) => text_values(summary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Direction, SummaryInterval};

    fn rates(values: &[f64], median: f64, interval: Option<(f64, f64)>) -> PointSummary {
        PointSummary {
            point: "00000000000000ff".into(),
            flow: "ab".into(),
            direction: Direction::Upload,
            quantity: "goodput".into(),
            unit: Some("bit/s".into()),
            values: values.to_vec(),
            median: Some(median),
            interval: interval.map(|(low, high)| SummaryInterval { low, high, coverage: 0.97 }),
            words: Vec::new(),
        }
    }

    #[test]
    fn one_trial_has_no_spread_few_have_a_range_and_many_an_interval() {
        assert_eq!(spread(&rates(&[941.4e6], 941.4e6, None)), "941.4 Mb/s");
        assert_eq!(spread(&rates(&[900e6, 941.4e6], 920.7e6, None)), "920.7 Mb/s (900.0 to 941.4)");
        let many = rates(&[9e8; 6], 941.4e6, Some((940e6, 1.2e9)));
        assert_eq!(spread(&many), "941.4 Mb/s (940.0 Mb/s to 1.200 Gb/s)");
    }

    #[test]
    fn words_that_disagree_are_counted() {
        let verdicts = |words: &[&str]| PointSummary {
            words: words.iter().map(|word| (*word).into()).collect(),
            median: None,
            ..rates(&[], 0.0, None)
        };
        assert_eq!(text_values(&verdicts(&["link", "link"])), "link");
        assert_eq!(text_values(&verdicts(&["link", "unknown", "link"])), "link x2, unknown x1");
    }
}
