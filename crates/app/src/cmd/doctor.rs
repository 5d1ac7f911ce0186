//! `linerate doctor`: capabilities of this host, and settings that limit results.

mod backlog;
mod calibration;
mod check;
mod facts;
mod interface;
mod leftovers;
mod machine;
mod slot;
mod sysctls;

use std::collections::BTreeMap;
use std::path::Path;

use linerate_control::{ControlError, Restored, leftovers, restore_leftovers};
use linerate_model::Calibration;
use linerate_sock::features::{self, Feature};
use linerate_units::{Bitrate, Span};
use serde::Serialize;

use super::page::{self, Ink, Page};
use super::path_values::{link_rate, round_trip};
use super::settings_folder::RunFolder;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{print, terminal};
use check::{Check, Section, Status};
use facts::{Facts, Route};
use sysctls::Target;

/// Version of the JSON document.
const SCHEMA: &str = "linerate.doctor/1";
/// The rate to judge for if no interface reports its own.
const USUAL_RATE_BPS: u64 = 1_000_000_000;

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

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    judged_for: Judged,
    checks: Vec<&'a Check>,
    features: BTreeMap<&'static str, Ability<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<&'a Calibration>,
}

#[derive(Serialize)]
struct Judged {
    rate_bps: f64,
    rtt_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bdp_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Ability<'a> {
    available: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
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
    let route = args.host.as_deref().map(Route::gather).transpose();
    let facts = Facts::gather();
    let target = Target { rate: args.link.unwrap_or_else(|| usual_rate(&facts)), rtt: args.rtt };
    let mut sections = judge(&facts, route.as_ref().ok().and_then(Option::as_ref), target);
    sections.insert(0, leftovers::section(left.as_ref()));
    sections.retain(|section| !section.checks.is_empty());
    sections.push(calibration::section(calibration.as_deref()));
    let features = features::features();
    let printed = if args.json {
        print_json(&sections, &features, target, calibration.as_deref())
    } else {
        let view = terminal::stdout_view();
        let page = Page::new(view.width, view.colour);
        page::print(text(page, &sections, &features, target, args.verbose).as_bytes())
    };
    match route {
        Ok(_) => printed,
        Err(error) => {
            print::error(format!(
                "no route to {}: {}",
                args.host.as_deref().unwrap_or_default(),
                error.source
            ));
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
    match calibration::measure(signals.stop()) {
        Ok(found) => Ok(Some(Box::new(found))),
        Err(ControlError::Stopped) => Err(Exit::Interrupted(signals.which().unwrap_or(2))),
        Err(error) => {
            print::error(error);
            Err(Exit::Failed)
        }
    }
}

fn usual_rate(facts: &Facts) -> Bitrate {
    let running = facts.interfaces.iter().filter(|interface| interface.link.running);
    let fastest = running.filter_map(|interface| interface.link.speed_bps).max();
    Bitrate::from_bps(fastest.unwrap_or(USUAL_RATE_BPS) as f64).unwrap_or_default()
}

fn judge(facts: &Facts, route: Option<&Route>, target: Target) -> Vec<Section> {
    let mut sections: Vec<Section> = route.map(interface::route).into_iter().collect();
    sections.push(sysctls::windows(facts, target));
    sections.push(sysctls::tcp(facts));
    sections.push(backlog::section(facts));
    sections.extend(facts.interfaces.iter().map(|found| interface::section(found, facts.machine.cores)));
    sections.push(machine::section(&facts.machine));
    sections
}

fn print_json(
    sections: &[Section],
    features: &[Feature],
    target: Target,
    calibration: Option<&Calibration>,
) -> Exit {
    let bdp_bytes = target.bdp().map(linerate_units::Bytes::get);
    page::print_json(&Document {
        schema: SCHEMA,
        judged_for: Judged { rate_bps: target.rate.bps(), rtt_ns: target.rtt.as_ns(), bdp_bytes },
        checks: sections.iter().flat_map(|section| &section.checks).collect(),
        features: features
            .iter()
            .map(|found| {
                (found.name, Ability { available: found.available, detail: found.detail.as_deref() })
            })
            .collect(),
        calibration,
    })
}

fn text(mut page: Page, sections: &[Section], features: &[Feature], target: Target, verbose: bool) -> String {
    let checks = || sections.iter().flat_map(|section| &section.checks);
    let count = |status| checks().filter(|check| check.status == status).count();
    let bdp = target.bdp().map_or_else(String::new, |bdp| format!("with a BDP of {bdp}"));
    page.remark(
        0,
        Ink::Plain,
        &format!(
            "{} good, {} to note, {} bad, for one flow of {} over {}{bdp}; change the path with --link and \
             --rtt.",
            count(Status::Good),
            count(Status::Note),
            count(Status::Bad),
            target.rate,
            target.rtt
        ),
    );
    let width = checks().map(|check| check.id.chars().count()).max().unwrap_or_default();
    for section in sections {
        page.heading(&section.title);
        for check in &section.checks {
            show(&mut page, check, width, verbose);
        }
    }
    page.heading("Kernel features");
    let width = features.iter().map(|feature| feature.name.chars().count()).max().unwrap_or_default();
    for feature in features {
        let (ink, word) = if feature.available { (Ink::Good, "yes") } else { (Ink::Faint, "no") };
        let detail = feature.detail.as_deref().unwrap_or_default();
        page.row(
            &[(Ink::Plain, ""), (ink, word), (Ink::Plain, feature.name), (Ink::Faint, detail)],
            &[0, 4, width],
        );
    }
    page.into_text()
}

fn show(page: &mut Page, check: &Check, width: usize, verbose: bool) {
    let ink = match check.status {
        Status::Good => Ink::Good,
        Status::Note => Ink::Warning,
        Status::Bad => Ink::Bad,
    };
    let cells = [
        (Ink::Plain, ""),
        (ink, check.status.word()),
        (Ink::Plain, check.id.as_str()),
        (Ink::Strong, &check.value),
    ];
    page.row(&cells, &[0, 4, width]);
    if verbose || check.status != Status::Good {
        page.remark(8, Ink::Faint, &check.text);
    }
    if let Some(remedy) = &check.remedy {
        page.verbatim(8, &format!("$ {remedy}"));
    }
}
