//! The process that is the switch of a lab. It gets its assignment from standard input, and tells its starter on
//! standard output when the network is up.

use std::io::{Read, Write};

use linerate_lab::{Lab, LabError, LabHandle, LabName, StateDir, Stopper};
use linerate_plan::Source;
use linerate_sock::{Mono, poll, thread};
use linerate_units::Bytes;
use serde::{Deserialize, Serialize};

use super::LabRunError;
use super::start::read_topology;

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

/// The switch of a lab, in the process that [`super::LabPrograms::switch`] started.
#[derive(Debug)]
pub struct LabSwitch {
    lab: Lab,
    handle: LabHandle,
}

impl LabSwitch {
    /// Reads the assignment from standard input and creates the network, whose packets in transit may take so much
    /// `memory`; absent for a quarter of what this process may take. The process must have a single thread.
    ///
    /// # Errors
    /// The network cannot be created. The starter knows the reason.
    pub fn create(name: &LabName, state: &StateDir, memory: Option<Bytes>) -> Result<Self, LabRunError> {
        match create_lab(name, state, memory) {
            Ok(lab) => Ok(Self { lab, handle: state.lab(name.clone()) }),
            Err(why) => {
                refuse(&why);
                Err(LabRunError::NotCreated(why))
            }
        }
    }

    /// The handle that stops it, as a signal should.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.lab.stopper()
    }

    /// Tells the starter that the network is up, and forwards packets until it is stopped. A tied switch also ends
    /// when the reader of its standard output is gone. Removes the network at the end.
    ///
    /// # Errors
    /// The kernel refuses to poll or to start a thread, or something cannot be removed.
    pub fn run(self, tied: bool) -> Result<(), LabError> {
        let stopper = self.stopper();
        if !send_status(&SwitchStatus::Ready) {
            // The parent process is gone, and nothing else knows of this lab.
            stopper.stop();
        }
        if tied {
            let watch = move || {
                // Nothing can be read from stdout; the wait ends when its reader is gone.
                let _ = poll::wait_for(&std::io::stdout(), poll::Interest::READ, Mono::FAR);
                stopper.stop();
            };
            thread::spawn("tie", watch)?;
        }
        self.lab.run(|error| refuse(&error.to_string()))?;
        // The process that the lab was tied to may have been killed and cannot remove the log.
        self.handle.remove_log();
        Ok(())
    }
}

/// Tells the starter of this process that there will be no network, or none any more, and why.
pub fn refuse(why: &str) {
    // If the starter is gone, nobody waits for the network.
    let _ = send_status(&SwitchStatus::Failed(why.to_owned()));
}

fn create_lab(name: &LabName, state: &StateDir, memory: Option<Bytes>) -> Result<Lab, String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let assignment: Assignment = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let source = Source { name: assignment.file, text: assignment.text };
    let topology = read_topology(&source, &assignment.set).map_err(|error| error.to_string())?;
    Lab::create(topology, name, state, memory).map_err(|error| with_causes(&error))
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

/// Whether the message could be written.
fn send_status(status: &SwitchStatus) -> bool {
    let Ok(line) = serde_json::to_string(status) else { return false };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}
