//! The emulated network of a plan: created for it, with an agent on every host that it uses, and removed in
//! whichever way the plan ends.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use linerate_control::{HostRef, Token};
use linerate_lab::control_protocol::{HostStatus, Status};
use linerate_lab::{LabHandle, LabName};
use linerate_plan::{Plan, PlanLab, Source};

use super::agent::LabAgent;
use super::live_changes::{live_changes, settings_of};
use super::{LabRunError, LabSetup, Tie, start, start_tied};
use crate::plan::{PlanNotice, PlanObserver, topology_of_plan};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Port of the agents, the same on all hosts, as each has its own network namespace.
const PORT: u16 = 5201;

/// The emulated network of a plan.
pub(crate) struct PlanNetwork<'a> {
    setup: LabSetup<'a>,
    name: LabName,
    /// The hosts that the flows use.
    hosts: Vec<String>,
    /// The plan's file, which relative paths of topologies refer to.
    relative_to: String,
    up: Option<Up>,
}

/// A running network.
struct Up {
    agents: Vec<LabAgent>,
    lab: PlanLab,
    /// The topology that it was created from.
    source: Source,
    handle: LabHandle,
    status: Status,
    /// The token of its agents, as text.
    secret: String,
    token: Token,
    tie: Option<Tie>,
}

impl<'a> PlanNetwork<'a> {
    /// Prepares a network named after the plan's run, without creating it.
    pub(crate) fn new(setup: LabSetup<'a>, plan: &Plan, run: &str) -> Result<Self, LabRunError> {
        let short: String = run.chars().take(8).collect();
        Ok(Self {
            setup,
            name: format!("plan-{short}").parse()?,
            hosts: plan.used_hosts().map(|host| host.name.clone()).collect(),
            relative_to: plan.files.first().map(|file| file.name.clone()).unwrap_or_default(),
            up: None,
        })
    }

    /// Configures the network as a point requires: keeps it, changes links while they run, or creates a new
    /// one. Returns the hosts for a coordinator if they are new; calls `leave` before it removes the old ones.
    pub(crate) fn reconfigure_for(
        &mut self,
        lab: &PlanLab,
        leave: &mut dyn FnMut(),
        observer: &mut dyn PlanObserver,
    ) -> Result<Option<Vec<HostRef>>, LabRunError> {
        if let Some(up) = &mut self.up {
            if up.lab == *lab || up.change_to(lab) {
                return Ok(None);
            }
            leave();
            self.down(observer);
        }
        let up = self.bring_up(lab, observer)?;
        let furnished = self.up.insert(up).start_agents(&self.setup, &self.hosts);
        match furnished {
            Ok(_) => observer.lab(Some(self.name.as_str())),
            Err(_) => self.down(observer),
        }
        furnished.map(Some)
    }

    fn bring_up(&self, lab: &PlanLab, observer: &mut dyn PlanObserver) -> Result<Up, LabRunError> {
        let source = topology_of_plan(&lab.topology, &self.relative_to).map_err(LabRunError::NotFound)?;
        let set = settings_of(&lab.set);
        let (state, programs) = (&self.setup.state, self.setup.programs);
        // Remove a network of that name that is still running: one that was kept, or that of a killed run that is
        // resumed.
        let old = state.lab(self.name.clone());
        if old.is_up() {
            old.down()?;
        }
        let secret = secret()?;
        let token = Token::new(&secret).map_err(|error| LabRunError::Token(error.into()))?;
        // Remove the remains of a killed lab first, so that its names are free.
        for text in state.sweep()? {
            observer.notice(&PlanNotice::KilledLab(text));
        }
        let started = match self.setup.keep {
            true => {
                start(programs, &source, &set, &self.name, state).map(|(lab, status)| (lab, status, None))
            }
            false => start_tied(programs, &source, &set, &self.name, state)
                .map(|(lab, status, tie)| (lab, status, Some(tie))),
        };
        let (handle, status, tie) = started.inspect_err(|_| {
            // A switch that was killed while it created the network has left parts of it, and an empty log.
            let _ = state.sweep();
            let lab = state.lab(self.name.clone());
            if std::fs::metadata(lab.log()).is_ok_and(|about| about.len() == 0) {
                lab.remove_log();
            }
        })?;
        Ok(Up { agents: Vec::new(), lab: lab.clone(), source, handle, status, secret, token, tie })
    }

    /// Removes the network. A switch does that itself when its tie is dropped; the rest of a killed one is
    /// removed here.
    fn down(&mut self, observer: &mut dyn PlanObserver) {
        let Some(mut up) = self.up.take() else { return };
        observer.lab(None);
        up.agents.clear();
        drop(up.tie.take());
        if let Err(error) = up.handle.down() {
            observer.notice(&PlanNotice::LabLeft { lab: self.name.clone(), error });
        }
    }

    /// Why the network has ended by itself; absent while it has not.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let why = self.up.as_mut()?.tie.as_mut()?.ended()?;
        Some(format!("the emulated network has ended: {why}"))
    }

    /// Ends the plan: removes the network unless it is kept.
    pub(crate) fn end(mut self, observer: &mut dyn PlanObserver) {
        if self.setup.keep && self.up.take().is_some() {
            observer.notice(&PlanNotice::LabKept(self.name.clone()));
        }
        self.down(observer);
    }
}

impl Up {
    /// Starts the agents; returns the hosts for a coordinator.
    fn start_agents(&mut self, setup: &LabSetup<'_>, names: &[String]) -> Result<Vec<HostRef>, LabRunError> {
        if self.status.rootless {
            return Err(LabRunError::Rootless);
        }
        for host in names {
            self.agents.push(LabAgent::start(setup.programs, &self.handle, host, PORT, &self.secret)?);
        }
        for agent in &mut self.agents {
            agent.listens()?;
        }
        self.hosts(names)
    }

    /// Changes links while they run; false if a new network is necessary.
    fn change_to(&mut self, lab: &PlanLab) -> bool {
        if lab.topology != self.lab.topology {
            return false;
        }
        let Some(asks) = live_changes(&self.source, &self.lab.set, &lab.set) else { return false };
        if asks.iter().any(|ask| self.handle.ask(ask, ANSWER_TIMEOUT).is_err()) {
            return false;
        }
        self.lab = lab.clone();
        true
    }

    fn hosts(&self, names: &[String]) -> Result<Vec<HostRef>, LabRunError> {
        let host = |name: &String| {
            let found = self.status.hosts.iter().find(|host| host.name == *name);
            let host = found.ok_or_else(|| LabRunError::NoHost(name.clone()))?;
            Ok(HostRef {
                name: name.clone(),
                // Over the host's own loopback, so that the coordinator's packets do not use the network under
                // test.
                address: "127.0.0.1".to_owned(),
                port: Some(PORT),
                test_address: host.address.split('/').next().map(str::to_owned),
                token: self.token.clone(),
                tls: None,
                netns: Some(Arc::new(namespace(host)?)),
            })
        };
        names.iter().map(host).collect()
    }
}

fn namespace(host: &HostStatus) -> Result<OwnedFd, LabRunError> {
    let path = match host.netns.starts_with('/') {
        true => PathBuf::from(&host.netns),
        false => PathBuf::from("/run/netns").join(&host.netns),
    };
    let opened = File::open(&path).map(OwnedFd::from);
    opened.map_err(|error| LabRunError::HostNetwork { host: host.name.clone(), error })
}

/// A random token for this coordinator and its agents, as text.
fn secret() -> Result<String, LabRunError> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(LabRunError::NoRandomNumbers)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
