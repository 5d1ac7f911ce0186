//! The tables of speed in README and guide, made from `bench/results.json` by `cargo xtask gen`.
//!
//! Such a text is between `<!-- speed: NAME -->` and `<!-- end of speed -->`.

use std::fs;
use std::path::Path;

use serde_json::Value;

const RESULTS: &str = "bench/results.json";
const BEGIN: &str = "<!-- speed: ";
const BEGIN_END: &str = " -->";
const END: &str = "<!-- end of speed -->";

/// The pages that have such texts.
const PAGES: [&str; 2] = ["README.md", "docs/guide/speed.md"];

/// Figures of the table of transfers, and what they are called there.
const TRANSFERS: [(&str, &str); 20] = [
    ("tcp-loopback", "TCP, one stream, loopback"),
    ("tcp-cubic-loopback", "the same, with cubic"),
    ("tcp-veth", "TCP, one stream, veth"),
    ("tcp-big-tcp", "TCP, one stream, veth with BIG TCP"),
    ("tcp-no-offloads", "TCP, one stream, veth without offloads"),
    ("tcp-4-loopback", "TCP, four streams, loopback"),
    ("tcp-4-veth", "TCP, four streams, veth"),
    ("tcp-128-loopback", "TCP, 128 streams, loopback"),
    ("tcp-best-loopback", "TCP, best options of each, loopback"),
    ("tcp-best-veth", "TCP, best options of each, veth"),
    ("tcp-4-best-loopback", "TCP, best options of each, four streams, loopback"),
    ("tcp-4-best-veth", "TCP, best options of each, four streams, veth"),
    ("tcp-discard-loopback", "TCP, discarded by the receiving kernel, loopback"),
    ("tcp-4-discard-loopback", "TCP, discarded, four streams, loopback"),
    ("udp-64-loopback", "UDP, 64 bytes, loopback"),
    ("udp-loopback", "UDP, 1448 bytes, loopback"),
    ("udp-8972-loopback", "UDP, 8972 bytes, loopback"),
    ("udp-veth", "UDP, 1448 bytes, veth"),
    ("udp-paced-1g-loopback", "UDP paced at 1 Gb/s: error of the rate"),
    ("iperf3-udp-1g", "the same, ours as `linerate iperf3`"),
];

/// The pages as they should be: path and text.
///
/// # Errors
/// If a page or the result cannot be read, or a page names an unknown text.
pub(crate) fn pages(root: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let read = |name: &str| {
        fs::read_to_string(root.join(name)).map_err(|error| format!("cannot read {name}: {error}"))
    };
    let results: Value =
        serde_json::from_str(&read(RESULTS)?).map_err(|error| format!("{RESULTS}: {error}"))?;
    let results = BenchResults(&results);
    PAGES.iter().map(|page| Ok((*page, renewed(page, &read(page)?, &results)?))).collect()
}

/// The page with the texts of these results.
fn renewed(page: &str, text: &str, results: &BenchResults<'_>) -> Result<String, String> {
    let mut fresh = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let unclosed = || format!("{page}: a text that begins with `{BEGIN}` has no `{END}`");
        let (name, after) = after.split_once(BEGIN_END).ok_or_else(unclosed)?;
        let (_, after) = after.split_once(END).ok_or_else(unclosed)?;
        let made = match name {
            "sentence" => results.sentence(),
            "measured" => results.measured(),
            "transfers" => Some(results.transfers()),
            "stand-in" => results.stand_in(),
            other => return Err(format!("{page}: there is no text about speed named `{other}`")),
        };
        let made = made.ok_or_else(|| format!("{RESULTS} has not all figures of `{name}` in {page}"))?;
        fresh.extend([before, BEGIN, name, BEGIN_END, &made, END]);
        rest = after;
    }
    fresh.push_str(rest);
    Ok(fresh)
}

/// A document that `cargo xtask bench` has written.
struct BenchResults<'a>(&'a Value);

impl BenchResults<'_> {
    fn figure(&self, name: &str) -> Option<&Value> {
        self.0["figures"].as_array()?.iter().find(|figure| figure["name"] == name)
    }

    fn ratio(&self, name: &str) -> Option<f64> {
        self.figure(name)?["ratio"]["median"].as_f64()
    }

    /// The cell of README's table.
    fn sentence(&self) -> Option<String> {
        let ratio = |name| Some(short(self.ratio(name)?));
        Some(format!(
            "{} times iperf3 over loopback with one stream, {} with four, {} without offloads",
            ratio("tcp-loopback")?,
            ratio("tcp-4-loopback")?,
            ratio("tcp-no-offloads")?,
        ))
    }

    /// When, where and how.
    fn measured(&self) -> Option<String> {
        let machine = &self.0["machine"];
        let date = self.0["started_at"].as_str()?.get(..10)?;
        Some(format!(
            "\nMeasured on {date} with {}, in {} pairs of {} s (`iperf3-` in 15 of 2 s), on {} cores with\nLinux \
             {}, congestion control {} unless named, load average {:.2} at the start.\n",
            self.0["iperf3"].as_str()?,
            self.0["pairs"],
            self.0["transfer_seconds"],
            machine["cores"],
            machine["kernel"].as_str()?,
            machine["congestion_control"].as_str()?,
            machine["load_average"].as_f64()?,
        ))
    }

    /// The table of transfers. A figure that was not measured has a row that says so.
    fn transfers(&self) -> String {
        let mut table = String::from(
            "\n| | linerate | iperf3 | ratio | goal | CPU, s/GB | goal |\n|---|---|---|---|---|---|---|\n",
        );
        for (name, title) in TRANSFERS {
            let cells = self.figure(name).and_then(transfer_cells);
            let cells = cells.unwrap_or_else(|| "not measured | | | | |".to_owned());
            table.push_str(&format!("| {title} | {cells} |\n"));
        }
        table
    }

    /// Ratios of the stand-in of iperf3 to the original in the same role.
    fn stand_in(&self) -> Option<String> {
        let cell = |name: &str| {
            let contest = &self.figure(name)?["contest"];
            let number = |key: &str| contest[key].as_f64().map(short);
            Some(format!("{} ({} to {})", number("ratio")?, number("low")?, number("high")?))
        };
        Some(format!(
            "\n| | client | server |\n|---|---|---|\n| default direction | {} | {} |\n| with `-R` | {} | {} |\n",
            cell("iperf3-client")?,
            cell("iperf3-server")?,
            cell("iperf3-reverse-client")?,
            cell("iperf3-reverse-server")?,
        ))
    }
}

/// All cells but the title.
fn transfer_cells(figure: &Value) -> Option<String> {
    let unit = figure["unit"].as_str()?;
    let median = |key: &str| figure[key]["median"].as_f64();
    let rate = |key: &str| {
        let value = median(key)?;
        Some(if unit == "% off" { format!("{value:.3} {unit}") } else { format!("{} {unit}", short(value)) })
    };
    let ratio = match &figure["ratio"] {
        Value::Null => String::new(),
        ratio => format!(
            "{} ({} to {})",
            short(ratio["median"].as_f64()?),
            short(ratio["min"].as_f64()?),
            short(ratio["max"].as_f64()?)
        ),
    };
    let goal = |promise: &str, reached: &str| match (figure[promise].as_str(), figure[reached].as_bool()) {
        (None, _) => String::new(),
        (Some(promise), Some(true)) => format!("{}: reached", spaced(promise)),
        (Some(promise), Some(false)) => format!("{}: **not reached**", spaced(promise)),
        (Some(promise), None) => format!("{}: not decided", spaced(promise)),
    };
    Some(format!(
        "{} | {} | {ratio} | {} | {:.3} / {:.3} | {}",
        rate("linerate")?,
        rate("iperf3")?,
        goal("goal", "reached"),
        median("linerate_cpu_seconds_per_gb")?,
        median("iperf3_cpu_seconds_per_gb")?,
        goal("cpu_goal", "cpu_reached"),
    ))
}

/// A ratio without its `x`, which needs no unit in a table of ratios.
fn spaced(promise: &str) -> &str {
    promise.trim_end_matches('x')
}

/// About three digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results() -> Value {
        let contest = json!({"ratio": 1.234, "low": 1.1, "high": 1.3});
        let with = |name: &str| json!({"name": name, "unit": "Gb/s", "contest": contest});
        let transfer = |name: &str, ratio: f64, reached: Option<bool>| {
            json!({"name": name, "unit": "Gb/s", "linerate": {"median": 20.0 * ratio}, "iperf3": {"median": 20.0},
                "ratio": {"median": ratio, "min": ratio - 0.1, "max": ratio + 0.1},
                "linerate_cpu_seconds_per_gb": {"median": 0.25}, "iperf3_cpu_seconds_per_gb": {"median": 0.5},
                "goal": ">= 1.4x", "reached": reached, "cpu_goal": "<= 0.8x", "cpu_reached": true})
        };
        json!({
            "started_at": "2026-11-30T05:00:00Z", "pairs": 7, "transfer_seconds": 3, "iperf3": "iperf 3.22",
            "machine": {"cores": 2, "kernel": "6.18", "load_average": 0.02, "congestion_control": "bbr"},
            "figures": [
                transfer("tcp-loopback", 2.5, Some(true)),
                transfer("tcp-4-loopback", 1.3, None),
                transfer("tcp-no-offloads", 0.85, Some(false)),
                with("iperf3-client"), with("iperf3-server"),
                with("iperf3-reverse-client"), with("iperf3-reverse-server"),
            ],
        })
    }

    #[test]
    fn each_text_is_replaced_and_the_rest_of_the_page_stays() {
        let document = results();
        let page = "a <!-- speed: sentence -->old<!-- end of speed --> b\n<!-- speed: measured --><!-- end of speed -->c";
        let fresh = renewed("a.md", page, &BenchResults(&document)).unwrap();
        assert_eq!(
            fresh,
            "a <!-- speed: sentence -->2.50 times iperf3 over loopback with one stream, 1.30 with four, 0.85 \
             without offloads<!-- end of speed --> b\n<!-- speed: measured -->\nMeasured on 2026-11-30 with iperf \
             3.22, in 7 pairs of 3 s (`iperf3-` in 15 of 2 s), on 2 cores with\nLinux 6.18, congestion control bbr \
             unless named, load average 0.02 at the start.\n<!-- end of speed -->c"
        );
        assert_eq!(renewed("a.md", &fresh, &BenchResults(&document)).unwrap(), fresh, "a second time");
    }

    #[test]
    fn a_goal_is_reached_missed_or_not_decided_and_a_missing_figure_says_so() {
        let document = results();
        let table = BenchResults(&document).transfers();
        let row = |title: &str| table.lines().find(|line| line.contains(title)).unwrap().to_owned();
        assert_eq!(
            row("one stream, loopback"),
            "| TCP, one stream, loopback | 50.0 Gb/s | 20.0 Gb/s | 2.50 (2.40 to 2.60) | >= 1.4: reached | 0.250 / \
             0.500 | <= 0.8: reached |"
        );
        assert!(row("four streams, loopback").contains(">= 1.4: not decided"));
        assert!(row("without offloads").contains(">= 1.4: **not reached**"));
        assert!(row("128 streams").contains("not measured"));
        assert!(BenchResults(&document).stand_in().unwrap().contains("| with `-R` | 1.23 (1.10 to 1.30) |"));
    }

    #[test]
    fn unknown_and_unclosed_texts_are_named() {
        let document = results();
        let of = |page: &str| renewed("a.md", page, &BenchResults(&document)).unwrap_err();
        assert!(of("<!-- speed: height --><!-- end of speed -->").contains("`height`"));
        assert!(of("<!-- speed: sentence -->").contains("a.md"));
        let empty = json!({"figures": []});
        let missing = renewed("a.md", "<!-- speed: sentence --><!-- end of speed -->", &BenchResults(&empty));
        assert!(missing.unwrap_err().contains("bench/results.json"));
    }
}
