//! The reference page of all metrics.

use linerate_model::CATALOGUE;
use linerate_model::metrics::{Better, MetricEntry, MetricKind};

/// The definition, unit and source of every metric, as a page in Markdown.
#[must_use]
pub fn metrics_reference() -> String {
    let mut text = String::from(
        "# Metrics\n\nAll quantities that a sample can contain, in the form of RFC 1242 section 2. A quantity that was not measured is absent. Counters are amounts per interval, which can be added; gauges are values at the end of an interval. Port metrics exist only in an emulated network. This page is written by `cargo xtask gen`.\n",
    );
    for entry in CATALOGUE.iter().flat_map(|entries| entries.iter()) {
        describe(&mut text, entry);
    }
    text
}

fn describe(text: &mut String, entry: &MetricEntry) {
    let kind = match entry.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Mean => "mean over the interval",
        MetricKind::Peak => "largest in the interval",
    };
    let better = match entry.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neither => "explains other metrics; neither direction is better",
    };
    let unit = if entry.unit == "1" { "count" } else { entry.unit };
    let (definition, remarks) = paragraphs(entry.doc);
    text.push_str(&format!("\n## `{}`\n\n**Definition:** {definition}\n", entry.name));
    for (label, remark) in remarks {
        text.push_str(&format!("\n**{label}:** {remark}\n"));
    }
    text.push_str(&format!("\n**Unit:** {unit}, {kind}, {better}\n\n**Source:** {}\n", entry.source));
}

/// The definition, and the labelled remarks after it (`Discussion: …`, `Issues: …`, `See also: …`).
fn paragraphs(doc: &str) -> (String, Vec<(&str, String)>) {
    const LABELS: [&str; 3] = ["Discussion:", "Issues:", "See also:"];
    let mut definition = Vec::new();
    let mut remarks: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut rest = doc;
    while let Some(word) = rest.split_whitespace().next() {
        rest = rest.trim_start();
        if let Some(label) = LABELS.into_iter().find(|label| rest.starts_with(label)) {
            remarks.push((label.trim_end_matches(':'), Vec::new()));
            rest = &rest[label.len()..];
            continue;
        }
        remarks.last_mut().map_or(&mut definition, |(_, words)| words).push(word);
        rest = &rest[word.len()..];
    }
    (definition.join(" "), remarks.into_iter().map(|(label, words)| (label, words.join(" "))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_ends_where_the_first_label_is() {
        let (definition, remarks) =
            paragraphs(" The time.\n Of a flow.\n Discussion: holds queues,\n and acks. Issues: Linux.\n");
        assert_eq!(definition, "The time. Of a flow.");
        assert_eq!(
            remarks,
            [("Discussion", "holds queues, and acks.".to_owned()), ("Issues", "Linux.".to_owned())]
        );
    }

    #[test]
    fn every_metric_has_its_entry() {
        let page = metrics_reference();
        for entry in CATALOGUE.iter().flat_map(|entries| entries.iter()) {
            assert_eq!(page.matches(&format!("## `{}`\n", entry.name)).count(), 1, "{}", entry.name);
        }
        assert_eq!(page.matches("**Definition:**").count(), page.matches("**Source:**").count());
    }
}
