//! `linerate doctor`: capabilities of this host, and settings that limit results.

use std::path::Path;

use linerate_control::{ControlError, Restored, leftovers, restore_leftovers};
use linerate_model::Calibration;
use linerate_report::doctor::{DoctorDocument, text};
use linerate_runner::calibration;
use linerate_runner::doctor::{CheckRequest, check_host};
use linerate_theory::typed::{link_rate, round_trip};
use linerate_units::{Bitrate, Span};

use super::page::{self, Page};
use super::settings_folder::RunFolder;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{print, terminal};

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
pub(crate) fn run(args: &DoctorArgs) -> Exit {
    let folder = args.run.settings();
    if args.restore_settings {
        return restore(folder.as_deref());
    }
    let left = match folder.as_deref().map(leftovers).transpose() {
        Ok(left) => left.flatten(),
        // Unreadable leftovers cause a warning; the other checks continue.
        Err(error) => {
            print::warning(error);
            None
        }
    };
    let calibration = match calibration(args) {
        Ok(calibration) => calibration,
        Err(exit) => return exit,
    };
    let (host, rate, rtt) = (args.host.as_deref(), args.link, args.rtt);
    let found = check_host(CheckRequest { host, rate, rtt, leftovers: left.as_ref(), calibration });
    let printed = if args.json {
        page::print_json(&DoctorDocument::of(&found.checkup))
    } else {
        let view = terminal::stdout_view();
        page::print(text(Page::new(view.width, view.colour), &found.checkup, args.verbose).as_bytes())
    };
    match found.no_route {
        None => printed,
        Some(error) => {
            print::error(format!("no route to {}: {}", host.unwrap_or_default(), error.source));
            Exit::Failed
        }
    }
}

/// Restores what a killed agent has left changed.
fn restore(folder: Option<&Path>) -> Exit {
    let restored = match folder.map_or_else(|| Ok(Restored::default()), restore_leftovers) {
        Ok(restored) => restored,
        Err(error) => {
            print::error(error);
            return Exit::Failed;
        }
    };
    if restored == Restored::default() {
        print::note("no agent has left changed settings on this host");
    }
    restored.put_back.iter().for_each(|setting| print::note(format!("restored {setting}")));
    restored.left.iter().for_each(print::error);
    if restored.left.is_empty() { Exit::Done } else { Exit::Failed }
}

/// The calibration of this host; measured now if requested.
fn calibration(args: &DoctorArgs) -> Result<Option<Box<Calibration>>, Exit> {
    if !args.calibrate {
        return Ok(crate::calibration::stored());
    }
    let signals = Signals::catch().map_err(|error| {
        print::error(format!("cannot catch signals: {error}"));
        Exit::Failed
    })?;
    let mut tell = |what: &str| match terminal::watched() {
        true => print::live(&format!("calibrating: {what}")),
        false => print::note(format!("calibrating: {what}")),
    };
    let measured = calibration::measure(&signals.cancel(), &mut tell);
    if terminal::watched() {
        print::live("");
    }
    match measured {
        Ok((found, file)) => {
            print::note(format!("kept in {}", file.display()));
            Ok(Some(Box::new(found)))
        }
        Err(ControlError::Stopped) => Err(Exit::Interrupted(signals.which().unwrap_or(2))),
        Err(error) => {
            print::error(error);
            Err(Exit::Failed)
        }
    }
}
