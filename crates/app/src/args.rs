//! The command line as typed.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use linerate_archive::ForeignRunLimits;
use linerate_model::{HostKnobs, SocketKnobs, Sweep, TestSpec};
use linerate_report::Format;
use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::envelope::Congestion;
use linerate_units::{Bytes, Span, above_zero};

/// How fast a network really is, how fast it could be, and what holds it back
#[derive(Debug, Parser)]
#[command(name = "linerate", version, about, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 measured, whatever the result; 1 could not measure; 2 bad command line or plan;\n\
     3 an assertion of the plan failed; 4 a checked figure is impossible; 130, 143 interrupted: the partial\n\
     result is printed and archived.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server
    Serve(ServeArgs),
    /// Measure the path to a server and report what limits it
    Test(Box<TestArgs>),
    /// Measure latency and throughput over message sizes and draw the curve
    Sweep(Box<SweepArgs>),
    /// Show what a described path can carry, and what it needs for that
    Envelope(Box<crate::cmd::EnvelopeArgs>),
    /// Check whether published results are physically possible: results of other programs, or typed figures
    Check(Box<crate::cmd::CheckArgs>),
    /// Show what this host can do, and which of its settings limit results
    Doctor(crate::cmd::DoctorArgs),
    /// Emulate a network on this machine, for linerate and other programs
    Lab(Box<crate::cmd::LabArgs>),
    /// Check a plan of many measurements and show what it would do
    Plan(crate::cmd::PlanArgs),
    /// Compare configurations: archived runs, result files, or plans that were run
    Compare(crate::cmd::CompareArgs),
    /// Run a plan, on real hosts or in an emulated network, and judge the results
    Run(Box<crate::cmd::RunArgs>),
    /// Replace iperf3: same options, output and exit codes
    Iperf3(ToolArgs),
    /// Replace iperf 2
    Iperf(ToolArgs),
    /// Replace ttcp and PCATTCP
    Ttcp(ToolArgs),
    /// Replace NetPIPE (NPtcp)
    Netpipe(ToolArgs),
    /// Replace netperf, the client
    Netperf(ToolArgs),
    /// Replace the server of netperf (netserver)
    Netserver(ToolArgs),
    /// Replace NTttcp
    Ntttcp(ToolArgs),
    /// Replace nuttcp
    Nuttcp(ToolArgs),
    /// Create links to this program with the names of the tools that it replaces
    InstallLinks(crate::cmd::InstallLinksArgs),
    /// Archive results of other programs as runs: iperf3, iperf 2, ttcp, nuttcp, NTttcp, NetPIPE, netperf, and our own
    Import(ImportArgs),
    /// List archived runs
    History(HistoryArgs),
    /// Show an archived run again
    Show(ShowArgs),
    /// Write an archived run in another format
    Export(ExportArgs),
    /// Create one page from archived runs or a plan: verdicts, tables, charts and the raw data in one HTML file
    Report(ReportArgs),
    /// Print shell completions
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of linerate or of one of its commands
    Man {
        /// Which command, as `test` or `lab up`; without it linerate itself
        command: Vec<String>,
    },
    /// Internal: wait until an agent ends and restore the settings of this host; started by `serve`
    GuardSettings(crate::cmd::GuardArgs),
}

/// A tunnel by its name.
pub(crate) fn tunnel() -> impl TypedValueParser<Value = Encapsulation> {
    PossibleValuesParser::new(Encapsulation::ALL.map(Encapsulation::name))
        .try_map(|name| Encapsulation::from_name(&name).ok_or("unknown tunnel"))
}

/// A congestion control by its name.
pub(crate) fn congestion() -> impl TypedValueParser<Value = Congestion> {
    PossibleValuesParser::new([Congestion::Reno, Congestion::Cubic, Congestion::Bbr].map(Congestion::name))
        .try_map(|name| Congestion::from_name(&name).ok_or("unknown congestion control"))
}

/// When clients are measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// One run at a time; the others wait in a queue and see their position
    #[default]
    Exclusive,
    /// All at once; each result mentions the runs at the same time
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
    /// When clients are measured
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: PolicyName,
    /// Stop after one run
    #[arg(short = '1', long)]
    pub(crate) one_off: bool,
    /// Also answer older tools at their own ports
    #[arg(long)]
    pub(crate) classic: bool,
    /// Refuse runs that take longer
    #[arg(long, value_name = "SECONDS", value_parser = above_zero::<Span>)]
    pub(crate) limit_time: Option<Span>,
    /// Refuse further clients when this number is running or waiting
    #[arg(long, value_name = "CLIENTS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit_clients: Option<u32>,
    /// Refuse runs that need more memory in total (K, M, G are binary) [default: a quarter of this host's, at
    /// least 128M]
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<Bytes>)]
    pub(crate) limit_memory: Option<Bytes>,
    #[command(flatten)]
    pub(crate) archive_limits: ArchiveLimits,
    /// Also be an agent: anyone with the token in this file may run tests from this host
    #[arg(long, value_name = "FILE")]
    pub(crate) agent_token_file: Option<PathBuf>,
    /// As an agent, refuse changes of this host's settings for a measurement (MTU, offloads, buffers, queueing
    /// disciplines)
    #[arg(long, requires = "agent_token_file")]
    pub(crate) no_settings: bool,
    #[command(flatten)]
    pub(crate) run: crate::cmd::RunFolder,
    /// Print events as JSON, one object per line, on stdout
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

/// Limits on the archived runs of clients of other programs. The oldest ones are deleted; one's own runs never
/// are.
#[derive(Debug, Clone, Args)]
pub(crate) struct ArchiveLimits {
    /// Keep at most this number of runs of clients of other programs
    #[arg(long, value_name = "RUNS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    limit_archive_runs: u32,
    /// Keep at most this number of bytes of their logs
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = above_zero::<Bytes>)]
    limit_archive_bytes: Bytes,
    /// Delete them after this number of days
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    limit_archive_days: u32,
}

impl ArchiveLimits {
    /// The limits for a run that starts now.
    pub(crate) fn now(&self) -> ForeignRunLimits {
        let before = |hours: i64| {
            let now = jiff::Timestamp::now();
            let then = now.checked_sub(jiff::SignedDuration::from_hours(hours)).unwrap_or(now);
            then.round(jiff::Unit::Second).unwrap_or(then).to_string()
        };
        ForeignRunLimits {
            runs: self.limit_archive_runs,
            bytes: self.limit_archive_bytes.get(),
            oldest: before(i64::from(self.limit_archive_days) * 24),
            under_way: before(24),
        }
    }
}

/// Purpose of further runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Investigation {
    /// Find what the verdict leaves open
    Open,
    /// Count reverse-direction packets for reads of 1 KiB to 1 MiB
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
    /// File with the token of the agent
    #[arg(long, value_name = "FILE", requires = "from", help_heading = "Other hosts")]
    pub(crate) agent_token_file: Option<PathBuf>,
    /// When the verdict leaves a question open, make further short runs to answer it: UDP above and below the
    /// rate, a paced run, many connections, packets of different sizes, reads of different sizes; =reads makes
    /// only the last of them, whatever the verdict
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
    /// Print the event log while running, one JSON object per line
    #[arg(long, conflicts_with_all = ["quiet", "csv", "plot"], help_heading = "Output")]
    pub(crate) json_stream: bool,
    /// Print the sizes as a table for other programs
    #[arg(long, conflicts_with = "plot", help_heading = "Output")]
    pub(crate) csv: bool,
    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Draw the curves even if stdout is not a terminal
    #[arg(long, help_heading = "Output")]
    pub(crate) plot: bool,
    /// Also draw the curves into this file, as an SVG picture
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,
    /// Also write a report to this file; its extension selects the format: .html, .json, .csv, .md, .txt or
    /// .svg
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Print the result as one JSON document
    #[arg(short = 'J', long, conflicts_with_all = ["json_stream", "quiet"], help_heading = "Output")]
    pub(crate) json: bool,
    /// Print the event log while running, one JSON object per line
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub(crate) json_stream: bool,
    /// Print only the final lines, no progress
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Print one row per interval, on a terminal too
    #[arg(long, conflicts_with_all = ["json", "json_stream", "quiet"], help_heading = "Output")]
    pub(crate) rows: bool,
    /// Below each verdict, list all ceilings: the one that binds, and the next ones
    #[arg(long, conflicts_with_all = ["json", "json_stream"], help_heading = "Output")]
    pub(crate) explain: bool,
    /// Also write a report to this file; its extension selects the format: .html, .json, .csv, .md or .txt
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ArchiveArgs {
    /// Keep runs in this SQLite file [default: linerate/archive.sqlite in the user's data directory]
    // With an empty name, SQLite would create a temporary database.
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
    /// Files with results as JSON, XML, CSV or text, several results per file allowed; - is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Read only results of this program
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(linerate_compat::import::TOOLS))]
    pub(crate) tool: Option<String>,
    /// Print the imported results as JSON
    #[arg(short = 'J', long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Only runs against this server, as it was typed
    pub(crate) target: Option<String>,
    /// Maximum number of runs, newest first
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// Only runs since this day or time, such as 2026-05-01 or 2026-05-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Include runs that are parts of plans
    #[arg(long, conflicts_with = "plan")]
    pub(crate) all: bool,
    /// Only the runs of the plan with this name
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
    /// Name of the run, or a unique prefix
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// Print the result as one JSON document
    #[arg(short = 'J', long)]
    pub(crate) json: bool,
    /// Below each verdict, list all ceilings: the one that binds, and the next ones
    #[arg(long, conflicts_with = "json")]
    pub(crate) explain: bool,
    /// For a plan: list the runs of one point, given by its name or by its values such as streams=5,length=64K
    #[arg(long, value_name = "POINT")]
    pub(crate) point: Option<String>,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Name of the run, or a unique prefix
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// The format
    #[arg(short, long, default_value = "jsonl", value_parser = crate::cmd::format_name())]
    pub(crate) format: Format,
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
    /// Names of runs, or unique prefixes; several are shown side by side, and a plan includes its runs
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) runs: Vec<String>,
    /// Write to this file, - is stdout [default: linerate-RUN.html]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}
