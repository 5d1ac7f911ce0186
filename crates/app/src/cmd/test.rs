//! `linerate test`.

use std::path::PathBuf;

use clap::Args;
use linerate_control::HostRef;
use linerate_model::{
    ArchiveOptions, Event, Investigation, LabelOptions, Outcome, RunRecord, TestOutputOptions, TestSpec,
    TlsOptions,
};
use linerate_report::Format;
use linerate_report::format::RUN_EXTENSIONS;
use linerate_runner::{agent_trust, target};

use super::measuring::{self, MeasureRequest};
use crate::agent_token::read_token;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output_format::{self, and_report, check_file};
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The server: a name or an address, with or without :PORT
    #[arg(value_name = "HOST")]
    host: String,
    /// Port of the server [default: 5201]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Measure from this agent instead of from here: a name or an address, with or without :PORT
    #[arg(long, value_name = "AGENT", requires = "agent_token_file", help_heading = "Other hosts")]
    from: Option<String>,
    /// File with the token of the agent
    #[arg(long, value_name = "FILE", requires = "from", help_heading = "Other hosts")]
    agent_token_file: Option<PathBuf>,
    /// When the verdict leaves a question open, make further short runs to answer it: UDP above and below the
    /// rate, a paced run, many connections, packets of different sizes, reads of different sizes; =reads makes
    /// only the last of them, whatever the verdict
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "open", conflicts_with = "from", help_heading = "Other runs")]
    investigate: Option<Investigation>,
    /// Send this file (with --upload), or write what arrives to a new one (with --download); the disk is measured first
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "from", help_heading = "Traffic")]
    file: Option<PathBuf>,
    #[command(flatten)]
    spec: TestSpec,
    #[command(flatten)]
    tls: TlsOptions,
    #[command(flatten)]
    output: TestOutputOptions,
    #[command(flatten)]
    labels: LabelOptions,
    #[command(flatten)]
    archive: ArchiveOptions,
}

/// Measures, and prints the result.
pub(crate) fn run(args: &TestArgs) -> Result<Exit, CommandError> {
    args.spec.check().and_then(|()| args.spec.check_client()).map_err(CommandError::usage)?;
    check_file("--report", args.output.report.as_deref(), RUN_EXTENSIONS)?;
    let output = &args.output;
    let request = MeasureRequest {
        host: &args.host,
        port: args.port,
        tls: &args.tls,
        spec: args.spec.clone(),
        file: args.file.as_deref(),
        agent: args.agent()?,
        investigation: args.investigate,
        output: output.live(),
        labels: args.labels.labels(),
        archive: &args.archive,
        keep_log: output.report.as_deref().and_then(Format::of_file).is_some_and(Format::needs_log),
    };
    measuring::run(request, |record, events, kept| print(args, record, events, kept))
}

impl TestArgs {
    /// The agent of `--from`, if given.
    fn agent(&self) -> Result<Option<HostRef>, CommandError> {
        let (Some(from), Some(file)) = (&self.from, &self.agent_token_file) else { return Ok(None) };
        let found = target(from, None).map_err(|error| CommandError::usage(format!("--from: {error}")));
        let (address, port) = found?;
        let token = read_token(file)?;
        let tls = agent_trust(&self.tls).map_err(CommandError::usage)?;
        Ok(Some(HostRef { name: from.clone(), address, port, test_address: None, token, tls, netns: None }))
    }
}

/// Prints the result and writes the report file, even if the archive failed.
fn print(args: &TestArgs, record: &RunRecord, events: &[Event], kept: Option<String>) -> Exit {
    let mut view = terminal::stdout_view();
    view.kept = kept;
    view.explain = args.output.explain;
    view.all_streams = args.output.all_streams;
    let measured = record.flows.iter().any(|flow| flow.receiver.is_some() || flow.progress.is_some());
    let mut printed = Exit::Done;
    if args.output.json {
        printed = output_format::to_stdout(record, &[], Format::Json, &view);
    } else if !args.output.json_stream && (measured || record.outcome == Some(Outcome::Interrupted)) {
        printed = output_format::to_stdout(record, &[], Format::Text, &view);
    }
    and_report(printed, record, events, args.output.report.as_deref())
}
