//! A fleet in virtual time: coordinators that are killed, stopped and cut off from their calendar, agents that put
//! traffic on the wire, and users. The calendar is a real database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use linerate_archive::{Archive, Calendar};
use linerate_fleet::{
    CancelTarget, FleetAction, FleetCalendar, FleetCoordinator, FleetError, Inventory, RunEnd, fleet_file,
};
use linerate_model::calendar::{CalendarRun, CalendarRunState, CellResult, UnixTime};
use linerate_plan::Source;
use linerate_units::{Bitrate, Span};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

mod invariants;
mod misfortunes;

use crate::simulated_agents::{AgentRequest, AgentStart, LOOKS, SimulatedAgents};

/// When a history begins.
const START_MS: i64 = 1_800_000_000_000;
/// Time between two steps.
const STEP_MS: i64 = 1000;
/// Steps with faults, and steps after them.
const FAULTY_STEPS: i64 = 900;
const CALM_STEPS: i64 = 420;
/// Largest deviation of the clock of a coordinator: half of the time for settling, and with agents half of that.
const MAX_SKEW_MS: i64 = 500;

/// Who carries out a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// A coordinator, by its index.
    Coordinator(usize),
    /// A process of an agent.
    Agent(usize),
}

/// What the agents of a run put on the wire, in true time.
#[derive(Debug, Clone)]
pub(crate) struct OnTheWire {
    run: CalendarRun,
    begins_ms: i64,
    ends_ms: i64,
    carrier: Carrier,
    /// Whether its end was told to its carrier.
    told: bool,
}

/// A coordinator process.
struct SimulatedCoordinator {
    machine: FleetCoordinator,
    skew_ms: i64,
    /// Until when it is stopped (SIGSTOP), in true time.
    stopped_until_ms: i64,
    /// Until when it does not reach the calendar.
    cut_until_ms: i64,
    alive: bool,
    waiting: Vec<(String, RunEnd)>,
}

/// A history.
pub(crate) struct SimulatedFleet {
    seed: u64,
    rng: StdRng,
    now_ms: i64,
    path: PathBuf,
    inventory: Inventory,
    coordinators: Vec<SimulatedCoordinator>,
    wire: Vec<OnTheWire>,
    users: FleetCalendar,
    agents: SimulatedAgents,
    /// Runs that are in the archive.
    archived: BTreeSet<String>,
    /// A copy of the database and of the archived runs, and how often it took over.
    copy: Option<(PathBuf, BTreeSet<String>)>,
    losses: u32,
    faults: bool,
    added: u32,
    /// Schedules of users that share their hosts, also those that the database has lost.
    shared: BTreeSet<String>,
    /// Every fault and user action, for the message of a failure.
    log: Vec<String>,
}

impl SimulatedFleet {
    pub(crate) fn new(seed: u64, folder: &Path) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let path = folder.join(format!("history-{seed}.sqlite"));
        let inventory = fleet(&mut rng);
        // Users find a fleet that was described before.
        let calendar = Calendar::open(path.to_str().unwrap()).unwrap();
        let no_id = Box::new(|| Err(FleetError::NoRun("nothing is due yet".to_owned())));
        let mut first = FleetCoordinator::new(calendar, "first".to_owned(), inventory.clone(), no_id)
            .with_horizon(Span::ZERO);
        first.tick(UnixTime::from_ms(START_MS), &mut Vec::new()).unwrap();
        first.stop(UnixTime::from_ms(START_MS)).unwrap();
        let users = FleetCalendar::open(path.to_str()).unwrap();
        let agents = SimulatedAgents::new(&mut rng);
        let mut fleet = Self {
            seed,
            rng,
            now_ms: START_MS,
            path,
            inventory,
            coordinators: Vec::new(),
            wire: Vec::new(),
            users,
            agents,
            archived: BTreeSet::new(),
            copy: None,
            losses: 0,
            faults: true,
            added: 0,
            shared: BTreeSet::new(),
            log: Vec::new(),
        };
        fleet.enroll_agents();
        fleet.start_coordinator();
        if fleet.rng.random_bool(0.7) {
            fleet.start_coordinator();
        }
        fleet
    }

    /// Lets it happen, and checks what was on the wire and what the calendar says.
    pub(crate) fn run(mut self) {
        for _ in 0..FAULTY_STEPS {
            self.step();
        }
        self.faults = false;
        self.recover();
        for _ in 0..CALM_STEPS {
            self.step();
        }
        let all: Vec<String> =
            self.users.schedules().unwrap().into_iter().map(|one| one.schedule.name.into_string()).collect();
        for name in &all {
            let _ = self.users.set_paused(name, true, self.time());
        }
        for _ in 0..60 {
            self.step();
        }
        // A second test may be booked for later than the end of the history.
        self.users.cancel(&CancelTarget::All, self.time()).unwrap();
        for _ in 0..60 {
            self.step();
        }
        self.check();
    }

    fn fail(&self, what: &str) -> ! {
        let from = self.log.len().saturating_sub(40);
        panic!("seed {}: {what}\nthe last events:\n{}", self.seed, self.log[from..].join("\n"));
    }

    fn time(&self) -> UnixTime {
        UnixTime::from_ms(self.now_ms)
    }

    fn note(&mut self, what: &str) {
        self.log.push(format!("{:>8.1} s  {what}", (self.now_ms - START_MS) as f64 / 1e3));
    }

    fn start_coordinator(&mut self) {
        let calendar = Calendar::open(self.path.to_str().unwrap()).unwrap();
        let number = self.coordinators.len();
        let mut ids = StdRng::seed_from_u64(self.rng.random());
        let new_id = Box::new(move || Ok(format!("{:016x}", ids.random::<u64>())));
        let holder = format!("coordinator-{number}");
        let machine = FleetCoordinator::new(calendar, holder, self.inventory.clone(), new_id)
            .with_horizon(Span::from_secs(300));
        let has_agents = self.agents.len() > 0;
        let machine = if has_agents { machine.with_agents(self.agents.centre_key()) } else { machine };
        let most_ms = if has_agents { MAX_SKEW_MS / 2 } else { MAX_SKEW_MS };
        let skew_ms = self.rng.random_range(-most_ms..=most_ms);
        self.note(&format!("coordinator {number} starts, its clock is {skew_ms} ms off"));
        self.coordinators.push(SimulatedCoordinator {
            machine,
            skew_ms,
            stopped_until_ms: 0,
            cut_until_ms: 0,
            alive: true,
            waiting: Vec::new(),
        });
    }

    fn step(&mut self) {
        self.now_ms += STEP_MS;
        if self.faults {
            self.misfortune();
            self.user();
        }
        self.advance_agents();
        let count = self.coordinators.len();
        let first = self.rng.random_range(0..count);
        for at in (0..count).map(|at| (at + first) % count) {
            if self.coordinators[at].alive && self.coordinators[at].stopped_until_ms <= self.now_ms {
                self.turn(at);
            }
        }
        if self.faults {
            self.lose_commits();
        }
    }

    /// Some histories have no agents, some only those, and some both.
    fn enroll_agents(&mut self) {
        let share = [0.0, 0.6, 1.0, 1.0][self.rng.random_range(0..4)];
        let hosts: Vec<String> = self.inventory.hosts.iter().map(|host| host.name.clone()).collect();
        for host in hosts {
            if self.rng.random_bool(share) {
                let key = self.agents.add(&host, &mut self.rng);
                self.enroll(&host, &key);
            }
        }
    }

    fn enroll(&mut self, host: &str, key: &str) {
        let (host, key, now) = (host.to_owned(), key.to_owned(), self.time());
        let mut calendar = Calendar::open(self.path.to_str().unwrap()).unwrap();
        calendar.write(|calendar| calendar.enroll_agent(&host, &key, now)).unwrap();
    }

    fn advance_agents(&mut self) {
        if self.agents.len() == 0 {
            return;
        }
        for look in 1..=LOOKS {
            let at_ms = self.now_ms - STEP_MS + look * STEP_MS / LOOKS;
            self.receive_from_agents(at_ms);
            for request in self.agents.advance(at_ms, &mut self.rng) {
                match request {
                    AgentRequest::Start(start) => self.start_agents_run(start),
                    AgentRequest::Stop { agent, run } => {
                        self.stop_traffic_of(Carrier::Agent(agent), Some(&run), at_ms);
                    }
                }
            }
            self.receive_events(at_ms);
        }
    }

    /// The coordinators that lead, or think so, hear what agents say.
    fn receive_events(&mut self, at_ms: i64) {
        let messages = self.agents.take_for_centre(at_ms);
        for at in 0..self.coordinators.len() {
            let one = &mut self.coordinators[at];
            if !one.alive || one.stopped_until_ms > at_ms || one.cut_until_ms > at_ms || messages.is_empty() {
                continue;
            }
            let mut actions = Vec::new();
            one.machine.receive(&messages, UnixTime::from_ms(at_ms + one.skew_ms), &mut actions).unwrap();
            self.execute(at, actions);
        }
    }

    /// An agent connects, waits for its peer, and sends for the time of the test.
    fn start_agents_run(&mut self, start: AgentStart) {
        let AgentStart { agent, host, run, spec, begin_within, at_ms, until } = start;
        let starts = run.starts.as_ms();
        // Its clock may be a quarter of the time for settling off, and that of the coordinator too.
        if at_ms < starts - MAX_SKEW_MS || at_ms > starts + 3000 + MAX_SKEW_MS || run.ends > until {
            self.fail(&format!(
                "I4: the agent of {host} starts {} {} ms after its time",
                run.id,
                at_ms - starts
            ));
        }
        let busy = self.wire.iter().any(|one| one.run.id == *run.id && one.ends_ms > at_ms);
        let begins_ms = at_ms + self.rng.random_range(50..3500);
        let late = begins_ms > at_ms + (begin_within.as_ns() / 1_000_000) as i64;
        // The other end refuses a copy of an agent while it serves the first one.
        if busy || late {
            self.agents.ended(agent, &run.id, false, at_ms, &mut self.rng);
            return;
        }
        let sends_ms = (spec.traffic.measured().as_ns() / 1_000_000) as i64;
        let mesh = run.schedule.split('.').next().filter(|name| self.inventory.mesh(name).is_ok());
        let run = CalendarRun {
            id: run.id.into(),
            mesh: mesh.map(str::to_owned),
            schedule: run.schedule.into_string(),
            from: host,
            to: run.to.into_string(),
            spec: *spec,
            confirms: None,
            due: run.starts,
            attempt: 0,
            latest: run.starts,
            starts: run.starts,
            ends: run.ends,
            set_up: Span::from_secs(3),
            settle: Span::from_secs(1),
            priority: 0,
            state: CalendarRunState::Running,
            reason: "".into(),
            epoch: 0,
            begun: None,
            ended: None,
            result: None,
            handed: true,
        };
        self.wire.push(OnTheWire {
            run,
            begins_ms,
            ends_ms: begins_ms + sends_ms,
            carrier: Carrier::Agent(agent),
            told: false,
        });
    }

    /// Ends of runs reach their agents.
    fn receive_from_agents(&mut self, at_ms: i64) {
        for flow in 0..self.wire.len() {
            let one = &mut self.wire[flow];
            let Carrier::Agent(agent) = one.carrier else { continue };
            if one.told || one.ends_ms > at_ms {
                continue;
            }
            one.told = true;
            let whole =
                one.ends_ms - one.begins_ms >= (one.run.spec.traffic.measured().as_ns() / 1_000_000) as i64;
            let id = one.run.id.clone();
            self.agents.ended(agent, &id, whole, at_ms, &mut self.rng);
        }
    }

    /// Another copy of the database takes over, which lacks what was written in the last seconds.
    fn lose_commits(&mut self) {
        if self.losses >= 1 || self.agents.len() == 0 {
            return;
        }
        if self.copy.is_none() {
            if self.rng.random_bool(0.001) {
                let copy = self.path.with_extension(format!("copy-{}", self.losses));
                Archive::open(&self.path).unwrap().backup(&copy).unwrap();
                self.copy = Some((copy, self.archived.clone()));
            }
            return;
        }
        if !self.rng.random_bool(0.1) {
            return;
        }
        let (copy, archived) = self.copy.take().unwrap();
        self.losses += 1;
        self.note("another copy of the database takes over, which lacks the last commits");
        self.archived = archived;
        let place = self.path.with_extension(format!("sqlite-{}", self.losses));
        std::fs::rename(copy, &place).unwrap();
        self.path = place;
        let open = || Calendar::open(self.path.to_str().unwrap()).unwrap();
        for coordinator in &mut self.coordinators {
            *coordinator.machine.calendar() = open();
        }
        self.users = FleetCalendar::open(self.path.to_str()).unwrap();
        // What PostgreSQL shows by its timeline.
        let now = self.time();
        open()
            .write(|calendar| {
                let epoch = calendar.lease()?.map_or(0, |lease| lease.epoch);
                calendar.raise_epoch(epoch)?;
                calendar.note_loss(now)
            })
            .unwrap();
    }

    /// One look of a coordinator at its calendar, as the service does it.
    fn turn(&mut self, at: usize) {
        let now = UnixTime::from_ms(self.now_ms + self.coordinators[at].skew_ms);
        self.receive_ends(at);
        if self.coordinators[at].cut_until_ms > self.now_ms {
            // Without a calendar, only what is over is stopped.
            for flow in 0..self.wire.len() {
                if self.wire[flow].carrier == Carrier::Coordinator(at) && self.wire[flow].run.ends <= now {
                    self.stop_traffic(flow);
                }
            }
            return;
        }
        for (run, end) in std::mem::take(&mut self.coordinators[at].waiting) {
            self.coordinators[at].machine.ended(&run, &end, now).unwrap();
        }
        let mut actions = Vec::new();
        self.coordinators[at].machine.tick(now, &mut actions).unwrap();
        self.execute(at, actions);
    }

    fn execute(&mut self, at: usize, actions: Vec<FleetAction>) {
        for action in actions {
            match action {
                FleetAction::Start(run) => self.start_run(at, *run),
                FleetAction::Stop { run, why: _ } => {
                    self.stop_traffic_of(Carrier::Coordinator(at), Some(&run), self.now_ms);
                }
                FleetAction::Send { agent, message } => {
                    self.agents.send_to_agent(&agent, message, self.now_ms, &mut self.rng);
                }
                FleetAction::Archive { agent, run, digest, .. } => {
                    self.archived.insert(run.clone());
                    let stored = self.coordinators[at].machine.archived(&agent, &run, digest);
                    self.execute(at, stored.into_iter().collect());
                }
                FleetAction::Notify(_) | FleetAction::Described | FleetAction::Agent(_) => {}
            }
        }
    }

    /// The agents connect, wait for each other, and send for the time of the test.
    fn start_run(&mut self, at: usize, run: CalendarRun) {
        let local_ms = self.now_ms + self.coordinators[at].skew_ms;
        if UnixTime::from_ms(local_ms) < run.starts || run.starts > run.latest {
            self.fail(&format!("I4: run {} starts outside its window", run.id));
        }
        let latest_ms = run.starts.after(run.set_up).as_ms() + 500;
        let begins_ms = local_ms + self.rng.random_range(50..3500);
        let sends_ms = (run.spec.traffic.measured().as_ns() / 1_000_000) as i64;
        if begins_ms > latest_ms {
            let end = RunEnd { state: CalendarRunState::Failed, reason: "too late".to_owned(), result: None };
            self.coordinators[at].waiting.push((run.id, end));
            return;
        }
        let begins_ms = begins_ms - self.coordinators[at].skew_ms;
        self.wire.push(OnTheWire {
            run,
            begins_ms,
            ends_ms: begins_ms + sends_ms,
            carrier: Carrier::Coordinator(at),
            told: false,
        });
    }

    fn stop_traffic(&mut self, flow: usize) {
        let soon = self.now_ms + 100;
        self.wire[flow].ends_ms = self.wire[flow].ends_ms.min(soon);
    }

    /// Ends the traffic of a carrier, of one run or of all.
    fn stop_traffic_of(&mut self, carrier: Carrier, run: Option<&str>, at_ms: i64) {
        for one in self.wire.iter_mut().filter(|one| one.carrier == carrier) {
            if run.is_none_or(|run| one.run.id == run) {
                one.ends_ms = one.ends_ms.min(at_ms + 100);
            }
        }
    }

    /// Ends of runs reach the coordinator that started them.
    fn receive_ends(&mut self, at: usize) {
        for flow in 0..self.wire.len() {
            let one = &mut self.wire[flow];
            if one.carrier != Carrier::Coordinator(at) || one.told || one.ends_ms > self.now_ms {
                continue;
            }
            one.told = true;
            let whole =
                one.ends_ms - one.begins_ms >= (one.run.spec.traffic.measured().as_ns() / 1_000_000) as i64;
            let id = one.run.id.clone();
            let works = self.rng.random_bool(0.9);
            let slow = self.rng.random_bool(0.1);
            let end = if whole && works {
                let goodput = Bitrate::from_bps(if slow { 1e6 } else { 1e9 });
                let result = Some(CellResult { goodput, ..CellResult::default() });
                RunEnd { state: CalendarRunState::Finished, reason: String::new(), result }
            } else {
                RunEnd { state: CalendarRunState::Failed, reason: "broken off".to_owned(), result: None }
            };
            self.coordinators[at].waiting.push((id, end));
        }
    }
}

/// A random fleet of 3 to 6 hosts with links, a group and meshes.
fn fleet(rng: &mut StdRng) -> Inventory {
    let hosts = rng.random_range(3..=6);
    let mut text = String::from("set_up = \"3s\"\nsettle = \"1s\"\nahead = \"5m\"\n");
    for host in 0..hosts {
        text += &format!("[host.h{host}]\naddress = \"h{host}\"\ncapacity = {}\n", rng.random_range(1..=3));
    }
    if rng.random_bool(0.7) {
        text += &format!("[link.uplink]\nhosts = [\"h0\", \"h1\"]\ncapacity = {}\n", rng.random_range(1..=2));
    }
    if rng.random_bool(0.4) {
        text += &format!(
            "[group.all]\nhosts = [\"h0\", \"h1\", \"h2\"]\ncapacity = {}\n",
            rng.random_range(1..=3)
        );
    }
    if rng.random_bool(0.3) {
        text += "[lag.core]\nhosts = [\"h0\"]\npairs = [[\"h1\", \"h2\"]]\ncapacity = 2\n";
    }
    for mesh in 0..rng.random_range(1..=2) {
        let pairs = hosts * (hosts - 1);
        let period = pairs * rng.random_range(10..40);
        text += &format!(
            "[mesh.m{mesh}]\nevery = {period}\njitter = {}\npriority = {}\nshared = {}\ntest = {{ duration = {}, no_latency = true }}\nalarm = {{ below = \"100M\", failure = true }}\n",
            rng.random_range(0..=period / 2),
            rng.random_range(0..5),
            rng.random_bool(0.3),
            rng.random_range(1..12),
        );
    }
    let source = Source { name: "history.toml".to_owned(), text };
    fleet_file::read(&source, &|_| Ok(Vec::new())).unwrap_or_else(|error| panic!("{error}\n{}", source.text))
}
