//! The section of an executed plan: judgements, results, curves, matrices, trials, and the plan itself.

use linerate_model::{
    ForeignLines, MethodCell, MethodRow, MethodTable, PlanJudgement, PlanRecord, PlanStart, PointSummary,
    TrialEnd,
};
use maud::{Markup, html};

use super::chart::{Chart, ChartAxis, ChartKind, ChartLine, LineStyle, Panel, Rounded};
use super::heat;
use super::parts::{self, PageCharts, caveat_list, ending, pairs, plain_table};
use super::summaries::{FlowWay, Summaries};
use super::sweep::{self, MAX_LINES};
use crate::quantity::{ABSENT, in_unit};
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
        @for table in &record.tables { (method_table(table)) (figures.place(curve(table))) }
        @for chart in sweep::charts(&plan) { (figures.place(Some(chart))) }
        @if most_lines(record) { p.faint { "Curves are drawn for the first " (MAX_LINES) " combinations of \
                                                                                          the other axes; \
                                                                                          the table has all \
                                                                                          of them." } }
        (heat::markup(&plan))
        @if !record.trials.is_empty() { (trials(record, place)) }
        @if let Some(start) = &record.start { (provenance(record, start)) }
    }
}

/// Whether there are more combinations than distinguishable lines.
fn most_lines(record: &PlanRecord) -> bool {
    let Some(start) = &record.start else { return false };
    let Some((number, _)) = sweep::axis(start) else { return false };
    let others = start.axes.iter().enumerate().filter(|(axis, _)| *axis != number);
    others.map(|(_, axis)| axis.values.len()).product::<usize>() > MAX_LINES
}

/// The name of a point: its values.
fn point(record: &PlanRecord, id: &str) -> String {
    let labels = record.labels(id).into_iter();
    let words: Vec<String> = labels.map(|(axis, value)| format!("{axis} {value}")).collect();
    if words.is_empty() { "the only point".to_owned() } else { words.join(", ") }
}

fn judgements(record: &PlanRecord) -> Markup {
    let (hold, fail): (Vec<&PlanJudgement>, Vec<&PlanJudgement>) =
        record.judgements.iter().partition(|judgement| judgement.holds);
    let all = record.judgements.len();
    html! {
        @if all == 0 {
            div.verdict { p.said { "The plan has no assertions, or ended before they were checked." } }
        } @else {
            div.verdict.confirmed[fail.is_empty()].bad[!fail.is_empty()] {
                p.figure { strong { @if fail.is_empty() { "✓ every assertion holds" } @else { "✗ " (fail.len()) " of " (plural(all as u64, "judgement")) " do not hold" } } }
                p.said { "An assertion about a value that was not measured fails." }
            }
            @if !fail.is_empty() {
                div.wide { table {
                    caption { "Assertions that do not hold" }
                    thead { tr { th { "assertion" } th { "point" } th { "flow" } th { "found" } } }
                    tbody { @for judgement in &fail { tr {
                        th scope="row" { (judgement.assertion.to_string()) }
                        td { (point(record, &judgement.point)) }
                        td { (judgement.flow.to_string()) ", " (judgement.direction.name()) }
                        td.bad { (judgement.found.as_deref().map_or(ABSENT.to_owned(), str::to_owned)) }
                    } } }
                } }
            }
            @if !hold.is_empty() {
                details { summary { (hold.len()) " of " (plural(all as u64, "judgement")) " hold" }
                    ul { @for judgement in &hold { li {
                        "✓ " (judgement.assertion.to_string()) ": " (point(record, &judgement.point)) ", " (judgement.flow.to_string())
                    } } }
                }
            }
        }
    }
}

/// One row per point, flow and direction, one column per quantity.
fn results(plan: &Summaries<'_>) -> Markup {
    let Some(start) = &plan.record.start else { return html! {} };
    if plan.quantities.is_empty() {
        return html! { p { "No point has results." } };
    }
    let axes = start.axes.iter().map(|axis| axis.name.to_string());
    let words = plan.quantities.iter().map(|quantity| quantity.to_string().replace('_', " "));
    let heads: Vec<String> = axes.chain(["flow".to_owned(), "direction".to_owned()]).chain(words).collect();
    let rows = start
        .points
        .iter()
        .flat_map(|point| plan.flows.iter().copied().filter_map(|flow| row(plan, &point.id, flow)));
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    plain_table(&rows, "Results: median over the trials, with its interval if there are enough trials")
}

fn row(plan: &Summaries<'_>, id: &str, flow: FlowWay<'_>) -> Option<Vec<String>> {
    let of = |quantity: &&str| plan.find(id, flow, quantity);
    plan.quantities.iter().find_map(of)?;
    let labels = plan.record.labels(id).into_iter().map(|(_, value)| unbroken(value));
    let ends = [flow.0.to_string(), flow.1.name().to_owned()];
    Some(labels.chain(ends).chain(plan.quantities.iter().map(|quantity| cell(of(quantity)))).collect())
}

fn cell(summary: Option<&PointSummary>) -> String {
    let Some(summary) = summary else { return ABSENT.to_owned() };
    if !summary.words.is_empty() {
        let mut words: Vec<String> = summary.words.iter().map(ToString::to_string).collect();
        words.dedup();
        return words.join(", ");
    }
    let unit = summary.unit.as_deref();
    let Some(median) = summary.median else { return ABSENT.to_owned() };
    let interval = summary.interval.map(|interval| {
        let ends = (in_unit(unit, interval.low), in_unit(unit, interval.high));
        format!(" ({}\u{a0}.. {})", unbroken(&ends.0), unbroken(&ends.1))
    });
    unbroken(&in_unit(unit, median)) + &interval.unwrap_or_default()
}

/// A number that is not separated from its unit at the end of a line.
fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
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
        let y = ChartAxis { label: column.name.to_string(), unit: column.unit.clone()?.into(), log: true };
        Some(Panel { y, lines: vec![line], levels: Vec::new() })
    });
    let panels: Vec<Panel> = panels.collect::<Option<_>>()?;
    let x = ChartAxis { label: first.name.to_string(), unit: "bytes".to_owned(), log: true };
    let title = method.title.to_string();
    (!panels.is_empty()).then_some(Chart { kind: ChartKind::Sweep, title, x, panels, bands: Vec::new() })
}

/// Fewest points of a curve.
const MIN_CURVE_POINTS: usize = 3;

/// The results of searches.
fn found(record: &PlanRecord) -> Markup {
    let rows = record.found.iter().map(|end| {
        let found = end.found.as_deref().map_or("none passed".to_owned(), str::to_owned);
        vec![point(record, &end.point), end.repeat.to_string(), found]
    });
    let heads = ["point", "repeat", "largest value that passed"];
    let rows: Vec<Vec<String>> = std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows).collect();
    let claim = record.start.as_ref().and_then(|start| start.search.as_deref()).unwrap_or_default();
    html! { @if rows.len() > 1 { (plain_table(&rows, &format!("Search for the largest value for which this \
    holds: {claim}"))) } }
}

fn trials(record: &PlanRecord, place: SectionLink<'_>) -> Markup {
    html! {
        details open[record.trials.len() <= 40] {
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
            (point(record, &trial.point))
            @if let Some(step) = &trial.step {
                " at " (step.label.to_string()) @if step.confirms { " (confirming)" } ": "
                @if step.passed { "passed" } @else { "did not pass" }
            }
        }
        td.number { (trial.repeat) }
        td { @for run in &trial.runs {
            div {
                (run.flow.to_string()) ": "
                @let name = run.run.chars().take(8).collect::<String>();
                @match place(&run.run) { Some(at) => a href=(format!("#{at}")) { (name) }, None => (name) }
                @if run.outcome != linerate_model::Outcome::Completed {
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
        details open {
            summary { "The plan" }
            (pairs(&facts))
            @for file in &start.files {
                details open[start.files.len() == 1] { summary { (file.name.to_string()) } pre { (file.text.as_str()) } }
            }
        }
    }
}
