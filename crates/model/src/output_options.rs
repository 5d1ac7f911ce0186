//! The options of commands about what they print, and into which files they write.

use std::path::PathBuf;

#[cfg(feature = "clap")]
use crate::LabelOptions;

/// What is printed while a test runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveOutput {
    /// The result will be one JSON document, and nothing else may be printed on stdout.
    pub json: bool,
    /// The event log.
    pub json_stream: bool,
    /// No progress.
    pub quiet: bool,
    /// Rows of intervals, on a terminal too.
    pub rows: bool,
}

/// Those of a test.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct TestOutputOptions {
    /// Print the result as one JSON document
    #[cfg_attr(
        feature = "clap",
        arg(short = 'J', long, conflicts_with = "json_stream", help_heading = "Output")
    )]
    pub json: bool,
    /// Print the event log while running, one JSON object per line
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Output"))]
    pub json_stream: bool,
    /// Print only the result, and nothing while the test runs
    #[cfg_attr(feature = "clap", arg(short, long, help_heading = "Output"))]
    pub quiet: bool,
    /// Print one row per interval, on a terminal too
    #[cfg_attr(feature = "clap", arg(long, conflicts_with_all = ["json", "json_stream", "quiet"], help_heading = "Output"))]
    pub rows: bool,
    /// Below each verdict, list all ceilings: the one that binds, and the next ones
    #[cfg_attr(feature = "clap", arg(long, conflicts_with_all = ["json", "json_stream"], help_heading = "Output"))]
    pub explain: bool,
    /// List every stream; without it, more than 16 are summarized
    #[cfg_attr(feature = "clap", arg(long, conflicts_with_all = ["json", "json_stream"], help_heading = "Output"))]
    pub all_streams: bool,
    /// Also write a report to this file; its extension selects the format: .html, .json, .csv, .md, .txt, .svg
    /// or .parquet (every sample)
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub report: Option<PathBuf>,
}

impl TestOutputOptions {
    /// What is printed while the test runs.
    #[must_use]
    pub fn live(&self) -> LiveOutput {
        let Self { json, json_stream, quiet, rows, .. } = *self;
        LiveOutput { json, json_stream, quiet, rows }
    }
}

/// Those of a sweep over message sizes.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SweepOutputOptions {
    /// Print the result as one JSON document
    #[cfg_attr(feature = "clap", arg(short = 'J', long, conflicts_with_all = ["json_stream", "quiet", "csv", "plot"], help_heading = "Output"))]
    pub json: bool,
    /// Print the event log while running, one JSON object per line
    #[cfg_attr(feature = "clap", arg(long, conflicts_with_all = ["quiet", "csv", "plot"], help_heading = "Output"))]
    pub json_stream: bool,
    /// Print the sizes as a table for other programs
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "plot", help_heading = "Output"))]
    pub csv: bool,
    /// Show no progress
    #[cfg_attr(feature = "clap", arg(short, long, help_heading = "Output"))]
    pub quiet: bool,
    /// Draw the curves even if stdout is not a terminal
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Output"))]
    pub plot: bool,
    /// Also draw the curves into this file, as an SVG picture
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub svg: Option<PathBuf>,
    /// Also write a report to this file; its extension selects the format: .html, .json, .csv, .md, .txt or
    /// .svg
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub report: Option<PathBuf>,
}

impl SweepOutputOptions {
    /// What is printed while the sweep runs.
    #[must_use]
    pub fn live(&self) -> LiveOutput {
        let Self { json, json_stream, quiet, .. } = *self;
        LiveOutput { json, json_stream, quiet, rows: false }
    }
}

/// Those of a plan that is carried out.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct PlanOutputOptions {
    /// Print the result as one JSON document
    #[cfg_attr(
        feature = "clap",
        arg(short = 'J', long, conflicts_with = "json_stream", help_heading = "Output")
    )]
    pub json: bool,
    /// Print the event logs of the plan and its runs while running, one JSON object per line
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Output"))]
    pub json_stream: bool,
    /// Show no progress
    #[cfg_attr(feature = "clap", arg(short, long, help_heading = "Output"))]
    pub quiet: bool,
    /// Also write a report to this file; its extension selects the format: .html (with all runs), .json, .csv,
    /// .md, .txt, .svg, .parquet (every sample of all runs), or .xml (its assertions, as a JUnit report)
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub report: Option<PathBuf>,
}

/// Those of a run that is shown again, and which run.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ShowOptions {
    /// Name of the run, or a unique prefix
    #[cfg_attr(feature = "clap", arg(default_value = "latest"))]
    pub run: String,
    /// Print the result as one JSON document
    #[cfg_attr(feature = "clap", arg(short = 'J', long))]
    pub json: bool,
    /// Below each verdict, list all ceilings: the one that binds, and the next ones
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "json"))]
    pub explain: bool,
    /// List every stream; without it, more than 16 are summarized
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "json"))]
    pub all_streams: bool,
    /// For a plan: list the runs of one point, given by its name or by its values such as streams=5,length=64K
    #[cfg_attr(feature = "clap", arg(long, value_name = "POINT"))]
    pub point: Option<String>,
}

/// Those of a comparison, and what is compared.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CompareOptions {
    /// Runs or result files; the first one is the base. A name that several runs share means all of them, as repeats
    /// of one configuration. Otherwise separate repeats by commas, and prefix a name with =, such as new=3f2a,77b1
    #[cfg_attr(feature = "clap", arg(value_name = "[NAME=]RUN", required = true))]
    pub runs: Vec<String>,
    /// Compare the values of this axis of a plan that was run
    #[cfg_attr(feature = "clap", arg(long, value_name = "AXIS"))]
    pub axis: Option<String>,
    /// Quantities to compare, by their names in plans; may be given more than once [default: goodput,
    /// retransmits, loss, jitter, rtt, rtt_p95, cpu_sender, cpu_receiver]
    #[cfg_attr(feature = "clap", arg(short, long = "quantity", value_name = "NAME", value_delimiter = ','))]
    pub quantities: Vec<String>,
    /// Show all quantities, including those without a significant difference
    #[cfg_attr(feature = "clap", arg(short, long))]
    pub all: bool,
    /// Also write a page to this file, which must end in .html
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub report: Option<PathBuf>,
    /// Title of the page [default: what is compared]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT", requires = "report", value_parser = LabelOptions::checked_title))]
    pub title: Option<String>,
    /// Print as JSON
    #[cfg_attr(feature = "clap", arg(short = 'J', long))]
    pub json: bool,
}
