//! `linerate lab up`.

use linerate_emu::topology::Topology;
use linerate_lab::control_protocol::Status;
use linerate_lab::{LabHandle, LabName, StateDir};
use linerate_plan::Source;
use linerate_runner::lab;

use super::super::page;
use super::programs::OwnPrograms;
use super::topology::{LabError, find, lab_name, read};
use super::{Backend, UpArgs, kernel, status};
use crate::exit::Exit;
use crate::{print, terminal};

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

/// Removes the remains of killed labs, so that their names are free, and brings up a lab.
pub(super) fn start(
    source: &Source,
    set: &[String],
    name: &LabName,
    place: &StateDir,
) -> Result<(LabHandle, Status), LabError> {
    for text in place.sweep().map_err(LabError::failed)? {
        print::note(text);
    }
    lab::start(&OwnPrograms, source, set, name, place).map_err(LabError::failed)
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
