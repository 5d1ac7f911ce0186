//! `linerate history`, `show` and `export`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use linerate_archive::{Archive, ArchiveError, Filter, Store};
use linerate_model::{ArchiveOptions, PlanRecord, RunHead, RunRecord, ShowOptions};
use linerate_plan::hint;
use linerate_report::{
    ExportSource, Format, HistoryConditions, HistoryDocument, RunRow, TextLayout, empty_history,
    history_table,
};
use linerate_runner::{day_or_time, local_time, log_if_archived};

use super::report::write_page;
use crate::args::format_name;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output_format::{self, write_out};
use crate::{archive, print, stdout, terminal};

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Only runs with this name, or against this server as it was typed
    #[arg(value_name = "NAME|HOST")]
    target: Option<String>,
    /// Maximum number of runs, newest first
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
    /// Only runs since this day or time, such as 2026-05-01 or 2026-05-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = start)]
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
    archive: ArchiveOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    options: ShowOptions,
    #[command(flatten)]
    archive: ArchiveOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Name of the run, or a unique prefix
    #[arg(default_value = "latest")]
    run: String,
    /// The format [default: that of the extension of FILE, else jsonl]
    #[arg(short, long, value_parser = format_name())]
    format: Option<Format>,
    /// With --format svg: only this chart, counted from 1, instead of all below each other
    #[arg(long, value_name = "N")]
    chart: Option<usize>,
    /// Write to this file, - is stdout [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    archive: ArchiveOptions,
}

/// A day or a time, as typed.
fn start(text: &str) -> Result<String, &'static str> {
    let remedy = "give a day such as 2026-05-01 or a time such as 2026-05-01T12:00:00Z";
    day_or_time(text).map(|_| text.to_owned()).ok_or(remedy)
}

/// Lists runs.
pub(crate) fn history(args: &HistoryArgs) -> Result<Exit, CommandError> {
    let archive = archive::open(&args.archive)?;
    let whole = !args.all && args.plan.is_none();
    let runs = archive.runs(&Filter {
        name_or_target: args.target.clone(),
        since: args.since.as_deref().and_then(day_or_time),
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

/// Shows a run or a plan.
pub(crate) fn show(args: &ShowArgs) -> Result<Exit, CommandError> {
    let options = &args.options;
    let archive = archive::open(&args.archive)?;
    let events = archive.events(&options.run)?;
    let name = archive.short_name(&archive.find(&options.run)?)?;
    if let Some(plan) = PlanRecord::of_log(&events) {
        return show_plan(
            options,
            &archive,
            &plan,
            &TextLayout { kept: Some(name), ..terminal::plan_view() },
        );
    }
    if options.point.is_some() {
        let why = format!("run {} is not a plan, so it has no points; remove --point", options.run);
        return Err(CommandError::usage(why));
    }
    let view = TextLayout {
        kept: Some(name),
        explain: options.explain,
        all_streams: options.all_streams,
        ..terminal::stdout_view()
    };
    let record = RunRecord::fold(&events);
    let format = if options.json { Format::Json } else { Format::Text };
    Ok(match output_format::to_stdout(&record, &[], format, &view) {
        Exit::Done if !options.json && terminal::printed() => output_format::draw(&record, &view),
        shown => shown,
    })
}

fn show_plan(
    options: &ShowOptions,
    archive: &Archive,
    plan: &PlanRecord,
    view: &TextLayout,
) -> Result<Exit, CommandError> {
    let Some(point) = &options.point else {
        return Ok(match options.json {
            true => stdout::print_json(&linerate_report::plan::document(plan)),
            false => stdout::print(linerate_report::plan::text(plan, view).as_bytes()),
        });
    };
    let points = plan.select_points(point);
    let points = points.map_err(|error| CommandError::usage(format!("--point {point}: {error}")))?;
    let all = archive.runs(&Filter { part_of: Some(plan.run.to_string()), ..Filter::default() })?;
    // In the order of the trials.
    let trials = plan.trials.iter().filter(|trial| points.contains(&trial.point.as_str()));
    let names = trials.flat_map(|trial| &trial.runs).map(|run| run.run.as_str());
    let runs: Vec<RunHead> =
        names.filter_map(|name| all.iter().find(|run| run.id == *name)).cloned().collect();
    print_runs(&runs, archive, options.json)
}

/// Writes a run or a plan in a format.
pub(crate) fn export(args: &ExportArgs) -> Result<Exit, CommandError> {
    let file = args.output.as_deref().filter(|file| file.as_os_str() != "-");
    let format = args.format.or_else(|| file.and_then(Format::of_file)).unwrap_or_default();
    if args.chart.is_some() && format != Format::Svg {
        return Err(CommandError::usage("--chart requires --format svg; other formats have no charts"));
    }
    write_export(&args.archive, &args.run, format, args.chart, file)
}

/// Writes an archived run or plan to a file, or to stdout.
pub(super) fn write_export(
    archive: &ArchiveOptions,
    run: &str,
    format: Format,
    chart: Option<usize>,
    file: Option<&Path>,
) -> Result<Exit, CommandError> {
    if format == Format::Html {
        return write_page(archive, None, &[run.to_owned()], Some(file.unwrap_or("-".as_ref())));
    }
    if format.is_binary() && file.is_none() && terminal::printed() {
        let why = "this format is not text, and stdout is a terminal; give --output FILE, or redirect stdout";
        return Err(CommandError::usage(why));
    }
    let archive = archive::open(archive)?;
    let runs = |run: &str| {
        let log = log_if_archived(&archive, run)?;
        if log.is_none() {
            print::warning(format!("run {run} of the plan is no longer in the archive and is left out"));
        }
        Ok(log)
    };
    let view = if file.is_none() { terminal::stdout_view() } else { TextLayout::default() };
    let events = archive.events(run)?;
    let source = ExportSource { events: &events, runs: &runs, view: &view, assets: None, chart };
    let bytes = linerate_report::export(format, &source);
    write_out(file, &bytes.map_err(|error| CommandError::of(error.is_of_format(), error))?)
}
