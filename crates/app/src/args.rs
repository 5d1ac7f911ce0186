//! The command line as typed.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use linerate_archive::StrangerLimits;
use linerate_model::{HostKnobs, SocketKnobs, Sweep, TestSpec};
use linerate_units::{Bytes, Span};

/// How fast a network really is, how fast it could be, and what holds it back
#[derive(Debug, Parser)]
#[command(name = "linerate", version, about, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 measured, whatever the number; 1 could not measure; 2 bad command line or plan;\n\
                          3 an assertion of a plan does not hold; 4 a figure that was checked is impossible; 130, 143 interrupted, with what was measured printed and archived.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Be measured: wait for clients
    Serve(ServeArgs),
    /// Measure the way to a server, and say what limits it
    Test(Box<TestArgs>),
    /// Measure latency and throughput over the size of messages, and draw the curve
    Sweep(Box<SweepArgs>),
    /// What a described path could carry, and what it needs for that
    Envelope(Box<crate::cmd::EnvelopeArgs>),
    /// Whether printed figures can be true: results of other programs, or typed ones
    Check(Box<crate::cmd::CheckArgs>),
    /// What this host can do, and what is badly set on it
    Doctor(crate::cmd::DoctorArgs),
    /// Emulate a network on this machine, for linerate and for other programs
    Lab(Box<crate::cmd::LabArgs>),
    /// Check a plan of many measurements, and say what it would do
    Plan(crate::cmd::PlanArgs),
    /// Whether one configuration is better than another: archived runs, result files, plans that were carried out
    Compare(crate::cmd::CompareArgs),
    /// Carry a plan out, on real hosts or in an emulated network, and judge the results
    Run(Box<crate::cmd::RunArgs>),
    /// Stand in for iperf3: its options, its output, its exit codes
    Iperf3(ToolArgs),
    /// Stand in for iperf 2
    Iperf(ToolArgs),
    /// Stand in for ttcp and PCATTCP
    Ttcp(ToolArgs),
    /// Stand in for NetPIPE (NPtcp)
    Netpipe(ToolArgs),
    /// Stand in for NTttcp
    Ntttcp(ToolArgs),
    /// Stand in for nuttcp
    Nuttcp(ToolArgs),
    /// Make links to this program that have the names of the tools it stands in for
    InstallLinks(crate::cmd::InstallLinksArgs),
    /// Keep results of other programs as runs: iperf3, iperf 2, ttcp, nuttcp, NTttcp, NetPIPE, and our own
    Import(ImportArgs),
    /// List archived runs
    History(HistoryArgs),
    /// Show an archived run again
    Show(ShowArgs),
    /// Write an archived run in another format
    Export(ExportArgs),
    /// Make one page of archived runs or of a plan: verdicts, tables, charts and the raw data, in one HTML file
    Report(ReportArgs),
    /// Print the completions of a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of linerate or of one of its commands
    Man {
        /// Which command, as `test` or `lab up`; without it linerate itself
        command: Vec<String>,
    },
    /// Print generated references (for the build)
    #[command(hide = true)]
    Schema {
        /// Which document
        #[arg(value_enum)]
        which: SchemaName,
    },
    /// Print the metric reference (for the build)
    #[command(hide = true)]
    MetricsReference,
    /// Print the reference of topology files (for the build)
    #[command(hide = true)]
    TopologyReference,
    /// Print the reference of plan files (for the build)
    #[command(hide = true)]
    PlanReference,
    /// Wait for the end of an agent and put settings of this host back (started by the agent)
    #[command(hide = true)]
    GuardSettings(crate::cmd::GuardArgs),
    /// Print the command line reference (for the build)
    #[command(hide = true)]
    CliReference,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SchemaName {
    Result,
    Event,
    Spec,
    Topology,
    Check,
    Compare,
    Plan,
    PlanResult,
}

/// Who is measured when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// One run at a time, the others wait in a queue that they see
    #[default]
    Exclusive,
    /// Everybody at once; each result says what ran beside it
    Shared,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Port for TCP and UDP; 0 lets the system choose
    #[arg(short, long, default_value_t = 5201)]
    pub(crate) port: u16,
    /// Listen only on this address; may be given more than once [default: all]
    #[arg(short = 'B', long = "bind", value_name = "ADDRESS")]
    pub(crate) bind: Vec<IpAddr>,
    /// Who is measured when
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: PolicyName,
    /// Stop after one run
    #[arg(short = '1', long)]
    pub(crate) one_off: bool,
    /// Also answer older tools at their own ports
    #[arg(long)]
    pub(crate) classic: bool,
    /// Refuse runs that take longer
    #[arg(long, value_name = "SECONDS", value_parser = crate::cmd::above_zero::<Span>)]
    pub(crate) limit_time: Option<Span>,
    /// Refuse clients when so many are here already, at work or waiting
    #[arg(long, value_name = "CLIENTS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit_clients: Option<u32>,
    /// Refuse runs that need more memory, all together (K, M, G are binary) [default: a quarter of this host's, at least 128M]
    #[arg(long, value_name = "SIZE", value_parser = crate::cmd::above_zero::<Bytes>)]
    pub(crate) limit_memory: Option<Bytes>,
    #[command(flatten)]
    pub(crate) archive_limits: ArchiveLimits,
    /// Be an agent too: whoever has the token in this file may have tests run from here
    #[arg(long, value_name = "FILE")]
    pub(crate) agent_token_file: Option<PathBuf>,
    /// As an agent, let nobody change settings of this host for a measurement (MTU, offloads, buffers, disciplines)
    #[arg(long, requires = "agent_token_file")]
    pub(crate) no_settings: bool,
    #[command(flatten)]
    pub(crate) run: crate::cmd::RunFolder,
    /// Print what happens as JSON, one object a line, on stdout
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

/// How much of what clients of other programs measure here is kept. The oldest of it goes; runs of one's own never do.
#[derive(Debug, Clone, Args)]
pub(crate) struct ArchiveLimits {
    /// Keep at most so many runs of clients of other programs
    #[arg(long, value_name = "RUNS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    limit_archive_runs: u32,
    /// Keep at most so many bytes of their logs
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = crate::cmd::above_zero::<Bytes>)]
    limit_archive_bytes: Bytes,
    /// Keep them for so many days
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    limit_archive_days: u32,
}

impl ArchiveLimits {
    /// The limits for a run that begins now.
    pub(crate) fn now(&self) -> StrangerLimits {
        let before = |hours: i64| {
            let now = jiff::Timestamp::now();
            let then = now.checked_sub(jiff::SignedDuration::from_hours(hours)).unwrap_or(now);
            then.round(jiff::Unit::Second).unwrap_or(then).to_string()
        };
        StrangerLimits {
            runs: self.limit_archive_runs,
            bytes: self.limit_archive_bytes.get(),
            oldest: before(i64::from(self.limit_archive_days) * 24),
            under_way: before(24),
        }
    }
}

/// What further runs are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Investigation {
    /// What the verdict leaves open
    Open,
    /// What goes back for reads of 1 KiB to 1 MiB
    Reads,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The server: a name or an address, with or without :PORT
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// Port of the server [default: 5201]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Measure from this agent instead of from here: a name or an address, with or without :PORT
    #[arg(long, value_name = "AGENT", requires = "agent_token_file", help_heading = "Other hosts")]
    pub(crate) from: Option<String>,
    /// The token of the agent is in this file
    #[arg(long, value_name = "FILE", requires = "from", help_heading = "Other hosts")]
    pub(crate) agent_token_file: Option<PathBuf>,
    /// When the verdict leaves something open, make further short runs that can tell: UDP above and below the rate, a paced run, many connections, packets of different sizes, reads of different sizes; with =reads the last alone, in any case
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "open", conflicts_with = "from", help_heading = "Other runs")]
    pub(crate) investigate: Option<Investigation>,
    #[command(flatten)]
    pub(crate) spec: TestSpec,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// The server: a name or an address, with or without :PORT
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// Port of the server [default: 5201]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) sweep: Sweep,
    #[command(flatten)]
    pub(crate) socket: SocketKnobs,
    #[command(flatten)]
    pub(crate) hosts: HostKnobs,
    #[command(flatten)]
    pub(crate) output: SweepOutputArgs,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SweepOutputArgs {
    /// Print the result as one JSON document
    #[arg(short = 'J', long, conflicts_with_all = ["json_stream", "quiet", "csv", "plot"], help_heading = "Output")]
    pub(crate) json: bool,
    /// Print the event log as it happens, one JSON object a line
    #[arg(long, conflicts_with_all = ["quiet", "csv", "plot"], help_heading = "Output")]
    pub(crate) json_stream: bool,
    /// Print the sizes as a table for other programs
    #[arg(long, conflicts_with = "plot", help_heading = "Output")]
    pub(crate) csv: bool,
    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Draw the curves even where stdout is no terminal
    #[arg(long, help_heading = "Output")]
    pub(crate) plot: bool,
    /// Also draw the curves into this file, as an SVG picture
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,
    /// Also write a report to this file; its ending says the format: .html, .json, .csv, .md, .txt or .svg
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Print the result as one JSON document
    #[arg(short = 'J', long, conflicts_with_all = ["json_stream", "quiet"], help_heading = "Output")]
    pub(crate) json: bool,
    /// Print the event log as it happens, one JSON object a line
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub(crate) json_stream: bool,
    /// Print only the final lines, no progress
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Print a row per interval on a terminal too
    #[arg(long, conflicts_with_all = ["json", "json_stream", "quiet"], help_heading = "Output")]
    pub(crate) rows: bool,
    /// Below each verdict, list every ceiling: which binds, and which would be next
    #[arg(long, conflicts_with_all = ["json", "json_stream"], help_heading = "Output")]
    pub(crate) explain: bool,
    /// Also write a report to this file; its ending says the format: .html, .json, .csv, .md or .txt
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ArchiveArgs {
    /// Keep runs in this SQLite file [default: linerate/archive.sqlite in the user's data directory]
    // An empty name would be a database that SQLite forgets at the end.
    #[arg(
        long, value_name = "FILE", env = "LINERATE_ARCHIVE",
        value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Archive"
    )]
    pub(crate) archive: Option<String>,
}

/// A tool's own command line.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ToolArgs {
    /// The tool's own options; with --help it lists them
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files with results, as JSON, XML, CSV or text, also several in one file; - is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Read only results of this program
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(linerate_proto::reading::TOOLS))]
    pub(crate) tool: Option<String>,
    /// Print as JSON what was imported
    #[arg(short = 'J', long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Only runs against this server, as typed then
    pub(crate) target: Option<String>,
    /// At most so many runs, newest first
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// Only runs since this day or time, as 2026-05-01 or 2026-05-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Also the runs that are parts of plans
    #[arg(long, conflicts_with = "plan")]
    pub(crate) all: bool,
    /// Only the runs that the plan kept under this name is made of
    #[arg(long, value_name = "RUN")]
    pub(crate) plan: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of the run, or enough of its beginning
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// Print the result as one JSON document
    #[arg(short = 'J', long)]
    pub(crate) json: bool,
    /// Below each verdict, list every ceiling: which binds, and which would be next
    #[arg(long, conflicts_with = "json")]
    pub(crate) explain: bool,
    /// Of a plan: list the runs of one point, given by its name or by its values as streams=5,length=64K
    #[arg(long, value_name = "POINT")]
    pub(crate) point: Option<String>,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Name of the run, or enough of its beginning
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// The format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) format: FormatName,
    /// With --format svg: only this chart, counted from 1, instead of all below each other
    #[arg(long, value_name = "N")]
    pub(crate) chart: Option<usize>,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Names of runs, or enough of their beginnings; several are shown side by side, a plan brings its runs along
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) runs: Vec<String>,
    /// Write to this file, - is stdout [default: linerate-RUN.html]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

/// A format of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// The event log, one JSON object a line
    #[default]
    Jsonl,
    /// The result as one JSON document
    Json,
    /// The samples as a table, or the sizes of a series over message sizes
    Csv,
    /// One row per flow
    SummaryCsv,
    /// A report to paste into a ticket
    Markdown,
    /// One page with verdict, tables, charts and the raw data
    Html,
    /// What the terminal shows
    Text,
    /// The charts as a picture
    Svg,
}
