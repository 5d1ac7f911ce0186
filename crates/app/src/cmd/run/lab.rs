//! The world of emulated networks: brought up for the plan, with an agent on every host that it needs, and taken down
//! again however the plan ends.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use linerate_control::HostRef;
use linerate_lab::control_protocol::{Ask, HostStatus, Status};
use linerate_lab::{LabHandle, LabName, StateDir};
use linerate_plan::{Lab, Plan};
use linerate_proto::agent::Token;

use super::super::lab::topology::{Source, lab_name};
use super::super::lab::up::{Tie, start, start_tied};
use super::super::plan::files::topology;
use super::{RunArgs, RunError};
use crate::print;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The port of the agents: each has a network of its own.
const PORT: u16 = 5201;

/// The emulated network of a plan.
pub(super) struct LabWorld {
    place: StateDir,
    name: LabName,
    /// The hosts that flows need.
    hosts: Vec<String>,
    /// The plan's file, beside which topologies stand.
    beside: String,
    keep: bool,
    up: Option<Up>,
}

/// A network that stands.
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
    /// Nothing is brought up yet. The network is named after the plan's run.
    pub(super) fn new(args: &RunArgs, plan: &Plan, run: &str) -> Result<Self, RunError> {
        let short: String = run.chars().take(8).collect();
        Ok(Self {
            place: args.place.open().map_err(|trouble| RunError::failed(trouble.into_text()))?,
            name: lab_name(&format!("plan-{short}"))
                .map_err(|trouble| RunError::failed(trouble.into_text()))?,
            hosts: plan.used_hosts().map(|host| host.name.clone()).collect(),
            beside: plan.files.first().map(|file| file.name.clone()).unwrap_or_default(),
            keep: args.keep_lab,
            up: None,
        })
    }

    /// Makes the network what a point asks for: as it is, by changing links while they run, or anew. The hosts as a
    /// coordinator reaches them, if they are others than before; it is told to `leave` those first.
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
        let found = topology(&lab.topology, &self.beside).map_err(RunError::usage)?;
        let source = Source { file: found.name, text: found.text };
        let set: Vec<String> = lab.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        // One of that name that was left up, by --keep-lab or by a resumed run that was killed, is in the way.
        let old = self.place.lab(self.name.clone());
        if old.is_up() {
            old.down().map_err(RunError::failed)?;
        }
        let secret = secret()?;
        let token = Token::new(&secret).map_err(RunError::failed)?;
        let started = match self.keep {
            true => start(&source, &set, &self.name, &self.place).map(|(lab, status)| (lab, status, None)),
            false => start_tied(&source, &set, &self.name, &self.place)
                .map(|(lab, status, tie)| (lab, status, Some(tie))),
        };
        let (handle, status, tie) = started.map_err(|trouble| {
            // A switch that was killed while it made the network has left a part of it, and an empty file of complaints.
            let _ = self.place.sweep();
            let lab = self.place.lab(self.name.clone());
            if std::fs::metadata(lab.log()).is_ok_and(|about| about.len() == 0) {
                lab.remove_log();
            }
            RunError::failed(trouble.into_text())
        })?;
        Ok(Up { agents: Vec::new(), lab: lab.clone(), handle, status, secret, token, tie })
    }

    /// Removes it. Its switch does that when it is let go; what one that was killed has left is removed here.
    fn down(&mut self) {
        let Some(mut up) = self.up.take() else { return };
        up.agents.clear();
        drop(up.tie.take());
        if let Err(error) = up.handle.down() {
            print::warning(format!("the lab {} is still up: {error}", self.name));
        }
    }

    /// The end of the plan: the network goes, unless it shall be kept.
    pub(super) fn end(mut self) {
        if self.keep && self.up.take().is_some() {
            let name = &self.name;
            print::note(format!("the lab {name} stays up; remove it with: linerate lab down {name}"));
        }
        self.down();
    }
}

impl Up {
    /// Starts the agents; the hosts as a coordinator reaches them.
    fn start_agents(&mut self, names: &[String]) -> Result<Vec<HostRef>, RunError> {
        if self.status.rootless {
            return Err(RunError::failed(
                "plans in the lab need root: a network without root lives where a coordinator cannot reach it",
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

    /// Changes links while they run; false if only a new network will do.
    fn change_to(&mut self, lab: &Lab) -> bool {
        let both = || lab.set.keys().chain(self.lab.set.keys());
        let plain = |key: &&String| self.lab.set.get(*key) == lab.set.get(*key);
        let changed: Vec<&String> = both().filter(|key| !plain(key)).collect();
        // Who sets single directions has to be read in the order of the file.
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
                // In the host's own network: no packet of the coordinator's is on the network under test.
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

/// What only this coordinator and its agents know, as text.
fn secret() -> Result<String, RunError> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes)
        .map_err(|error| RunError::failed(format!("this system has no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// `linerate serve` on a host of the lab, ended on drop.
struct Agent {
    host: String,
    child: Child,
}

impl Agent {
    fn start(lab: &LabHandle, host: &str, secret: &str) -> Result<Self, RunError> {
        let failed = |error| RunError::failed(format!("the agent on host {host} cannot be started: {error}"));
        let program = std::env::current_exe().map_err(RunError::failed)?;
        let mut child = Command::new(&program)
            .args(["lab", "exec", "--run-dir"])
            .arg(lab.run_dir())
            .args(["--lab", lab.name(), host, "--"])
            .arg(&program)
            .args([
                "serve",
                "--json",
                "--port",
                &PORT.to_string(),
                "--archive",
                ":memory:",
                // No file has the token: a coordinator that is killed could not remove it.
                "--agent-token-file",
                "/dev/stdin",
                "--run-dir",
            ])
            // Its journal goes with the lab: what it changes is a setting of a host that is gone then.
            .arg(lab.folder())
            // Ctrl-C is for the coordinator, which still needs its agents then.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        // The end of its input tells it that the token is whole.
        let told = child.stdin.take().map(|mut input| input.write_all(secret.as_bytes()));
        let agent = Self { host: host.to_owned(), child };
        told.transpose().map_err(failed)?;
        Ok(agent)
    }

    /// Waits until it listens. What it tells later nobody reads, which is nothing to it.
    fn listens(&mut self) -> Result<(), RunError> {
        let mut line = String::new();
        let read = self.child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        match read {
            Some(Ok(1..)) => Ok(()),
            _ => Err(RunError::failed(format!("the agent on host {} ended before it listened", self.host))),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
