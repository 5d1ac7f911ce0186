//! Emulated networks: created for the plan, with an agent on every host that it uses, and removed in whichever
//! way the plan ends.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use linerate_control::HostRef;
use linerate_lab::control_protocol::{Ask, HostStatus, Status};
use linerate_lab::{LabHandle, LabName, StateDir};
use linerate_plan::{Lab, Plan};
use linerate_proto::agent::Token;
use linerate_runner::lab::{LabPrograms, Tie, start, start_tied};

use super::super::lab::OwnPrograms;
use super::super::plan::files::topology;
use super::{RunArgs, RunError};
use crate::print;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Port of the agents, the same on all hosts, as each has its own network namespace.
const PORT: u16 = 5201;

/// The emulated network of a plan.
pub(super) struct LabWorld {
    place: StateDir,
    name: LabName,
    /// The hosts that the flows use.
    hosts: Vec<String>,
    /// The plan's file, which relative paths of topologies refer to.
    relative_to: String,
    keep: bool,
    up: Option<Up>,
}

/// A running network.
struct Up {
    agents: Vec<Agent>,
    lab: Lab,
    handle: LabHandle,
    status: Status,
    /// The token of its agents, as text.
    secret: String,
    token: Token,
    tie: Option<Tie>,
}

impl LabWorld {
    /// Prepares a network named after the plan's run, without creating it.
    pub(super) fn new(args: &RunArgs, plan: &Plan, run: &str) -> Result<Self, RunError> {
        let short: String = run.chars().take(8).collect();
        Ok(Self {
            place: args.place.open().map_err(|trouble| RunError::failed(trouble.into_text()))?,
            name: format!("plan-{short}").parse().map_err(RunError::failed)?,
            hosts: plan.used_hosts().map(|host| host.name.clone()).collect(),
            relative_to: plan.files.first().map(|file| file.name.clone()).unwrap_or_default(),
            keep: args.keep_lab,
            up: None,
        })
    }

    /// Configures the network as a point requires: keeps it, changes links while they run, or creates a new
    /// one. Returns the hosts for a coordinator if they are new; calls `leave` before it removes the old ones.
    pub(super) fn reconfigure_for(
        &mut self,
        lab: &Lab,
        leave: &mut dyn FnMut(),
    ) -> Result<Option<Vec<HostRef>>, RunError> {
        if let Some(up) = &mut self.up {
            if up.lab == *lab || up.change_to(lab) {
                return Ok(None);
            }
            leave();
            self.down();
        }
        let up = self.bring_up(lab)?;
        let furnished = self.up.insert(up).start_agents(&self.hosts);
        if furnished.is_err() {
            self.down();
        }
        furnished.map(Some)
    }

    fn bring_up(&self, lab: &Lab) -> Result<Up, RunError> {
        let source = topology(&lab.topology, &self.relative_to).map_err(|error| {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            RunError::usage(format!("{error}{cause}"))
        })?;
        let set: Vec<String> = lab.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        // Remove a network of that name that is still running, after --keep-lab or from a killed run that is
        // resumed.
        let old = self.place.lab(self.name.clone());
        if old.is_up() {
            old.down().map_err(RunError::failed)?;
        }
        let secret = secret()?;
        let token = Token::new(&secret).map_err(RunError::failed)?;
        // Remove the remains of a killed lab first, so that its names are free.
        for text in self.place.sweep().map_err(RunError::failed)? {
            print::note(text);
        }
        let (ours, name, place) = (&OwnPrograms, &self.name, &self.place);
        let started = match self.keep {
            true => start(ours, &source, &set, name, place).map(|(lab, status)| (lab, status, None)),
            false => start_tied(ours, &source, &set, name, place)
                .map(|(lab, status, tie)| (lab, status, Some(tie))),
        };
        let (handle, status, tie) = started.map_err(|trouble| {
            // A switch that was killed while it created the network has left parts of it, and an empty log.
            let _ = self.place.sweep();
            let lab = self.place.lab(self.name.clone());
            if std::fs::metadata(lab.log()).is_ok_and(|about| about.len() == 0) {
                lab.remove_log();
            }
            RunError::failed(trouble)
        })?;
        Ok(Up { agents: Vec::new(), lab: lab.clone(), handle, status, secret, token, tie })
    }

    /// Removes the network. A switch does that itself when its tie is dropped; the rest of a killed one is
    /// removed here.
    fn down(&mut self) {
        let Some(mut up) = self.up.take() else { return };
        up.agents.clear();
        drop(up.tie.take());
        if let Err(error) = up.handle.down() {
            print::warning(format!("the lab {} is still up: {error}", self.name));
        }
    }

    /// Ends the plan: removes the network unless it is kept.
    pub(super) fn end(mut self) {
        if self.keep && self.up.take().is_some() {
            let name = &self.name;
            print::note(format!("the lab {name} stays up; remove it with: linerate lab down {name}"));
        }
        self.down();
    }
}

impl Up {
    /// Starts the agents; returns the hosts for a coordinator.
    fn start_agents(&mut self, names: &[String]) -> Result<Vec<HostRef>, RunError> {
        if self.status.rootless {
            return Err(RunError::failed(
                "plans in the lab need root: a coordinator cannot reach the network of a lab without root",
            ));
        }
        for host in names {
            self.agents.push(Agent::start(&self.handle, host, &self.secret)?);
        }
        for agent in &mut self.agents {
            agent.listens()?;
        }
        self.hosts(names)
    }

    /// Changes links while they run; false if a new network is necessary.
    fn change_to(&mut self, lab: &Lab) -> bool {
        let both = || lab.set.keys().chain(self.lab.set.keys());
        let plain = |key: &&String| self.lab.set.get(*key) == lab.set.get(*key);
        let changed: Vec<&String> = both().filter(|key| !plain(key)).collect();
        // Settings of single directions depend on their order in the file.
        let live = |key: &&String| {
            key.starts_with("link.") && key.split('.').count() == 3 && lab.set.contains_key(*key)
        };
        if lab.topology != self.lab.topology
            || !changed.iter().all(live)
            || both().any(|key| key.contains(".from."))
        {
            return false;
        }
        let asks: Vec<Ask> = changed
            .iter()
            .filter_map(|key| {
                let (target, name) = key.rsplit_once('.')?;
                let changes = vec![(name.to_owned(), lab.set.get(*key)?.clone())];
                Some(Ask::Set { target: target.to_owned(), changes })
            })
            .collect();
        if asks.iter().any(|ask| self.handle.ask(ask, ANSWER_TIMEOUT).is_err()) {
            return false;
        }
        self.lab = lab.clone();
        true
    }

    fn hosts(&self, names: &[String]) -> Result<Vec<HostRef>, RunError> {
        let host = |name: &String| {
            let found = self.status.hosts.iter().find(|host| host.name == *name);
            let host = found.ok_or_else(|| RunError::failed(format!("the lab has no host {name}")))?;
            Ok(HostRef {
                name: name.clone(),
                // Over the host's own loopback, so that the coordinator's packets do not use the network under
                // test.
                address: "127.0.0.1".to_owned(),
                port: Some(PORT),
                test_address: host.address.split('/').next().map(str::to_owned),
                token: self.token.clone(),
                netns: Some(Arc::new(namespace(host)?)),
            })
        };
        names.iter().map(host).collect()
    }
}

fn namespace(host: &HostStatus) -> Result<OwnedFd, RunError> {
    let path = match host.netns.starts_with('/') {
        true => PathBuf::from(&host.netns),
        false => PathBuf::from("/run/netns").join(&host.netns),
    };
    let opened = File::open(&path).map(OwnedFd::from);
    opened.map_err(|error| RunError::failed(format!("the network of host {}: {error}", host.name)))
}

/// A random token for this coordinator and its agents, as text.
fn secret() -> Result<String, RunError> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes)
        .map_err(|error| RunError::failed(format!("this system cannot provide random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// `linerate serve` on a host of the lab, terminated on drop.
struct Agent {
    host: String,
    child: Child,
}

impl Agent {
    fn start(lab: &LabHandle, host: &str, secret: &str) -> Result<Self, RunError> {
        let failed = |error| RunError::failed(format!("the agent on host {host} cannot be started: {error}"));
        let mut child = OwnPrograms
            .agent(lab, host, PORT)
            .map_err(failed)?
            // In its own process group, as the coordinator still needs its agents after Ctrl-C.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        // End of file marks the token as complete.
        let told = child.stdin.take().map(|mut input| input.write_all(secret.as_bytes()));
        let agent = Self { host: host.to_owned(), child };
        told.transpose().map_err(failed)?;
        Ok(agent)
    }

    /// Waits for the first line of output, which means that it listens. Later output is not read, which the
    /// agent tolerates.
    fn listens(&mut self) -> Result<(), RunError> {
        let mut line = String::new();
        let read = self.child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        match read {
            Some(Ok(1..)) => Ok(()),
            _ => Err(RunError::failed(format!(
                "the agent on host {} ended before it was listening",
                self.host
            ))),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
