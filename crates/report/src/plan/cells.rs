//! A summary as a table cell.

use linerate_model::PointSummary;

use crate::quantity::{in_unit, within};

/// Quantities that are shares; their unit in the log is `1`.
const SHARES: &[&str] = &[
    "share",
    "loss",
    "cpu_sender",
    "cpu_receiver",
    "softirq_sender",
    "softirq_receiver",
    "buffer_delay",
    "efficiency",
];
/// Quantities and axes that are sizes of packets, which are never shown with a prefix; their unit in the log is
/// that of memory, or `1`.
const PACKET_SIZES: &[&str] = &["segment", "segment_asked", "path_mtu", "mss", "mtu", "frame"];

/// The unit in which a quantity, or the values of an axis, are shown.
pub(crate) fn shown_unit<'u>(name: &str, unit: Option<&'u str>) -> Option<&'u str> {
    // An axis may be a key inside a host or a link: `host.a.mtu`.
    let name = name.rsplit('.').next().unwrap_or(name);
    match unit {
        Some("1") if SHARES.contains(&name) => Some("ratio"),
        Some("1" | "bytes") if PACKET_SIZES.contains(&name) => Some("octets"),
        unit => unit,
    }
}

/// The median, followed by the spread of the trials.
pub(crate) fn spread(summary: &PointSummary) -> String {
    let unit = shown_unit(&summary.quantity, summary.unit.as_deref());
    let Some(median) = summary.median else { return text_values(summary) };
    match ends(summary) {
        // Trials that all found the same have no range.
        Some(ends) if ends.0 < ends.1 => within(unit, median, ends),
        _ => in_unit(unit, median),
    }
}

/// The spread of the trials: the interval of the median, or with too few trials for one their range; `None` for a
/// single trial.
pub(crate) fn ends(summary: &PointSummary) -> Option<(f64, f64)> {
    let interval = summary.interval.map(|interval| (interval.low, interval.high));
    let range =
        || (summary.values.len() > 1).then(|| Some((summary.smallest()?, summary.largest()?))).flatten();
    interval.or_else(range)
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

/// The median only. The head of a column of packet sizes says that they are bytes.
pub(super) fn middle(summary: &PointSummary) -> String {
    let Some(median) = summary.median else { return text_values(summary) };
    match shown_unit(&summary.quantity, summary.unit.as_deref()) {
        Some("octets") => format!("{median:.0}"),
        unit => in_unit(unit, median),
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
            repeats: Vec::new(),
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
        assert_eq!(spread(&many), "941.4 Mb/s (940.0 to 1200.0)");
    }

    #[test]
    fn shares_are_in_percent_and_packet_sizes_in_bytes() {
        let of = |quantity: &str, unit: &str, median: f64| {
            let summary = PointSummary {
                quantity: quantity.into(),
                unit: Some(unit.into()),
                ..rates(&[median], median, None)
            };
            spread(&summary)
        };
        assert_eq!(of("loss", "1", 0.0123), "1.2 %");
        assert_eq!(of("segment", "bytes", 8948.0), "8948 B");
        assert_eq!(of("retransmits", "1", 17.0), "17");
        assert_eq!(of("snd_buf", "bytes", 65_536.0), "64 KiB");
        assert_eq!(shown_unit("host.a.mtu", Some("1")), Some("octets"));
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
