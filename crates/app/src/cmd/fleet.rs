//! `linerate fleet`, `linerate schedule` and `linerate mesh`: a calendar of tests between many hosts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use linerate_fleet::{
    AgentCommand, AgentRunOptions, CoordinatorOptions, FleetAgentService, FleetCalendar, FleetCommand,
    FleetNotice, FleetService, MeshRequest, ScheduleCommand, TryOut, TryOutConfig, TryOutFolder,
    TryOutOptions, now, take_down,
};
use linerate_model::ArchiveOptions;
use linerate_model::calendar::FleetAnswer;
use linerate_report::fleet;
use signal_hook::consts::SIGHUP;

use crate::agent_token::read_token;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::signals::{SERVICE_STOP_SIGNALS, Signals};
use crate::{print, stdout, terminal};

/// Where the calendar is, and how to print the answer.
#[derive(Debug, Args)]
struct CalendarOptions {
    /// Print as JSON
    #[arg(short = 'J', long, global = true)]
    json: bool,
    #[command(flatten)]
    archive: ArchiveOptions,
    #[command(flatten)]
    place: TryOutFolder,
}

/// A command about a calendar.
#[derive(Debug, Args)]
pub(crate) struct CalendarArgs<C: Subcommand> {
    #[command(subcommand)]
    command: C,
    #[command(flatten)]
    options: CalendarOptions,
}

#[derive(Debug, Args)]
pub(crate) struct MeshArgs {
    #[command(flatten)]
    request: MeshRequest,
    #[command(flatten)]
    options: CalendarOptions,
}

impl CalendarOptions {
    fn open(&self) -> Result<FleetCalendar, CommandError> {
        let archive = self.place.archive(self.archive.archive.as_deref())?;
        Ok(FleetCalendar::open(archive.as_deref())?)
    }

    fn print(&self, answer: &FleetAnswer) -> Exit {
        if self.json {
            return stdout::print_json(&fleet::document(answer));
        }
        stdout::print(fleet::text(answer, &TimeZone::system(), &terminal::stdout_view()).as_bytes())
    }
}

pub(crate) fn schedule(args: &CalendarArgs<ScheduleCommand>) -> Result<Exit, CommandError> {
    Ok(args.options.print(&args.command.execute(&mut args.options.open()?, now())?))
}

pub(crate) fn mesh(args: &MeshArgs) -> Result<Exit, CommandError> {
    Ok(args.options.print(&args.request.execute(&mut args.options.open()?, now())?))
}

pub(crate) fn run(args: &CalendarArgs<FleetCommand>) -> Result<Exit, CommandError> {
    let CalendarOptions { archive, place, .. } = &args.options;
    if let Some(answer) = args.command.answer(place, archive.archive.as_deref(), now())? {
        return Ok(args.options.print(&answer));
    }
    match &args.command {
        FleetCommand::Run(run) => carry_out(run, place.given_archive(archive.archive.as_deref())?),
        FleetCommand::Up(up) => try_out(up, place),
        FleetCommand::Down => take_down(&place.folder()?).map_err(CommandError::failed).map(|()| Exit::Done),
        FleetCommand::Check(_) | FleetCommand::Status | FleetCommand::Alarms(_) => Ok(Exit::Done),
    }
}

/// The coordinator: until a signal arrives.
fn carry_out(args: &CoordinatorOptions, archive: Option<String>) -> Result<Exit, CommandError> {
    print::developers_log();
    let signals = Signals::catch_these(&SERVICE_STOP_SIGNALS, |_| ())?;
    let reload = Arc::new(AtomicBool::new(false));
    let noticed = Arc::clone(&reload);
    Signals::hand_over(&[SIGHUP], move |_| noticed.store(true, Ordering::Relaxed))?;
    let token = read_token(&args.agent_token_file)?;
    let config = args.config(token, archive, notify)?;
    let mut service = FleetService::open(config)?;
    let mut between = |service: &mut FleetService| {
        if reload.swap(false, Ordering::Relaxed) {
            match service.describe_by(&args.file) {
                Ok(()) => print::note("the file of the fleet was read again"),
                Err(error) => {
                    CommandError::from(error).report();
                    print::warning("the fleet was not changed, as its file has mistakes");
                }
            }
        }
    };
    service.run(&signals.cancel(), &mut between)?;
    Ok(signals.which().map_or(Exit::Done, Exit::Interrupted))
}

pub(crate) fn agent(args: &CalendarArgs<AgentCommand>) -> Result<Exit, CommandError> {
    match &args.command {
        AgentCommand::Run(run) => be_agent(run, &args.options.archive),
        other => Ok(args.options.print(&other.execute(&mut args.options.open()?, now())?)),
    }
}

/// The agent of this host: until a signal arrives.
fn be_agent(args: &AgentRunOptions, archive: &ArchiveOptions) -> Result<Exit, CommandError> {
    print::developers_log();
    let signals = Signals::catch_these(&SERVICE_STOP_SIGNALS, |_| ())?;
    let token = read_token(&args.agent_token_file)?;
    let config = args.config(token, archive.archive.clone(), |notice| {
        if notice.is_warning() { print::warning(notice) } else { print::note(notice) }
    })?;
    let mut service = FleetAgentService::open(config).map_err(CommandError::failed)?;
    service.run(&signals.cancel());
    Ok(signals.which().map_or(Exit::Done, Exit::Interrupted))
}

fn notify(notice: &FleetNotice) {
    if notice.is_warning() { print::warning(notice) } else { print::note(notice) }
}

fn try_out(args: &TryOutOptions, place: &TryOutFolder) -> Result<Exit, CommandError> {
    let program = std::env::current_exe().map_err(CommandError::failed)?;
    let config = TryOutConfig { program, folder: place.folder()?, engines: args.engines(), notify };
    let up = |in_foreground| print::note(TryOut::introduction(&config, in_foreground));
    if args.detach {
        TryOut::start_detached(&config).map_err(CommandError::failed)?;
        up(false);
        return Ok(Exit::Done);
    }
    let signals = Signals::catch()?;
    let mut fleet = TryOut::start(&config).map_err(CommandError::failed)?;
    up(true);
    fleet.run(&signals.cancel())?;
    Ok(signals.which().map_or(Exit::Done, Exit::Interrupted))
}
