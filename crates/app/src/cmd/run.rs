//! `linerate run`: runs a plan, on real hosts or in an emulated network.

mod screen;

use std::path::PathBuf;

use clap::Args;
use linerate_control::{ServerTrust, Sink};
use linerate_model::{ArchiveOptions, Outcome, PlanOutputOptions, PlanRecord, World};
use linerate_report::format::{PLAN_EXTENSIONS, PlanSource};
use linerate_report::plan_preview::announcement;
use linerate_report::{Format, TextLayout, plan};
use linerate_runner::lab::LabSetup;
use linerate_runner::plan::{PlanRequest, PlanRunError, PlanWorld, PreparedPlan, Resume};
use linerate_units::{Span, above_zero};

use super::archived::write_export;
use super::lab::OwnPrograms;
use super::measuring::sinks::StdoutLog;
use super::plan::too_long;
use crate::agent_token::read_token;
use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output_format::{check_file, write_out};
use crate::signals::Signals;
use crate::{archive, print, stdout, terminal};
use screen::PlanScreen;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A bundled plan (see `linerate plan`), or a plan file; with --resume RUN, the plan of that run
    #[arg(required_unless_present = "resume")]
    plan: Option<String>,
    /// Where to run it: on the hosts in the plan, or in an emulated network [default: hosts, if all of them
    /// have addresses]
    #[arg(long, value_enum)]
    world: Option<World>,
    /// The network to emulate instead of the plan's: a bundled topology, or a topology file
    #[arg(long, value_name = "TOPOLOGY")]
    topology: Option<String>,
    /// Set a value of the plan, such as test.duration=5s, repeats=3, axis.window=64K,1M or
    /// host.a.address=192.0.2.1; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Refuse the plan if it would take longer [default: max_time of the plan]
    #[arg(long, value_name = "SECONDS", value_parser = above_zero::<Span>)]
    max_time: Option<Span>,
    /// Continue an interrupted plan: the run with this name, or the newest unfinished one of the plan
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,
    /// File with the token of the hosts' agents (linerate serve --agent-token-file)
    #[arg(long, value_name = "FILE")]
    agent_token_file: Option<PathBuf>,
    /// Encrypt the control connections to the hosts' agents with TLS 1.3 (linerate serve --tls), and those between the
    /// hosts; the token shows that they are the right ones
    #[arg(long)]
    tls: bool,
    /// Leave the emulated network running
    #[arg(long)]
    keep_lab: bool,
    #[command(flatten)]
    output: PlanOutputOptions,
    #[command(flatten)]
    archive: ArchiveOptions,
    #[command(flatten)]
    place: RunFolder,
}

/// Carries out the plan, and prints the result.
pub(crate) fn run(args: &RunArgs) -> Result<Exit, CommandError> {
    check_file("--report", args.output.report.as_deref(), PLAN_EXTENSIONS)?;
    if args.plan.as_deref().or(args.resume.as_deref()) == Some("") {
        return Err(CommandError::usage("--resume: name the plan, or the run to resume"));
    }
    let archive = || archive::store(&args.archive);
    let request = PlanRequest {
        plan: args.plan.as_deref(),
        resume: args.resume.as_deref().map(|named| match (&args.plan, named) {
            (Some(_), "") => Resume::Newest,
            (Some(_), run) => Resume::Run(run),
            (None, named) => Resume::named(named),
        }),
        world: args.world,
        topology: args.topology.as_deref(),
        set: &args.set,
        max_time: args.max_time,
        archive: Some(&archive),
    };
    let prepared = request.prepare().map_err(|error| not_run(&error))?;
    let signals = Signals::catch()?;
    let world = world(args, prepared.world())?;
    carry_out(args, &prepared, world, &signals)
}

/// The hosts or the lab to carry out the plan in.
fn world(args: &RunArgs, world: World) -> Result<PlanWorld<'static>, CommandError> {
    if world == World::Lab {
        let lab =
            LabSetup::open(args.place.run_dir.as_deref(), &OwnPrograms).map_err(CommandError::failed)?;
        return Ok(PlanWorld::Lab(LabSetup { keep: args.keep_lab, ..lab }));
    }
    let Some(token) = &args.agent_token_file else {
        return Err(CommandError::usage(
            "the hosts require a token; start `linerate serve --agent-token-file FILE` on each of them and give \
             the same file here",
        ));
    };
    Ok(PlanWorld::Hosts { token: read_token(token)?, tls: args.tls.then_some(ServerTrust::Token) })
}

/// Carries out the plan, prints the result, and returns the exit code.
fn carry_out(
    args: &RunArgs,
    prepared: &PreparedPlan<'_>,
    world: PlanWorld<'_>,
    signals: &Signals,
) -> Result<Exit, CommandError> {
    let mut archived = archive::sink(args.archive.archive.as_deref());
    let mut stream = args.output.json_stream.then(StdoutLog::default);
    let mut sinks: Vec<&mut dyn Sink> = Vec::new();
    sinks.extend(archived.as_mut().map(|sink| sink as &mut dyn Sink));
    sinks.extend(stream.as_mut().map(|sink| sink as &mut dyn Sink));
    let silent = args.output.quiet || args.output.json || args.output.json_stream;
    if !silent {
        print::note(announcement(prepared.plan(), prepared.world()));
    }
    let mut screen = PlanScreen::new(silent);
    let ran = prepared.run(world, &signals.cancel(), sinks, &mut screen);
    screen.end();
    let record = ran.map_err(|error| match signals.which() {
        Some(signal) => Exit::Interrupted(signal).into(),
        None => not_run(&error),
    })?;
    let kept = archived.as_mut().is_some_and(archive::close);
    let kept = kept.then(|| record.run.chars().take(8).collect());
    let printed = print_result(args, &record, kept).unwrap_or_else(CommandError::report);
    let streamed = stream.is_none_or(|stream| stream.end());
    Ok(match (record.outcome, printed) {
        (Some(Outcome::Interrupted), _) => Exit::Interrupted(signals.which().unwrap_or(2)),
        (Some(Outcome::Completed), Exit::Done) if !streamed => Exit::Failed,
        (Some(Outcome::Completed), Exit::Done) if record.judgements.iter().any(|one| !one.holds) => {
            Exit::Broken
        }
        (Some(Outcome::Completed), exit) => exit,
        _ => Exit::Failed,
    })
}

/// Why a plan was not carried out.
fn not_run(error: &PlanRunError) -> CommandError {
    match error {
        PlanRunError::TooLong(error) => too_long(error),
        error => CommandError::of(error.needs_correction(), error),
    }
}

/// Prints the result and writes the report file.
fn print_result(args: &RunArgs, record: &PlanRecord, kept: Option<String>) -> Result<Exit, CommandError> {
    let view = TextLayout { kept, ..terminal::plan_view() };
    let printed = match (args.output.json, args.output.json_stream) {
        (true, _) => stdout::print_json(&plan::document(record)),
        (_, true) => Exit::Done,
        _ => stdout::print(plan::text(record, &view).as_bytes()),
    };
    let Some(path) = &args.output.report else { return Ok(printed) };
    let format = Format::of_file(path).unwrap_or_default();
    if format.needs_log() {
        // It contains the runs too, which are loaded from the archive. The other formats do not need it.
        write_export(&args.archive, &record.run, format, None, Some(path))?;
    } else {
        let mut out = Vec::new();
        let source = PlanSource { record, events: &[], runs: &|_| Ok(None) };
        format.write_plan(source, &mut out).map_err(CommandError::failed)?;
        write_out(Some(path), &out)?;
    }
    Ok(printed)
}
