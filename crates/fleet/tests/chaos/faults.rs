//! What happens to a fleet, and what puts it right.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linerate_archive::RunFilter;
use linerate_fleet::{
    CancelTarget, FleetError, FleetKey, LocalPostgres, PairRequest, ScheduleRequest, now, rfc3339,
};
use linerate_model::calendar::CalendarRunState;
use linerate_sock::clock;
use linerate_sock::process::{PidFd, Signal};
use linerate_units::Span;
use rand::Rng;

use crate::chaos_fleet::{ChaosAgent, ChaosFleet, persist};

/// What is to be put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DueRecovery {
    /// A stopped process goes on.
    Continue(u32),
    Coordinator,
    Agent(usize),
    Nats,
    Postgres,
    /// The disk of an agent has room again.
    Disk(usize),
}

/// Most coordinators at the same time.
const MOST_COORDINATORS: usize = 3;
const BALLAST: &str = "ballast";
/// A limit that only a stuck process reaches.
const KILL_LIMIT: Duration = Duration::from_secs(30);

impl ChaosFleet {
    fn later(&mut self, most_ms: u64, what: DueRecovery) {
        let after = Duration::from_millis(self.rng.random_range(100..most_ms));
        self.due.push((clock::now() + after, what));
    }

    pub(crate) fn misfortune(&mut self) {
        match self.rng.random_range(0..240) {
            0..=3 => self.kill_coordinator(),
            4..=8 => self.stop_one(true),
            9..=10 if self.coordinators.len() < MOST_COORDINATORS => self.start_coordinator(),
            11..=15 => self.kill_agent(),
            16..=17 => self.stop_one(false),
            18..=19 if self.copied.is_empty() => self.copy_agent(),
            20..=22 => self.fill_disk(),
            23..=24 => self.kill_nats(),
            25..=26 => self.stop_nats(),
            27..=29 => self.kill_postgres(),
            30..=32 => self.lose_commits(),
            _ => {}
        }
    }

    fn kill_coordinator(&mut self) {
        if self.coordinators.is_empty() {
            return;
        }
        let at = self.rng.random_range(0..self.coordinators.len());
        let child = self.coordinators.remove(at);
        self.note(&format!("coordinator {} is killed", child.id()));
        self.kill(child);
        self.later(6000, DueRecovery::Coordinator);
    }

    /// Stops a coordinator or an agent, sometimes for longer than a lease.
    fn stop_one(&mut self, coordinator: bool) {
        let process = if coordinator {
            let all: Vec<u32> = self.coordinators.iter().map(std::process::Child::id).collect();
            all.get(self.rng.random_range(0..all.len().max(1))).copied()
        } else {
            let running = self.agents.iter().filter_map(|agent| Some(agent.process.as_ref()?.id()));
            let all: Vec<u32> = running.collect();
            all.get(self.rng.random_range(0..all.len().max(1))).copied()
        };
        let Some(process) = process else { return };
        self.note(&format!("process {process} is stopped"));
        signal(process, "STOP");
        self.later(16_000, DueRecovery::Continue(process));
    }

    fn random_agent(&mut self) -> Option<usize> {
        (!self.agents.is_empty()).then(|| self.rng.random_range(0..self.agents.len()))
    }

    fn kill_agent(&mut self) {
        let Some(at) = self.random_agent() else { return };
        if let Some(child) = self.agents[at].process.take() {
            self.note(&format!("the agent {} of {} is killed", child.id(), self.agents[at].host));
            self.kill(child);
            self.later(8000, DueRecovery::Agent(at));
        }
    }

    fn copy_agent(&mut self) {
        let Some(at) = self.random_agent() else { return };
        let host = self.agents[at].host.clone();
        self.note(&format!("the agent of {host} is copied"));
        self.copied.insert(host.clone());
        let key = self.agents[at].key.clone();
        self.add_agent(&host);
        let copy = self.agents.len() - 1;
        for entry in fs::read_dir(&self.agents[at].folder).unwrap().flatten() {
            let name = entry.file_name();
            if name != "agent.pid" && name != BALLAST {
                // One that is gone by now was a file on its way to another name.
                let _ = fs::copy(entry.path(), self.agents[copy].folder.join(name));
            }
        }
        let agent = &mut self.agents[copy];
        (agent.key, agent.is_copy) = (key, true);
        self.write_enrollment(copy);
        self.start_agent(copy);
    }

    fn fill_disk(&mut self) {
        let Some(at) = self.random_agent() else { return };
        let agent = &self.agents[at];
        if agent.own_disk {
            let file = agent.folder.join(BALLAST);
            let zeros = vec![0; 1 << 20];
            let filled = fs::File::create(file).and_then(|mut file| {
                loop {
                    std::io::Write::write_all(&mut file, &zeros)?;
                }
                #[expect(unreachable_code, reason = "it ends when the disk is full")]
                std::io::Result::Ok(())
            });
            drop(filled);
        } else {
            fs::set_permissions(&agent.folder, fs::Permissions::from_mode(0o500)).unwrap();
        }
        self.note(&format!("the disk of {} is full", self.agents[at].host));
        self.later(15_000, DueRecovery::Disk(at));
    }

    fn nats_process(&self) -> Option<u32> {
        number_in(&self.folder.join("nats.pid")).filter(|_| self.nats.is_some())
    }

    fn kill_nats(&mut self) {
        let Some(process) = self.nats_process() else { return };
        self.note("nats-server is killed, and its files removed");
        kill_and_wait(process);
        self.nats = None;
        for file in ["nats.pid", "nats.log"] {
            let _ = fs::remove_file(self.folder.join(file));
        }
        self.later(8000, DueRecovery::Nats);
    }

    fn stop_nats(&mut self) {
        let Some(process) = self.nats_process() else { return };
        self.note("nats-server is stopped");
        signal(process, "STOP");
        self.later(16_000, DueRecovery::Continue(process));
    }

    /// The server is gone at once, as by a power failure of its host.
    fn end_postgres(&mut self) -> bool {
        let process = number_in(&self.folder.join("postgres/postmaster.pid"));
        let (Some(process), Some(server)) = (process, self.postgres.take()) else { return false };
        kill_and_wait(process);
        drop(server);
        true
    }

    fn kill_postgres(&mut self) {
        if self.end_postgres() {
            self.note("PostgreSQL is killed");
            self.later(5000, DueRecovery::Postgres);
        }
    }

    /// First makes a copy of the database, and later lets it take over, which lacks what was written since then.
    fn lose_commits(&mut self) {
        if self.losses > 0 || self.postgres.is_none() {
            return;
        }
        let data = self.folder.join("postgres");
        let Some(copy) = self.copy.take() else {
            let copy = self.folder.join("copy");
            if backup(&data, &copy) {
                self.note("a copy of the database was made");
                self.copy = Some(copy);
            }
            return;
        };
        self.note("the copy of the database takes over");
        self.losses += 1;
        self.end_postgres();
        fs::remove_dir_all(&data).unwrap();
        fs::rename(copy, &data).unwrap();
        self.later(3000, DueRecovery::Postgres);
    }

    pub(crate) fn recover_due(&mut self) {
        let (now_due, rest) = std::mem::take(&mut self.due).into_iter().partition(|(at, _)| at.has_passed());
        self.due = rest;
        let now_due: Vec<_> = now_due;
        for (_, what) in now_due {
            self.put_right(&what);
        }
    }

    fn put_right(&mut self, what: &DueRecovery) {
        if !matches!(what, DueRecovery::Coordinator | DueRecovery::Agent(_)) {
            self.note(&format!("put right: {what:?}"));
        }
        match *what {
            DueRecovery::Continue(process) => signal(process, "CONT"),
            DueRecovery::Coordinator => self.start_coordinator(),
            DueRecovery::Agent(at) if self.agents[at].process.is_none() => self.start_agent(at),
            DueRecovery::Agent(_) => {}
            DueRecovery::Nats if self.nats.is_none() => self.start_nats(),
            DueRecovery::Nats => {}
            DueRecovery::Postgres if self.postgres.is_none() => {
                self.postgres = Some(LocalPostgres::start(&self.folder, &self.paths).unwrap());
            }
            DueRecovery::Postgres => {}
            DueRecovery::Disk(at) => free_disk(&self.agents[at]),
        }
    }

    /// In the end everything works again, and there are no copies.
    pub(crate) fn recover(&mut self) {
        self.note("nothing happens any more");
        for (_, what) in std::mem::take(&mut self.due) {
            self.put_right(&what);
        }
        if self.coordinators.is_empty() {
            self.start_coordinator();
        }
        for at in 0..self.agents.len() {
            if self.agents[at].is_copy
                && let Some(child) = self.agents[at].process.take()
            {
                self.kill(child);
            }
        }
        for state in persist(|| self.users.schedules()) {
            let _ = self.users.set_paused(state.schedule.name.as_str(), false, now());
        }
        let enrolled = persist(|| self.users.agents());
        for at in (0..self.agents.len()).filter(|at| !self.agents[*at].is_copy).collect::<Vec<_>>() {
            let (host, key) = (self.agents[at].host.clone(), self.public_key(at));
            let known = enrolled.iter().find(|agent| agent.name == host);
            let valid = known.is_some_and(|agent| agent.revoked.is_none() && agent.key == key);
            if !valid || self.copied.contains(&host) {
                persist(|| self.enroll_again(at));
            }
        }
    }

    fn enroll_again(&mut self, at: usize) -> Result<(), FleetError> {
        self.note(&format!("the agent of {} is enrolled again", self.agents[at].host));
        if let Some(child) = self.agents[at].process.take() {
            self.kill(child);
        }
        let before = self.agents[at].key.clone();
        self.agents[at].key = FleetKey::from_bytes(self.rng.random()).unwrap().secret();
        let enrolled = self.enroll(at);
        if enrolled.is_ok() {
            self.write_users();
            self.write_enrollment(at);
        } else {
            self.agents[at].key = before;
        }
        self.start_agent(at);
        enrolled
    }

    pub(crate) fn user(&mut self) {
        match self.rng.random_range(0..100) {
            0..=11 => self.add_schedule(),
            12..=13 => self.pause_one(),
            15..=16 => {
                let states = vec![CalendarRunState::Running];
                let running = self.users.runs(&RunFilter { states, ..RunFilter::default() });
                if let Some(run) = running.unwrap_or_default().first() {
                    self.note(&format!("a user cancels {}", run.id));
                    let _ = self.users.cancel(&CancelTarget::Run(run.id.clone()), now());
                }
            }
            // Also what would come within the next hour, so it is rare.
            17 if self.rng.random_bool(0.05) => {
                self.note("a user cancels everything");
                let _ = self.users.cancel(&CancelTarget::All, now());
            }
            18 if self.rng.random_bool(0.5) => {
                let Some(at) = self.random_agent() else { return };
                let host = self.agents[at].host.clone();
                self.note(&format!("the agent of {host} is revoked"));
                let _ = self.users.revoke(&host, now());
            }
            19 => {
                if let Some(at) = self.random_agent().filter(|at| !self.agents[*at].is_copy) {
                    let _ = self.enroll_again(at);
                }
            }
            _ => {}
        }
    }

    fn pause_one(&mut self) {
        let all = self.users.schedules().unwrap_or_default();
        if all.is_empty() {
            return;
        }
        let name = all[self.rng.random_range(0..all.len())].schedule.name.to_string();
        let pause = self.rng.random_bool(0.3);
        self.note(&format!("a user pauses or resumes {name}: {pause}"));
        let _ = self.users.set_paused(&name, pause, now());
    }

    /// Somebody who wants a test at once takes every time that becomes free.
    fn add_schedule(&mut self) {
        let hosts = self.inventory.hosts.len();
        let (from, to) = (self.rng.random_range(0..hosts), self.rng.random_range(0..hosts));
        let shared = self.rng.random_bool(0.3);
        let at = now().after(Span::from_ms(self.rng.random_range(0..4000)));
        let mut request = ScheduleRequest {
            name: format!("extra-{}", self.added.len()),
            pair: PairRequest {
                from: format!("h{from}"),
                to: format!("h{to}"),
                shared,
                ..PairRequest::default()
            },
            at: Some(rfc3339(at)),
            slip: Some(Span::from_secs(60)),
            priority: self.rng.random_range(0..=9),
            ..ScheduleRequest::default()
        };
        request.pair.spec.traffic.duration = Some(Span::from_secs(self.rng.random_range(1..=3)));
        request.pair.spec.traffic.no_latency = true;
        self.added.insert(request.name.clone(), shared);
        // From a host to itself is refused.
        let _ = self.users.add(&request, now());
    }
}

fn free_disk(agent: &ChaosAgent) {
    if agent.own_disk {
        let _ = fs::remove_file(agent.folder.join(BALLAST));
    } else {
        fs::set_permissions(&agent.folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

fn signal(process: u32, name: &str) {
    // A process that was killed meanwhile needs nothing.
    let _ = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).output();
}

fn number_in(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.lines().next()?.trim().parse().ok()
}

fn kill_and_wait(process: u32) {
    let Ok(process) = PidFd::open(process) else { return };
    let _ = process.signal(Signal::Kill);
    let _ = process.wait(clock::now() + KILL_LIMIT);
}

/// Copies the data of a running server. The copy replays what it has, and is a server of its own then.
fn backup(data: &Path, copy: &Path) -> bool {
    let mut words = vec!["-h".into(), data.as_os_str().to_owned()];
    words.extend(["-p", "5432", "-U", "linerate", "-c", "fast", "-X", "stream", "-D"].map(Into::into));
    let done = Command::new(program("pg_basebackup")).args(words).arg(copy).output();
    if !done.is_ok_and(|done| done.status.success()) {
        let _ = fs::remove_dir_all(copy);
        return false;
    }
    fs::write(copy.join("recovery.signal"), "").unwrap();
    let settings = copy.join("postgresql.auto.conf");
    let text = fs::read_to_string(&settings).unwrap_or_default();
    fs::write(settings, text + "restore_command = 'false'\n").unwrap();
    let owner = data.metadata().unwrap();
    let owner = format!("{}:{}", owner.uid(), owner.gid());
    Command::new("chown").args(["-R", &owner]).arg(copy).status().is_ok_and(|done| done.success())
}

fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin").join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| name.into())
}
