//! The agent as a state machine.

mod ends;

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::TestSpec;
use linerate_model::calendar::UnixTime;
use linerate_proto::fleet::{
    AgentCalendar, AgentReport, AgentRun, CalendarProof, CentreAnswer, CentreMessage, FleetAgentMessage,
    FleetKey, HeldCalendar, MAX_BEGUN, MessageOrigin, PlainName, PublicFleetKey, StoredResult, open, seal,
};
use linerate_units::Span;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::clock::{AgentClock, ClockReading};
use super::folder::{AgentFolder, AgentFolderError};
use super::outbox::ResultOutbox;
use super::report_times::ReportTimes;

/// How long the answer to a report may take.
const ANSWER_TIMEOUT: Span = Span::from_secs(10);
/// Results that are not stored may have this size before no further runs are taken.
const MOST_WAITING_BYTES: u64 = 256 << 20;
/// Processes before it that an agent remembers. The coordinators may not have heard the last ones, or have lost that they
/// did.
const SESSIONS: usize = 16;
const MEMORY_FILE: &str = "memory.json";
const CALENDAR_FILE: &str = "calendar";

/// Who an agent is.
#[derive(Debug)]
pub struct AgentIdentity {
    /// Its name: that of its host in the fleet.
    pub name: String,
    /// Its secret key.
    pub key: FleetKey,
    /// The public key of the coordinators.
    pub centre: PublicFleetKey,
    /// Version of the program.
    pub program: String,
    /// A name for this process that no other one has.
    pub session: PlainName,
}

/// Something that an agent wants to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentAction {
    /// Send this to the coordinators.
    Send(Vec<u8>),
    /// Carry out this run, and say with [`CalendarAgent::ended`] how it ended.
    Start {
        /// The run.
        run: AgentRun,
        /// What it measures.
        spec: Box<TestSpec>,
        /// By when its traffic has to begin, by the running clock of the reading.
        start_by: Span,
    },
    /// Stop this run at once.
    Stop {
        /// Its name.
        run: String,
    },
    /// The coordinators refuse this agent, or accept it again (empty).
    Refused(String),
    /// Something cannot be kept.
    NotKept(String),
}

/// What an agent must not forget.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct AgentMemory {
    /// Where the folder was; absent before the first process.
    #[serde(default)]
    place: Option<String>,
    /// The last processes that used the folder, the newest one last.
    #[serde(default)]
    sessions: Vec<PlainName>,
    /// The newest calendar that it ever had.
    newest: Option<HeldCalendar>,
    /// By what the coordinators recognise it.
    #[serde(default)]
    proof: Option<CalendarProof>,
    /// Whether the wall clock agreed with the fleet.
    wall_agrees: bool,
    /// Runs that have begun or are over, and when they began.
    runs: BTreeMap<PlainName, Option<UnixTime>>,
}

/// Why a run is stopped before it has ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopReason {
    TakenBack,
    TimeOver,
    Refused,
}

impl StopReason {
    fn in_words(self) -> &'static str {
        match self {
            Self::TakenBack => "it was taken from the calendar",
            Self::TimeOver => "its time was over",
            Self::Refused => "the agent was refused",
        }
    }
}

struct ActiveAgentRun {
    ends: UnixTime,
    begun: UnixTime,
    stopped: Option<StopReason>,
}

/// An agent.
pub struct CalendarAgent {
    identity: AgentIdentity,
    folder: Box<dyn AgentFolder>,
    clock: AgentClock,
    memory: AgentMemory,
    /// The processes that used the folder before.
    previous: Vec<PlainName>,
    calendar: Option<AgentCalendar>,
    active: BTreeMap<PlainName, ActiveAgentRun>,
    outbox: ResultOutbox,
    /// Reports without an answer: when they were sent.
    asked: BTreeMap<u64, Span>,
    nonce: u64,
    reports: ReportTimes,
    refused: String,
    /// Whether the coordinators have accepted this process.
    is_accepted: bool,
    /// Why its folder takes nothing more; empty if it does.
    not_kept: String,
    random: StdRng,
    actions: Vec<AgentAction>,
}

impl CalendarAgent {
    /// An agent with what its folder has.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub fn open(
        identity: AgentIdentity,
        mut folder: Box<dyn AgentFolder>,
        seed: u64,
    ) -> Result<Self, AgentFolderError> {
        let (mut memory, mut calendar, mut outbox) = (AgentMemory::default(), None, ResultOutbox::default());
        for (name, bytes) in folder.list()? {
            outbox.found(&name, bytes);
        }
        if let Some(content) = folder.read_one(MEMORY_FILE) {
            memory = serde_json::from_slice(&content).unwrap_or_default();
        }
        if let Some(content) = folder.read_one(CALENDAR_FILE)
            && let Some(CentreMessage::Calendar(one)) =
                open(MessageOrigin::Centre, &identity.centre, &content)
        {
            calendar = Some(one).filter(|one| one.agent == identity.name);
        }
        // A process that ended between two writes.
        let held = calendar.as_ref().map(|one| HeldCalendar { epoch: one.epoch, version: one.version });
        if held > memory.newest {
            memory.newest = held;
            memory.proof = calendar.as_ref().map(|one| one.proof.clone());
        }
        let place = folder.place();
        if memory.place.as_ref().is_some_and(|known| *known != place) {
            // A copy. The process that uses the first folder may go on, so this one does not carry out its calendar or say
            // how its runs ended, and is not the next process after it.
            memory.sessions.clear();
            memory.runs.values_mut().for_each(|begun| *begun = None);
            calendar = None;
            folder.remove(CALENDAR_FILE);
        }
        memory.place = Some(place);
        let previous = memory.sessions.clone();
        memory.sessions.push(identity.session.clone());
        let excess = memory.sessions.len().saturating_sub(SESSIONS);
        memory.sessions.drain(..excess);
        let mut agent = Self {
            clock: AgentClock::new(memory.wall_agrees),
            identity,
            folder,
            memory,
            previous,
            calendar,
            active: BTreeMap::new(),
            outbox,
            asked: BTreeMap::new(),
            nonce: 0,
            reports: ReportTimes::default(),
            refused: String::new(),
            is_accepted: false,
            not_kept: String::new(),
            random: StdRng::seed_from_u64(seed),
            actions: Vec::new(),
        };
        agent.folder.write(MEMORY_FILE, &agent.memory_document())?;
        Ok(agent)
    }

    /// Its calendar; absent if it has none.
    #[must_use]
    pub fn calendar(&self) -> Option<&AgentCalendar> {
        self.calendar.as_ref()
    }

    /// Results that the coordinators do not have yet.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.outbox.len()
    }

    /// The connection to the broker is there again: reports soon, but not in the same moment as all the others.
    pub fn connected(&mut self, reading: &ClockReading) {
        self.reports.connected(reading.running, &mut self.random);
    }

    /// Hears a message. One that is not from the coordinators is ignored.
    pub fn receive(&mut self, bytes: &[u8], reading: &ClockReading) {
        match open(MessageOrigin::Centre, &self.identity.centre, bytes) {
            Some(CentreMessage::Calendar(calendar)) => self.take_calendar(calendar, bytes, reading),
            Some(CentreMessage::Answer(answer)) => self.take_answer(&answer, reading),
            // One of before a loss is not true any more.
            Some(CentreMessage::Stored(StoredResult { agent, run, epoch, part, digest }))
                if agent == self.identity.name
                    && self.is_accepted
                    && self.memory.newest.is_none_or(|newest| epoch >= newest.epoch) =>
            {
                self.outbox.stored(&run, (part, &digest), reading.running, self.folder.as_mut());
            }
            Some(CentreMessage::Stored(_)) | None => {}
        }
    }

    fn take_calendar(&mut self, calendar: AgentCalendar, bytes: &[u8], reading: &ClockReading) {
        let held = HeldCalendar { epoch: calendar.epoch, version: calendar.version };
        let is_newer = self.memory.newest.is_none_or(|known| {
            let is_same = self.calendar.is_none() && held == known;
            is_same || (held.epoch >= known.epoch && held.version > known.version)
        });
        let wanted: BTreeSet<&str> = calendar.runs.iter().map(|run| run.id.as_str()).collect();
        // Two runs of one name would both start, and only one of them could be stopped.
        let is_sound = wanted.len() == calendar.runs.len()
            && calendar.runs.iter().all(|run| run.spec < calendar.specs.len());
        if calendar.agent != self.identity.name || !self.is_accepted || !is_newer || !is_sound {
            return;
        }
        // First on the disk: after a restart, it would keep to an earlier one that is not in force any more.
        let written = self.folder.write(CALENDAR_FILE, bytes);
        if !self.note_kept(written) {
            return;
        }
        self.memory.newest = Some(held);
        self.memory.proof = Some(calendar.proof.clone());
        self.memory.runs.retain(|run, _| {
            wanted.contains(run.as_str()) || self.active.contains_key(run) || self.outbox.has(run)
        });
        let gone: Vec<PlainName> =
            self.active.keys().filter(|run| !wanted.contains(run.as_str())).cloned().collect();
        gone.iter().for_each(|run| self.stop(run, StopReason::TakenBack));
        // A database that gives out a run anew whose result it had has lost that.
        self.outbox.send_kept(|run| calendar.lost || wanted.contains(run), self.folder.as_mut());
        let unsure = self.unsure_runs(&calendar);
        self.calendar = Some(calendar);
        for run in unsure {
            let now = self.clock.now(reading).map_or(run.starts, |(now, _)| now);
            self.note_missed(&run, "the database lost what was written last".to_owned(), now);
        }
        self.remember();
        self.reports.at_once();
    }

    /// Runs of a calendar from after a loss that are not in the one before. Their time may have been given to others: only
    /// of what an agent has in its calendar, nobody else gets the time.
    fn unsure_runs(&self, calendar: &AgentCalendar) -> Vec<AgentRun> {
        if !calendar.lost {
            return Vec::new();
        }
        let before = self.calendar.iter().flat_map(|before| &before.runs);
        let before: BTreeSet<&str> = before.map(|run| run.id.as_str()).collect();
        let is_unsure = |run: &&AgentRun| !before.contains(run.id.as_str()) && self.is_new(run);
        calendar.runs.iter().filter(is_unsure).cloned().collect()
    }

    /// The memory keeps the runs of the last calendar only, and a failover can bring back one from before.
    fn is_new(&self, run: &AgentRun) -> bool {
        !self.memory.runs.contains_key(run.id.as_str()) && !self.outbox.has(&run.id)
    }

    fn take_answer(&mut self, answer: &CentreAnswer, reading: &ClockReading) {
        if answer.agent != self.identity.name || answer.session != self.identity.session {
            return;
        }
        let Some(asked) = self.asked.remove(&answer.nonce) else { return };
        self.reports.answered();
        // One from before a take-over is late.
        if self.memory.newest.is_some_and(|newest| answer.epoch < newest.epoch) {
            return;
        }
        self.clock.learn(asked, answer.now, reading);
        if self.clock.wall_agrees() != self.memory.wall_agrees {
            self.memory.wall_agrees = self.clock.wall_agrees();
            self.remember();
        }
        self.is_accepted = answer.refused.as_str().is_empty();
        if answer.refused.as_str() != self.refused {
            self.refused = answer.refused.as_str().to_owned();
            self.actions.push(AgentAction::Refused(self.refused.clone()));
            if !self.refused.is_empty() {
                let active: Vec<PlainName> = self.active.keys().cloned().collect();
                active.iter().for_each(|run| self.stop(run, StopReason::Refused));
                // What it was to do may be given to others from now on, and it may be accepted again.
                self.calendar = None;
                self.folder.remove(CALENDAR_FILE);
            }
        }
    }

    fn stop(&mut self, run: &str, why: StopReason) {
        if let Some(active) = self.active.get_mut(run).filter(|active| active.stopped.is_none()) {
            active.stopped = Some(why);
            self.actions.push(AgentAction::Stop { run: run.to_owned() });
        }
    }

    /// Looks at its calendar and says what has to be done. Called when [`Self::next_tick`] says, and after every message.
    pub fn tick(&mut self, reading: &ClockReading) -> Vec<AgentAction> {
        let now = self.clock.now(reading);
        if let Some((now, error)) = now {
            self.stop_overdue(now);
            self.carry_out(now, error, reading.running);
        }
        if reading.running >= self.reports.next() && self.is_settled() {
            self.report(reading);
        }
        // Two processes with one key may have different results of one run, and what is stored is said to both.
        if self.is_accepted {
            for message in self.outbox.due(&self.identity.name, reading.running, self.folder.as_mut()) {
                self.send(&message);
            }
        }
        std::mem::take(&mut self.actions)
    }

    /// When it wants to be called again at the latest, from now.
    #[must_use]
    pub fn next_tick(&self, reading: &ClockReading) -> Span {
        let until = |at: Span| at.saturating_sub(reading.running);
        let report = until(self.reports.next());
        let run = self.clock.now(reading).and_then(|(now, _)| {
            let calendar = self.calendar.as_ref()?;
            let coming = calendar.runs.iter().filter(|run| !self.memory.runs.contains_key(run.id.as_str()));
            coming.map(|run| run.starts.since(now)).min()
        });
        let busy = !self.active.is_empty() || self.outbox.len() > 0;
        let most = if busy { Span::from_ms(250) } else { Span::from_secs(5) };
        run.into_iter().chain([report, most]).min().unwrap_or(most).max(Span::from_ms(20))
    }

    fn stop_overdue(&mut self, now: UnixTime) {
        let over: Vec<PlainName> =
            self.active.iter().filter(|(_, one)| one.ends <= now).map(|(run, _)| run.clone()).collect();
        over.iter().for_each(|run| self.stop(run, StopReason::TimeOver));
    }

    /// Starts what is due, and notes what can no longer start.
    fn carry_out(&mut self, now: UnixTime, error: Span, running: Span) {
        let Some(calendar) = self.calendar.as_ref().filter(|_| self.refused.is_empty()) else { return };
        let (set_up, settle) = (calendar.set_up, calendar.settle);
        let over = now.after(error) >= calendar.until;
        let until = calendar.until;
        let due = calendar.runs.iter().filter(|run| run.starts <= now);
        let due: Vec<AgentRun> = due.filter(|run| self.is_new(run)).cloned().collect();
        if due.is_empty() {
            return;
        }
        let specs = calendar.specs.clone();
        for run in due {
            let latest = run.starts.after(set_up);
            // Two agents may be wrong in opposite directions, and the settling of the run before is for both.
            let refusal = if now > latest || now >= run.ends {
                Some("its agent was not there at its time".to_owned())
            } else if over {
                Some("the calendar of its agent had ended".to_owned())
            } else if error > Span::from_ns(settle.as_ns() / 4) {
                Some(format!("clock: it may be {error} off, more than a quarter of the time for settling"))
            } else {
                None
            };
            match refusal {
                Some(why) => self.note_missed(&run, why, now),
                // Nothing is on the wire by a calendar that has ended, whatever it says of this run.
                None => {
                    let run = AgentRun { ends: run.ends.min(until), ..run };
                    self.start(run, &specs, now, running + latest.since(now));
                }
            }
        }
    }

    fn start(&mut self, run: AgentRun, specs: &[TestSpec], now: UnixTime, start_by: Span) {
        self.memory.runs.insert(run.id.clone(), Some(now));
        // First on the disk, so that an agent that is restarted does not begin it once more.
        let written = self.folder.write(MEMORY_FILE, &self.memory_document());
        if !self.note_kept(written) {
            let why = format!("the agent cannot note it: {}", self.not_kept);
            self.note_missed(&run, why, now);
            return;
        }
        let Some(spec) = specs.get(run.spec) else { return };
        self.active.insert(run.id.clone(), ActiveAgentRun { ends: run.ends, begun: now, stopped: None });
        self.actions.push(AgentAction::Start { spec: Box::new(spec.clone()), run, start_by });
        self.reports.at_once();
    }

    /// Whether everything that it does is in its calendar, so that it may say that it keeps to it.
    fn is_settled(&self) -> bool {
        !self.active.values().any(|active| active.stopped.is_some())
    }

    fn report(&mut self, reading: &ClockReading) {
        self.asked.retain(|_, asked| reading.running.saturating_sub(*asked) < ANSWER_TIMEOUT);
        self.nonce += 1;
        self.asked.insert(self.nonce, reading.running);
        let holds = self.calendar.as_ref().map(|one| HeldCalendar { epoch: one.epoch, version: one.version });
        let full = if !self.not_kept.is_empty() {
            self.not_kept.clone()
        } else if self.outbox.bytes() > MOST_WAITING_BYTES {
            format!("{} results wait to be stored", self.outbox.len())
        } else {
            String::new()
        };
        let begun = self.active.iter().take(MAX_BEGUN);
        let report = AgentReport {
            agent: self.identity.name.as_str().into(),
            session: self.identity.session.clone(),
            previous: self.previous.clone(),
            nonce: self.nonce,
            program: self.identity.program.as_str().into(),
            holds,
            newest: self.memory.newest,
            proof: self.memory.proof.clone().unwrap_or_else(|| "".into()),
            full: full.into(),
            waiting: self.outbox.len(),
            begun: begun.map(|(run, active)| (run.clone(), active.begun)).collect(),
        };
        self.send(&FleetAgentMessage::Report(report));
        self.reports.reported(reading.running, &mut self.random);
    }

    fn send(&mut self, message: &FleetAgentMessage) {
        self.actions.push(AgentAction::Send(seal(MessageOrigin::Agent, &self.identity.key, message)));
    }

    fn memory_document(&self) -> Vec<u8> {
        serde_json::to_vec(&self.memory).unwrap_or_default()
    }

    fn remember(&mut self) {
        let written = self.folder.write(MEMORY_FILE, &self.memory_document());
        self.note_kept(written);
    }

    /// Whether something was kept; says so when that changes.
    fn note_kept(&mut self, kept: Result<(), AgentFolderError>) -> bool {
        let why = kept.err().map(|error| error.to_string()).unwrap_or_default();
        if why != self.not_kept {
            self.not_kept = why;
            self.actions.push(AgentAction::NotKept(self.not_kept.clone()));
        }
        self.not_kept.is_empty()
    }
}

impl std::fmt::Debug for CalendarAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CalendarAgent").field("identity", &self.identity).finish_non_exhaustive()
    }
}
