//! `linerate doctor`: capabilities of this host, and settings that limit results.

use std::path::Path;

use linerate_control::{ControlError, Restored, leftovers, restore_leftovers};
use linerate_model::Calibration;
use linerate_report::doctor::{DoctorDocument, text};
use linerate_runner::calibration;
use linerate_runner::doctor::{CheckRequest, check_host};
use linerate_theory::typed::{link_rate, round_trip};
use linerate_units::{Bitrate, Span};

use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{print, stdout, terminal};

/// Show what this host can do, and which of its settings limit results
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Also check the path to this host; nothing is sent to it
    host: Option<String>,
    /// Rate that one flow should reach [default: that of the fastest interface, or 1 Gb/s]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link_rate)]
    link: Option<Bitrate>,
    /// Round-trip time at which it should reach it
    #[arg(long, value_name = "TIME", default_value = "100ms", allow_hyphen_values = true, value_parser = round_trip)]
    rtt: Span,
    /// First measure the limits of this host, for about ten seconds, and store them for later results
    #[arg(long)]
    calibrate: bool,
    /// Also explain why good settings matter
    #[arg(short, long)]
    verbose: bool,
    /// Restore settings of this host that an agent has changed and not restored because it was killed
    #[arg(long, conflicts_with_all = ["host", "json"])]
    restore_settings: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunFolder,
}

/// Checks this host and prints the results.
pub(crate) fn run(args: &DoctorArgs) -> Result<Exit, CommandError> {
    let folder = args.run.settings().map_err(CommandError::failed);
    if args.restore_settings {
        return restore(&folder?);
    }
    let left = folder.and_then(|folder| leftovers(&folder).map_err(CommandError::failed));
    // Unreadable leftovers cause a warning; the other checks continue.
    let left = left.unwrap_or_else(|error| {
        print::warning(error.into_text());
        None
    });
    let calibration = if args.calibrate { Some(calibrate()?) } else { crate::calibration::stored() };
    let (host, rate, rtt) = (args.host.as_deref(), args.link, args.rtt);
    let found = check_host(CheckRequest { host, rate, rtt, leftovers: left.as_ref(), calibration });
    let printed = match args.json {
        true => stdout::print_json(&DoctorDocument::of(&found.checkup)),
        false => stdout::print(text(terminal::stdout_page(), &found.checkup, args.verbose).as_bytes()),
    };
    match found.no_route {
        None => Ok(printed),
        Some(error) => {
            let host = host.unwrap_or_default();
            Err(CommandError::failed(format!("no route to {host}: {}", error.source)))
        }
    }
}

/// Restores what a killed agent has left changed.
fn restore(folder: &Path) -> Result<Exit, CommandError> {
    let restored = restore_leftovers(folder).map_err(CommandError::failed)?;
    if restored == Restored::default() {
        print::note("no agent has left changed settings on this host");
    }
    restored.put_back.iter().for_each(|setting| print::note(format!("restored {setting}")));
    restored.left.iter().for_each(print::error);
    Ok(if restored.left.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Measures the limits of this host.
fn calibrate() -> Result<Box<Calibration>, CommandError> {
    let signals = Signals::catch()?;
    let mut report = |what: &str| match terminal::watched() {
        true => print::live(&format!("calibrating: {what}")),
        false => print::note(format!("calibrating: {what}")),
    };
    let measured = calibration::measure(&signals.cancel(), &mut report);
    if terminal::watched() {
        print::live("");
    }
    let (found, file) = measured.map_err(|error| match error {
        ControlError::Stopped => Exit::Interrupted(signals.which().unwrap_or(2)).into(),
        error => CommandError::failed(error),
    })?;
    print::note(format!("kept in {}", file.display()));
    Ok(Box::new(found))
}
