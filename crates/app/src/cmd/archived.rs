//! `linerate history`, `show` and `export`.

use std::io::Write;

use linerate_archive::{ArchiveError, Filter, RunHead, SqliteArchive, Store, default_path, open};
use linerate_model::{Event, Outcome, RunRecord};
use linerate_report::{RunRow, history_table};

use super::format;
use crate::args::{ArchiveArgs, ExportArgs, FormatName, HistoryArgs, ReportArgs, ShowArgs};
use crate::exit::Exit;
use crate::{say, terminal};

pub(super) fn archive(args: &ArchiveArgs) -> Result<SqliteArchive, ArchiveError> {
    match &args.archive {
        Some(location) => open(location),
        None => default_path().and_then(|path| SqliteArchive::open(&path)),
    }
}

pub(super) fn failed(error: &ArchiveError) -> Exit {
    match std::error::Error::source(error) {
        Some(source) => say::error(format!("{error} ({source})")),
        None => say::error(error),
    }
    Exit::Failed
}

pub(crate) fn history(args: &HistoryArgs) -> Exit {
    let filter = Filter {
        target: args.target.clone(),
        since: args.since.clone(),
        limit: Some(args.limit),
        ..Filter::default()
    };
    if let Some(since) = &args.since
        && since.parse::<jiff::Timestamp>().is_err()
        && since.parse::<jiff::civil::Date>().is_err()
    {
        say::error(format!("--since {since}: give a day as 2026-05-01 or a time as 2026-05-01T12:00:00Z"));
        return Exit::Usage;
    }
    let listed = archive(&args.archive).and_then(|archive| {
        let runs = archive.runs(&filter)?;
        let rows = runs.iter().map(|run| rows(run, &archive)).collect::<Result<Vec<_>, _>>()?;
        Ok((runs, rows.concat()))
    });
    match listed {
        Err(error) => failed(&error),
        Ok((runs, _)) if args.json => {
            let list: Vec<_> = runs.iter().map(json_row).collect();
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{}", serde_json::json!({ "schema": "linerate.history/1", "runs": list }));
            Exit::Done
        }
        Ok((_, rows)) => {
            let _ = write!(std::io::stdout().lock(), "{}", history_table(&rows, &terminal::stdout_view()));
            Exit::Done
        }
    }
}

fn rows(run: &RunHead, archive: &SqliteArchive) -> Result<Vec<RunRow>, ArchiveError> {
    let row = RunRow {
        run: archive.short_name(&run.id)?,
        started_at: run.started_at.as_deref().map(short_time).unwrap_or_default(),
        target: run.target.clone().unwrap_or_default(),
        outcome: run.outcome.map(|outcome| outcome_name(outcome).to_owned()),
        ..RunRow::default()
    };
    if run.flows.is_empty() {
        return Ok(vec![row]);
    }
    let of_flow = |flow: &linerate_archive::FlowHead| RunRow {
        flow: flow.name.clone(),
        bitrate: flow.bitrate,
        cause: flow.cause.clone(),
        ..row.clone()
    };
    Ok(run.flows.iter().map(of_flow).collect())
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Interrupted => "interrupted",
        Outcome::Failed => "failed",
    }
}

/// A time to the second, in the zone of whoever reads.
fn short_time(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => text.to_owned(),
    }
}

fn json_row(run: &RunHead) -> serde_json::Value {
    let flows: Vec<_> = run
        .flows
        .iter()
        .map(|flow| {
            serde_json::json!({
                "name": flow.name, "direction": flow.direction, "transport": flow.transport,
                "bitrate_bps": flow.bitrate.map(linerate_units::Bitrate::bps), "cause": flow.cause,
            })
        })
        .collect();
    serde_json::json!({
        "id": run.id, "started_at": run.started_at, "target": run.target, "linerate": run.linerate,
        "world": run.world, "outcome": run.outcome.map(outcome_name), "events": run.event_count, "flows": flows,
    })
}

/// A run's log and its fold.
fn load(args: &ArchiveArgs, run: &str) -> Result<(RunRecord, Vec<Event>, String), ArchiveError> {
    let archive = archive(args)?;
    let events = archive.events(run)?;
    let name = archive.short_name(&archive.find(run)?)?;
    Ok((RunRecord::fold(&events), events, name))
}

pub(crate) fn show(args: &ShowArgs) -> Exit {
    match load(&args.archive, &args.run) {
        Err(error) => failed(&error),
        Ok((record, _, name)) => {
            let mut view = terminal::stdout_view();
            view.kept = Some(name);
            view.explain = args.explain;
            let format = if args.json { FormatName::Json } else { FormatName::Text };
            let shown = format::to_stdout(&record, &[], format, &view);
            if !args.json && terminal::printed() {
                format::draw(&record, &view);
            }
            shown
        }
    }
}

pub(crate) fn export(args: &ExportArgs) -> Exit {
    if args.format == FormatName::Html {
        let output = args.output.clone().or_else(|| Some("-".into()));
        let runs = vec![args.run.clone()];
        return super::report::run(&ReportArgs { runs, output, archive: args.archive.clone() });
    }
    let (record, events, _) = match load(&args.archive, &args.run) {
        Ok(loaded) => loaded,
        Err(error) => return failed(&error),
    };
    let Some(path) = &args.output else {
        return format::to_stdout(&record, &events, args.format, &terminal::stdout_view());
    };
    match format::to_file(&record, &events, args.format, path) {
        Ok(()) => Exit::Done,
        Err(error) => {
            say::error(format!("{} could not be written: {error}", path.display()));
            Exit::Failed
        }
    }
}
