//! Agents in virtual time, which carry out signed calendars, and the broker between them and the coordinators: messages
//! are late, doubled and lost, agents are killed, cut off and copied, and their clocks are wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use linerate_fleet::{
    AgentAction, AgentFolder, AgentFolderError, AgentIdentity, AgentRun, CalendarAgent, CentreMessage,
    ClockReading, FleetKey, RunEnd,
};
use linerate_model::TestSpec;
use linerate_model::calendar::{CalendarRunState, CellResult, UnixTime};
use linerate_units::{Bitrate, Span};
use rand::Rng;
use rand::rngs::StdRng;

/// Looks of an agent within a step of a history.
pub(crate) const LOOKS: i64 = 8;

/// The files of an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimulatedDisk {
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    full: Arc<Mutex<bool>>,
    copies: u32,
}

impl SimulatedDisk {
    /// Another disk with the same content.
    pub(crate) fn copy(&self) -> Self {
        let files = self.files.lock().unwrap().clone();
        Self { files: Arc::new(Mutex::new(files)), full: Arc::default(), copies: self.copies + 1 }
    }
}

impl AgentFolder for SimulatedDisk {
    fn write(&mut self, name: &str, content: &[u8]) -> Result<(), AgentFolderError> {
        if *self.full.lock().unwrap() {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(AgentFolderError { path: name.into(), source });
        }
        self.files.lock().unwrap().insert(name.to_owned(), content.to_vec());
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.files.lock().unwrap().remove(name);
    }

    fn rename(&mut self, from: &str, to: &str) {
        let mut files = self.files.lock().unwrap();
        if let Some(content) = files.remove(from) {
            files.insert(to.to_owned(), content);
        }
    }

    fn read_one(&mut self, name: &str) -> Option<Vec<u8>> {
        self.files.lock().unwrap().get(name).cloned()
    }

    fn place(&self) -> String {
        self.copies.to_string()
    }

    fn list(&mut self) -> Result<Vec<(String, u64)>, AgentFolderError> {
        let files = self.files.lock().unwrap();
        Ok(files.iter().map(|(name, content)| (name.clone(), content.len() as u64)).collect())
    }
}

/// What an agent starts, in true time.
pub(crate) struct AgentStart {
    pub(crate) agent: usize,
    pub(crate) host: String,
    pub(crate) run: AgentRun,
    pub(crate) spec: Box<TestSpec>,
    pub(crate) begin_within: Span,
    pub(crate) at_ms: i64,
    /// When its calendar ends.
    pub(crate) until: UnixTime,
}

/// What agents want to be done in the world.
pub(crate) enum AgentRequest {
    Start(AgentStart),
    Stop { agent: usize, run: String },
}

/// A message on its way.
#[derive(Debug, Clone)]
struct FlyingMessage {
    arrives_ms: i64,
    /// The agent that sends it, or the host that gets it.
    host: String,
    to_centre: bool,
    bytes: Vec<u8>,
}

/// A process of an agent.
struct SimulatedAgent {
    host: String,
    secret: [u8; 32],
    disk: SimulatedDisk,
    machine: Option<CalendarAgent>,
    /// When its host was started, in true time.
    boot_ms: i64,
    /// How much its running clock gains, in millionths.
    drift_ppm: i64,
    /// How far its wall clock is off, and whether the host knows that it is right.
    wall_off_ms: i64,
    synchronised: bool,
    down_until_ms: i64,
    deaf_until_ms: i64,
    mute_until_ms: i64,
    is_copy: bool,
    /// The highest epoch that its disk has seen.
    epoch: u64,
}

impl SimulatedAgent {
    fn reading(&self, at_ms: i64) -> ClockReading {
        let running_us = (at_ms - self.boot_ms) * 1000;
        let running_us = running_us + running_us / 1_000_000 * self.drift_ppm;
        ClockReading {
            running: Span::from_us(running_us as u64),
            wall: UnixTime::from_ms(at_ms + self.wall_off_ms),
            wall_error: self.synchronised.then_some(Span::from_ms(50)),
        }
    }
}

/// All agents of a history, and the broker.
pub(crate) struct SimulatedAgents {
    centre: [u8; 32],
    agents: Vec<SimulatedAgent>,
    flying: Vec<FlyingMessage>,
    broker_down_until_ms: i64,
    /// Runs whose results an agent was told to be stored, and its host. Of an agent that lost its disk afterwards, another
    /// copy of the database gets them from nobody.
    pub(crate) acked: BTreeMap<String, String>,
    /// Hosts whose disks were full, so that results were only in memory.
    were_full: BTreeSet<String>,
    /// Hosts with an agent that was copied: what it measures twice is its own.
    pub(crate) copied: BTreeSet<String>,
    sessions: u32,
}

impl SimulatedAgents {
    pub(crate) fn new(rng: &mut StdRng) -> Self {
        Self {
            centre: rng.random(),
            agents: Vec::new(),
            flying: Vec::new(),
            broker_down_until_ms: 0,
            acked: BTreeMap::new(),
            were_full: BTreeSet::new(),
            copied: BTreeSet::new(),
            sessions: 0,
        }
    }

    pub(crate) fn centre_key(&self) -> FleetKey {
        FleetKey::from_bytes(self.centre).unwrap()
    }

    pub(crate) fn len(&self) -> usize {
        self.agents.len()
    }

    pub(crate) fn host(&self, agent: usize) -> &str {
        &self.agents[agent].host
    }

    /// The public key of the agent of a host.
    pub(crate) fn public_key(&self, host: &str) -> Option<String> {
        let agent = self.agents.iter().find(|agent| agent.host == host && !agent.is_copy)?;
        Some(FleetKey::from_bytes(agent.secret).unwrap().public().to_string())
    }

    /// A new agent, which is not running yet; its public key.
    pub(crate) fn add(&mut self, host: &str, rng: &mut StdRng) -> String {
        let secret = rng.random();
        let key = FleetKey::from_bytes(secret).unwrap().public();
        self.agents.push(SimulatedAgent {
            host: host.to_owned(),
            secret,
            disk: SimulatedDisk::default(),
            machine: None,
            boot_ms: 0,
            drift_ppm: rng.random_range(-80..=80),
            wall_off_ms: rng.random_range(-5000..=5000),
            synchronised: false,
            down_until_ms: 0,
            deaf_until_ms: 0,
            mute_until_ms: 0,
            is_copy: false,
            epoch: 0,
        });
        key.as_str().to_owned()
    }

    /// A new key for a host whose agent was revoked.
    pub(crate) fn renew_key(&mut self, host: &str, now_ms: i64, rng: &mut StdRng) -> String {
        let key = self.add(host, rng);
        let new = self.agents.pop().unwrap();
        let old = self.agents.iter_mut().find(|agent| agent.host == host && !agent.is_copy).unwrap();
        old.secret = new.secret;
        self.restart(host, now_ms, rng);
        key
    }

    fn restart(&mut self, host: &str, now_ms: i64, rng: &mut StdRng) {
        for at in 0..self.agents.len() {
            if self.agents[at].host == host && self.agents[at].machine.take().is_some() {
                self.start(at, now_ms, rng);
            }
        }
    }

    fn start(&mut self, at: usize, now_ms: i64, rng: &mut StdRng) {
        self.sessions += 1;
        let agent = &mut self.agents[at];
        // A restarted host has another running clock; one that is synchronised is right.
        if agent.boot_ms == 0 || rng.random_bool(0.3) {
            agent.boot_ms = now_ms - rng.random_range(1000..100_000);
            agent.synchronised = rng.random_bool(0.5);
            agent.wall_off_ms =
                if agent.synchronised { rng.random_range(-50..=50) } else { rng.random_range(-5000..=5000) };
        }
        let identity = AgentIdentity {
            name: agent.host.clone(),
            key: FleetKey::from_bytes(agent.secret).unwrap(),
            centre: FleetKey::from_bytes(self.centre).unwrap().public(),
            program: "1.2.3".to_owned(),
            session: format!("session-{}", self.sessions).into(),
        };
        let reading = agent.reading(now_ms);
        match CalendarAgent::open(identity, Box::new(agent.disk.clone()), rng.random()) {
            Ok(mut machine) => {
                machine.note_broken_off(&reading);
                machine.connected(&reading);
                agent.machine = Some(machine);
            }
            // It is tried again, as a service manager does.
            Err(_) => agent.down_until_ms = now_ms + 5000,
        }
    }

    /// A message of a coordinator to a host.
    pub(crate) fn send_to_agent(&mut self, host: &str, bytes: Vec<u8>, at_ms: i64, rng: &mut StdRng) {
        self.fly(&FlyingMessage { arrives_ms: at_ms, host: host.to_owned(), to_centre: false, bytes }, rng);
    }

    fn fly(&mut self, message: &FlyingMessage, rng: &mut StdRng) {
        if message.arrives_ms < self.broker_down_until_ms || rng.random_bool(0.02) {
            return;
        }
        let copies = if rng.random_bool(0.03) { 2 } else { 1 };
        for _ in 0..copies {
            let late = rng.random_bool(0.03);
            let delay = if late { rng.random_range(500..20_000) } else { rng.random_range(5..120) };
            self.flying.push(FlyingMessage { arrives_ms: message.arrives_ms + delay, ..message.clone() });
        }
    }

    /// What has arrived at the coordinators by now.
    pub(crate) fn take_for_centre(&mut self, now_ms: i64) -> Vec<(String, Vec<u8>)> {
        let (arrived, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.flying)
            .into_iter()
            .partition(|message| message.to_centre && message.arrives_ms <= now_ms);
        self.flying = rest;
        let mut arrived = arrived;
        arrived.sort_by_key(|message| message.arrives_ms);
        arrived.into_iter().map(|message| (message.host, message.bytes)).collect()
    }

    /// Lets the time pass until `now_ms`: what arrives, and the looks of the agents.
    pub(crate) fn advance(&mut self, now_ms: i64, rng: &mut StdRng) -> Vec<AgentRequest> {
        let mut requests = Vec::new();
        let (mut arrived, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.flying)
            .into_iter()
            .partition(|message| !message.to_centre && message.arrives_ms <= now_ms);
        self.flying = rest;
        arrived.sort_by_key(|message| message.arrives_ms);
        for message in arrived {
            for at in 0..self.agents.len() {
                let agent = &mut self.agents[at];
                if agent.host != message.host || agent.deaf_until_ms > message.arrives_ms {
                    continue;
                }
                let reading = agent.reading(message.arrives_ms);
                let Some(machine) = &mut agent.machine else { continue };
                machine.receive(&message.bytes, &reading);
                self.note_acked(&message.bytes);
                self.look(at, message.arrives_ms, rng, &mut requests);
            }
        }
        for at in 0..self.agents.len() {
            if self.agents[at].machine.is_none() && self.agents[at].down_until_ms <= now_ms {
                self.start(at, now_ms, rng);
            }
            self.look(at, now_ms, rng, &mut requests);
        }
        requests
    }

    /// What agents hear of results that are stored for ever.
    fn note_acked(&mut self, bytes: &[u8]) {
        let document = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes, |end| &bytes[end + 1..]);
        if let Ok(CentreMessage::Stored(stored)) = serde_json::from_slice(document)
            && stored.part.is_none()
            && !self.were_full.contains(stored.agent.as_str())
        {
            self.acked.insert(stored.run.into(), stored.agent.into());
        }
    }

    fn look(&mut self, at: usize, at_ms: i64, rng: &mut StdRng, requests: &mut Vec<AgentRequest>) {
        let agent = &mut self.agents[at];
        let reading = agent.reading(at_ms);
        let Some(machine) = &mut agent.machine else { return };
        let actions = machine.tick(&reading);
        let calendar = machine.calendar().map(|one| (one.epoch, one.until));
        let mut sent = Vec::new();
        for action in actions {
            match action {
                AgentAction::Send(bytes) if agent.mute_until_ms <= at_ms => sent.push(bytes),
                AgentAction::Start { run, spec, start_by } => {
                    let begin_within = Span::from_ns(start_by.as_ns() - reading.running.as_ns());
                    let (_, until) = calendar.unwrap();
                    let host = agent.host.clone();
                    requests.push(AgentRequest::Start(AgentStart {
                        agent: at,
                        host,
                        run,
                        spec,
                        begin_within,
                        at_ms,
                        until,
                    }));
                }
                AgentAction::Stop { run } => requests.push(AgentRequest::Stop { agent: at, run }),
                _ => {}
            }
        }
        if let Some((epoch, _)) = calendar {
            assert!(epoch >= agent.epoch, "I4: {} goes back to epoch {epoch}", agent.host);
            agent.epoch = epoch;
        }
        let host = agent.host.clone();
        for bytes in sent {
            self.fly(&FlyingMessage { arrives_ms: at_ms, host: host.clone(), to_centre: true, bytes }, rng);
        }
    }

    /// A run has ended; false if its agent is gone.
    pub(crate) fn ended(&mut self, at: usize, run: &str, whole: bool, now_ms: i64, rng: &mut StdRng) -> bool {
        let agent = &mut self.agents[at];
        let reading = agent.reading(now_ms);
        let Some(machine) = &mut agent.machine else { return false };
        let works = rng.random_bool(0.9);
        let slow = rng.random_bool(0.1);
        // Some results are longer than a message.
        let log = "the log of a run\n".repeat(if rng.random_bool(0.05) { 1000 } else { 1 });
        let end = if whole && works {
            let goodput = Bitrate::from_bps(if slow { 1e6 } else { 1e9 });
            let result = Some(CellResult { goodput, ..CellResult::default() });
            RunEnd { state: CalendarRunState::Finished, reason: String::new(), result }
        } else {
            RunEnd { state: CalendarRunState::Failed, reason: "broken off".to_owned(), result: None }
        };
        machine.ended(run, end, log, &reading);
        true
    }

    /// Something happens to the broker or to an agent; what, and the agent whose traffic ends.
    pub(crate) fn misfortune(&mut self, now_ms: i64, rng: &mut StdRng) -> Option<(String, Option<usize>)> {
        let at = rng.random_range(0..self.agents.len());
        let for_ms = rng.random_range(1..90) * 1000;
        let agent = &mut self.agents[at];
        let host = agent.host.clone();
        Some(match rng.random_range(0..300) {
            0..=2 => {
                self.broker_down_until_ms = now_ms + for_ms;
                self.flying.clear();
                (format!("the broker is down for {for_ms} ms"), None)
            }
            3..=5 => {
                agent.deaf_until_ms = now_ms + for_ms * 4;
                (format!("the agent of {host} hears nothing for {} ms", for_ms * 4), None)
            }
            6..=8 => {
                agent.mute_until_ms = now_ms + for_ms * 4;
                (format!("nobody hears the agent of {host} for {} ms", for_ms * 4), None)
            }
            9..=12 if agent.machine.is_some() => {
                agent.machine = None;
                agent.down_until_ms = now_ms + for_ms;
                (format!("the agent of {host} is killed, for {for_ms} ms"), Some(at))
            }
            13 if agent.machine.is_some() && !agent.is_copy => {
                agent.machine = None;
                agent.down_until_ms = now_ms + for_ms;
                agent.disk = SimulatedDisk::default();
                agent.epoch = 0;
                self.acked.retain(|_, from| *from != host);
                (format!("the agent of {host} loses its disk"), Some(at))
            }
            14..=17 => {
                agent.wall_off_ms += rng.random_range(-5000..=5000);
                agent.synchronised = false;
                (format!("the wall clock of {host} is set, it is {} ms off", agent.wall_off_ms), None)
            }
            18 if !agent.is_copy && !self.copied.contains(&host) => {
                let copy = SimulatedAgent {
                    host: host.clone(),
                    disk: agent.disk.copy(),
                    machine: None,
                    down_until_ms: now_ms + 1000,
                    is_copy: true,
                    ..*agent
                };
                self.agents.push(copy);
                self.copied.insert(host.clone());
                (format!("the agent of {host} is copied"), None)
            }
            19..=20 => {
                *agent.disk.full.lock().unwrap() ^= true;
                self.were_full.insert(host.clone());
                self.acked.retain(|_, from| *from != host);
                (format!("the disk of {host} becomes full, or has room again"), None)
            }
            _ => return None,
        })
    }

    /// In the end, everything works again and there are no copies. The agents whose traffic ends.
    pub(crate) fn recover(&mut self) -> Vec<usize> {
        self.broker_down_until_ms = 0;
        let mut ended = Vec::new();
        for (at, agent) in self.agents.iter_mut().enumerate() {
            (agent.deaf_until_ms, agent.mute_until_ms) = (0, 0);
            *agent.disk.full.lock().unwrap() = false;
            if agent.is_copy {
                agent.machine = None;
                agent.down_until_ms = i64::MAX;
                ended.push(at);
            } else {
                agent.down_until_ms = 0;
            }
        }
        ended
    }
}
