//! The coordinator: has runs carried out between other hosts, several at once, started together.
//!
//! It reaches every host as an agent (`linerate serve --agent-token-file`), checks all of them before the first packet,
//! holds a place in the queue of each, has the runs of a group prepared, and starts them by each host's own clock. What
//! the agents tell is written to a log for each run, in the order in which it comes.

mod check;
mod clocks;
mod group;
mod host;
mod prepare_next;
mod progress;
mod reservation;
mod settings;
mod start_lead;
mod test_bed;

pub use group::{FlowEnd, FlowStart, RunEvent};
pub use settings::HostSettings;
pub use test_bed::{After, FlowJob, Group, HostError, HostRef, HostState, Target, TestBed};

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use linerate_proto::agent::{About, Input};
use linerate_sock::{Mono, SockError, clock, thread};

use crate::error::ControlError;
use crate::log::Log;
use host::Host;
use prepare_next::Ahead;
use start_lead::Lead;

/// Places in queues are kept for groups that follow each other so closely; then those who wait there get theirs.
const RESERVATION_GRACE: Duration = Duration::from_secs(1);

/// The hosts of a rig, connected.
///
/// A connection that nobody uses for some seconds is closed by the agent; the next group opens it again.
pub struct Coordinator {
    test_bed: TestBed,
    hosts: Vec<Host>,
    epoch: Mono,
    start_lead: Lead,
    /// Since when places are held.
    held_since: Option<Mono>,
    /// They are held because settings are in force.
    settings_hold: bool,
    /// Hosts that are not as the settings want them, and why: nothing is measured there.
    unfit: BTreeMap<usize, String>,
    /// What is prepared of the next group.
    prepared: Option<Ahead>,
}

impl Coordinator {
    /// Connects to every host at once, proves to each that it may ask it, and estimates the offset of each clock.
    ///
    /// # Errors
    /// Every trouble of every host; then nothing is connected.
    pub fn connect(test_bed: TestBed, stop: &AtomicBool) -> Result<Self, Vec<HostError>> {
        let epoch = clock::now();
        let hosts: Vec<Host> = test_bed.hosts.iter().map(|_| Host::default()).collect();
        let mut coordinator = Self {
            test_bed,
            hosts,
            epoch,
            start_lead: Lead::default(),
            held_since: None,
            settings_hold: false,
            unfit: BTreeMap::new(),
            prepared: None,
        };
        let mut troubles = coordinator.reach(&(0..coordinator.hosts.len()).collect::<Vec<_>>(), stop);
        troubles.extend(check::one_server_one_name(&coordinator.test_bed, &coordinator.standings()));
        if troubles.is_empty() { Ok(coordinator) } else { Err(troubles) }
    }

    /// What each host said of itself, in the order of the rig; absent for one that is not reached at the moment.
    #[must_use]
    pub fn standings(&self) -> Vec<Option<HostState>> {
        self.hosts.iter().map(Host::standing).collect()
    }

    /// What the hosts cannot do of a group, all of it: nothing was sent on the network yet.
    #[must_use]
    pub fn check(&self, group: &Group) -> Vec<HostError> {
        let abouts: Vec<Option<&About>> = self.hosts.iter().map(Host::about).collect();
        check::group(&self.test_bed, group, &abouts)
    }

    /// Carries a group out: each run to its log, `logs` in the order of the group's flows. A host that dies fails its own
    /// runs, as does one on which the settings in force cannot be, and the others go on. Places in queues stay held for
    /// a next group, until [`Coordinator::give_places_back`]. `on` hears every event with its time on this host's clock, in the order of arrival.
    ///
    /// # Errors
    /// What [`Coordinator::check`] finds; nothing was measured and no log was written.
    pub fn run_group(
        &mut self,
        group: &Group,
        logs: &mut [Log<'_>],
        stop: &AtomicBool,
        on: &mut dyn FnMut(&RunEvent<'_>),
    ) -> Result<Vec<FlowEnd>, Vec<HostError>> {
        self.run_before(group, None, logs, stop, on)
    }

    /// As [`Coordinator::run_group`], when it is known which group will follow at once: that one is prepared when the last
    /// byte of this one has arrived, unless it measures something before its start. Another group than that one may
    /// follow all the same, at the price of new connections.
    ///
    /// # Errors
    /// As [`Coordinator::run_group`].
    pub fn run_before(
        &mut self,
        group: &Group,
        next: Option<&Group>,
        logs: &mut [Log<'_>],
        stop: &AtomicBool,
        on: &mut dyn FnMut(&RunEvent<'_>),
    ) -> Result<Vec<FlowEnd>, Vec<HostError>> {
        if logs.len() != group.flows.len() {
            let what = format!("{} logs for {} flows", logs.len(), group.flows.len());
            return Err(vec![HostError { host: String::new(), what }]);
        }
        if self.prepared.as_ref().is_some_and(|prepared| !prepared.is_of(group)) {
            self.abandon();
        }
        let gone: Vec<usize> = group.hosts().into_iter().filter(|at| !self.is_there(*at)).collect();
        if let Some(prepared) = &mut self.prepared {
            gone.iter().for_each(|at| prepared.remove(*at));
        }
        // Who is still not there fails its own runs.
        let _ = self.reach(&gone, stop);
        self.note_lost_settings();
        let troubles = self.check(group);
        if !troubles.is_empty() {
            return Err(troubles);
        }
        self.yield_places(group);
        // Who waits in the queues gets its turn between two groups: then nothing is prepared over it.
        let next = next.filter(|_| !self.is_turn_of_others());
        let ends = group::carry_out(self, group, next, logs, stop, on);
        self.held_since = self.held_since.or_else(|| Some(clock::now()));
        Ok(ends)
    }

    /// Gives the places in the queues back, so that others are measured before the next group; not while settings hold.
    pub fn release_places(&mut self) {
        if self.settings_hold {
            return;
        }
        self.abandon();
        for host in self.hosts.iter_mut().filter(|host| host.ticket().is_some()) {
            // Who cannot be told has lost its place with the connection.
            let _ = host.ask(Input::Release);
            host.keep_ticket(None);
        }
        self.held_since = None;
    }

    fn is_turn_of_others(&self) -> bool {
        self.held_since.is_some_and(|since| (since + RESERVATION_GRACE).has_passed())
    }

    /// What was prepared of a group that does not follow after all ends with its connections.
    fn abandon(&mut self) {
        let Some(prepared) = self.prepared.take() else { return };
        for at in prepared.hosts() {
            if let Some(host) = self.hosts.get_mut(at) {
                host.finish();
            }
        }
    }

    /// Places that were kept long enough go back, and so do some without the others: all coordinators ask for theirs in
    /// one order, and wait while they hold none that comes later in it.
    fn yield_places(&mut self, group: &Group) {
        if self.prepared.is_some() {
            return;
        }
        let lacks =
            |at: &usize| self.hosts.get(*at).is_some_and(|host| host.connected() && host.ticket().is_none());
        if self.is_turn_of_others() || group.hosts().iter().any(lacks) {
            self.release_places();
        }
    }

    /// Has every host put back what was set for this coordinator, and says goodbye.
    pub fn finish(mut self) {
        self.abandon();
        drop(self.restore_settings());
        self.hosts.iter_mut().for_each(Host::finish);
    }

    fn is_there(&mut self, at: usize) -> bool {
        self.hosts.get_mut(at).is_some_and(Host::is_there)
    }

    /// Connects to some hosts, all at once.
    fn reach(&mut self, which: &[usize], stop: &AtomicBool) -> Vec<HostError> {
        let (test_bed, epoch) = (&self.test_bed, self.epoch);
        let reached: Vec<(usize, Result<Host, ControlError>)> = std::thread::scope(|scope| {
            let reach = |at: &usize| {
                let host = test_bed.hosts.get(*at)?;
                let work = move || Host::reach(host, &test_bed.name, epoch, stop);
                Some((*at, thread::spawn_scoped(scope, "reach", work)))
            };
            let threads: Vec<_> = which.iter().filter_map(reach).collect();
            let lost = |_| Err(ControlError::Local("the connecting thread failed".to_owned()));
            let result = |thread: Result<ScopedJoinHandle<'_, _>, SockError>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(lost),
                Err(error) => Err(error.into()),
            };
            threads.into_iter().map(|(at, thread)| (at, result(thread))).collect()
        });
        let mut troubles = Vec::new();
        for (at, result) in reached {
            let host = self.test_bed.hosts.get(at).map(|host| host.name.clone()).unwrap_or_default();
            match result {
                Ok(reached) => self.hosts[at] = reached,
                Err(error) => troubles.push(HostError { host, what: error.to_string() }),
            }
        }
        troubles
    }
}

impl std::fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordinator").field("rig", &self.test_bed).finish_non_exhaustive()
    }
}

/// Connects to the hosts of a rig, carries one group out, and says goodbye.
///
/// # Errors
/// Every trouble of every host, before the first packet of a measurement; no log was written.
pub fn run_group(
    test_bed: TestBed,
    group: &Group,
    logs: &mut [Log<'_>],
    stop: &AtomicBool,
    on: &mut dyn FnMut(&RunEvent<'_>),
) -> Result<Vec<FlowEnd>, Vec<HostError>> {
    let mut coordinator = Coordinator::connect(test_bed, stop)?;
    let ends = coordinator.run_group(group, logs, stop, on);
    coordinator.finish();
    ends
}
