//! `linerate history`, `show` and `export`.

use linerate_archive::{ArchiveError, Filter, SqliteArchive, Store};
use linerate_model::{Event, PlanRecord, RunHead, RunRecord};
use linerate_report::picture::Pictures;
use linerate_report::{Format, FormatError, HistoryDocument, RunRow, TextLayout, history_table};

use super::{format, page};
use crate::args::{ArchiveArgs, ExportArgs, HistoryArgs, ReportArgs, ShowArgs};
use crate::exit::Exit;
use crate::{print, terminal};

pub(in crate::cmd) fn archive(args: &ArchiveArgs) -> Result<SqliteArchive, ArchiveError> {
    linerate_runner::archive_at(args.archive.as_deref())
}

pub(super) fn failed(error: &ArchiveError) -> Exit {
    match std::error::Error::source(error) {
        Some(source) => print::error(format!("{error} ({source})")),
        None => print::error(error),
    }
    Exit::Failed
}

pub(crate) fn history(args: &HistoryArgs) -> Exit {
    let mut filter = Filter {
        target: args.target.clone(),
        since: args.since.clone(),
        whole: !args.all && args.plan.is_none(),
        limit: Some(args.limit),
        ..Filter::default()
    };
    if let Some(since) = &args.since
        && since.parse::<jiff::Timestamp>().is_err()
        && since.parse::<jiff::civil::Date>().is_err()
    {
        print::error(format!(
            "--since {since}: give a day such as 2026-05-01 or a time such as \
                              2026-05-01T12:00:00Z"
        ));
        return Exit::Usage;
    }
    let listed = archive(&args.archive).and_then(|archive| {
        filter.part_of = args.plan.as_deref().map(|plan| archive.find(plan)).transpose()?;
        let runs = archive.runs(&filter)?;
        let rows = runs.iter().map(|run| rows(run, &archive)).collect::<Result<Vec<_>, _>>()?;
        Ok((runs, rows.concat()))
    });
    match listed {
        Err(error) => failed(&error),
        Ok((runs, _)) if args.json => page::print_json_line(&HistoryDocument::new(&runs)),
        Ok((_, rows)) => page::print(history_table(&rows, &terminal::stdout_view()).as_bytes()),
    }
}

fn rows(run: &RunHead, archive: &SqliteArchive) -> Result<Vec<RunRow>, ArchiveError> {
    let started_at = run.started_at.as_deref().map(short_time).unwrap_or_default();
    Ok(RunRow::of(run, &archive.short_name(&run.id)?, &started_at))
}

/// A time to the second, in the local time zone.
fn short_time(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// A run's log and its short name.
fn load(args: &ArchiveArgs, run: &str) -> Result<(Vec<Event>, String), ArchiveError> {
    let archive = archive(args)?;
    let events = archive.events(run)?;
    let name = archive.short_name(&archive.find(run)?)?;
    Ok((events, name))
}

pub(crate) fn show(args: &ShowArgs) -> Exit {
    match load(&args.archive, &args.run) {
        Err(error) => failed(&error),
        Ok((events, name)) => {
            if let Some(plan) = PlanRecord::of_log(&events) {
                let view = TextLayout { kept: Some(name), ..super::run::outcome::view() };
                return show_plan(args, &plan, &view);
            }
            let mut view = terminal::stdout_view();
            view.kept = Some(name);
            view.explain = args.explain;
            if args.point.is_some() {
                print::error(format!("run {} is not a plan, so it has no points; remove --point", args.run));
                return Exit::Usage;
            }
            let record = RunRecord::fold(&events);
            let format = if args.json { Format::Json } else { Format::Text };
            match format::to_stdout(&record, &[], format, &view) {
                Exit::Done if !args.json && terminal::printed() => format::draw(&record, &view),
                shown => shown,
            }
        }
    }
}

fn show_plan(args: &ShowArgs, plan: &PlanRecord, view: &TextLayout) -> Exit {
    let Some(point) = &args.point else {
        return match args.json {
            true => page::print_json(&linerate_report::plan::document(plan)),
            false => page::print(linerate_report::plan::text(plan, view).as_bytes()),
        };
    };
    let points = match plan.select_points(point) {
        Ok(points) => points,
        Err(error) => {
            print::error(format!("--point {point}: {error}"));
            return Exit::Usage;
        }
    };
    match runs_of(&args.archive, plan, &points) {
        Err(error) => failed(&error),
        Ok((runs, _)) if args.json => page::print_json(&HistoryDocument::new(&runs)),
        Ok((_, rows)) => page::print(history_table(&rows, &terminal::stdout_view()).as_bytes()),
    }
}

/// The runs of these points, in the order of the trials.
fn runs_of(
    args: &ArchiveArgs,
    plan: &PlanRecord,
    points: &[&str],
) -> Result<(Vec<RunHead>, Vec<RunRow>), ArchiveError> {
    let archive = archive(args)?;
    let filter = Filter { part_of: Some(plan.run.to_string()), ..Filter::default() };
    let all = archive.runs(&filter)?;
    let trials = plan.trials.iter().filter(|trial| points.contains(&trial.point.as_str()));
    let names: Vec<&str> = trials.flat_map(|trial| &trial.runs).map(|run| run.run.as_str()).collect();
    let runs: Vec<RunHead> =
        names.iter().filter_map(|name| all.iter().find(|run| run.id == *name)).cloned().collect();
    let rows = runs.iter().map(|run| rows(run, &archive)).collect::<Result<Vec<_>, _>>()?.concat();
    Ok((runs, rows))
}

/// Writes a plan in a format.
fn export_plan(args: &ExportArgs, plan: &PlanRecord) -> Exit {
    let mut text = Vec::new();
    if let Err(error) = args.format.write_plan(plan, &mut text) {
        print::error(error);
        return Exit::Usage;
    }
    write_out(args, &text)
}

/// Writes the charts of a run or plan as a picture, all or one of them.
fn export_pictures(args: &ExportArgs, pictures: &Pictures) -> Exit {
    let titles: Vec<String> =
        pictures.titles().enumerate().map(|(number, title)| format!("{} is {title}", number + 1)).collect();
    if let Some(chart) = args.chart.filter(|chart| *chart == 0 || *chart > titles.len()) {
        print::error(match titles.is_empty() {
            true => FormatError::NothingToDraw.to_string(),
            false => format!("--chart {chart}: the page has {}: {}", titles.len(), titles.join("; ")),
        });
        return Exit::Usage;
    }
    let mut picture = Vec::new();
    if let Err(error) =
        linerate_report::format::picture(pictures, args.chart.map(|chart| chart - 1), &mut picture)
    {
        print::error(error);
        return Exit::Failed;
    }
    write_out(args, &picture)
}

/// Writes the complete output to the requested file, or to stdout.
fn write_out(args: &ExportArgs, bytes: &[u8]) -> Exit {
    let Some(path) = &args.output else { return page::print(bytes) };
    match format::whole_file(path, |out| out.write_all(bytes)) {
        Ok(()) => Exit::Done,
        Err(error) => {
            print::error(format!("{} could not be written: {error}", path.display()));
            Exit::Failed
        }
    }
}

pub(crate) fn export(args: &ExportArgs) -> Exit {
    if args.chart.is_some() && args.format != Format::Svg {
        print::error("--chart requires --format svg; other formats have no charts");
        return Exit::Usage;
    }
    if args.format == Format::Html {
        let output = args.output.clone().or_else(|| Some("-".into()));
        let runs = vec![args.run.clone()];
        return super::report::run(&ReportArgs { runs, output, archive: args.archive.clone() });
    }
    let events = match load(&args.archive, &args.run) {
        Ok((events, _)) => events,
        Err(error) => return failed(&error),
    };
    if let Some(plan) = PlanRecord::of_log(&events)
        && args.format != Format::Jsonl
    {
        return match args.format {
            Format::Svg => export_pictures(args, &Pictures::of_plan(&plan)),
            _ => export_plan(args, &plan),
        };
    }
    let record = RunRecord::fold(&events);
    if args.format == Format::Svg {
        return export_pictures(args, &Pictures::of_run(&record));
    }
    let Some(path) = &args.output else {
        return format::to_stdout(&record, &events, args.format, &terminal::stdout_view());
    };
    match format::to_file(&record, &events, args.format, path) {
        Ok(()) => Exit::Done,
        Err(error) => {
            print::error(format!("{} could not be written: {error}", path.display()));
            Exit::Failed
        }
    }
}
