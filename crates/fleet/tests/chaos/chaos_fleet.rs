//! A fleet whose parts are processes of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_archive::{Calendar, CalendarTransaction, RunFilter};
use linerate_broker::users_file;
use linerate_fleet::{
    EnginePaths, Enrollment, FleetCalendar, FleetCoordinator, FleetError, FleetKey, Inventory, LocalNats,
    LocalPostgres, fleet_file, now,
};
use linerate_model::calendar::{CalendarRunState, FleetAgent, FleetAgentState, UnixTime};
use linerate_sock::clock::{self, Mono};
use linerate_units::Span;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::checks;
use crate::faults::DueRecovery;
use crate::processes::{ARCHIVE_FILE, BROKER_FILE, FLEET_FILE, KEY_FILE, WIRE_FOLDER};

/// How long things happen, and how long nothing happens after that.
const FAULTY: Duration = Duration::from_secs(45);
/// How long nothing happens before that, so that agents get their first calendars.
const QUIET_START: Duration = Duration::from_secs(6);
const CALM: Duration = Duration::from_secs(15);
const STEP: Duration = Duration::from_millis(250);
/// A limit that only a fleet reaches which never settles.
const SETTLE_LIMIT: Duration = Duration::from_secs(180);
/// A limit that only a fleet reaches which measures nothing any more: each pair is due once a minute.
const MEASURE_LIMIT: Duration = Duration::from_secs(120);
/// Steps for which a fleet has to be settled: an agent may still stop a run that was taken back, and has a result then.
const SETTLED_STEPS: u32 = 12;
const PERSIST_LIMIT: Duration = Duration::from_secs(60);
/// Size of the disk of an agent.
const DISK: &str = "size=24m,mode=0700";
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/nats-server");

/// An agent, or a copy of one.
pub(crate) struct ChaosAgent {
    pub(crate) host: String,
    pub(crate) key: String,
    pub(crate) enrollment: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) process: Option<Child>,
    /// Whether its folder is a disk of its own.
    pub(crate) own_disk: bool,
    pub(crate) is_copy: bool,
    /// Epoch and version of the newest calendar that its folder had.
    pub(crate) newest: (u64, u64),
}

/// One random run.
pub(crate) struct ChaosFleet {
    pub(crate) rng: StdRng,
    pub(crate) folder: PathBuf,
    pub(crate) paths: EnginePaths,
    pub(crate) postgres: Option<LocalPostgres>,
    pub(crate) nats: Option<LocalNats>,
    pub(crate) inventory: Inventory,
    pub(crate) centre: FleetKey,
    pub(crate) users: FleetCalendar,
    pub(crate) coordinators: Vec<Child>,
    pub(crate) agents: Vec<ChaosAgent>,
    /// What is to be put right, and when.
    pub(crate) due: Vec<(Mono, DueRecovery)>,
    /// When processes were killed.
    pub(crate) killed: BTreeMap<u32, i64>,
    /// Hosts whose agents were copied.
    pub(crate) copied: BTreeSet<String>,
    /// Schedules that users added, and whether they are shared.
    pub(crate) added: BTreeMap<String, bool>,
    /// A copy of the database that may take over.
    pub(crate) copy: Option<PathBuf>,
    pub(crate) losses: u32,
    begun: UnixTime,
    processes: u32,
    pub(crate) events: Vec<String>,
}

impl ChaosFleet {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        // Short, so that the socket of PostgreSQL has room in its path.
        let folder = std::env::temp_dir().join(format!("lr-chaos-{}-{seed}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.join(WIRE_FOLDER)).unwrap();
        let peer = std::env::var_os("LINERATE_NATS_SERVER").map(PathBuf::from);
        let peer = peer.or_else(|| Some(PathBuf::from(PEER)).filter(|peer| peer.exists()));
        let paths = EnginePaths { postgres_bin: None, nats_server: peer };
        let postgres = LocalPostgres::start(&folder, &paths).unwrap();
        let centre = FleetKey::from_bytes(rng.random()).unwrap();
        let text = fleet(&mut rng);
        let source = fleet_file::Source { name: FLEET_FILE.to_owned(), text: text.clone() };
        let inventory = fleet_file::read(&source, &|_| Ok(Vec::new())).unwrap();
        fs::write(folder.join(FLEET_FILE), text).unwrap();
        fs::write(folder.join(KEY_FILE), centre.secret()).unwrap();
        fs::write(folder.join(ARCHIVE_FILE), postgres.url()).unwrap();
        describe(&postgres.url(), &inventory);
        let users = FleetCalendar::open(Some(&postgres.url())).unwrap();
        let mut fleet = Self {
            rng,
            folder,
            paths,
            postgres: Some(postgres),
            nats: None,
            inventory,
            centre,
            users,
            coordinators: Vec::new(),
            agents: Vec::new(),
            due: Vec::new(),
            killed: BTreeMap::new(),
            copied: BTreeSet::new(),
            added: BTreeMap::new(),
            copy: None,
            losses: 0,
            begun: now(),
            processes: 0,
            events: Vec::new(),
        };
        fleet.begin();
        fleet
    }

    fn begin(&mut self) {
        let share = [0.7, 1.0, 1.0][self.rng.random_range(0..3)];
        let hosts: Vec<String> = self.inventory.hosts.iter().map(|host| host.name.clone()).collect();
        for host in hosts {
            if self.rng.random_bool(share) {
                self.add_agent(&host);
                self.enroll(self.agents.len() - 1).unwrap();
            }
        }
        self.note_seen();
        self.write_users();
        self.start_nats();
        for at in 0..self.agents.len() {
            self.write_enrollment(at);
            self.start_agent(at);
        }
        self.start_coordinator();
        if self.rng.random_bool(0.6) {
            self.start_coordinator();
        }
    }

    /// The agents were heard before: nothing is booked for one that was never there.
    fn note_seen(&self) {
        let mut calendar = Calendar::open(&self.postgres.as_ref().unwrap().url()).unwrap();
        let state =
            FleetAgentState { session: "".into(), program: "1.2.3".into(), note: "".into(), waiting: 0 };
        let hosts: Vec<String> = self.agents.iter().map(|agent| agent.host.clone()).collect();
        let seen = |calendar: &mut CalendarTransaction<'_>| {
            hosts.iter().try_for_each(|host| calendar.note_agent(host, &state, now()))
        };
        calendar.write(seen).unwrap();
    }

    /// Lets it happen. What was measured, or what is wrong.
    pub(crate) fn run(mut self) -> Result<String, String> {
        let until = clock::now() + QUIET_START;
        while !until.has_passed() {
            self.step(false)?;
        }
        let until = clock::now() + FAULTY;
        while !until.has_passed() {
            self.step(true)?;
        }
        self.recover();
        let (until, limit) = (clock::now() + CALM, clock::now() + MEASURE_LIMIT);
        while !until.has_passed() || !(self.has_measured() || limit.has_passed()) {
            self.step(false)?;
        }
        self.pause_all();
        let until = clock::now() + SETTLE_LIMIT;
        let mut settled = 0;
        while settled < SETTLED_STEPS && !until.has_passed() {
            settled = if self.is_settled() { settled + 1 } else { 0 };
            self.step(false)?;
        }
        let checked = checks::check(&mut self);
        let _ = fs::write(self.folder.join("events.txt"), self.events.join("\n"));
        if checked.is_ok() && std::env::var_os("LINERATE_CHAOS_KEEP").is_none() {
            let folder = self.folder.clone();
            drop(self);
            let _ = fs::remove_dir_all(folder);
        }
        checked
    }

    fn step(&mut self, faults: bool) -> Result<(), String> {
        let next = clock::now() + STEP;
        self.recover_due();
        if faults {
            self.misfortune();
            self.user();
        }
        self.check_epochs()?;
        clock::sleep_until(next);
        Ok(())
    }

    /// I4: no agent goes back to an earlier coordinator.
    fn check_epochs(&mut self) -> Result<(), String> {
        for at in 0..self.agents.len() {
            let agent = &mut self.agents[at];
            let text = fs::read_to_string(agent.folder.join("memory.json")).unwrap_or_default();
            let memory: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let number = |name: &str| memory["newest"][name].as_u64().unwrap_or(0);
            let newest = (number("epoch"), number("version"));
            let known = agent.newest;
            if newest != (0, 0) {
                agent.newest = newest;
                if newest < known {
                    let host = agent.host.clone();
                    return Err(self.failure(&format!("I4: {host} goes back from {known:?} to {newest:?}")));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn failure(&self, what: &str) -> String {
        let from = self.events.len().saturating_sub(60);
        format!("{what}\nits files: {}\n{}", self.folder.display(), self.events[from..].join("\n"))
    }

    pub(crate) fn note(&mut self, what: &str) {
        self.events.push(format!("{:>8.2} s  {what}", now().since(self.begun).as_secs_f64()));
    }

    /// A process of this program, with its output in a file.
    fn spawn(&mut self, role: &str, words: &[&Path]) -> Child {
        self.processes += 1;
        let log = File::create(self.folder.join(format!("{role}-{}.log", self.processes))).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(role).arg(&self.folder).args(words);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap();
        self.note(&format!("{role} {} starts", child.id()));
        child
    }

    pub(crate) fn start_coordinator(&mut self) {
        let child = self.spawn("coordinator", &[]);
        self.coordinators.push(child);
    }

    pub(crate) fn start_agent(&mut self, at: usize) {
        let agent = &self.agents[at];
        let (enrollment, folder, host) = (agent.enrollment.clone(), agent.folder.clone(), agent.host.clone());
        let child = self.spawn("agent", &[&enrollment, &folder]);
        self.note(&format!("  it is that of {host}"));
        self.agents[at].process = Some(child);
    }

    /// Kills a process; what it had on the wire ends.
    pub(crate) fn kill(&mut self, mut child: Child) {
        // Before the signal: it may have ended earlier than it is noted.
        child.kill().unwrap();
        child.wait().unwrap();
        self.killed.insert(child.id(), now().as_ms());
    }

    pub(crate) fn start_nats(&mut self) {
        let users = self.folder.join("users.conf");
        let nats = LocalNats::start(&self.folder, &self.paths, Some(&users)).unwrap();
        let text = nats.url();
        let before = fs::read_to_string(self.folder.join(BROKER_FILE)).unwrap_or_default();
        if !before.is_empty() && before != text {
            self.note("the broker has another port, which nobody knows");
        }
        fs::write(self.folder.join(BROKER_FILE), text).unwrap();
        self.nats = Some(nats);
    }

    /// A new agent with a key, which is neither enrolled nor started.
    pub(crate) fn add_agent(&mut self, host: &str) {
        let number = self.agents.len();
        let folder = self.folder.join(format!("agent-{host}-{number}"));
        fs::create_dir(&folder).unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "none"]).arg(&folder).output();
        self.agents.push(ChaosAgent {
            host: host.to_owned(),
            key: FleetKey::from_bytes(self.rng.random()).unwrap().secret(),
            enrollment: self.folder.join(format!("{host}-{number}.json")),
            folder,
            process: None,
            own_disk: mount.is_ok_and(|mount| mount.status.success()),
            is_copy: false,
            newest: (0, 0),
        });
    }

    pub(crate) fn public_key(&self, at: usize) -> String {
        FleetKey::read(&self.agents[at].key).unwrap().public().as_str().to_owned()
    }

    /// Fails if the database is away.
    pub(crate) fn enroll(&mut self, at: usize) -> Result<(), FleetError> {
        let (host, key) = (self.agents[at].host.clone(), self.public_key(at));
        self.users.enroll(&host, &key, now())
    }

    pub(crate) fn write_enrollment(&self, at: usize) {
        let agent = &self.agents[at];
        let enrollment = Enrollment {
            fleet: self.inventory.name.clone(),
            name: agent.host.clone(),
            key: agent.key.clone(),
            coordinators: self.centre.public().to_string(),
            brokers: vec![fs::read_to_string(self.folder.join(BROKER_FILE)).unwrap()],
            broker_ca: None,
            broker_credentials: None,
        };
        enrollment.write(&agent.enrollment).unwrap();
    }

    /// The users of the broker: all agents that are no copies.
    pub(crate) fn write_users(&mut self) {
        let originals = (0..self.agents.len()).filter(|at| !self.agents[*at].is_copy);
        let agents: Vec<(String, String)> =
            originals.map(|at| (self.agents[at].host.clone(), self.public_key(at))).collect();
        let agents: Vec<(&str, &str)> = agents.iter().map(|(host, key)| (&**host, &**key)).collect();
        let text = users_file(&self.inventory.name, self.centre.public().as_str(), &agents).unwrap();
        fs::write(self.folder.join("users.conf"), text).unwrap();
        if let Some(nats) = &self.nats {
            // One that is stopped reads it later.
            let _ = nats.reload();
        }
    }

    fn pause_all(&mut self) {
        self.note("everything is paused");
        let all = persist(|| self.users.schedules());
        for state in all {
            let name = state.schedule.name.as_str();
            persist(|| self.users.set_paused(name, true, now()));
        }
    }

    /// Whether anything was measured.
    fn has_measured(&mut self) -> bool {
        let states = vec![CalendarRunState::Finished];
        let finished = self.users.runs(&RunFilter { states, limit: Some(1), ..RunFilter::default() });
        finished.is_ok_and(|finished| !finished.is_empty())
    }

    /// Whether all runs have ended, and agents have nothing more to say.
    fn is_settled(&mut self) -> bool {
        let states = vec![CalendarRunState::Booked, CalendarRunState::Running];
        let open = self.users.runs(&RunFilter { states, limit: Some(1), ..RunFilter::default() });
        // After a loss they send once more what was stored.
        let has_newest = |agent: &FleetAgent| !agent.lost && agent.acked == agent.version;
        let agents = self.users.agents();
        let originals = self.agents.iter().filter(|agent| !agent.is_copy);
        agents.is_ok_and(|agents| agents.iter().all(has_newest))
            && open.is_ok_and(|open| open.is_empty())
            && originals.map(|agent| files(&agent.folder, "result-").len()).sum::<usize>() == 0
    }
}

/// What a user gets who tries again: the first attempt after a restart of the database may find a lost connection.
pub(crate) fn persist<T>(mut attempt: impl FnMut() -> Result<T, FleetError>) -> T {
    let until = clock::now() + PERSIST_LIMIT;
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(error) => assert!(!until.has_passed(), "{error}"),
        }
        clock::sleep_until(clock::now() + STEP);
    }
}

/// The files of a folder whose names begin like this, without that.
pub(crate) fn files(folder: &Path, prefix: &str) -> Vec<String> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = all.filter_map(|file| file.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix(prefix).map(str::to_owned)).collect()
}

impl Drop for ChaosFleet {
    fn drop(&mut self) {
        let agents = self.agents.iter_mut().filter_map(|agent| agent.process.take());
        for mut child in std::mem::take(&mut self.coordinators).into_iter().chain(agents) {
            let _ = child.kill();
            let _ = child.wait();
        }
        for agent in self.agents.iter().filter(|agent| agent.own_disk) {
            // What is to be looked at later stays.
            let kept = agent.folder.with_extension("kept");
            let _ = Command::new("cp").arg("-a").arg(&agent.folder).arg(&kept).output();
            let _ = Command::new("umount").arg("-l").arg(&agent.folder).output();
        }
    }
}

fn describe(url: &str, inventory: &Inventory) {
    let calendar = Calendar::open(url).unwrap();
    let no_id = Box::new(|| Err(FleetError::NoRun("nothing is due yet".to_owned())));
    let mut first = FleetCoordinator::new(calendar, "first".to_owned(), inventory.clone(), no_id)
        .with_horizon(Span::ZERO);
    first.tick(now(), &mut Vec::new()).unwrap();
    first.stop(now()).unwrap();
}

/// A random fleet of 4 to 6 hosts that share links.
fn fleet(rng: &mut StdRng) -> String {
    let hosts = rng.random_range(4..=6);
    let mut text = String::from("name = \"chaos\"\nset_up = \"1s\"\nsettle = \"1s\"\nahead = \"1m\"\n");
    for host in 0..hosts {
        text += &format!("[host.h{host}]\naddress = \"h{host}\"\ncapacity = {}\n", rng.random_range(1..=3));
    }
    if rng.random_bool(0.8) {
        text += &format!("[link.uplink]\nhosts = [\"h0\", \"h1\"]\ncapacity = {}\n", rng.random_range(1..=2));
    }
    if rng.random_bool(0.4) {
        let capacity = rng.random_range(1..=3);
        text += &format!("[group.all]\nhosts = [\"h0\", \"h1\", \"h2\"]\ncapacity = {capacity}\n");
    }
    for mesh in 0..rng.random_range(1..=2) {
        let pairs = hosts * (hosts - 1);
        text += &format!(
            "[mesh.m{mesh}]\nevery = {}\npriority = {}\nshared = {}\ntest = {{ duration = {}, no_latency = true }}\n",
            pairs * rng.random_range(2..4),
            rng.random_range(0..5),
            rng.random_bool(0.3),
            rng.random_range(1..=2),
        );
    }
    text
}
