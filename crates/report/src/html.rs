//! A report as one page that contains everything, loads nothing, and can be opened from a disk.
//!
//! The page contains verdicts, tables and the matrices of plans as HTML. The script of the front end draws
//! charts from data in the page. The packed event logs are included too, so a report can be imported again.

#[cfg(test)]
mod browser;
mod chart;
mod compare;
mod comparison;
mod contents;
mod heat;
mod inline;
mod latency;
mod parts;
mod plan;
mod provenance;
mod quantiles;
mod run;
mod runs;
mod series;
mod sizes;
mod streams;
mod summaries;
mod sweep;
#[cfg(test)]
mod tests;
mod thin;

use std::io::{self, Write};

use linerate_model::metrics::{MetricEntry, find};
use linerate_model::{Event, ForeignText, PlanRecord, RunRecord};
use linerate_plan::Compared;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use chart::Charts;
pub(crate) use chart::{Chart, ChartAxis, ChartKind, ChartLine, HeatCells, LineStyle, Panel, Rounded};
pub(crate) use heat::HeatMap;
use parts::PageCharts;
use summaries::Summaries;

use crate::text_flow::plural;

/// Version of the data for the script; page and script are always from one build.
const DATA: &str = "linerate.charts/1";

/// Content security policy: the page may only run and show what it contains.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The built front end: one script and one style sheet.
#[derive(Debug, Clone, Copy)]
pub struct Assets<'a> {
    /// A classic script, not a module.
    pub script: &'a str,
    /// The style sheet.
    pub style: &'a str,
}

/// A run in a report.
#[derive(Debug, Clone, Copy)]
pub struct ReportedRun<'a> {
    /// Its folded log.
    pub record: &'a RunRecord,
    /// Its log, the raw data of the page; left out if empty.
    pub events: &'a [Event],
}

/// A plan in a report.
#[derive(Debug, Clone, Copy)]
pub struct ReportedPlan<'a> {
    /// Its folded log.
    pub record: &'a PlanRecord,
    /// Its own log.
    pub events: &'a [Event],
    /// Names of its runs that are not in the page.
    pub left_out: &'a [ForeignText],
}

/// Writes a report: the plan first if there is one, then a comparison of the runs if there are several, then
/// each run. `heading` is the title of the page; without it, the page is titled by what it contains.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(
    heading: Option<&ForeignText>,
    plan: Option<&ReportedPlan<'_>>,
    runs: &[ReportedRun<'_>],
    assets: &Assets<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut figures = PageCharts::default();
    let body = body(heading, plan, runs, &mut figures);
    let title = heading.map_or_else(|| title(plan, runs), ToString::to_string);
    beginning(&title, &body, figures, assets, out)?;
    // Last, so that everything else is available before a long log has been read.
    let logs = plan.map(|plan| plan.events).into_iter().chain(runs.iter().map(|run| run.events));
    for (number, events) in logs.enumerate().filter(|(_, events)| !events.is_empty()) {
        write!(out, "<script type=\"application/gzip\" id=\"log-{number}\">")?;
        inline::log(events, out)?;
        out.write_all(b"</script>")?;
    }
    out.write_all(END)
}

/// Writes the comparison of configurations as a page, with `heading` as for [`write`].
///
/// # Errors
/// If writing to `out` fails.
pub fn write_comparison(
    heading: Option<&ForeignText>,
    compared: &Compared,
    assets: &Assets<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut figures = PageCharts::default();
    let body = comparison::body(heading, compared, &mut figures);
    let title =
        heading.map_or_else(|| format!("linerate: {}", comparison::title(compared)), ToString::to_string);
    beginning(&title, &body, figures, assets, out)?;
    out.write_all(END)
}

/// A part of another page: what [`write`] makes of a plan and runs, without the frame of a page of its own, the raw
/// data, the script and the style sheet.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageFragment {
    /// The title of a page that shows only this.
    title: String,
    /// Its elements. Each `figure.chart` has the number of its chart in `data-chart`.
    html: String,
    /// The charts, as the script of a report reads them.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    charts: Charts<'static>,
}

impl PageFragment {
    /// The plan first if there is one, then a comparison of the runs if there are several, then each run.
    #[must_use]
    pub fn of_runs(plan: Option<&ReportedPlan<'_>>, runs: &[ReportedRun<'_>]) -> Self {
        let mut figures = PageCharts::default();
        let html = content(None, plan, runs, &mut figures).into_string();
        Self { title: title(plan, runs), html, charts: charts(figures.0) }
    }

    /// The comparison of configurations.
    #[must_use]
    pub fn of_comparison(compared: &Compared) -> Self {
        let mut figures = PageCharts::default();
        let html = comparison::content(None, compared, &mut figures).into_string();
        Self { title: format!("linerate: {}", comparison::title(compared)), html, charts: charts(figures.0) }
    }
}

/// The end of every page.
const END: &[u8] = b"</body></html>\n";

/// A page up to the event logs.
fn beginning(
    title: &str,
    body: &Markup,
    figures: PageCharts,
    assets: &Assets<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let head = html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta http-equiv="Content-Security-Policy" content=(POLICY);
        meta name="color-scheme" content="light dark";
        meta name="generator" content="linerate";
        title { (title) }
        style { (PreEscaped(inline::style(assets.style))) }
    };
    let opening =
        html! { (DOCTYPE) (PreEscaped("<html lang=\"en\">")) head { (head) } (PreEscaped("<body>")) (body) };
    out.write_all(opening.into_string().as_bytes())?;
    let charts = serde_json::to_string(&charts(figures.0))?;
    write!(out, "<script type=\"application/json\" id=\"charts\">{}</script>", inline::json(&charts))?;
    write!(out, "<script>{}</script>", inline::script(assets.script))
}

/// The charts of a run, in the order of its section.
pub(crate) fn charts_of_run(record: &RunRecord) -> Vec<Chart> {
    let curves = record.flows.iter().filter_map(|flow| sizes::chart(record, flow));
    let series = record.flows.iter().filter_map(|flow| series::chart(record, flow));
    curves.chain(series).chain(quantiles::chart(record)).collect()
}

/// The curves and the matrices of a plan.
pub(crate) fn figures_of_plan(record: &PlanRecord) -> (Vec<Chart>, Vec<HeatMap>) {
    let plan = Summaries::of(record);
    (sweep::chart(&plan).into_iter().collect(), heat::matrices(&plan))
}

fn charts(charts: Vec<Chart>) -> Charts<'static> {
    let mut catalogue: Vec<&'static MetricEntry> = Vec::new();
    let lines = charts.iter().flat_map(|chart| &chart.panels).flat_map(|panel| &panel.lines);
    for entry in lines.filter_map(|line| find(line.metric?)) {
        if catalogue.iter().all(|known| known.name != entry.name) {
            catalogue.push(entry);
        }
    }
    Charts { schema: DATA, catalogue, charts }
}

fn body(
    heading: Option<&ForeignText>,
    plan: Option<&ReportedPlan<'_>>,
    runs: &[ReportedRun<'_>],
    figures: &mut PageCharts,
) -> Markup {
    html! {
        main {
            header { p.brand { "linerate report" } }
            (content(heading, plan, runs, figures))
            footer { p { "Rates are decimal (1 Mb/s is 10^6 bit/s), memory is binary (1 MiB is 2^20 bytes). A dash is a value that was not measured." } }
        }
    }
}

/// What a page shows, with its contents.
fn content(
    heading: Option<&ForeignText>,
    plan: Option<&ReportedPlan<'_>>,
    runs: &[ReportedRun<'_>],
    figures: &mut PageCharts,
) -> Markup {
    let place = |name: &str| runs.iter().position(|run| run.record.run == name).map(runs::id);
    let records: Vec<&RunRecord> = runs.iter().map(|run| run.record).collect();
    let first_log = usize::from(plan.is_some());
    let names = runs::names(plan.map(|plan| plan.record), runs);
    let alone = plan.is_none() && runs.len() == 1;
    let content = html! {
        @if let Some(plan) = plan {
            section #plan {
                (plan_heading(heading, plan.record))
                (plan::section(plan.record, &place, figures))
                (left_out(plan.left_out))
                (raw(0, plan.events, &plan.record.run))
            }
        } @else if !alone {
            (parts::heading(heading, &format!("{} runs", runs.len())))
            (compare::section(&records, figures))
        }
        @if let ([run], true) = (runs, alone) {
            (runs::alone(heading, run, first_log, figures))
        } @else {
            (runs::folded(&names, runs, first_log, figures))
        }
    };
    let content = content.into_string();
    let links: Vec<(String, String)> = names
        .into_iter()
        .enumerate()
        .filter(|_| !alone)
        .map(|(number, name)| (runs::id(number), name))
        .collect();
    html! {
        (contents::markup(&content, &links))
        (PreEscaped(content))
    }
}

fn plan_heading(heading: Option<&ForeignText>, record: &PlanRecord) -> Markup {
    let start = record.start.as_ref();
    let plan = format!("plan {}", start.map_or("", |start| start.name.as_str()));
    html! {
        (parts::heading(heading, &plan))
        @if let Some(start) = start {
            p.about { (start.about.one_line()) }
            p.faint { (start.started_at.to_string()) " · " (start.world.name()) " · " (plural(start.points.len() as u64, "point")) " × " (plural(u64::from(start.repeats), "repeat")) }
        }
    }
}

/// Runs of the plan that are not in the page, and how to get them.
fn left_out(runs: &[ForeignText]) -> Markup {
    html! {
        @if !runs.is_empty() {
            details {
                summary { "⚠ " (plural(runs.len() as u64, "run")) @if runs.len() == 1 { " is" } @else { " are" } " not in this page, which would be too large" }
                p { "Each of them is in the archive: linerate report RUN -o FILE.html, with RUN being" }
                p.names { @for run in runs { code { (run.to_string()) } " " } }
            }
        }
    }
}

/// A button to save the raw data of a run or plan.
fn raw(log: usize, events: &[Event], run: &str) -> Markup {
    html! {
        @if !events.is_empty() {
            p.raw {
                button type="button" data-log=(log) data-name=(file_name(run)) { "Save the event log" }
                " " (events.len()) " events, as they were measured; linerate import takes the file again."
            }
        } @else {
            p.raw { "The event log is not in this page; linerate export RUN writes it." }
        }
    }
}

/// A file name for the saved log that is valid on all file systems.
fn file_name(run: &str) -> String {
    let plain: String = run.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(64).collect();
    format!("linerate-{plain}.jsonl")
}

fn title(plan: Option<&ReportedPlan<'_>>, runs: &[ReportedRun<'_>]) -> String {
    if let Some(start) = plan.and_then(|plan| plan.record.start.as_ref()) {
        return format!("linerate: plan {}", start.name);
    }
    match runs {
        [run] => format!("linerate: {}", run::title(run.record).into_iter().next().unwrap_or_default()),
        runs => format!("linerate: {} runs", runs.len()),
    }
}
