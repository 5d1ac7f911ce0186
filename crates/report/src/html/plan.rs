//! The section of an executed plan: judgements, results, curves, matrices, trials, and the plan itself.

use linerate_model::{
    ForeignLines, MethodCell, MethodRow, MethodTable, Outcome, PlanJudgement, PlanRecord, PlanStart, TrialEnd,
};
use maud::{Markup, html};

use super::chart::{Chart, ChartAxis, ChartKind, ChartLine, LineStyle, Panel, Rounded};
use super::heat;
use super::parts::{self, PageCharts, caveat_list, ending, pairs, plain_table};
use super::summaries::Summaries;
use super::sweep;
use crate::plan::{RowInSight, in_sight, spread, words};
use crate::quantity::ABSENT;
use crate::text_flow::plural;

/// Link to the section of a run on the page; `None` if the page does not have it.
pub(super) type SectionLink<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Everything about a plan except its raw log.
pub(super) fn section(record: &PlanRecord, place: SectionLink<'_>, figures: &mut PageCharts) -> Markup {
    let plan = Summaries::of(record);
    html! {
        (judgements(record))
        (ending(record.outcome, record.reason.as_deref()))
        (caveat_list(&record.caveats))
        @if record.resumed > 0 { p { "Interrupted and resumed: " (record.resumed) " times." } }
        (results(&plan))
        (found(record))
        @for (number, table) in record.tables.iter().enumerate() {
            div id=[(number == 0).then_some("method")] { (method_table(table)) (figures.place(curve(table))) }
        }
        @if let Some(chart) = sweep::chart(&plan) { div #curves { (figures.place(Some(chart))) } }
        (heat::markup(&plan))
        @if !record.trials.is_empty() { (trials(record, place)) }
        @if let Some(start) = &record.start { (provenance(record, start)) }
    }
}

/// Whether an assertion fails because there is no value to judge: the plan's log says so in words.
fn is_not_measured(judgement: &PlanJudgement) -> bool {
    judgement.found.as_deref().is_none_or(|found| found.starts_with("not measured"))
}

fn judgements(record: &PlanRecord) -> Markup {
    let (hold, fail): (Vec<&PlanJudgement>, Vec<&PlanJudgement>) =
        record.judgements.iter().partition(|judgement| judgement.holds);
    let all = record.judgements.len();
    html! {
        @if all == 0 {
            div.verdict { p.statement {
                @if record.outcome == Some(Outcome::Completed) { "The plan has no assertions." } @else {
                    "The plan has no assertions, or ended before they were checked."
                }
            } }
        } @else {
            div.verdict.confirmed[fail.is_empty()].bad[!fail.is_empty()] {
                p.figure { strong { @if fail.is_empty() { "✓ every assertion holds" } @else { "✗ " (fail.len()) " of " (plural(all as u64, "judgement")) " do not hold" } } }
                @if fail.iter().any(|judgement| is_not_measured(judgement)) {
                    p.statement { "What was not measured does not hold." }
                }
            }
            @if !fail.is_empty() {
                div.wide { table {
                    caption { "Assertions that do not hold" }
                    thead { tr { th { "assertion" } th { "point" } th { "flow" } th { "found" } } }
                    tbody { @for judgement in &fail { tr {
                        th scope="row" { (judgement.assertion.to_string()) }
                        td { (words(record, &judgement.point)) }
                        td { (judgement.flow.to_string()) ", " (judgement.direction.name()) }
                        td.bad { (judgement.found.as_deref().map_or(ABSENT.to_owned(), str::to_owned)) }
                    } } }
                } }
            }
            @if !hold.is_empty() {
                details { summary { (hold.len()) " of " (plural(all as u64, "judgement")) " hold" }
                    ul { @for judgement in &hold { li {
                        "✓ " (judgement.assertion.to_string()) ": " (words(record, &judgement.point)) ", " (judgement.flow.to_string())
                    } } }
                }
            }
        }
    }
}

/// One row per point, or per point and flow: the columns of the terminal's table, as many as a page has in sight.
/// Every other quantity is in a row below, which opens by a click on the name of the point, and in print.
fn results(plan: &Summaries<'_>) -> Markup {
    let Some((table, about)) = in_sight(plan.record, MAX_COLUMNS) else {
        return html! { p { "No point has results." } };
    };
    let (heads, rows) = (table.heads(), table.marked());
    html! {
        p.faint #results { "Median of the trials, with its interval, or with too few trials for one with their range. \
                            All quantities of a point: click its name." }
        div.wide { table.points {
            caption { "Results" }
            thead { tr { @for (head, number) in &heads { th.number[*number] scope="col" { (head) } } } }
            tbody { @for (row, about) in rows.iter().zip(&about) {
                tr {
                    @for (at, ((ink, text), (_, number))) in row.iter().zip(&heads).enumerate() {
                        @if at == 0 {
                            th.number[*number] scope="row" { details.opener { summary { (unbroken(text)) } } }
                        } @else {
                            td.number[*number] { (parts::inked(*ink, &unbroken(text.trim()))) }
                        }
                    }
                }
                tr.more { td colspan=(heads.len()) { (everything(plan, about)) } }
            } }
        } }
    }
}

/// Every quantity of the flows in a row.
fn everything(plan: &Summaries<'_>, about: &RowInSight<'_>) -> Markup {
    html! {
        @for (flow, direction) in &about.flows {
            p {
                @if about.flows.len() > 1 { strong { (flow) ", " (direction.name()) ": " } }
                @for quantity in &plan.quantities {
                    @if let Some(summary) = plan.find(&about.point.id, (flow.as_str(), *direction), quantity) {
                        span.item { (quantity.replace('_', " ")) " " b { (unbroken(&spread(summary))) } } " "
                    }
                }
            }
        }
    }
}

/// A value that is broken at the end of a line only before its range.
fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}").replace("\u{a0}(", " (")
}

/// A table of the plan's method.
fn method_table(method: &MethodTable) -> Markup {
    html! {
        h3 { (method.title.to_string()) }
        @if !method.about.is_empty() { p { (method.about.to_string()) } }
        @if !method.rows.is_empty() { (parts::table(&crate::plan::method::table(method), &method.title)) }
        @if !method.notes.is_empty() {
            ul { @for note in &method.notes { li { (note.to_string()) } } }
        }
    }
}

/// A purely numeric table over ascending sizes, as a curve.
fn curve(method: &MethodTable) -> Option<Chart> {
    let size = |row: &MethodRow| row.cells.first()?.value.filter(|size| *size > 0.0);
    let sizes: Option<Vec<f64>> = method.rows.iter().map(size).collect();
    let sizes = sizes.filter(|sizes| sizes.len() >= MIN_CURVE_POINTS && sizes.is_sorted_by(|a, b| a < b))?;
    let (first, others) = method.columns.split_first()?;
    if first.unit.as_deref() != Some("bytes") {
        return None;
    }
    let panels = others.iter().zip(1..).map(|(column, at)| {
        let cell = |row: &MethodRow| row.cells.get(at).cloned().unwrap_or_default();
        let of = |end: fn(&MethodCell) -> Option<f64>| {
            method.rows.iter().map(|row| end(&cell(row)).filter(|value| *value > 0.0)).collect::<Vec<_>>()
        };
        let middles = sizes.iter().copied().zip(of(|cell| cell.value));
        let mut line = ChartLine::of(column.name.to_string(), LineStyle::Points, middles);
        if of(|cell| cell.low).iter().any(Option::is_some) {
            line.low = of(|cell| cell.low).into_iter().map(|end| end.map(Rounded)).collect();
            line.high = of(|cell| cell.high).into_iter().map(|end| end.map(Rounded)).collect();
        }
        let y = ChartAxis::logarithmic(column.name.to_string(), column.unit.as_deref()?);
        Some(Panel::of_lines(y, vec![line]))
    });
    let panels: Vec<Panel> = panels.collect::<Option<_>>()?;
    let x = ChartAxis::logarithmic(first.name.to_string(), "bytes");
    let title = method.title.to_string();
    (!panels.is_empty()).then_some(Chart {
        kind: ChartKind::Sweep,
        title,
        x,
        panels,
        bands: Vec::new(),
        notes: Vec::new(),
    })
}

/// Largest number of columns in sight.
const MAX_COLUMNS: usize = 8;

/// Fewest points of a curve.
const MIN_CURVE_POINTS: usize = 3;

/// The results of searches.
fn found(record: &PlanRecord) -> Markup {
    let rows = record.found.iter().map(|end| {
        let found = end.found.as_deref().map_or("none passed".to_owned(), str::to_owned);
        vec![words(record, &end.point), number_of(end.repeat), found]
    });
    let heads = ["point", "repeat", "largest value that passed"];
    let rows: Vec<Vec<String>> = std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows).collect();
    let claim = record.start.as_ref().and_then(|start| start.search.as_deref()).unwrap_or_default();
    html! { @if rows.len() > 1 { (plain_table(&rows, &format!("Search for the largest value for which this \
    holds: {claim}"))) } }
}

/// Logs count repeats from 0, people from 1.
fn number_of(repeat: u32) -> String {
    repeat.saturating_add(1).to_string()
}

fn trials(record: &PlanRecord, place: SectionLink<'_>) -> Markup {
    html! {
        details #trials {
            summary { (plural(record.trials.len() as u64, "trial")) ", in the order in which they were run" }
            div.wide { table {
                thead { tr { th { "point" } th.number { "repeat" } th { "runs" } } }
                tbody { @for trial in &record.trials { (trial_row(record, trial, place)) } }
            } }
        }
    }
}

fn trial_row(record: &PlanRecord, trial: &TrialEnd, place: SectionLink<'_>) -> Markup {
    html! { tr {
        td {
            (words(record, &trial.point))
            @if let Some(step) = &trial.step {
                " at " (step.label.to_string()) @if step.confirms { " (confirming)" } ": "
                @if step.passed { "passed" } @else { "did not pass" }
            }
        }
        td.number { (number_of(trial.repeat)) }
        td { @for run in &trial.runs {
            div {
                (run.flow.to_string()) ": "
                @let name = run.run.chars().take(8).collect::<String>();
                @match place(&run.run) { Some(at) => a href=(format!("#{at}")) { (name) }, None => (name) }
                @if run.outcome != Outcome::Completed {
                    span.warn { " ⚠ not completed" @if let Some(reason) = &run.reason { ": " (reason.to_string()) } }
                }
            }
        } }
    } }
}

/// The plan itself: its files, settings of the command line, hosts, order and seed.
fn provenance(record: &PlanRecord, start: &PlanStart) -> Markup {
    let mut facts = vec![
        ("run".to_owned(), record.run.to_string()),
        ("started".to_owned(), start.started_at.to_string()),
        ("linerate".to_owned(), start.linerate.to_string()),
        ("world".to_owned(), start.world.name().to_owned()),
        ("topology".to_owned(), start.topology.as_deref().unwrap_or_default().to_owned()),
        (
            "set on the command line".to_owned(),
            start.set.iter().map(ForeignLines::one_line).collect::<Vec<_>>().join(", "),
        ),
        ("repeats".to_owned(), start.repeats.to_string()),
        ("order, seed".to_owned(), format!("{}, {}", start.order, start.seed)),
    ];
    facts.extend(start.hosts.iter().map(|host| {
        (format!("host {}", host.name), host.address.as_deref().map_or("emulated".to_owned(), str::to_owned))
    }));
    facts.extend(start.notes.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    facts.retain(|(_, text)| !text.is_empty());
    html! {
        details #the-plan {
            summary { "The plan" }
            (pairs(&facts))
            @for file in &start.files {
                details open[start.files.len() == 1] { summary { (file.name.to_string()) } pre { (file.text.as_str()) } }
            }
        }
    }
}
