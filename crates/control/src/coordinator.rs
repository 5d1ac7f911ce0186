//! The coordinator: directs runs between other hosts, several at once, with a synchronized start.
//!
//! It connects to every host as to an agent (`linerate serve --agent-token-file`) and checks all of them before
//! the first packet is sent. It then holds a place in the queue of each host, has the runs of a group prepared,
//! and starts them by the clock of each host. What the agents report is written to one log per run, in the
//! order of arrival.

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
pub use test_bed::{After, FlowJob, HostError, HostRef, HostState, RunGroup, RunServer, TestBed};

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use linerate_proto::agent::{About, AgentInput};
use linerate_sock::{Mono, SockError, clock, thread};
use linerate_units::Span;

use crate::error::ControlError;
use crate::log::Log;
use host::CoordinatorHost;
use prepare_next::Ahead;
use start_lead::Lead;

/// How long places in queues are kept for the next group. After that, the clients that wait there get their
/// turn.
const RESERVATION_GRACE: Duration = Duration::from_secs(1);

/// The hosts of a test bed, connected.
///
/// An agent closes a connection that was idle for some seconds. The next group then reconnects.
pub struct Coordinator {
    test_bed: TestBed,
    hosts: Vec<CoordinatorHost>,
    epoch: Mono,
    start_lead: Lead,
    /// When the places were taken; absent while none are held.
    held_since: Option<Mono>,
    /// Places are held because host settings are in force.
    settings_hold: bool,
    /// Hosts, by index, on which the requested settings are not in force, and why. Nothing is measured there.
    unfit: BTreeMap<usize, String>,
    /// What has been prepared of the next group.
    prepared: Option<Ahead>,
}

impl Coordinator {
    /// Connects to all hosts in parallel, authenticates to each of them, and estimates the offset of each
    /// clock.
    ///
    /// # Errors
    /// All errors of all hosts. Nothing stays connected then.
    pub fn connect(test_bed: TestBed, stop: &AtomicBool) -> Result<Self, Vec<HostError>> {
        let epoch = clock::now();
        let hosts: Vec<CoordinatorHost> = test_bed.hosts.iter().map(|_| CoordinatorHost::default()).collect();
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
        troubles.extend(check::one_server_one_name(&coordinator.test_bed, &coordinator.host_states()));
        if troubles.is_empty() { Ok(coordinator) } else { Err(troubles) }
    }

    /// The state of each host as it reported it, in the order of the test bed; absent for a host that is not
    /// connected.
    #[must_use]
    pub fn host_states(&self) -> Vec<Option<HostState>> {
        self.hosts.iter().map(CoordinatorHost::state).collect()
    }

    /// Everything that the hosts cannot do for a group. Sends no measurement traffic.
    #[must_use]
    pub fn check(&self, group: &RunGroup) -> Vec<HostError> {
        let abouts: Vec<Option<&About>> = self.hosts.iter().map(CoordinatorHost::about).collect();
        check::group(&self.test_bed, group, &abouts)
    }

    /// Executes a group and writes one log per run; `logs` has the order of the group's flows. A host that
    /// dies, or on which the settings cannot be applied, fails only its own runs; the others continue. Places
    /// in queues stay held for the next group until [`Coordinator::release_places`]. Calls `on` with every
    /// event and its time on this host's clock, in the order of arrival.
    ///
    /// # Errors
    /// What [`Coordinator::check`] finds. Nothing was measured and no log was written then.
    pub fn run_group(
        &mut self,
        group: &RunGroup,
        logs: &mut [Log<'_>],
        stop: &AtomicBool,
        on: &mut dyn FnMut(&RunEvent<'_>),
    ) -> Result<Vec<FlowEnd>, Vec<HostError>> {
        self.run_before(group, None, logs, stop, on)
    }

    /// Like [`Coordinator::run_group`], for callers that know which group follows immediately. The next group
    /// is prepared as soon as the last byte of this one has arrived, unless it measures something before its
    /// start. A different group may follow nevertheless, at the cost of new connections.
    ///
    /// # Errors
    /// As for [`Coordinator::run_group`].
    pub fn run_before(
        &mut self,
        group: &RunGroup,
        next: Option<&RunGroup>,
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
        // The runs of hosts that are still unreachable fail.
        let _ = self.reach(&gone, stop);
        self.note_lost_settings();
        let troubles = self.check(group);
        if !troubles.is_empty() {
            return Err(troubles);
        }
        self.yield_places(group);
        // Clients that wait in the queues get their turn between two groups, so nothing is prepared then. Neither is it
        // if the places have to be taken anew.
        let next = next.filter(|next| !self.is_turn_of_others() && self.places_last_for(&[group, *next]));
        let ends = group::carry_out(self, group, next, logs, stop, on);
        self.held_since = self.held_since.or_else(|| Some(clock::now()));
        Ok(ends)
    }

    /// Releases the places in the queues so that others are measured before the next group. Does nothing while
    /// settings are in force.
    pub fn release_places(&mut self) {
        if self.settings_hold {
            return;
        }
        self.abandon();
        for host in self.hosts.iter_mut().filter(|host| host.ticket().is_some()) {
            // If the message cannot be sent, the host has released the place with the connection.
            let _ = host.ask(AgentInput::Release);
            host.keep_ticket(None);
        }
        self.held_since = None;
    }

    fn is_turn_of_others(&self) -> bool {
        self.held_since.is_some_and(|since| (since + RESERVATION_GRACE).has_passed())
    }

    /// Whether the places, as long as they have been held already, last for these groups, one directly after the other.
    fn places_last_for(&self, groups: &[&RunGroup]) -> bool {
        let lengths = groups.iter().map(|group| check::ends(group).into_iter().max().unwrap_or_default());
        let length = lengths.fold(Span::ZERO, |sum, length| sum + length);
        let mut hosts = groups.iter().flat_map(|group| group.hosts()).filter_map(|at| self.hosts.get(at));
        hosts.all(|host| {
            let longest = host.about().and_then(|about| about.longest_ns);
            longest.is_none_or(|longest| host.held_for() + length <= longest)
        })
    }

    /// Closes the connections of a prepared group that does not follow.
    fn abandon(&mut self) {
        let Some(prepared) = self.prepared.take() else { return };
        for at in prepared.hosts() {
            if let Some(host) = self.hosts.get_mut(at) {
                host.finish();
            }
        }
    }

    /// Releases places that were held long enough or would not last for the group, and an incomplete set of places. All
    /// coordinators request places in the same order, so a coordinator that waits must not hold a place that comes later
    /// in that order (deadlock).
    fn yield_places(&mut self, group: &RunGroup) {
        if self.prepared.is_some() {
            return;
        }
        let lacks =
            |at: &usize| self.hosts.get(*at).is_some_and(|host| host.connected() && host.ticket().is_none());
        let are_short = !self.places_last_for(&[group]);
        if self.is_turn_of_others() || are_short || group.hosts().iter().any(lacks) {
            self.release_places();
        }
    }

    /// Restores the settings that were changed on the hosts, and closes all connections.
    pub fn finish(mut self) {
        self.abandon();
        drop(self.restore_settings());
        self.hosts.iter_mut().for_each(CoordinatorHost::finish);
    }

    fn is_there(&mut self, at: usize) -> bool {
        self.hosts.get_mut(at).is_some_and(CoordinatorHost::is_there)
    }

    /// Connects to the given hosts in parallel.
    fn reach(&mut self, which: &[usize], stop: &AtomicBool) -> Vec<HostError> {
        let (test_bed, epoch) = (&self.test_bed, self.epoch);
        let reached: Vec<(usize, Result<CoordinatorHost, ControlError>)> = std::thread::scope(|scope| {
            let reach = |at: &usize| {
                let host = test_bed.hosts.get(*at)?;
                let work = move || CoordinatorHost::reach(host, &test_bed.name, epoch, stop);
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
        f.debug_struct("Coordinator").field("test_bed", &self.test_bed).finish_non_exhaustive()
    }
}

/// Connects to the hosts of a test bed, executes one group, and closes the connections.
///
/// # Errors
/// All errors of all hosts, before the first packet of a measurement. No log was written then.
pub fn run_group(
    test_bed: TestBed,
    group: &RunGroup,
    logs: &mut [Log<'_>],
    stop: &AtomicBool,
    on: &mut dyn FnMut(&RunEvent<'_>),
) -> Result<Vec<FlowEnd>, Vec<HostError>> {
    let mut coordinator = Coordinator::connect(test_bed, stop)?;
    let ends = coordinator.run_group(group, logs, stop, on);
    coordinator.finish();
    ends
}
