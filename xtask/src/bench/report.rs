//! The result as a table and as JSON.

use std::io::IsTerminal;

use serde_json::{Value, json};

use super::BenchContext;
use super::figure::BenchFigure;
use super::machine::Machine;
use super::spread::Spread;

/// Prints progress on a terminal.
pub(super) fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("{what}");
    }
}

/// Printed before the first figure.
pub(super) fn heading(machine: &Machine, bed: &BenchContext) {
    println!("{}", machine.describe());
    println!(
        "{} pairs of {} s each{}, ours and theirs in turn: median (min to max); CPU is of the whole machine",
        bed.pairs,
        bed.transfer.as_secs(),
        if bed.quick { "" } else { ", 15 of 2 s for the rates of iperf3's stand-in" },
    );
    if let Some(warning) = machine.warning() {
        println!("{warning}");
    }
    println!();
    let columns = ["figure", "linerate", "peer", "ratio", "CPU s/GB", "goal"];
    println!("{}", cells(columns.map(str::to_owned)));
}

/// Printed as soon as a figure is complete, as the whole benchmark takes many minutes.
pub(super) fn row(figure: &BenchFigure) {
    let absent = || "-".to_owned();
    let decimals = figure.goal.decimals();
    let goal = match (figure.promise(), figure.reached()) {
        (Some(promise), Some(true)) => format!("{promise}: reached"),
        (Some(promise), Some(false)) => format!("{promise}: not reached"),
        (Some(promise), None) => format!("{promise}: not decided"),
        (None, _) => absent(),
    };
    let cpu = figure.cpu_seconds_per_gb.as_ref();
    println!(
        "{}",
        cells([
            figure.name.to_owned(),
            format!("{} {}", with_extremes(&figure.ours, decimals), figure.unit),
            figure.peer.as_ref().map_or_else(absent, |peer| format!(
                "{} {}",
                with_extremes(peer, decimals),
                figure.unit
            )),
            figure.ratio().map_or_else(absent, |ratio| format!("{}x", with_extremes(&ratio, None))),
            cpu.map_or_else(absent, |(a, b)| format!("{:.3} / {:.3}", a.median(), b.median())),
            goal,
        ])
    );
    if let Some(class) = figure.class {
        println!("{:<22} {class}", "");
    }
    if let (Some(ratio), Some(goal)) = (figure.cpu_ratio(), figure.cpu_goal) {
        let outcome = match figure.cpu_reached() {
            Some(true) => "reached",
            Some(false) => "not reached",
            None => "not decided",
        };
        println!("{:<22} CPU time {}x, <= {goal:?}x: {outcome}", "", with_extremes(&ratio, None));
    }
    if let Some(contest) = figure.contest() {
        println!("{:<22} {}", "", contest.describe());
    }
    if let (Some(note), None) = (&figure.note, &figure.peer) {
        println!("{:<22} {note}", "");
    }
}

/// The versioned document.
pub(super) fn document(
    machine: &Machine,
    iperf3: Option<&str>,
    bed: &BenchContext,
    figures: &[BenchFigure],
) -> Value {
    json!({
        "schema": "linerate.bench/1",
        "started_at": machine.started_at(),
        "machine": machine.json(),
        "iperf3": iperf3,
        "pairs": bed.pairs,
        "transfer_seconds": bed.transfer.as_secs(),
        "figures": figures.iter().map(BenchFigure::json).collect::<Vec<_>>(),
    })
}

fn cells(columns: [String; 6]) -> String {
    let [name, ours, peer, ratio, cpu, goal] = columns;
    format!("{name:<22} {ours:<30} {peer:<30} {ratio:<24} {cpu:<15} {goal}").trim_end().to_owned()
}

/// Omits the extremes of a single reading.
fn with_extremes(spread: &Spread, decimals: Option<usize>) -> String {
    let shown = |value: f64| decimals.map_or_else(|| short(value), |decimals| format!("{value:.decimals$}"));
    let median = shown(spread.median());
    if spread.min() == spread.max() {
        return median;
    }
    format!("{median} ({} to {})", shown(spread.min()), shown(spread.max()))
}

/// Formats three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 || size == 0.0 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_three_digits() {
        let shown = [1234.5, 99.96, 12.345, 9.996, 1.2345, 0.1234, 0.0].map(short);
        assert_eq!(shown, ["1234", "100", "12.3", "10.0", "1.23", "0.123", "0"]);
    }

    #[test]
    fn extremes_are_shown_where_there_are_any() {
        assert_eq!(with_extremes(&Spread::of(vec![2.0]).unwrap(), None), "2.00");
        let three = Spread::of(vec![2.0, 1.0, 30.0]).unwrap();
        assert_eq!(with_extremes(&three, None), "2.00 (1.00 to 30.0)");
        assert_eq!(with_extremes(&three, Some(4)), "2.0000 (1.0000 to 30.0000)");
    }
}
