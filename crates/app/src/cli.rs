//! The commands: what `linerate` and each of its commands is called, and which module of `cmd` executes it.

use clap::{CommandFactory, Parser, Subcommand};

use crate::cmd::{
    archive, archived, completions, doctor, guardian, health, manual, report, serve, stand_in, sweep, test,
};
#[cfg(feature = "full")]
use crate::cmd::{check, compare, envelope, fleet, import, lab, plan, responsiveness, run, token};
use crate::command_error::CommandError;
use crate::config_file::ConfiguredServe;
use crate::core_build::VERSION;
use crate::exit::Exit;

/// How fast a network really is, how fast it could be, and what holds it back
// The last of several equal options counts, as in iperf3: aliases and scripts add options to a command.
#[derive(Debug, Parser)]
#[command(
    name = "linerate",
    version = VERSION,
    about,
    max_term_width = 100,
    after_help = exit_codes(),
    args_override_self = true
)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The last lines of the help.
fn exit_codes() -> String {
    let codes: Vec<String> =
        Exit::MEANINGS.iter().map(|(code, meaning)| format!("{code} {meaning}")).collect();
    format!("Exit codes: {}.", codes.join("; "))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server
    Serve(Box<serve::ServeArgs>),
    /// Check whether a server answers, without a test: exit code 0 if it does
    Health(health::HealthArgs),
    /// Say who may use the web pages of `linerate serve --web`
    #[cfg(feature = "full")]
    Token(token::TokenArgs),
    /// Measure the path to a server and report what limits it
    Test(Box<test::TestArgs>),
    /// Measure latency and throughput over message sizes and draw the curve
    Sweep(Box<sweep::SweepArgs>),
    /// Measure how many round trips per minute a path allows while it carries load (RPM)
    #[cfg(feature = "full")]
    Responsiveness(Box<responsiveness::ResponsivenessArgs>),
    /// Show what a described path can carry, and what it needs for that
    #[cfg(feature = "full")]
    Envelope(Box<envelope::EnvelopeArgs>),
    /// Check whether published results are physically possible: results of other programs, or typed figures
    #[cfg(feature = "full")]
    Check(Box<check::CheckArgs>),
    /// Show what this host can do, and which of its settings limit results
    Doctor(doctor::DoctorArgs),
    /// Emulate a network on this machine, for linerate and other programs
    #[cfg(feature = "full")]
    Lab(Box<lab::LabArgs>),
    /// Check a plan of many measurements and show what it would do
    #[cfg(feature = "full")]
    Plan(plan::PlanArgs),
    /// Compare configurations: archived runs, result files, or plans that were run
    #[cfg(feature = "full")]
    Compare(compare::CompareArgs),
    /// Run a plan, on real hosts or in an emulated network, and judge the results
    #[cfg(feature = "full")]
    Run(Box<run::RunArgs>),
    /// Measure between many hosts again and again: the file of a fleet, its coordinator, its state
    #[cfg(feature = "full")]
    Fleet(Box<fleet::CalendarArgs<linerate_fleet::FleetCommand>>),
    /// Add tests to the calendar of a fleet, list and cancel them, and ask why one does not run
    #[cfg(feature = "full")]
    Schedule(Box<fleet::CalendarArgs<linerate_fleet::ScheduleCommand>>),
    /// Be an agent that carries out its part of a fleet's calendar by itself, and enrol or revoke such agents
    #[cfg(feature = "full")]
    Agent(Box<fleet::CalendarArgs<linerate_fleet::AgentCommand>>),
    /// Show who sees whom how well in a mesh of a fleet
    #[cfg(feature = "full")]
    Mesh(fleet::MeshArgs),
    /// Replace iperf3: same options, output and exit codes
    Iperf3(stand_in::ToolArgs),
    /// Replace iperf 2
    Iperf(stand_in::ToolArgs),
    /// Replace ttcp and PCATTCP
    Ttcp(stand_in::ToolArgs),
    /// Replace NetPIPE (NPtcp)
    Netpipe(stand_in::ToolArgs),
    /// Replace netperf, the client
    Netperf(stand_in::ToolArgs),
    /// Replace the server of netperf (netserver)
    Netserver(stand_in::ToolArgs),
    /// Replace NTttcp
    Ntttcp(stand_in::ToolArgs),
    /// Replace nuttcp
    Nuttcp(stand_in::ToolArgs),
    /// Create links to this program with the names of the tools that it replaces
    InstallLinks(stand_in::InstallLinksArgs),
    /// Archive results of other programs as runs: iperf3, iperf 2, ttcp, nuttcp, NTttcp, NetPIPE, netperf, and our own
    #[cfg(feature = "full")]
    Import(import::ImportArgs),
    /// List archived runs
    History(archived::HistoryArgs),
    /// Show an archived run again
    Show(archived::ShowArgs),
    /// Write an archived run in another format
    Export(archived::ExportArgs),
    /// Keep the archive small, copy it, and tag runs
    Archive(archive::ArchiveCommandArgs),
    /// Create one page from archived runs or a plan: verdicts, tables, charts and the raw data in one HTML file
    Report(report::ReportArgs),
    /// Print shell completions, which also know runs, plans, labs and servers
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
    GuardSettings(guardian::GuardArgs),
}

impl Cli {
    /// Executes the command, and prints why if it cannot.
    pub(crate) fn execute(self, configured: Option<ConfiguredServe>) -> Exit {
        self.command.execute(configured).unwrap_or_else(CommandError::report)
    }
}

impl Command {
    fn execute(self, configured: Option<ConfiguredServe>) -> Result<Exit, CommandError> {
        match self {
            Self::Serve(args) => serve::run(&args, configured),
            Self::Health(args) => health::run(&args),
            #[cfg(feature = "full")]
            Self::Token(args) => token::run(&args),
            Self::Test(args) => test::run(&args),
            Self::Sweep(args) => sweep::run(&args),
            #[cfg(feature = "full")]
            Self::Responsiveness(args) => responsiveness::run(&args),
            #[cfg(feature = "full")]
            Self::Envelope(args) => envelope::run(&args),
            #[cfg(feature = "full")]
            Self::Check(args) => check::run(&args),
            Self::Doctor(args) => doctor::run(&args),
            #[cfg(feature = "full")]
            Self::Lab(args) => lab::run(&args),
            #[cfg(feature = "full")]
            Self::Plan(args) => plan::run(&args),
            #[cfg(feature = "full")]
            Self::Compare(args) => compare::run(&args),
            #[cfg(feature = "full")]
            Self::Run(args) => run::run(&args),
            #[cfg(feature = "full")]
            Self::Fleet(args) => fleet::run(&args),
            #[cfg(feature = "full")]
            Self::Schedule(args) => fleet::schedule(&args),
            #[cfg(feature = "full")]
            Self::Agent(args) => fleet::agent(&args),
            #[cfg(feature = "full")]
            Self::Mesh(args) => fleet::mesh(&args),
            Self::Iperf3(args) => stand_in::run("iperf3", &args),
            Self::Iperf(args) => stand_in::run("iperf", &args),
            Self::Ttcp(args) => stand_in::run("ttcp", &args),
            Self::Netpipe(args) => stand_in::run("NPtcp", &args),
            Self::Netperf(args) => stand_in::run("netperf", &args),
            Self::Netserver(args) => stand_in::run("netserver", &args),
            Self::Ntttcp(args) => stand_in::run("ntttcp", &args),
            Self::Nuttcp(args) => stand_in::run("nuttcp", &args),
            Self::InstallLinks(args) => stand_in::install(&args),
            #[cfg(feature = "full")]
            Self::Import(args) => import::run(&args),
            Self::History(args) => archived::history(&args),
            Self::Show(args) => archived::show(&args),
            Self::Export(args) => archived::export(&args),
            Self::Archive(args) => archive::run(&args),
            Self::Report(args) => report::run(&args),
            Self::Completions { shell } => completions::script(shell),
            Self::Man { command } => manual::man(Cli::command(), &command),
            Self::GuardSettings(args) => guardian::run(&args),
        }
    }
}
