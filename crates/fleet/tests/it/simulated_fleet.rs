//! A fleet in virtual time: coordinators that are killed, stopped and cut off from their calendar, agents that put
//! traffic on the wire, and users. The calendar is a real database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_archive::{Calendar, RunFilter};
use linerate_fleet::{
    CancelTarget, FleetAction, FleetCalendar, FleetCoordinator, FleetError, Inventory, PairRequest, RunEnd,
    ScheduleRequest, fleet_file,
};
use linerate_model::calendar::{CalendarRun, CalendarRunState, CellResult, UnixTime};
use linerate_plan::Source;
use linerate_units::{Bitrate, Span};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// When a history begins.
const START_MS: i64 = 1_800_000_000_000;
/// Time between two steps.
const STEP_MS: i64 = 1000;
/// Steps with faults, and steps after them.
const FAULTY_STEPS: i64 = 900;
const CALM_STEPS: i64 = 420;
/// Largest deviation of the clock of a coordinator, half of the time for settling.
const MAX_SKEW_MS: i64 = 500;

/// What the agents of a run put on the wire, in true time.
#[derive(Debug, Clone)]
pub(crate) struct OnTheWire {
    run: CalendarRun,
    begins_ms: i64,
    ends_ms: i64,
    /// Index of the coordinator that has started it, and its epoch.
    coordinator: usize,
    /// Whether its end was told to its coordinator.
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
    faults: bool,
    added: u32,
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
        let mut fleet = Self {
            seed,
            rng,
            now_ms: START_MS,
            path,
            inventory,
            coordinators: Vec::new(),
            wire: Vec::new(),
            users,
            faults: true,
            added: 0,
            log: Vec::new(),
        };
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
        for _ in 0..120 {
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
        let skew_ms = self.rng.random_range(-MAX_SKEW_MS..=MAX_SKEW_MS);
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
        let count = self.coordinators.len();
        let first = self.rng.random_range(0..count);
        for at in (0..count).map(|at| (at + first) % count) {
            if self.coordinators[at].alive && self.coordinators[at].stopped_until_ms <= self.now_ms {
                self.turn(at);
            }
        }
    }

    /// One look of a coordinator at its calendar, as the service does it.
    fn turn(&mut self, at: usize) {
        let now = UnixTime::from_ms(self.now_ms + self.coordinators[at].skew_ms);
        self.hear_ends(at);
        if self.coordinators[at].cut_until_ms > self.now_ms {
            // Without a calendar, only what is over is stopped.
            for flow in 0..self.wire.len() {
                if self.wire[flow].coordinator == at && self.wire[flow].run.ends <= now {
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
                    for flow in 0..self.wire.len() {
                        if self.wire[flow].run.id == run && self.wire[flow].coordinator == at {
                            self.stop_traffic(flow);
                        }
                    }
                }
                FleetAction::Notify(_) | FleetAction::Described => {}
            }
        }
    }

    /// The agents connect, wait for each other, and send for the time of the test.
    fn start_run(&mut self, at: usize, run: CalendarRun) {
        let local_ms = self.now_ms + self.coordinators[at].skew_ms;
        if UnixTime::from_ms(local_ms) < run.starts || run.starts > run.latest {
            self.fail(&format!("I4: run {} starts outside its window", run.id));
        }
        let latest_ms = run.starts.after(run.set_up).after(run.settle).as_ms();
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
            coordinator: at,
            told: false,
        });
    }

    fn stop_traffic(&mut self, flow: usize) {
        let soon = self.now_ms + 100;
        self.wire[flow].ends_ms = self.wire[flow].ends_ms.min(soon);
    }

    /// Ends of runs reach the coordinator that started them.
    fn hear_ends(&mut self, at: usize) {
        for flow in 0..self.wire.len() {
            let one = &mut self.wire[flow];
            if one.coordinator != at || one.told || one.ends_ms > self.now_ms {
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

    fn misfortune(&mut self) {
        let at = self.rng.random_range(0..self.coordinators.len());
        let for_ms = self.rng.random_range(1..40) * 1000;
        match self.rng.random_range(0..400) {
            0 if self.coordinators[at].alive => {
                self.note(&format!("coordinator {at} is killed"));
                self.coordinators[at].alive = false;
                // Its connections to the agents end with it.
                for flow in 0..self.wire.len() {
                    if self.wire[flow].coordinator == at {
                        self.stop_traffic(flow);
                    }
                }
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
    }

    /// At least one coordinator is there in the end.
    fn recover(&mut self) {
        for one in &mut self.coordinators {
            (one.stopped_until_ms, one.cut_until_ms) = (0, 0);
        }
        if !self.coordinators.iter().any(|one| one.alive) {
            self.start_coordinator();
        }
    }

    fn user(&mut self) {
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
            self.note(&format!("a user adds {} from h{from} to h{to}, at once: {at_once}", request.name));
        }
    }

    fn check(&mut self) {
        self.check_wire();
        let runs = self.users.runs(&RunFilter::default()).unwrap();
        let mut started: BTreeMap<&str, u32> = BTreeMap::new();
        for one in &self.wire {
            *started.entry(&one.run.id).or_default() += 1;
        }
        for run in &runs {
            if !run.state.is_end() {
                self.fail(&format!("I2: run {} is still {} ({run:?})", run.id, run.state.name()));
            }
            if run.reason.is_empty() != (run.state == CalendarRunState::Finished) {
                self.fail(&format!(
                    "I2: run {} is {} with the reason '{}'",
                    run.id,
                    run.state.name(),
                    run.reason
                ));
            }
            if started.get(run.id.as_str()).is_some_and(|times| *times > 1) {
                self.fail(&format!("run {} was started twice", run.id));
            }
            if run.state == CalendarRunState::Finished && !started.contains_key(run.id.as_str()) {
                self.fail(&format!("run {} has a result, but was never on the wire", run.id));
            }
        }
        if !runs.iter().any(|run| run.state == CalendarRunState::Finished) {
            self.fail("nothing was measured");
        }
    }

    /// I1: what is exclusive does not overlap, and no capacity is exceeded. I5: nothing is sent after the reservation.
    fn check_wire(&self) {
        for one in &self.wire {
            let slack = 2 * MAX_SKEW_MS + 100 + STEP_MS;
            if one.ends_ms > one.run.ends.as_ms() + slack && one.ends_ms > one.begins_ms {
                self.fail(&format!(
                    "I5: run {} sends {} ms after its end",
                    one.run.id,
                    one.ends_ms - one.run.ends.as_ms()
                ));
            }
        }
        let inventory = &self.inventory;
        let uses = |one: &OnTheWire| {
            let shared = self.is_shared(&one.run);
            inventory.uses(&one.run.from, &one.run.to, shared).unwrap()
        };
        for (at, one) in self.wire.iter().enumerate() {
            let sends = |other: &&OnTheWire| other.begins_ms < one.ends_ms && one.begins_ms < other.ends_ms;
            let together: Vec<&OnTheWire> = self
                .wire
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|(_, other)| other)
                .filter(sends)
                .collect();
            for needed in uses(one) {
                let others: Vec<&&OnTheWire> = together
                    .iter()
                    .filter(|other| uses(other).iter().any(|used| used.resource == needed.resource))
                    .collect();
                if needed.exclusive && !others.is_empty() {
                    self.fail(&format!("I1: {} is used by {one:?}\nand {:?}", needed.resource, others[0]));
                }
                // All that overlap with this one at its start are at the same time.
                let at_start = others
                    .iter()
                    .filter(|other| other.begins_ms <= one.begins_ms && one.begins_ms < other.ends_ms);
                if at_start.count() as u32 + 1 > needed.capacity {
                    self.fail(&format!("I1: the capacity of {} is exceeded by {one:?}", needed.resource));
                }
            }
        }
    }

    fn is_shared(&self, run: &CalendarRun) -> bool {
        match &run.mesh {
            Some(mesh) => self.inventory.mesh(mesh).unwrap().shared,
            None => self.shared_schedules().contains(&run.schedule),
        }
    }

    fn shared_schedules(&self) -> Vec<String> {
        // Schedules of users are never removed in a history.
        let mut users = FleetCalendar::open(self.path.to_str()).unwrap();
        users
            .schedules()
            .unwrap()
            .into_iter()
            .filter(|one| one.schedule.shared)
            .map(|one| one.schedule.name.into_string())
            .collect()
    }
}

/// A random fleet of 3 to 6 hosts with links, a group and meshes.
fn fleet(rng: &mut StdRng) -> Inventory {
    let hosts = rng.random_range(3..=6);
    let mut text = String::from("set_up = \"3s\"\nsettle = \"1s\"\n");
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
