//! The output formats: one row each, with how a run and how a plan is written in it.

use std::io::{self, Write};

use linerate_model::{Event, PlanRecord, RunRecord};

use crate::html::Assets;
use crate::ndjson::NdjsonError;
use crate::picture::Pictures;
use crate::{TextLayout, csv, document, html, markdown, ndjson, plan, text};

/// Width of a plan's text in a file.
const PLAN_WIDTH: usize = 160;

/// An output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// The event log.
    #[default]
    Jsonl,
    /// One JSON document.
    Json,
    /// A table of samples, sizes or points.
    Csv,
    /// A table with one row per flow.
    SummaryCsv,
    /// A report for a ticket.
    Markdown,
    /// A page.
    Html,
    /// As on a terminal.
    Text,
    /// The charts.
    Svg,
    /// The assertions of a plan, for continuous integration.
    Junit,
}

/// What a run is written from.
#[derive(Debug, Clone, Copy)]
pub struct RunSource<'a> {
    /// The run.
    pub record: &'a RunRecord,
    /// Its log, for the event log and for a page.
    pub events: &'a [Event],
    /// How text looks.
    pub view: &'a TextLayout,
    /// The script and style of a page; without them no page can be written.
    pub assets: Option<&'a Assets<'a>>,
}

/// A row of the table.
#[derive(Debug)]
pub struct FormatRow {
    /// The format.
    pub format: Format,
    /// Its name on command lines.
    pub name: &'static str,
    /// The extension of its files; absent if the name of a file does not select it.
    pub extension: Option<&'static str>,
    /// Its media type.
    pub media_type: &'static str,
    /// What it contains.
    pub help: &'static str,
    run: fn(RunSource<'_>, &mut dyn Write) -> Result<(), FormatError>,
    plan: fn(&PlanRecord, &mut dyn Write) -> Result<(), FormatError>,
}

/// All formats.
pub const FORMATS: [FormatRow; 9] = [
    FormatRow {
        format: Format::Jsonl,
        name: "jsonl",
        extension: None,
        media_type: "application/x-ndjson",
        help: "The event log, one JSON object per line",
        run: |run, out| Ok(run.events.iter().try_for_each(|event| ndjson::write(event, &mut &mut *out))?),
        plan: |_, _| Err(FormatError::NotOfPlans),
    },
    FormatRow {
        format: Format::Json,
        name: "json",
        extension: Some("json"),
        media_type: "application/json",
        help: "The result as one JSON document",
        run: |run, out| json(&document(run.record), out),
        plan: |record, out| json(&plan::document(record), out),
    },
    FormatRow {
        format: Format::Csv,
        name: "csv",
        extension: Some("csv"),
        media_type: "text/csv; charset=utf-8",
        help: "The samples as a table, or the sizes of a sweep",
        run: |run, out| {
            Ok(if is_sweep(run.record) {
                csv::sizes(run.record, out)
            } else {
                csv::samples(run.record, out)
            }?)
        },
        plan: |record, out| Ok(plan::csv(record, out)?),
    },
    FormatRow {
        format: Format::SummaryCsv,
        name: "summary-csv",
        extension: None,
        media_type: "text/csv; charset=utf-8",
        help: "One row per flow",
        run: |run, out| Ok(csv::summary(run.record, out)?),
        plan: |record, out| Ok(plan::csv(record, out)?),
    },
    FormatRow {
        format: Format::Markdown,
        name: "markdown",
        extension: Some("md"),
        media_type: "text/markdown; charset=utf-8",
        help: "A report to paste into a ticket",
        run: |run, out| Ok(out.write_all(markdown::report(run.record).as_bytes())?),
        plan: |record, out| Ok(out.write_all(plan::markdown(record).as_bytes())?),
    },
    FormatRow {
        format: Format::Html,
        name: "html",
        extension: Some("html"),
        media_type: "text/html; charset=utf-8",
        help: "One page with verdict, tables, charts and the raw data",
        run: |run, out| {
            let assets = run.assets.ok_or(FormatError::NoFrontEnd)?;
            Ok(html::write(
                None,
                None,
                &[html::ReportedRun { record: run.record, events: run.events }],
                assets,
                out,
            )?)
        },
        plan: |_, _| Err(FormatError::NotOfPlans),
    },
    FormatRow {
        format: Format::Text,
        name: "text",
        extension: Some("txt"),
        media_type: "text/plain; charset=utf-8",
        help: "The same as on the terminal",
        run: |run, out| Ok(out.write_all(text(run.record, run.view).as_bytes())?),
        plan: |record, out| {
            let view = TextLayout { width: PLAN_WIDTH, ..TextLayout::default() };
            Ok(out.write_all(plan::text(record, &view).as_bytes())?)
        },
    },
    FormatRow {
        format: Format::Svg,
        name: "svg",
        extension: Some("svg"),
        media_type: "image/svg+xml",
        help: "The charts as a picture",
        run: |run, out| picture(&Pictures::of_run(run.record), None, out),
        plan: |record, out| picture(&Pictures::of_plan(record), None, out),
    },
    FormatRow {
        format: Format::Junit,
        name: "junit",
        extension: Some("xml"),
        media_type: "application/xml",
        help: "The assertions of a plan as a JUnit report, for continuous integration",
        run: |_, _| Err(FormatError::NotOfRuns),
        plan: |record, out| Ok(plan::junit(record, out)?),
    },
];

/// Why a run or plan cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// It cannot be written to its destination.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The table of a run cannot be written.
    #[error(transparent)]
    Csv(#[from] csv::CsvError),
    /// The table of a plan cannot be written.
    #[error(transparent)]
    PlanTable(#[from] ::csv::Error),
    /// An event cannot be written.
    #[error(transparent)]
    Event(#[from] NdjsonError),
    /// A document cannot be written.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// There is no chart.
    #[error("there is nothing to draw: the run has no rate over time, no latency and no curve")]
    NothingToDraw,
    /// A page needs a script and a style sheet.
    #[error("this program has no front end, which a page needs")]
    NoFrontEnd,
    /// The report of assertions cannot be written.
    #[error(transparent)]
    Junit(#[from] quick_junit::SerializeError),
    /// The format is for runs only.
    #[error("a plan has no such form; give json, csv, markdown, svg, junit or text")]
    NotOfPlans,
    /// The format is for plans only.
    #[error("a single run has no assertions; export a plan, or give another format")]
    NotOfRuns,
}

impl Format {
    /// The format with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        FORMATS.iter().find(|row| row.name == name).map(|row| row.format)
    }

    /// The format of files with this extension.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Self> {
        FORMATS.iter().find(|row| row.extension == Some(extension)).map(|row| row.format)
    }

    /// Its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        self.row().media_type
    }

    /// The extension of a file with it, also if the name of a file does not select it.
    #[must_use]
    pub fn file_extension(self) -> &'static str {
        let row = self.row();
        row.extension.unwrap_or_else(|| row.name.rsplit('-').next().unwrap_or(row.name))
    }

    fn row(self) -> &'static FormatRow {
        // Every format has the row of its number, as a test checks.
        &FORMATS[self as usize]
    }

    /// Writes a run.
    ///
    /// # Errors
    /// The destination fails, or the run has nothing that the format could contain.
    pub fn write_run(self, run: RunSource<'_>, out: &mut dyn Write) -> Result<(), FormatError> {
        (self.row().run)(run, out)?;
        Ok(out.flush()?)
    }

    /// Writes a plan that was run.
    ///
    /// # Errors
    /// The destination fails, or plans have no such format.
    pub fn write_plan(self, record: &PlanRecord, out: &mut dyn Write) -> Result<(), FormatError> {
        (self.row().plan)(record, out)
    }
}

/// Whether the run is a sweep over message sizes.
#[must_use]
pub fn is_sweep(record: &RunRecord) -> bool {
    record.flows.iter().any(|flow| !flow.sizes.is_empty())
}

/// Writes one chart, or all of them below each other.
///
/// # Errors
/// There is no chart, or the destination fails.
pub fn picture(pictures: &Pictures, only: Option<usize>, out: &mut dyn Write) -> Result<(), FormatError> {
    let picture = pictures.svg(only).ok_or(FormatError::NothingToDraw)?;
    Ok(out.write_all(picture.as_bytes())?)
}

fn json(document: &impl serde::Serialize, out: &mut dyn Write) -> Result<(), FormatError> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    Ok(writeln!(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_one_row_and_is_found_by_name_and_extension() {
        for (number, row) in FORMATS.iter().enumerate() {
            assert_eq!(row.format as usize, number, "{}", row.name);
            assert_eq!(Format::named(row.name), Some(row.format));
            assert!(row.extension.is_none_or(|ending| Format::of_extension(ending) == Some(row.format)));
        }
        assert_eq!(
            [Format::SummaryCsv, Format::Jsonl, Format::Junit].map(Format::file_extension),
            ["csv", "jsonl", "xml"]
        );
        assert_eq!((Format::named("pdf"), Format::of_extension("")), (None, None));
    }
}
