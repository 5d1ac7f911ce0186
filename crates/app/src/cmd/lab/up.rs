//! `linerate lab up`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_emu::topology::Topology;
use linerate_lab::control_protocol::Status;
use linerate_lab::{LabHandle, LabName, StateDir};

use super::super::page;
use super::switch::{Assignment, SwitchStatus};
use super::topology::{LabError, Source, find, lab_name, read};
use super::{Backend, UpArgs, kernel, status};
use crate::exit::Exit;
use crate::{print, terminal};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(args: &UpArgs) -> Exit {
    match bring_up(args) {
        Ok(exit) => exit,
        Err(trouble) => trouble.report(),
    }
}

fn bring_up(args: &UpArgs) -> Result<Exit, LabError> {
    let source = find(&args.topology)?;
    let topology = read(&source, &args.set)?;
    let name = args.name.clone().unwrap_or_else(|| topology.name.clone());
    match (args.backend, args.dry_run) {
        (Backend::Kernel, _) => return kernel::up(&topology, &name, args),
        (Backend::Own, true) => return Ok(page::print(plan(&topology, &name).as_bytes())),
        (Backend::Own, false) => {}
    }
    let place = args.place.open()?;
    let (lab, status) = start(&source, &args.set, &lab_name(&name)?, &place)?;
    if args.json {
        return Ok(page::print_json(&status));
    }
    let view = terminal::stdout_view();
    let printed = page::print(status::text(&status, view.width, view.colour).as_bytes());
    let hosts: Vec<&str> = status.hosts.iter().map(|host| host.name.as_str()).collect();
    if let [first, .., last] = hosts.as_slice() {
        let lab = lab.name();
        print::note(format!(
            "\nup; next, for example:\n  linerate lab exec --lab {lab} {last} -- linerate serve &\n  \
             linerate lab exec --lab {lab} {first} -- linerate test {last}\n  linerate lab down {lab}"
        ));
    }
    Ok(printed)
}

/// Starts the switch of a lab in a new process and waits until the network is up.
pub(in crate::cmd) fn start(
    source: &Source,
    set: &[String],
    name: &LabName,
    place: &StateDir,
) -> Result<(LabHandle, Status), LabError> {
    let (lab, status, _) = start_as(false, source, set, name, place)?;
    Ok((lab, status))
}

/// As [`start`]. The lab ends when this process ends in any way, or when the returned tie is dropped.
pub(in crate::cmd) fn start_tied(
    source: &Source,
    set: &[String],
    name: &LabName,
    place: &StateDir,
) -> Result<(LabHandle, Status, Tie), LabError> {
    let (lab, status, child) = start_as(true, source, set, name, place)?;
    Ok((lab, status, Tie(child)))
}

/// Keeps a tied lab alive.
#[derive(Debug)]
pub(in crate::cmd) struct Tie(Child);

impl Drop for Tie {
    fn drop(&mut self) {
        drop(self.0.stdout.take());
        // The switch removes everything before it ends.
        let _ = self.0.wait();
    }
}

fn start_as(
    tied: bool,
    source: &Source,
    set: &[String],
    name: &LabName,
    place: &StateDir,
) -> Result<(LabHandle, Status, Child), LabError> {
    // Remove the remains of a killed lab first, so that its names are free.
    for text in place.sweep().map_err(LabError::failed)? {
        print::note(text);
    }
    let lab = place.lab(name.clone());
    let log = place.log(name).map_err(LabError::failed)?;
    let program = std::env::current_exe().map_err(LabError::failed)?;
    let mut child = Command::new(program)
        .args(["lab", "switch", "--name", name.as_str(), "--run-dir"])
        .arg(place.run_dir())
        .args(tied.then_some("--tied"))
        // Waiting frames use much memory; large pages make copying cheaper.
        .env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| LabError::failed(format!("the switch could not be started: {error}")))?;
    let assignment = Assignment { file: source.file.clone(), text: source.text.clone(), set: set.to_vec() };
    match read_status(&mut child, &assignment) {
        Some(SwitchStatus::Ready) => {}
        Some(SwitchStatus::Failed(why)) => {
            let _ = child.wait();
            lab.remove_log();
            return Err(LabError::failed(why));
        }
        None => {
            let ended = child.wait().map(|status| format!(" ({status})")).unwrap_or_default();
            let log = lab.log();
            let trouble = format!("the switch ended before the network was ready{ended}");
            if std::fs::metadata(&log).is_ok_and(|about| about.len() > 0) {
                return Err(LabError::failed(format!("{trouble}; its output is in {}", log.display())));
            }
            lab.remove_log();
            return Err(LabError::failed(trouble));
        }
    }
    let status = lab.status(ANSWER_TIMEOUT).map_err(LabError::failed)?;
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

/// Description of what `up` would create.
fn plan(topology: &Topology, name: &str) -> String {
    let mut text = format!("lab {name}, topology {}, seed {}\n", topology.name, topology.seed);
    for host in &topology.hosts {
        let (v4, v6) = (host.v4, host.v6);
        text += &format!(
            "network namespace linerate-{name}-{}: {}/{} {}/{}\n",
            host.name, v4.0, v4.1, v6.0, v6.1
        );
    }
    for link in &topology.links {
        for (side, direction) in link.directions.iter().enumerate() {
            let rate = direction.rate.map_or_else(|| "endless".to_owned(), |rate| rate.to_string());
            text += &format!(
                "port {}>{}: {rate}, buffer {}, delay {}, MTU {}\n",
                link.ends[side],
                link.ends[1 - side],
                direction.buffer,
                direction.delay,
                direction.mtu
            );
        }
    }
    text
}
