//! `linerate run`: runs a plan, on real hosts or in an emulated network.

pub(super) mod outcome;
mod screen;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use linerate_archive::Store;
use linerate_control::Sink;
use linerate_model::{Outcome, World};
use linerate_runner::lab::LabSetup;
use linerate_runner::plan::{PlanRequest, PlanRunError, PlanWorld, PreparedPlan, Resume};
use linerate_units::{Span, above_zero};

use super::archived;
use super::lab::{LabError, OwnPrograms, PlaceArgs};
use super::measuring::file_error;
use super::measuring::sinks::Stream;
use super::plan::{print_mistakes, too_long};
use super::token::read_token;
use crate::args::ArchiveArgs;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{archive_sink, print};
use screen::Screen;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A bundled plan (see `linerate plan`), or a plan file; with --resume RUN, the plan of that run
    #[arg(required_unless_present = "resume")]
    plan: Option<String>,
    /// Where to run it: on the hosts in the plan, or in an emulated network [default: hosts, if all of them
    /// have addresses]
    #[arg(long, value_enum)]
    world: Option<WorldName>,
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
    /// Leave the emulated network running
    #[arg(long)]
    keep_lab: bool,
    /// Print the result as one JSON document
    #[arg(short = 'J', long, conflicts_with = "json_stream", help_heading = "Output")]
    json: bool,
    /// Print the event logs of the plan and its runs while running, one JSON object per line
    #[arg(long, help_heading = "Output")]
    json_stream: bool,
    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    /// Also write a report to this file; its extension selects the format: .html (with all runs), .json, .csv,
    /// .md or .txt
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Where a plan is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WorldName {
    /// On real hosts, each with `linerate serve --agent-token-file`
    Hosts,
    /// In an emulated network on this machine
    Lab,
}

impl From<WorldName> for World {
    fn from(name: WorldName) -> Self {
        match name {
            WorldName::Hosts => Self::Hosts,
            WorldName::Lab => Self::Lab,
        }
    }
}

/// Extensions of report files. A new format needs an extension here.
const REPORTS: &str = ".html, .json, .csv, .md, .txt or .svg";

/// Executes the command.
pub(crate) fn run(args: &RunArgs) -> Exit {
    if let Some(trouble) = args.report.as_deref().and_then(|file| file_error("--report", file, REPORTS)) {
        print::error(trouble);
        return Exit::Usage;
    }
    if args.plan.as_deref().or(args.resume.as_deref()) == Some("") {
        print::error("--resume: name the plan, or the run to resume");
        return Exit::Usage;
    }
    let archive = || archived::archive(&args.archive).map(|found| Box::new(found) as Box<dyn Store>);
    let request = PlanRequest {
        plan: args.plan.as_deref(),
        resume: args.resume.as_deref().map(|named| match (&args.plan, named) {
            (Some(_), "") => Resume::Newest,
            (Some(_), run) => Resume::Run(run),
            (None, named) => Resume::named(named),
        }),
        world: args.world.map(World::from),
        topology: args.topology.as_deref(),
        set: &args.set,
        max_time: args.max_time,
        archive: Some(&archive),
    };
    let prepared = match request.prepare() {
        Ok(prepared) => prepared,
        Err(error) => return report(&error),
    };
    let Ok(signals) = Signals::catch() else {
        print::error("cannot catch signals");
        return Exit::Failed;
    };
    let world = match world(args, prepared.world()) {
        Ok(world) => world,
        Err(exit) => return exit,
    };
    carry_out(args, &prepared, world, &signals)
}

/// The hosts or the lab to carry out the plan in; prints an error if they are not available.
fn world(args: &RunArgs, world: World) -> Result<PlanWorld<'static>, Exit> {
    if world == World::Lab {
        let state = args.place.open().map_err(LabError::report)?;
        return Ok(PlanWorld::Lab(LabSetup { state, programs: &OwnPrograms, keep: args.keep_lab }));
    }
    let without = || {
        "the hosts require a token; start `linerate serve --agent-token-file FILE` on each of them and give the \
         same file here"
            .to_owned()
    };
    let token = args.agent_token_file.as_deref().ok_or_else(without).and_then(read_token);
    token.map(PlanWorld::Hosts).map_err(|trouble| {
        print::error(trouble);
        Exit::Usage
    })
}

/// Carries out the plan, prints the result, and returns the exit code.
fn carry_out(args: &RunArgs, prepared: &PreparedPlan<'_>, world: PlanWorld<'_>, signals: &Signals) -> Exit {
    let mut archive = archive_sink::open(args.archive.archive.as_deref());
    let mut stream = args.json_stream.then(Stream::default);
    let mut sinks: Vec<&mut dyn Sink> = Vec::new();
    sinks.extend(archive.as_mut().map(|sink| sink as &mut dyn Sink));
    sinks.extend(stream.as_mut().map(|sink| sink as &mut dyn Sink));
    let mut screen = Screen::new(args.quiet || args.json || args.json_stream);
    let ran = prepared.run(world, &signals.cancel(), sinks, &mut screen);
    screen.end();
    let record = match ran {
        Ok(record) => record,
        Err(error) => return signals.which().map_or_else(|| report(&error), Exit::Interrupted),
    };
    let kept = archive.as_mut().is_some_and(archive_sink::close);
    let kept = kept.then(|| record.run.chars().take(8).collect());
    let printed = outcome::print(args, &record, kept);
    let streamed = stream.is_none_or(|stream| stream.end());
    match (record.outcome, printed) {
        (Some(Outcome::Interrupted), _) => Exit::Interrupted(signals.which().unwrap_or(2)),
        (Some(Outcome::Completed), Exit::Done) if !streamed => Exit::Failed,
        (Some(Outcome::Completed), Exit::Done) if record.judgements.iter().any(|one| !one.holds) => {
            Exit::Broken
        }
        (Some(Outcome::Completed), exit) => exit,
        _ => Exit::Failed,
    }
}

/// Prints why a plan was not carried out, and returns the exit code.
fn report(error: &PlanRunError) -> Exit {
    match error {
        PlanRunError::Hosts(troubles) if !troubles.is_empty() => troubles.iter().for_each(print::error),
        PlanRunError::Plan(error) => print_mistakes(error),
        PlanRunError::TooLong(error) => print::error(too_long(error)),
        error => error.to_string().lines().for_each(print::error),
    }
    if error.needs_correction() { Exit::Usage } else { Exit::Failed }
}
