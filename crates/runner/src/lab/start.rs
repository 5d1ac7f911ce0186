//! Brings up an emulated network.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use linerate_emu::topology::{self, Override, Topology};
use linerate_lab::control_protocol::Status;
use linerate_lab::{LabHandle, LabName, StateDir};
use linerate_plan::Source;
use linerate_sock::Mono;
use linerate_sock::poll::{self, Interest};

use super::switch::{Assignment, SwitchStatus};
use super::{LabPrograms, LabRunError, TopologyMistakes};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Parses a topology and applies settings such as `link.b.delay=5ms`.
///
/// # Errors
/// A setting or the file is wrong.
pub fn read_topology(source: &Source, set: &[String]) -> Result<Topology, TopologyMistakes> {
    let settings: Vec<Override> = set.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    Ok(topology::read(&source.text, &source.name, &settings)?)
}

/// Starts the switch of a lab in a new process and waits until the network is up. It stays up when this process
/// ends. What a killed lab has left is in the way until [`StateDir::sweep`] is called.
///
/// # Errors
/// The switch cannot be started, or cannot create the network.
pub fn start(
    programs: &dyn LabPrograms,
    source: &Source,
    set: &[String],
    name: &LabName,
    state: &StateDir,
) -> Result<(LabHandle, Status), LabRunError> {
    let (lab, status, _) = start_as(false, programs, source, set, name, state)?;
    Ok((lab, status))
}

/// As [`start`]. The lab ends when this process ends in any way, or when the returned tie is dropped.
///
/// # Errors
/// As [`start`].
pub fn start_tied(
    programs: &dyn LabPrograms,
    source: &Source,
    set: &[String],
    name: &LabName,
    state: &StateDir,
) -> Result<(LabHandle, Status, Tie), LabRunError> {
    let (lab, status, child) = start_as(true, programs, source, set, name, state)?;
    Ok((lab, status, Tie(child)))
}

/// Keeps a tied lab alive.
#[derive(Debug)]
pub struct Tie(Child);

impl Tie {
    /// Why the lab has ended or is about to; absent while it has not. The switch says it before it removes a host.
    pub(super) fn ended(&mut self) -> Option<String> {
        let stdout = self.0.stdout.as_mut()?;
        if !poll::wait_for(stdout, Interest::READ, Mono(0)).unwrap_or(true) {
            return None;
        }
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        match (read, serde_json::from_str(&line)) {
            (Ok(_), Ok(SwitchStatus::Failed(why))) => Some(why),
            // It was killed, and its standard output is closed.
            _ => self.0.wait().ok().map(|status| status.to_string()),
        }
    }
}

impl Drop for Tie {
    fn drop(&mut self) {
        drop(self.0.stdout.take());
        // The switch removes everything before it ends.
        let _ = self.0.wait();
    }
}

fn start_as(
    tied: bool,
    programs: &dyn LabPrograms,
    source: &Source,
    set: &[String],
    name: &LabName,
    state: &StateDir,
) -> Result<(LabHandle, Status, Child), LabRunError> {
    let lab = state.lab(name.clone());
    let log = state.log(name)?;
    let mut command = programs.switch(&lab, tied).map_err(LabRunError::SwitchNotStarted)?;
    let mut child = command
        // Waiting frames use much memory; large pages make copying cheaper.
        .env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(LabRunError::SwitchNotStarted)?;
    let assignment = Assignment { file: source.name.clone(), text: source.text.clone(), set: set.to_vec() };
    match read_status(&mut child, &assignment) {
        Some(SwitchStatus::Ready) => {}
        Some(SwitchStatus::Failed(why)) => {
            let _ = child.wait();
            lab.remove_log();
            return Err(LabRunError::NotCreated(why));
        }
        None => {
            let status = child.wait().ok();
            let log = lab.log();
            if std::fs::metadata(&log).is_ok_and(|about| about.len() > 0) {
                return Err(LabRunError::SwitchEnded { status, log: Some(log) });
            }
            lab.remove_log();
            return Err(LabRunError::SwitchEnded { status, log: None });
        }
    }
    let status = lab.status(ANSWER_TIMEOUT)?;
    Ok((lab, status, child))
}

fn read_status(child: &mut Child, assignment: &Assignment) -> Option<SwitchStatus> {
    let text = serde_json::to_string(assignment).ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let mut line = String::new();
    // The switch writes a single line. The pipe must stay open after that, as a tied lab ends with it.
    BufReader::new(child.stdout.as_mut()?).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}
