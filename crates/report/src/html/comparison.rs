//! The page of `linerate compare`: each statement in words, every repeat as a dot, and all figures.

use linerate_model::ForeignText;
use linerate_plan::{Candidate, Compared, ComparisonRow};
use maud::{Markup, html};

use super::chart::{Chart, ChartAxis, ChartLine, LineStyle, Mark, Panel, Rounded};
use super::contents;
use super::parts::{self, PageCharts};
use crate::compare::{
    PRIMARY_QUANTITY, change, dependent, group, is_shown, listed, not_compared, place_name, sentence, too_few,
};
use crate::plan::shown_unit;
use crate::table::{Cell, Column, Table};
use crate::text_flow::plural;
use linerate_theory::compare::ComparisonOutcome;

/// Most strip plots on a page.
const MAX_PANELS: usize = 12;
/// Half of the width of a configuration's strip; the distance of two is 1.
const HALF_STRIP: f64 = 0.3;

/// The title of the page.
pub(super) fn title(compared: &Compared) -> String {
    let names: Vec<&str> = compared.others.iter().map(|other| other.name.as_str()).collect();
    format!("{} compared with {}", listed(&names), compared.base.name)
}

/// The whole page.
pub(super) fn body(heading: Option<&ForeignText>, compared: &Compared, figures: &mut PageCharts) -> Markup {
    html! {
        main {
            header { p.brand { "linerate report" } }
            (content(heading, compared, figures))
        }
    }
}

/// What the page shows, with its contents.
pub(super) fn content(
    heading: Option<&ForeignText>,
    compared: &Compared,
    figures: &mut PageCharts,
) -> Markup {
    let (shown, rest): (Vec<&ComparisonRow>, Vec<&ComparisonRow>) =
        compared.table.rows.iter().partition(|row| row.quantity == PRIMARY_QUANTITY || is_shown(row));
    let content = html! {
        (parts::heading(heading, &title(compared)))
        div #verdict { @for row in &shown { (statement(compared, row)) } }
        @if shown.is_empty() { p { "No difference is shown." } }
        (differences(compared))
        @for runs in &compared.left_out { p.warn { "⚠ " (not_compared(runs)) } }
        div #repeats {
            (figures.place(strips(compared, &shown)))
        }
        div #results { (table(compared, &shown, "Goodput, and every quantity with a difference that is shown")) }
        @if !rest.is_empty() {
            details {
                summary { (plural(rest.len() as u64, "comparison")) " without a difference that is shown" }
                (table(compared, &rest, "Quantities without a difference that is shown"))
            }
        }
        (missing(compared))
        p.faint { "A difference counts as shown if the probability of chance is below 5 %, over all comparisons together, and the difference exceeds the resolution of the figures." }
    };
    let content = content.into_string();
    html! {
        (contents::markup(&content, &[]))
        (maud::PreEscaped(content))
    }
}

fn other<'c>(compared: &'c Compared, row: &ComparisonRow) -> &'c str {
    compared.others.get(row.candidate).map_or("", |other| other.name.as_str())
}

fn statement(compared: &Compared, row: &ComparisonRow) -> Markup {
    let better = row.comparison.outcome.is_better(row.better);
    let repeats = format!("{} and {} repeats", row.comparison.base.repeats, row.comparison.other.repeats);
    html! {
        div.verdict.confirmed[better == Some(true)].bad[better == Some(false)] {
            h3 { (place_name(&row.place)) }
            p.figure { strong { (sentence(row, &compared.base.name, other(compared, row))) } }
            p.cause { (repeats) ", " (chance(row)) (dependent(&row.comparison)) }
        }
    }
}

fn chance(row: &ComparisonRow) -> String {
    match row.comparison.p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p => format!("p = {p:.3}"),
    }
}

fn differences(compared: &Compared) -> Markup {
    html! {
        @if !compared.table.differences.is_empty() {
            ul.caveats { @for difference in &compared.table.differences { li {
                strong { "⚠ " (compared.others.get(difference.candidate).map_or("", |other| other.name.as_str())) ", " (difference.what) ": " }
                (difference.other) " instead of " (difference.base)
            } } }
        }
    }
}

fn missing(compared: &Compared) -> Markup {
    html! {
        @for (candidate, place, quantity) in &compared.table.missing {
            p.warn { "⚠ " (compared.others.get(*candidate).map_or("", |other| other.name.as_str())) " has no " (quantity) " at " (place_name(place)) }
        }
    }
}

fn table(compared: &Compared, rows: &[&ComparisonRow], caption: &str) -> Markup {
    let several = compared.others.len() > 1;
    let column = |show: &dyn Fn(&ComparisonRow) -> String| -> Vec<Cell> {
        // A value is broken at the end of a line only before its interval.
        let unbroken =
            |text: String| text.replace(' ', "\u{a0}").replace("\u{a0}[", " [").replace("\u{a0}(", " (");
        rows.iter().map(|row| Cell::plain(unbroken(show(row)))).collect()
    };
    let mut columns = vec![
        Column::words("where", column(&|row| place_name(&row.place))),
        Column::words("quantity", column(&|row| row.quantity.replace('_', " "))),
    ];
    columns
        .extend(several.then(|| Column::words("compared", column(&|row| other(compared, row).to_owned()))));
    let theirs = match compared.others.as_slice() {
        [only] => only.name.clone(),
        _ => "its value".to_owned(),
    };
    columns.extend([
        Column::words("result", column(&result)),
        Column::numbers("change", column(&|row| change(row, &row.comparison))),
        Column::numbers("chance", column(&chance)),
        Column::named(compared.base.name.clone(), column(&|row| group(row, &row.comparison.base)), true),
        Column::named(theirs, column(&|row| group(row, &row.comparison.other)), true),
    ]);
    html! { @if !rows.is_empty() { div.breaking { (parts::table(&Table::new(columns), caption)) } } }
}

fn result(row: &ComparisonRow) -> String {
    match (row.comparison.outcome, row.comparison.outcome.is_better(row.better)) {
        (ComparisonOutcome::TooFew, _) => too_few(&row.comparison),
        (_, Some(true)) => "better".to_owned(),
        (_, Some(false)) => "worse".to_owned(),
        (ComparisonOutcome::Higher | ComparisonOutcome::Lower, None) => "differs".to_owned(),
        _ => "none shown".to_owned(),
    }
}

/// A strip for each configuration: every repeat in the order in which it was measured, and the median with its
/// interval. A panel for each place and quantity.
fn strips(compared: &Compared, shown: &[&ComparisonRow]) -> Option<Chart> {
    let mut wanted: Vec<&ComparisonRow> = Vec::new();
    for row in shown {
        if !wanted.iter().any(|known| known.place == row.place && known.quantity == row.quantity) {
            wanted.push(row);
        }
    }
    let panels: Vec<Panel> = wanted.iter().take(MAX_PANELS).filter_map(|row| panel(compared, row)).collect();
    let mut notes = vec!["From left to right within a strip: the repeats in their order.".to_owned()];
    if wanted.len() > MAX_PANELS {
        let more = plural((wanted.len() - MAX_PANELS) as u64, "comparison");
        notes.push(format!("Drawn are the first {MAX_PANELS}; {more} more are in the table."));
    }
    let names = std::iter::once(&compared.base).chain(&compared.others);
    let marks =
        names.zip(1_u32..).map(|(one, at)| Mark { at: Rounded(f64::from(at)), label: one.name.clone() });
    // The unit of an axis that has no numbers.
    let x = ChartAxis { marks: marks.collect(), ..ChartAxis::linear("configuration", "words") };
    let title = "every repeat, and the median with its interval".to_owned();
    Chart::of_sweep(title, x, panels, notes)
}

fn panel(compared: &Compared, row: &ComparisonRow) -> Option<Panel> {
    let candidates: Vec<(&Candidate, f64)> =
        std::iter::once(&compared.base).chain(&compared.others).zip((1_u32..).map(f64::from)).collect();
    let dots = candidates.iter().filter_map(|(one, at)| {
        let values = one.samples(&row.place, row.quantity)?;
        let step = 2.0 * HALF_STRIP / values.len().max(1) as f64;
        let points = values
            .iter()
            .enumerate()
            .map(|(number, value)| (at - HALF_STRIP + step * (number as f64 + 0.5), Some(*value)));
        Some(ChartLine::of(one.name.clone(), LineStyle::Dots, points))
    });
    let mut lines: Vec<ChartLine> = dots.collect();
    let of_place = |row: &&ComparisonRow, other: &ComparisonRow| {
        row.place == other.place && row.quantity == other.quantity
    };
    let rows = || compared.table.rows.iter().filter(|other| of_place(&row, other));
    let groups = std::iter::once((0, &row.comparison.base))
        .chain(rows().map(|row| (row.candidate + 1, &row.comparison.other)));
    let medians = groups.filter_map(|(number, group)| {
        let (one, at) = candidates.get(number)?;
        let ends = [at - HALF_STRIP, at + HALF_STRIP];
        let mut line = ChartLine::of(
            format!("{}, median", one.name),
            LineStyle::Computed,
            ends.map(|x| (x, Some(group.median))),
        );
        if let Some(interval) = group.interval {
            line.low = vec![Some(Rounded(interval.low)); 2];
            line.high = vec![Some(Rounded(interval.high)); 2];
        }
        Some(line)
    });
    lines.extend(medians);
    let unit = shown_unit(row.quantity, row.dimension.unit()).unwrap_or("1");
    let label = format!("{}: {}", place_name(&row.place), row.quantity.replace('_', " "));
    let y = ChartAxis { fitted: true, ..ChartAxis::linear(label, unit) };
    (!lines.is_empty()).then(|| Panel::of_lines(y, lines))
}
