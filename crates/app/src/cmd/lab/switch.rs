//! The switch process of a lab.

use std::io::{Read, Write};

use linerate_emu::topology::Topology;
use linerate_lab::Lab;
use linerate_sock::{Mono, poll};
use serde::{Deserialize, Serialize};

use super::SwitchArgs;
use super::topology::{LabError, Source, lab_name, read};
use crate::exit::Exit;
use crate::signals::Signals;

/// Task of the switch, read from standard input.
#[derive(Serialize, Deserialize)]
pub(super) struct Assignment {
    pub(super) file: String,
    pub(super) text: String,
    pub(super) set: Vec<String>,
}

/// Written to standard output when the network is up, or has failed.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SwitchStatus {
    Ready,
    Failed(String),
}

pub(super) fn run(args: &SwitchArgs) -> Exit {
    match create_lab(args) {
        Ok(lab) => {
            let exit = carry(lab, args.tied);
            remove_log(args, exit);
            exit
        }
        Err(why) => {
            send_status(&SwitchStatus::Failed(why));
            Exit::Failed
        }
    }
}

fn create_lab(args: &SwitchArgs) -> Result<Lab, String> {
    let mut told = String::new();
    std::io::stdin().read_to_string(&mut told).map_err(|error| error.to_string())?;
    let told: Assignment = serde_json::from_str(&told).map_err(|error| error.to_string())?;
    let source = Source { file: told.file, text: told.text };
    let topology: Topology = read(&source, &told.set).map_err(LabError::into_text)?;
    let place = args.place.open().map_err(LabError::into_text)?;
    let name = lab_name(&args.name).map_err(LabError::into_text)?;
    Lab::create(topology, &name, &place).map_err(|error| with_causes(&error))
}

/// Removes the log of the lab. The process that the lab was tied to may have been killed and cannot do it.
fn remove_log(args: &SwitchArgs, exit: Exit) {
    if exit == Exit::Done
        && let (Ok(place), Ok(name)) = (args.place.open(), lab_name(&args.name))
    {
        place.lab(name).remove_log();
    }
}

/// An error and its causes in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}

fn carry(lab: Lab, tied: bool) -> Exit {
    let stopper = lab.stopper();
    let at_signals = lab.stopper();
    if let Err(error) = Signals::on_each(move || at_signals.stop()) {
        send_status(&SwitchStatus::Failed(format!("cannot wait for signals: {error}")));
        return Exit::Failed;
    }
    if !send_status(&SwitchStatus::Ready) {
        // The parent process is gone, and nothing else knows of this lab.
        stopper.stop();
    }
    if tied {
        let stopper = stopper.clone();
        let watch = move || {
            // Nothing can be read from stdout; the wait ends when its reader is gone.
            let _ = poll::wait_for(&std::io::stdout(), poll::Interest::READ, Mono::FAR);
            stopper.stop();
        };
        if let Err(error) = linerate_sock::thread::spawn("tie", watch) {
            send_status(&SwitchStatus::Failed(format!("cannot monitor the lab: {}", error.source)));
            return Exit::Failed;
        }
    }
    match lab.run() {
        Ok(()) => Exit::Done,
        Err(error) => {
            tracing::error!(%error, "the switch ended");
            Exit::Failed
        }
    }
}

/// Whether the message could be written.
fn send_status(news: &SwitchStatus) -> bool {
    let Ok(line) = serde_json::to_string(news) else { return false };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}
