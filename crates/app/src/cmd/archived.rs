//! `linerate history`, `show` and `export`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use linerate_archive::{Archive, ArchiveError, Filter, Store};
use linerate_model::{Event, PlanRecord, RunHead, RunRecord};
use linerate_plan::hint;
use linerate_report::picture::Pictures;
use linerate_report::{
    Format, FormatError, HistoryConditions, HistoryDocument, RunRow, TextLayout, empty_history, history_table,
};
use linerate_runner::{is_day_or_time, local_time, whole_file};

use super::report::write_page;
use crate::args::{ArchiveArgs, format_name};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{archive, output_format, stdout, terminal};

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Only runs with this name, or against this server as it was typed
    #[arg(value_name = "NAME|HOST")]
    target: Option<String>,
    /// Maximum number of runs, newest first
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
    /// Only runs since this day or time, such as 2026-05-01 or 2026-05-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Include runs that are parts of plans
    #[arg(long, conflicts_with = "plan")]
    all: bool,
    /// Only the runs of the plan with this name
    #[arg(long, value_name = "RUN")]
    plan: Option<String>,
    /// Only runs with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of the run, or a unique prefix
    #[arg(default_value = "latest")]
    run: String,
    /// Print the result as one JSON document
    #[arg(short = 'J', long)]
    json: bool,
    /// Below each verdict, list all ceilings: the one that binds, and the next ones
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// List every stream; without it, more than 16 are summarized
    #[arg(long, conflicts_with = "json")]
    all_streams: bool,
    /// For a plan: list the runs of one point, given by its name or by its values such as streams=5,length=64K
    #[arg(long, value_name = "POINT")]
    point: Option<String>,
    #[command(flatten)]
    archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Name of the run, or a unique prefix
    #[arg(default_value = "latest")]
    run: String,
    /// The format
    #[arg(short, long, default_value = "jsonl", value_parser = format_name())]
    format: Format,
    /// With --format svg: only this chart, counted from 1, instead of all below each other
    #[arg(long, value_name = "N")]
    chart: Option<usize>,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    archive: ArchiveArgs,
}

/// Lists runs.
pub(crate) fn history(args: &HistoryArgs) -> Result<Exit, CommandError> {
    if let Some(since) = &args.since
        && !is_day_or_time(since)
    {
        let remedy = "give a day such as 2026-05-01 or a time such as 2026-05-01T12:00:00Z";
        return Err(CommandError::usage(format!("--since {since}: {remedy}")));
    }
    let archive = archive::open(&args.archive)?;
    let whole = !args.all && args.plan.is_none();
    let runs = archive.runs(&Filter {
        name_or_target: args.target.clone(),
        since: args.since.clone(),
        tag: args.tag.clone(),
        whole,
        part_of: args.plan.as_deref().map(|plan| archive.find(plan)).transpose()?,
        limit: Some(args.limit),
        ..Filter::default()
    })?;
    if runs.is_empty() && !args.json {
        return Ok(stdout::print(no_runs(args, &archive)?.as_bytes()));
    }
    print_runs(&runs, &archive, args.json)
}

/// The text for a list without any run.
fn no_runs(args: &HistoryArgs, archive: &Archive) -> Result<String, ArchiveError> {
    let all = Filter { whole: !args.all, ..Filter::default() };
    let newest = archive.runs(&Filter { limit: Some(MAX_SEARCHED_RUNS), ..all.clone() })?;
    let known = newest.iter().flat_map(|run| [&run.name, &run.target]);
    let known: BTreeSet<&str> = known.filter_map(Option::as_deref).collect();
    let near = args.target.as_deref().map(|typed| hint(typed, known.into_iter().take(MAX_SUGGESTED_TARGETS)));
    let (since, plan, tag) = (args.since.as_deref(), args.plan.as_deref(), args.tag.as_deref());
    let wanted = HistoryConditions { target: args.target.as_deref(), since, plan, tag };
    let hint = near.unwrap_or_default();
    Ok(empty_history(wanted, archive.count(&all)?, &hint, &terminal::stdout_view()))
}

/// Newest runs whose names and targets are compared with those that were typed.
const MAX_SEARCHED_RUNS: u32 = 1000;
/// Targets that are compared with a target of which there is no run.
const MAX_SUGGESTED_TARGETS: usize = 8;

fn print_runs(runs: &[RunHead], archive: &Archive, json: bool) -> Result<Exit, CommandError> {
    let rows = runs.iter().map(|run| row(run, archive)).collect::<Result<Vec<_>, _>>()?;
    Ok(match json {
        true => stdout::print_json_line(&HistoryDocument::new(runs)),
        false => stdout::print(history_table(&rows, &terminal::stdout_view()).as_bytes()),
    })
}

/// The row of a run in a list.
pub(crate) fn row(run: &RunHead, archive: &Archive) -> Result<RunRow, ArchiveError> {
    let started_at = run.started_at.as_deref().map(local_time).unwrap_or_default();
    Ok(RunRow::of(run, &archive.short_name(&run.id)?, &started_at))
}

/// A run's log and its short name.
fn load(args: &ArchiveArgs, run: &str) -> Result<(Vec<Event>, String), ArchiveError> {
    let archive = archive::open(args)?;
    let events = archive.events(run)?;
    let name = archive.short_name(&archive.find(run)?)?;
    Ok((events, name))
}

/// Shows a run or a plan.
pub(crate) fn show(args: &ShowArgs) -> Result<Exit, CommandError> {
    let (events, name) = load(&args.archive, &args.run)?;
    if let Some(plan) = PlanRecord::of_log(&events) {
        return show_plan(args, &plan, &TextLayout { kept: Some(name), ..terminal::plan_view() });
    }
    if args.point.is_some() {
        let why = format!("run {} is not a plan, so it has no points; remove --point", args.run);
        return Err(CommandError::usage(why));
    }
    let view = TextLayout {
        kept: Some(name),
        explain: args.explain,
        all_streams: args.all_streams,
        ..terminal::stdout_view()
    };
    let record = RunRecord::fold(&events);
    let format = if args.json { Format::Json } else { Format::Text };
    Ok(match output_format::to_stdout(&record, &[], format, &view) {
        Exit::Done if !args.json && terminal::printed() => output_format::draw(&record, &view),
        shown => shown,
    })
}

fn show_plan(args: &ShowArgs, plan: &PlanRecord, view: &TextLayout) -> Result<Exit, CommandError> {
    let Some(point) = &args.point else {
        return Ok(match args.json {
            true => stdout::print_json(&linerate_report::plan::document(plan)),
            false => stdout::print(linerate_report::plan::text(plan, view).as_bytes()),
        });
    };
    let points = plan.select_points(point);
    let points = points.map_err(|error| CommandError::usage(format!("--point {point}: {error}")))?;
    let archive = archive::open(&args.archive)?;
    let all = archive.runs(&Filter { part_of: Some(plan.run.to_string()), ..Filter::default() })?;
    // In the order of the trials.
    let trials = plan.trials.iter().filter(|trial| points.contains(&trial.point.as_str()));
    let names = trials.flat_map(|trial| &trial.runs).map(|run| run.run.as_str());
    let runs: Vec<RunHead> =
        names.filter_map(|name| all.iter().find(|run| run.id == *name)).cloned().collect();
    print_runs(&runs, &archive, args.json)
}

/// Writes a run or a plan in a format.
pub(crate) fn export(args: &ExportArgs) -> Result<Exit, CommandError> {
    if args.chart.is_some() && args.format != Format::Svg {
        return Err(CommandError::usage("--chart requires --format svg; other formats have no charts"));
    }
    if args.format == Format::Html {
        let output = args.output.clone().unwrap_or_else(|| "-".into());
        return write_page(&args.archive, None, std::slice::from_ref(&args.run), Some(&output));
    }
    let (events, _) = load(&args.archive, &args.run)?;
    let plan = PlanRecord::of_log(&events).filter(|_| args.format != Format::Jsonl);
    match (plan, args.format) {
        (Some(plan), Format::Svg) => export_pictures(args, &Pictures::of_plan(&plan)),
        (Some(plan), format) => {
            let mut text = Vec::new();
            format.write_plan(&plan, &mut text).map_err(CommandError::usage)?;
            write_out(args, &text)
        }
        (None, Format::Svg) => export_pictures(args, &Pictures::of_run(&RunRecord::fold(&events))),
        (None, format) => {
            let record = RunRecord::fold(&events);
            let Some(path) = &args.output else {
                return Ok(output_format::to_stdout(&record, &events, format, &terminal::stdout_view()));
            };
            let written = output_format::to_file(&record, &events, format, path);
            written.map_err(|error| output_format::not_written(path, &error))?;
            Ok(Exit::Done)
        }
    }
}

/// Writes the charts of a run or plan as a picture, all or one of them.
fn export_pictures(args: &ExportArgs, pictures: &Pictures) -> Result<Exit, CommandError> {
    let titles: Vec<String> =
        pictures.titles().enumerate().map(|(number, title)| format!("{} is {title}", number + 1)).collect();
    if let Some(chart) = args.chart.filter(|chart| *chart == 0 || *chart > titles.len()) {
        return Err(CommandError::usage(match titles.is_empty() {
            true => FormatError::NothingToDraw.to_string(),
            false => format!("--chart {chart}: the page has {}: {}", titles.len(), titles.join("; ")),
        }));
    }
    let mut picture = Vec::new();
    linerate_report::format::picture(pictures, args.chart.map(|chart| chart - 1), &mut picture)
        .map_err(CommandError::failed)?;
    write_out(args, &picture)
}

/// Writes the complete output to the requested file, or to stdout.
fn write_out(args: &ExportArgs, bytes: &[u8]) -> Result<Exit, CommandError> {
    let Some(path) = &args.output else { return Ok(stdout::print(bytes)) };
    whole_file(path, |out| out.write_all(bytes)).map_err(|error| output_format::not_written(path, &error))?;
    Ok(Exit::Done)
}
