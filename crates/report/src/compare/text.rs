//! The table for a terminal.

use linerate_model::foreign_text::one_line;
use linerate_plan::{Compared, ComparisonRow, LeftOutRuns, Subject};
use linerate_theory::compare::{Comparison, ComparisonOutcome, MIN_REPEATS_FOR_DEPENDENCE, RepeatSummary};
use linerate_theory::stats::Interval;

use crate::page::{Page, TextStyle};
use crate::plan::shown_unit;
use crate::quantity::{in_one_unit, in_unit};
use crate::text_flow::plural;

/// The quantity that is always shown.
pub(crate) const PRIMARY_QUANTITY: &str = "goodput";

/// The whole comparison; without `all`, quantities other than goodput appear only if a difference is shown.
#[must_use]
pub fn text(mut page: Page, compared: &Compared, all: bool) -> String {
    let Compared { base, others, table, left_out } = compared;
    let names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
    page.remark(0, TextStyle::Plain, &format!("{} compared with {}.", listed(&names), base.name));
    for (number, other) in others.iter().enumerate() {
        for difference in table.differences.iter().filter(|difference| difference.candidate == number) {
            let text = format!(
                "{}, {}: {} instead of {}",
                other.name, difference.what, difference.other, difference.base
            );
            page.remark(2, TextStyle::Warning, &text);
        }
    }
    for runs in left_out {
        page.remark(2, TextStyle::Warning, &not_compared(runs));
    }
    let shown: Vec<&ComparisonRow> =
        table.rows.iter().filter(|row| all || row.quantity == PRIMARY_QUANTITY || is_shown(row)).collect();
    let widths = widths(&shown, &names);
    let mut place = None;
    for row in &shown {
        if place != Some(&row.place) {
            page.heading(&place_name(&row.place));
            place = Some(&row.place);
        }
        one_row(&mut page, row, names[row.candidate], &widths);
    }
    summary(&mut page, compared, shown.len());
    page.into_text()
}

/// The sentence about runs that are not compared.
pub(crate) fn not_compared(left_out: &LeftOutRuns) -> String {
    let LeftOutRuns { name, runs } = left_out;
    let was = if *runs == 1 { "was" } else { "were" };
    format!("{}: {} {was} not completed and not compared", one_line(name), plural(*runs as u64, "run"))
}

pub(crate) fn is_shown(row: &ComparisonRow) -> bool {
    matches!(row.comparison.outcome, ComparisonOutcome::Higher | ComparisonOutcome::Lower)
}

pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Columns of the candidate's name, the quantity and both medians.
fn widths(rows: &[&ComparisonRow], names: &[&str]) -> [usize; 5] {
    let widest =
        |text: &dyn Fn(&ComparisonRow) -> String| rows.iter().map(|row| text(row).chars().count()).max();
    let name = if names.len() > 1 { names.iter().map(|name| name.chars().count()).max() } else { None };
    [
        0,
        name.unwrap_or(0),
        widest(&|row| row.quantity.to_owned()).unwrap_or(0),
        widest(&|row| group(row, &row.comparison.base)).unwrap_or(0),
        widest(&|row| group(row, &row.comparison.other)).unwrap_or(0),
    ]
}

fn one_row(page: &mut Page, row: &ComparisonRow, name: &str, widths: &[usize; 5]) {
    let comparison = &row.comparison;
    let (ink, outcome) = outcome(row);
    let name = if widths[1] == 0 { "" } else { name };
    let cells = [
        (TextStyle::Plain, ""),
        (TextStyle::Strong, name),
        (TextStyle::Plain, row.quantity),
        (TextStyle::Faint, &group(row, &comparison.base)),
        (TextStyle::Plain, &group(row, &comparison.other)),
        (ink, &outcome),
    ];
    if name.is_empty() {
        let [margin, _, rest @ ..] = cells;
        let kept: Vec<_> = std::iter::once(margin).chain(rest).collect();
        page.row(&kept, &[widths[0], widths[2], widths[3], widths[4]]);
    } else {
        page.row(&cells, widths);
    }
}

/// The median, with its interval or the range.
pub(crate) fn group(row: &ComparisonRow, group: &RepeatSummary) -> String {
    let within = |low, high| in_one_unit(unit(row), group.median, (low, high));
    match group.interval {
        Some(Interval { low, high, .. }) => {
            let [median, low, high] = within(low, high);
            format!("{median} [{low}, {high}]")
        }
        None if group.repeats > 1 => {
            let [median, low, high] = within(group.smallest, group.largest);
            format!("{median} ({low} to {high})")
        }
        None => in_unit(unit(row), group.median),
    }
}

/// The unit in which the figures of a row are shown.
pub(super) fn unit(row: &ComparisonRow) -> Option<&'static str> {
    shown_unit(row.quantity, row.dimension.unit())
}

fn outcome(row: &ComparisonRow) -> (TextStyle, String) {
    let comparison = &row.comparison;
    let by = change(row, comparison);
    let p = match comparison.p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p => format!("p = {p:.3}"),
    };
    match comparison.outcome {
        ComparisonOutcome::TooFew => (TextStyle::Faint, too_few(comparison)),
        ComparisonOutcome::NotShown => (TextStyle::Faint, format!("no difference shown: {by}, {p}")),
        ComparisonOutcome::BelowNoise => {
            let least = in_unit(unit(row), comparison.resolution);
            (
                TextStyle::Faint,
                format!("no difference shown: {by}, and the figures cannot show one below {least}"),
            )
        }
        ComparisonOutcome::Dependent => {
            (TextStyle::Warning, format!("no difference shown: {by}, {p}{}", dependent(comparison)))
        }
        ComparisonOutcome::Higher | ComparisonOutcome::Lower => {
            let caveat = dependent(comparison);
            match comparison.outcome.is_better(row.better) {
                Some(true) => (TextStyle::Good, format!("better: {by}, {p}{caveat}")),
                Some(false) => (TextStyle::Bad, format!("worse: {by}, {p}{caveat}")),
                None => (TextStyle::Strong, format!("differs: {by}, {p}{caveat}")),
            }
        }
    }
}

/// A note that the repeats depend on each other, or are too few to test that.
pub(crate) fn dependent(comparison: &Comparison) -> String {
    match comparison.dependence {
        Some(found) => {
            let all = comparison.pairs.unwrap_or(comparison.base.repeats + comparison.other.repeats);
            format!("; the repeats are not independent: {all} are worth {:.1}", found.counts_as)
        }
        None if comparison.is_independence_unknown() => "; too few repeats to test independence".to_owned(),
        None => String::new(),
    }
}

/// The change with its interval, as a share unless the base is 0.
pub(crate) fn change(row: &ComparisonRow, comparison: &Comparison) -> String {
    let base = comparison.base.median.abs();
    let signed = |number: f64| {
        if base > 0.0 {
            format!("{:+.2} %", number / base * 100.0)
        } else {
            let sign = if number < 0.0 { "-" } else { "+" };
            format!("{sign}{}", in_unit(unit(row), number.abs()))
        }
    };
    match comparison.interval {
        Some(Interval { low, high, .. }) => {
            format!("{} [{}, {}]", signed(comparison.shift), signed(low), signed(high))
        }
        None => signed(comparison.shift),
    }
}

pub(crate) fn too_few(comparison: &Comparison) -> String {
    match comparison.pairs {
        Some(pairs) => format!("{pairs} pairs are too few; measure at least 6"),
        None => format!(
            "{} and {} repeats are too few; measure at least 4 of each",
            comparison.base.repeats, comparison.other.repeats
        ),
    }
}

pub(crate) fn place_name(place: &Subject) -> String {
    let values = place.point.iter().map(|(axis, value)| format!("{axis}={value}"));
    let flow = match place.flow.as_str() {
        flow if flow == place.direction.name() => flow.to_owned(),
        flow => format!("{flow} {}", place.direction.name()),
    };
    values.chain([flow]).collect::<Vec<_>>().join("  ")
}

fn summary(page: &mut Page, compared: &Compared, shown: usize) {
    let rows = &compared.table.rows;
    let count = |better: Option<bool>| {
        rows.iter()
            .filter(|row| is_shown(row) && row.comparison.outcome.is_better(row.better) == better)
            .count()
    };
    let mut parts = vec![format!("{} better", count(Some(true))), format!("{} worse", count(Some(false)))];
    if count(None) > 0 {
        parts.push(format!("{} differ", count(None)));
    }
    page.heading(&format!("Of {} comparisons {}.", rows.len(), parts.join(", ")));
    let few = rows.iter().filter(|row| row.comparison.outcome == ComparisonOutcome::TooFew).count();
    if few == rows.len() {
        page.remark(
            2,
            TextStyle::Plain,
            "This number of repeats is too small to show a difference of any size: \
                                    repeat each configuration, preferably in turn.",
        );
    } else if rows.len() > 1 {
        let text = "A difference counts as shown if the probability of chance is below 5 %, over all \
                    comparisons together, and the difference exceeds the resolution of the figures.";
        page.remark(2, TextStyle::Faint, text);
    }
    if rows.iter().any(|row| row.comparison.dependence.is_some()) {
        let text = "Repeats depend on the previous ones and are worth less than their number: measure both \
                    configurations in turn, with pauses, or for longer.";
        page.remark(2, TextStyle::Warning, text);
    }
    if rows.iter().any(|row| is_shown(row) && row.comparison.is_independence_unknown()) {
        let text = format!(
            "With fewer than {MIN_REPEATS_FOR_DEPENDENCE} repeats of each, their independence cannot be \
             tested. If repeats depend on the previous ones, a difference may be shown wrongly: measure \
             both configurations in turn, with pauses."
        );
        page.remark(2, TextStyle::Warning, &text);
    }
    if shown < rows.len() {
        page.remark(
            2,
            TextStyle::Faint,
            "Quantities without a shown difference are left out; --all lists them.",
        );
    }
    for (candidate, place, quantity) in &compared.table.missing {
        let name = &compared.others[*candidate].name;
        page.remark(2, TextStyle::Warning, &format!("{name} has no {quantity} at {}", place_name(place)));
    }
}
