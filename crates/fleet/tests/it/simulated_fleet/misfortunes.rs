//! What happens to coordinators and agents, and what users do.

use linerate_archive::{Calendar, RunFilter};
use linerate_fleet::{CancelTarget, PairRequest, ScheduleRequest};
use linerate_model::calendar::{CalendarRunState, UnixTime};
use linerate_units::Span;
use rand::Rng;

use super::{Carrier, STEP_MS, SimulatedFleet};

impl SimulatedFleet {
    pub(super) fn misfortune(&mut self) {
        let at = self.rng.random_range(0..self.coordinators.len());
        let for_ms = self.rng.random_range(1..40) * 1000;
        match self.rng.random_range(0..400) {
            0 if self.coordinators[at].alive => {
                self.note(&format!("coordinator {at} is killed"));
                self.coordinators[at].alive = false;
                // Its connections to the agents end with it.
                self.stop_traffic_of(Carrier::Coordinator(at), None, self.now_ms);
            }
            1..=3 => {
                self.note(&format!("coordinator {at} is stopped for {for_ms} ms"));
                self.coordinators[at].stopped_until_ms = self.now_ms + for_ms;
            }
            4..=6 => {
                self.note(&format!("coordinator {at} is cut off from the calendar for {for_ms} ms"));
                self.coordinators[at].cut_until_ms = self.now_ms + for_ms;
            }
            7..=8 if self.coordinators.len() < 5 => self.start_coordinator(),
            _ => {}
        }
        self.misfortune_of_agents();
    }

    fn misfortune_of_agents(&mut self) {
        if self.agents.len() == 0 {
            return;
        }
        if let Some((what, killed)) = self.agents.misfortune(self.now_ms, &mut self.rng) {
            self.note(&what);
            if let Some(agent) = killed {
                self.kill_traffic(agent);
            }
        }
        // Somebody revokes an agent, and another one enrols it again.
        if self.rng.random_bool(0.003) {
            let agent = self.rng.random_range(0..self.agents.len());
            let (host, now) = (self.agents.host(agent).to_owned(), self.time());
            let mut calendar = Calendar::open(self.path.to_str().unwrap()).unwrap();
            if self.rng.random_bool(0.5) {
                self.note(&format!("the agent of {host} is revoked"));
                calendar.write(|calendar| calendar.revoke_agent(&host, now).map(drop)).unwrap();
            } else {
                self.enroll_again(&host);
            }
        }
    }

    pub(super) fn enroll_again(&mut self, host: &str) {
        self.note(&format!("the agent of {host} is enrolled again"));
        for agent in 0..self.agents.len() {
            if self.agents.host(agent) == host {
                self.kill_traffic(agent);
            }
        }
        let key = self.agents.renew_key(host, self.now_ms, &mut self.rng);
        self.enroll(host, &key);
    }

    /// The traffic of a process ends with it, and nobody hears how.
    fn kill_traffic(&mut self, agent: usize) {
        self.stop_traffic_of(Carrier::Agent(agent), None, self.now_ms);
        for one in self.wire.iter_mut().filter(|one| one.carrier == Carrier::Agent(agent)) {
            one.told = true;
        }
    }

    /// At least one coordinator is there in the end.
    pub(super) fn recover(&mut self) {
        for one in &mut self.coordinators {
            (one.stopped_until_ms, one.cut_until_ms) = (0, 0);
        }
        if !self.coordinators.iter().any(|one| one.alive) {
            self.start_coordinator();
        }
        for agent in self.agents.recover() {
            self.kill_traffic(agent);
        }
        for agent in self.users.agents().unwrap() {
            // Also one whose enrolment the database lost: nobody hears it, and the coordinator says so.
            let is_unknown = self.agents.public_key(&agent.name).as_deref() != Some(&agent.key);
            if agent.revoked.is_some() || is_unknown {
                self.enroll_again(&agent.name);
            }
        }
    }

    pub(super) fn user(&mut self) {
        let now = self.time();
        // Somebody who wants a test at once takes every time that becomes free.
        if self.rng.random_bool(0.15) {
            self.add_schedule(true);
        }
        let names: Vec<String> = match self.rng.random_range(0..30) {
            0..=3 => self
                .users
                .schedules()
                .unwrap()
                .into_iter()
                .map(|one| one.schedule.name.into_string())
                .collect(),
            4 => {
                self.add_schedule(false);
                return;
            }
            5..=6 => {
                let states = vec![CalendarRunState::Running];
                let running = self.users.runs(&RunFilter { states, ..RunFilter::default() }).unwrap();
                if let Some(run) = running.first() {
                    self.note(&format!("a user cancels the active run {}", run.id));
                    self.users.cancel(&CancelTarget::Run(run.id.clone()), now).unwrap();
                }
                return;
            }
            _ => return,
        };
        if names.is_empty() {
            return;
        }
        let name = names[self.rng.random_range(0..names.len())].clone();
        match self.rng.random_range(0..6) {
            0 => {
                self.note(&format!("a user pauses {name}"));
                self.users.set_paused(&name, true, now).unwrap();
            }
            1..=3 => drop(self.users.set_paused(&name, false, now)),
            4 => {
                self.note(&format!("a user cancels the runs of {name}"));
                self.users.cancel(&CancelTarget::Schedule(name), now).unwrap();
            }
            _ => {
                self.note("a user cancels everything");
                self.users.cancel(&CancelTarget::All, now).unwrap();
            }
        }
    }

    /// A test between two random hosts, periodically or at once.
    fn add_schedule(&mut self, at_once: bool) {
        self.added += 1;
        let hosts = self.inventory.hosts.len();
        let (from, to) = (self.rng.random_range(0..hosts), self.rng.random_range(0..hosts));
        let mut request = ScheduleRequest {
            name: format!("extra-{}", self.added),
            pair: PairRequest {
                from: format!("h{from}"),
                to: format!("h{to}"),
                shared: self.rng.random_bool(0.3),
                ..PairRequest::default()
            },
            every: Some(Span::from_secs(self.rng.random_range(60..400))),
            priority: self.rng.random_range(0..=9),
            ..ScheduleRequest::default()
        };
        request.pair.spec.traffic.duration = Some(Span::from_secs(self.rng.random_range(1..20)));
        if at_once {
            request.every = None;
            request.at = Some(linerate_fleet::rfc3339(UnixTime::from_ms(self.now_ms + 2 * STEP_MS)));
            request.slip = Some(Span::from_secs(120));
        }
        request.pair.spec.traffic.no_latency = true;
        // From a host to itself is refused.
        if self.users.add(&request, self.time()).is_ok() {
            if request.pair.shared {
                self.shared.insert(request.name.clone());
            }
            self.note(&format!("a user adds {} from h{from} to h{to}, at once: {at_once}", request.name));
        }
    }
}
