//! The output formats: one row each, with how a run and how a plan is written in it.

use std::io::{self, Write};
use std::path::Path;

use linerate_model::{Event, PlanRecord, RunRecord};

use crate::html::Assets;
use crate::ndjson::NdjsonError;
#[cfg(feature = "parquet")]
use crate::parquet;
use crate::picture::Pictures;
use crate::{TextLayout, csv, document, html, markdown, ndjson, plan, text};

/// Width of a plan's text that does not go to a terminal.
pub const PLAN_WIDTH: usize = 160;

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
    /// A long table of samples for analysts. The last one, as it may be absent.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// What a run is written from.
#[derive(Debug, Clone, Copy)]
pub struct RunSource<'a> {
    /// The run.
    pub record: &'a RunRecord,
    /// Its log, for the formats that [need it](Format::needs_log).
    pub events: &'a [Event],
    /// How text looks.
    pub view: &'a TextLayout,
    /// The script and style of a page; without them no page can be written.
    pub assets: Option<&'a Assets<'a>>,
}

/// What a plan is written from.
#[derive(Clone, Copy)]
pub struct PlanSource<'a> {
    /// The plan.
    pub record: &'a PlanRecord,
    /// Its own log, for the formats that [need it](Format::needs_log).
    pub events: &'a [Event],
    /// Loads its runs, for the formats that contain their samples.
    pub runs: &'a RunLoader<'a>,
}

/// Loads the log of a run by its id; `None` if it was deleted.
pub type RunLoader<'a> = dyn Fn(&str) -> Result<Option<Vec<Event>>, RunLoadError> + 'a;

/// Why a log could not be loaded.
pub type RunLoadError = Box<dyn std::error::Error + Send + Sync>;

/// Extensions of report files of a run.
pub const RUN_EXTENSIONS: &str = if cfg!(feature = "parquet") {
    ".html, .json, .csv, .md, .txt, .svg or .parquet"
} else {
    SWEEP_EXTENSIONS
};
/// Extensions of report files of a sweep over message sizes, which has no samples.
pub const SWEEP_EXTENSIONS: &str = ".html, .json, .csv, .md, .txt or .svg";
/// Extensions of report files of a plan, which has assertions.
pub const PLAN_EXTENSIONS: &str = if cfg!(feature = "parquet") {
    ".html, .json, .csv, .md, .txt, .svg, .parquet or .xml (JUnit)"
} else {
    ".html, .json, .csv, .md, .txt, .svg or .xml (JUnit)"
};

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
    plan: fn(PlanSource<'_>, &mut dyn Write) -> Result<(), FormatError>,
}

/// All formats.
pub const FORMATS: &[FormatRow] = &[
    FormatRow {
        format: Format::Jsonl,
        name: "jsonl",
        extension: None,
        media_type: "application/x-ndjson",
        help: "The event log, one JSON object per line",
        run: |run, out| log(run.events, out),
        plan: |plan, out| log(plan.events, out),
    },
    FormatRow {
        format: Format::Json,
        name: "json",
        extension: Some("json"),
        media_type: "application/json",
        help: "The result as one JSON document",
        run: |run, out| json(&document(run.record), out),
        plan: |plan, out| json(&plan::document(plan.record), out),
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
        plan: |plan, out| Ok(plan::csv(plan.record, out)?),
    },
    FormatRow {
        format: Format::SummaryCsv,
        name: "summary-csv",
        extension: None,
        media_type: "text/csv; charset=utf-8",
        help: "One row per flow",
        run: |run, out| Ok(csv::summary(run.record, out)?),
        plan: |plan, out| Ok(plan::csv(plan.record, out)?),
    },
    FormatRow {
        format: Format::Markdown,
        name: "markdown",
        extension: Some("md"),
        media_type: "text/markdown; charset=utf-8",
        help: "A report to paste into a ticket",
        run: |run, out| Ok(out.write_all(markdown::report(run.record).as_bytes())?),
        plan: |plan, out| Ok(out.write_all(plan::markdown(plan.record).as_bytes())?),
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
        plan: |plan, out| {
            let view = TextLayout { width: PLAN_WIDTH, ..TextLayout::default() };
            Ok(out.write_all(plan::text(plan.record, &view).as_bytes())?)
        },
    },
    FormatRow {
        format: Format::Svg,
        name: "svg",
        extension: Some("svg"),
        media_type: "image/svg+xml",
        help: "The charts as a picture",
        run: |run, out| picture(&Pictures::of_run(run.record), None, out),
        plan: |plan, out| picture(&Pictures::of_plan(plan.record), None, out),
    },
    FormatRow {
        format: Format::Junit,
        name: "junit",
        extension: Some("xml"),
        media_type: "application/xml",
        help: "The assertions of a plan as a JUnit report, for continuous integration",
        run: |_, _| Err(FormatError::NotOfRuns),
        plan: |plan, out| Ok(plan::junit(plan.record, out)?),
    },
    #[cfg(feature = "parquet")]
    FormatRow {
        format: Format::Parquet,
        name: "parquet",
        extension: Some("parquet"),
        media_type: "application/vnd.apache.parquet",
        help: "Every sample in a long table, for DuckDB, pandas and polars; of a plan with all its runs",
        run: |run, out| Ok(out.write_all(&parquet::of_run(&run)?)?),
        plan: |plan, out| Ok(out.write_all(&parquet::of_plan(&plan)?)?),
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
    /// The table of samples cannot be written.
    #[cfg(feature = "parquet")]
    #[error("the table of samples cannot be written: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// A run of a plan cannot be loaded.
    #[error(transparent)]
    RunOfPlan(RunLoadError),
    /// There is no such chart.
    #[error("there is no chart {chart}; there are {}: {}", titles.len(), titles.join("; "))]
    NoSuchChart {
        /// Its number.
        chart: usize,
        /// The numbers and titles of those that there are.
        titles: Vec<String>,
    },
    /// There are only sizes.
    #[error("a sweep over message sizes has no samples; give csv, which has a row for each size")]
    NoSamples,
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
    #[error("a plan has no such form; give another format, such as json or csv")]
    NotOfPlans,
    /// The format is for plans only.
    #[error("a single run has no assertions; export a plan, or give another format")]
    NotOfRuns,
}

impl FormatError {
    /// Whether the run or plan has nothing that the format could contain, so that another format may be written.
    #[must_use]
    pub const fn is_of_format(&self) -> bool {
        matches!(
            self,
            Self::NotOfPlans
                | Self::NotOfRuns
                | Self::NothingToDraw
                | Self::NoSuchChart { .. }
                | Self::NoSamples
        )
    }
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

    /// The format of a file, by its extension.
    #[must_use]
    pub fn of_file(path: &Path) -> Option<Self> {
        Self::of_extension(path.extension()?.to_str()?)
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

    /// Whether it contains the event log or refers to it, so that the record does not suffice.
    #[must_use]
    pub fn needs_log(self) -> bool {
        matches!(self, Self::Jsonl | Self::Html) || self.is_binary()
    }

    /// Whether a file in it is not text, and no use on a terminal.
    #[must_use]
    pub fn is_binary(self) -> bool {
        #[cfg(feature = "parquet")]
        if self == Self::Parquet {
            return true;
        }
        false
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
    pub fn write_plan(self, plan: PlanSource<'_>, out: &mut dyn Write) -> Result<(), FormatError> {
        (self.row().plan)(plan, out)
    }
}

/// Whether a file has one of the extensions of a list such as [`RUN_EXTENSIONS`].
#[must_use]
pub fn has_extension(path: &Path, listed: &str) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mut listed = listed.split([' ', ',']).filter_map(|known| known.strip_prefix('.'));
    !extension.is_empty() && listed.any(|known| known == extension)
}

/// Why no report can be written to a file whose name has to end in one of `endings`, after the name; absent if one can.
/// `no_pages` says why this program writes no pages, if it does not.
#[must_use]
pub fn path_error(path: &Path, endings: &str, no_pages: Option<&str>) -> Option<String> {
    let no_pages = no_pages.filter(|_| Format::of_file(path) == Some(Format::Html));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let why = match (no_pages, folder) {
        _ if !has_extension(path, endings) => format!("the name must end in {endings}"),
        (Some(why), _) => why.to_owned(),
        (None, Some(folder)) if !folder.is_dir() => format!("there is no folder {}", folder.display()),
        _ => return None,
    };
    Some(format!("{}: {why}", path.display()))
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

fn log(events: &[Event], out: &mut dyn Write) -> Result<(), FormatError> {
    Ok(events.iter().try_for_each(|event| ndjson::write(event, &mut &mut *out))?)
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
        assert_eq!(Format::of_file(Path::new("a/b.md")), Some(Format::Markdown));
        assert_eq!(Format::of_file(Path::new("a/b")), None);
    }

    #[test]
    fn the_extensions_of_reports_are_those_of_formats() {
        for listed in [RUN_EXTENSIONS, SWEEP_EXTENSIONS, PLAN_EXTENSIONS] {
            let of_format = |row: &&FormatRow| {
                let file = format!("a.{}", row.extension.unwrap_or_default());
                has_extension(Path::new(&file), listed)
            };
            assert_eq!(FORMATS.iter().filter(of_format).count(), listed.matches('.').count(), "{listed}");
            assert!(!has_extension(Path::new("a.pdf"), listed) && !has_extension(Path::new("a"), listed));
        }
        let parquet = Path::new("a.parquet");
        assert_eq!(has_extension(parquet, RUN_EXTENSIONS), cfg!(feature = "parquet"));
        assert!(!has_extension(parquet, SWEEP_EXTENSIONS));
    }
}
