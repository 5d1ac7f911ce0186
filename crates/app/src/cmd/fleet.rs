//! `linerate fleet`, `linerate schedule` and `linerate mesh`: a calendar of tests between many hosts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use linerate_fleet::{
    CoordinatorOptions, FleetCalendar, FleetCommand, FleetNotice, FleetService, FleetServiceConfig,
    MeshRequest, ScheduleCommand, TryOut, TryOutConfig, TryOutOptions, fleet_file, now, take_down,
};
use linerate_model::ArchiveOptions;
use linerate_model::calendar::FleetAnswer;
use linerate_report::fleet;
use linerate_runner::agent_trust;
use signal_hook::consts::SIGHUP;

use crate::agent_token::read_token;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::signals::{SERVICE_STOP_SIGNALS, Signals, ending};
use crate::{print, stdout, terminal};

/// Where the calendar is, and how to print the answer.
#[derive(Debug, Args)]
struct CalendarOptions {
    /// Print as JSON
    #[arg(short = 'J', long, global = true)]
    json: bool,
    #[command(flatten)]
    archive: ArchiveOptions,
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
        Ok(FleetCalendar::open(self.archive.archive.as_deref())?)
    }

    fn print(&self, answer: &FleetAnswer) -> Exit {
        if self.json {
            return stdout::print_json(&fleet::document(answer));
        }
        stdout::print(fleet::text(answer, &TimeZone::system(), &terminal::stdout_view()).as_bytes())
    }
}

pub(crate) fn schedule(args: &CalendarArgs<ScheduleCommand>) -> Result<Exit, CommandError> {
    let answer = args.command.execute(&mut args.options.open()?, now())?;
    Ok(args.options.print(&answer))
}

pub(crate) fn mesh(args: &MeshArgs) -> Result<Exit, CommandError> {
    let answer = args.request.execute(&mut args.options.open()?, now())?;
    Ok(args.options.print(&answer))
}

pub(crate) fn run(args: &CalendarArgs<FleetCommand>) -> Result<Exit, CommandError> {
    let options = &args.options;
    match &args.command {
        FleetCommand::Check(checked) => {
            let inventory = fleet_file::load(&checked.file).map_err(CommandError::usage)?;
            Ok(options.print(&FleetAnswer::Preview(Box::new(inventory.preview()))))
        }
        FleetCommand::Run(run) => carry_out(run, &options.archive),
        FleetCommand::Status(place) => {
            let location = place.archive(options.archive.archive.as_deref())?;
            let mut calendar = FleetCalendar::open(location.as_deref())?;
            let status = calendar.status(now())?;
            Ok(options.print(&FleetAnswer::Status(Box::new(status))))
        }
        FleetCommand::Alarms(filter) => {
            let alarms = options.open()?.alarms(filter.open)?;
            Ok(options.print(&FleetAnswer::Alarms(alarms)))
        }
        FleetCommand::Up(up) => try_out(up),
        FleetCommand::Down(place) => {
            let folder = place.folder()?;
            take_down(&folder).map_err(CommandError::failed).map(|()| Exit::Done)
        }
    }
}

/// The coordinator: until a signal arrives.
fn carry_out(args: &CoordinatorOptions, archive: &ArchiveOptions) -> Result<Exit, CommandError> {
    print::developers_log();
    let signals = Signals::catch_these(&SERVICE_STOP_SIGNALS)?;
    let reload = Arc::new(AtomicBool::new(false));
    let noticed = Arc::clone(&reload);
    Signals::hand_over(&[SIGHUP], move |_| noticed.store(true, Ordering::Relaxed))
        .map_err(|error| CommandError::failed(format!("cannot wait for signals: {error}")))?;
    let config = FleetServiceConfig {
        archive: archive.archive.clone(),
        inventory: fleet_file::load(&args.file).map_err(CommandError::usage)?,
        token: read_token(&args.agent_token_file)?,
        tls: agent_trust(&args.tls).map_err(CommandError::usage)?,
        notify: tell,
    };
    let mut service = FleetService::open(config)?;
    let mut between = |service: &mut FleetService| {
        if reload.swap(false, Ordering::Relaxed) {
            let read = fleet_file::load(&args.file).map_err(CommandError::usage);
            match read.and_then(|inventory| Ok(service.describe(inventory)?)) {
                Ok(()) => print::note("the file of the fleet was read again"),
                Err(error) => {
                    error.report();
                    print::warning("the fleet was not changed, as its file has mistakes");
                }
            }
        }
    };
    service.run(&signals.cancel(), &mut between)?;
    Ok(signals.which().map_or(Exit::Done, Exit::Interrupted))
}

fn tell(notice: &FleetNotice) {
    if notice.is_warning() { print::warning(notice) } else { print::note(notice) }
}

fn try_out(args: &TryOutOptions) -> Result<Exit, CommandError> {
    let folder = args.place.folder()?;
    let program = std::env::current_exe().map_err(CommandError::failed)?;
    let config = TryOutConfig { program, folder, notify: tell };
    let up = |ends| print::note(TryOut::introduction(&config.folder, ends));
    if args.detach {
        TryOut::start_detached(&config).map_err(CommandError::failed)?;
        up("linerate fleet down");
        return Ok(Exit::Done);
    }
    let signals = Signals::catch_these(&ending())?;
    let mut fleet = TryOut::start(&config).map_err(CommandError::failed)?;
    up("Ctrl-C");
    fleet.run(&signals.cancel())?;
    Ok(signals.which().map_or(Exit::Done, Exit::Interrupted))
}
