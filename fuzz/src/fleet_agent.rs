//! The agent of a fleet, with coordinators whose key it knows and who may say anything.
//!
//! The input is a script: each step is one byte that selects what happens and one for how, followed by further
//! arguments. The time passes for everybody alike, and the wall clock of the host is off by no more than it says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_fleet::{
    AgentAction, AgentFolder, AgentFolderError, AgentIdentity, CalendarAgent, ClockReading, RunEnd,
};
use linerate_model::calendar::{CalendarRunState, UnixTime};
use linerate_proto::fleet::{
    AgentRun, CentreAnswer, CentreMessage, FleetAgentMessage, HeldCalendar, MessageOrigin, ResultDigest,
    ResultPartText, StoredResult, open, seal, seal_document,
};
use linerate_units::Span;

use crate::fleet::{at, calendar, centre_messages, documents, key, run};
use crate::script::Script;

/// How long an agent remembers a run that it measured, whatever its calendars say.
const REMEMBERED: Span = Span::from_secs(2 * 3600);
/// How far the time may be off that an agent has from an answer, before it drifts.
const ANSWER_ERROR: Span = Span::from_secs(3);

/// Plays a script.
pub fn fleet_agent(bytes: &[u8]) {
    play(bytes);
}

fn play(bytes: &[u8]) -> AgentSite {
    let mut site = AgentSite::new();
    let mut script = Script { rest: bytes };
    while let (Some(step), Some(how)) = (script.byte(), script.byte()) {
        site.step(step, how, &mut script);
        site.check();
    }
    site
}

/// Files in memory.
#[derive(Default)]
struct ScriptedDisk {
    files: BTreeMap<String, Vec<u8>>,
    is_full: bool,
}

#[derive(Clone, Default)]
struct ScriptedFolder(Arc<Mutex<ScriptedDisk>>);

impl ScriptedFolder {
    fn disk(&self) -> MutexGuard<'_, ScriptedDisk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentFolder for ScriptedFolder {
    fn write(&mut self, name: &str, content: &[u8]) -> Result<(), AgentFolderError> {
        assert!(
            !name.is_empty() && !name.contains(['/', '\\', '.', '\0']) || name == "memory.json",
            "{name:?}"
        );
        let mut disk = self.disk();
        if disk.is_full {
            return Err(AgentFolderError {
                path: name.into(),
                source: std::io::ErrorKind::StorageFull.into(),
            });
        }
        disk.files.insert(name.to_owned(), content.to_vec());
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.disk().files.remove(name);
    }

    fn rename(&mut self, from: &str, to: &str) {
        let mut disk = self.disk();
        if let Some(content) = disk.files.remove(from) {
            disk.files.insert(to.to_owned(), content);
        }
    }

    fn read_one(&mut self, name: &str) -> Option<Vec<u8>> {
        self.disk().files.get(name).cloned()
    }

    fn list(&mut self) -> Result<Vec<(String, u64)>, AgentFolderError> {
        let disk = self.disk();
        Ok(disk.files.iter().map(|(name, content)| (name.clone(), content.len() as u64)).collect())
    }
}

/// A run that the agent has been told to carry out.
struct BegunRun {
    ends: UnixTime,
    is_stopped: bool,
}

struct AgentSite {
    agent: CalendarAgent,
    folder: ScriptedFolder,
    /// Time since the start, and since the host was started.
    passed: Span,
    booted: Span,
    /// How far the wall clock is ahead, and whether the host knows how far it is off.
    wall_ahead_ms: i64,
    is_wall_known: bool,
    /// Processes so far.
    sessions: u32,
    /// The last report of this process.
    nonce: Option<u64>,
    /// When this process first heard the time.
    learned: Option<Span>,
    /// Whether coordinators have always said what time it is.
    is_honest: bool,
    refused: bool,
    /// The newest calendar that it had.
    newest: Option<HeldCalendar>,
    active: BTreeMap<String, BegunRun>,
    /// When runs have begun.
    begun: BTreeMap<String, Span>,
    /// Parts of results that it has sent last.
    sent: BTreeMap<String, BTreeMap<u32, ResultPartText>>,
    /// Earlier messages of coordinators, to be sent again.
    earlier: Vec<Vec<u8>>,
}

impl AgentSite {
    fn new() -> Self {
        let folder = ScriptedFolder::default();
        Self {
            agent: open_agent(&folder, 0).unwrap_or_else(|error| unreachable!("{error}")),
            folder,
            passed: Span::from_secs(1),
            booted: Span::ZERO,
            wall_ahead_ms: 0,
            is_wall_known: false,
            sessions: 0,
            nonce: None,
            learned: None,
            is_honest: true,
            refused: false,
            newest: None,
            active: BTreeMap::new(),
            begun: BTreeMap::new(),
            sent: BTreeMap::new(),
            earlier: Vec::new(),
        }
    }

    fn step(&mut self, step: u8, how: u8, script: &mut Script<'_>) {
        let more = u64::from(how);
        match step % 16 {
            0 => self.pass(Span::from_ms(more * 100)),
            1 => self.pass(Span::from_secs(more * 30)),
            2 => self.answer(how, false),
            3 => self.answer(how, true),
            4 => self.send_calendar(how, script),
            5 => self.stored(how, script),
            6 => {
                let document = script.some().unwrap_or_default();
                self.receive(&seal_document(MessageOrigin::Centre, &key(2), document));
            }
            7 => {
                let documents = documents(&centre_messages());
                let mut document = documents[usize::from(how) % documents.len()].clone();
                // Another byte somewhere in it.
                let place = usize::from(script.byte().unwrap_or_default()) * 256;
                let place = place + usize::from(script.byte().unwrap_or_default());
                if let Some(byte) = document.get_mut(place) {
                    *byte = script.byte().unwrap_or_default();
                }
                self.receive(&seal_document(MessageOrigin::Centre, &key(2), &document));
            }
            8 => self.replay(usize::from(how)),
            9 => self.end_run(how),
            10 => self.restart(how),
            11 => self.folder.disk().is_full = how.is_multiple_of(2),
            12 => {
                let reading = self.reading();
                self.agent.connected(&reading);
            }
            13 => {
                // Of another key or another origin: nothing that it says counts.
                let [message, ..] = &centre_messages()[..] else { return };
                let held = self.held();
                let forged = [
                    seal(MessageOrigin::Centre, &key(1), message),
                    seal(MessageOrigin::Agent, &key(2), message),
                    script.some().unwrap_or_default().to_vec(),
                ];
                let reading = self.reading();
                self.agent.receive(&forged[usize::from(how) % forged.len()], &reading);
                assert_eq!(self.held(), held);
            }
            14 => (self.wall_ahead_ms, self.is_wall_known) = (i64::from(how) - 100, how & 1 == 0),
            _ => self.tick(),
        }
    }

    fn now(&self) -> UnixTime {
        at(0).after(self.passed)
    }

    fn reading(&self) -> ClockReading {
        let wall = UnixTime::from_ms(self.now().as_ms() + self.wall_ahead_ms);
        let wall_error = self.is_wall_known.then(|| Span::from_ms(self.wall_ahead_ms.unsigned_abs() + 1));
        ClockReading { running: self.passed.saturating_sub(self.booted), wall, wall_error }
    }

    fn held(&self) -> Option<HeldCalendar> {
        self.agent.calendar().map(|one| HeldCalendar { epoch: one.epoch, version: one.version })
    }

    fn pass(&mut self, span: Span) {
        // Longer than the agent asks for, if the script wants that.
        self.passed = self.passed + span;
        self.tick();
    }

    /// Says what time it is, some time after it was asked.
    fn answer(&mut self, how: u8, is_refused: bool) {
        let Some(nonce) = self.nonce else { return };
        let answer = CentreAnswer {
            agent: "a".into(),
            session: session(self.sessions).into(),
            nonce,
            epoch: self.newest.map_or(1, |newest| newest.epoch).saturating_sub(u64::from(how == 255)),
            now: self.now(),
            refused: if is_refused { "no".into() } else { "".into() },
        };
        self.passed = self.passed + Span::from_ms(u64::from(how) * 10);
        self.receive(&seal(MessageOrigin::Centre, &key(2), &CentreMessage::Answer(answer)));
        self.nonce = None;
    }

    /// A calendar as coordinators make them, and sometimes as none does.
    fn send_calendar(&mut self, how: u8, script: &mut Script<'_>) {
        let newest = self.newest.unwrap_or(HeldCalendar { epoch: 1, version: 0 });
        let held = match how % 8 {
            0 => newest,
            1 => HeldCalendar {
                epoch: newest.epoch.saturating_sub(1),
                version: newest.version.saturating_add(1),
            },
            2 => HeldCalendar {
                epoch: newest.epoch.saturating_add(1),
                version: newest.version.saturating_add(9),
            },
            3 => HeldCalendar { epoch: newest.epoch, version: newest.version.saturating_sub(1) },
            _ => HeldCalendar { epoch: newest.epoch, version: newest.version.saturating_add(1) },
        };
        let mut runs = Vec::new();
        let seconds = |count: u8| i64::from(count) * 1000;
        for chunk in script.some().unwrap_or_default().chunks_exact(2) {
            let starts = self.now().as_ms() - at(0).as_ms() + seconds(chunk[0]) - 20_000;
            // An end before the start is none that a coordinator gives.
            runs.push(run(&format!("r{starts}"), at(starts), at(starts + seconds(chunk[1]) - 5000)));
        }
        let mut one = calendar(held, runs);
        one.until = self.now().after(Span::from_secs(u64::from(script.byte().unwrap_or(200)) * 10));
        one.lost = how & 64 != 0;
        if how & 128 != 0 {
            one.agent = "b".into();
        }
        self.receive(&seal(MessageOrigin::Centre, &key(2), &CentreMessage::Calendar(one)));
    }

    fn stored(&mut self, how: u8, script: &mut Script<'_>) {
        let runs: Vec<String> = self.begun.keys().cloned().collect();
        let Some(run) = runs.get(usize::from(how) % runs.len().max(1)).cloned() else { return };
        let part = script.byte().filter(|byte| byte % 2 == 1).map(u32::from);
        let epoch = self.newest.map_or(1, |newest| newest.epoch);
        // That of another process is not its own.
        let is_own = how < 128;
        let parts = self.sent.get(&run).filter(|_| is_own);
        let parts =
            parts.into_iter().flatten().filter(|(number, _)| part.is_none_or(|part| part == **number));
        let digest = ResultDigest::of(parts.map(|(_, text)| text.as_str()));
        let stored = StoredResult { agent: "a".into(), run: run.into(), epoch, part, digest };
        let waiting = self.agent.waiting();
        self.receive(&seal(MessageOrigin::Centre, &key(2), &CentreMessage::Stored(stored)));
        assert!(is_own || self.agent.waiting() == waiting, "a result is gone that is not stored");
    }

    fn replay(&mut self, which: usize) {
        if let Some(message) = self.earlier.get(which % self.earlier.len().max(1)).cloned() {
            let reading = self.reading();
            self.agent.receive(&message, &reading);
        }
    }

    fn receive(&mut self, message: &[u8]) {
        let centre = key(2).public();
        // An answer that no honest coordinator gave.
        if let Some(CentreMessage::Answer(answer)) = open(MessageOrigin::Centre, &centre, message) {
            let late = self.now().since(answer.now);
            self.is_honest &= answer.now <= self.now() && late < Span::from_secs(3);
            if late < Span::from_secs(3) && *answer.session == *session(self.sessions) {
                self.learned = self.learned.or(Some(self.passed));
            }
        }
        let reading = self.reading();
        self.agent.receive(message, &reading);
        self.earlier.push(message.to_vec());
    }

    fn end_run(&mut self, how: u8) {
        let runs: Vec<String> = self.active.keys().cloned().collect();
        let Some(run) = runs.get(usize::from(how) % runs.len().max(1)) else { return };
        self.active.remove(run);
        let end = RunEnd { state: CalendarRunState::Finished, reason: String::new(), result: None };
        let reading = self.reading();
        self.agent.ended(run, end, "{}\n".repeat(usize::from(how)), &reading);
    }

    /// The process ends and another one begins, maybe after the host was restarted.
    fn restart(&mut self, how: u8) {
        if how & 1 == 1 {
            self.booted = self.passed;
        }
        self.sessions += 1;
        (self.nonce, self.learned, self.refused) = (None, None, false);
        self.active.clear();
        let mut opened = open_agent(&self.folder, self.sessions);
        if opened.is_err() {
            // A folder that takes nothing is no folder of an agent that begins.
            self.folder.disk().is_full = false;
            opened = open_agent(&self.folder, self.sessions);
        }
        self.agent = opened.unwrap_or_else(|error| unreachable!("{error}"));
        let reading = self.reading();
        self.agent.note_broken_off(&reading);
    }

    fn tick(&mut self) {
        let reading = self.reading();
        assert!(self.agent.next_tick(&reading) <= Span::from_secs(5));
        for action in self.agent.tick(&reading) {
            match action {
                AgentAction::Send(message) => self.take_message(&message),
                AgentAction::Start { run, start_by, .. } => {
                    self.take_start(&run, start_by.saturating_sub(reading.running));
                }
                AgentAction::Stop { run } => {
                    if let Some(active) = self.active.get_mut(&run) {
                        active.is_stopped = true;
                    }
                }
                AgentAction::Refused(why) => self.refused = !why.is_empty(),
                AgentAction::NotKept(_) => {}
            }
        }
        self.check_overdue();
    }

    fn take_message(&mut self, message: &[u8]) {
        let opened = open::<FleetAgentMessage>(MessageOrigin::Agent, &key(1).public(), message);
        match opened {
            Some(FleetAgentMessage::Report(report)) => self.nonce = Some(report.nonce),
            Some(FleetAgentMessage::Result(part)) => {
                assert!(part.part < part.parts);
                self.sent.entry(part.run.into()).or_default().insert(part.part, part.content);
            }
            None => unreachable!("what we send must be understood"),
        }
    }

    fn take_start(&mut self, run: &AgentRun, begin_within: Span) {
        let Some(calendar) = self.agent.calendar() else { unreachable!("a run without a calendar") };
        let until = calendar.until;
        let mut scheduled =
            calendar.runs.iter().map(|one| AgentRun { ends: one.ends.min(until), ..one.clone() });
        assert!(scheduled.any(|one| one == *run), "{} is not in the calendar", run.id);
        assert!(!self.refused, "{} starts although the agent is refused", run.id);
        assert!(begin_within <= calendar.set_up, "{} may begin after its set-up", run.id);
        assert!(!self.active.contains_key(run.id.as_str()), "{} starts while it is carried out", run.id);
        let before = self.begun.insert(run.id.to_string(), self.passed);
        let is_other = before.is_none_or(|before| self.passed.saturating_sub(before) >= REMEMBERED);
        assert!(is_other, "{} starts once more", run.id);
        if self.is_honest {
            let now = self.now();
            let unsure = Span::from_ns(calendar.settle.as_ns() / 4);
            assert!(now.after(unsure) >= run.starts, "{} starts before its time", run.id);
            assert!(now <= run.starts.after(calendar.set_up).after(unsure), "{} starts too late", run.id);
            assert!(now < run.ends.after(unsure), "{} starts when its time is over", run.id);
            assert!(now < calendar.until, "{} starts when its calendar has ended", run.id);
        }
        self.active.insert(run.id.to_string(), BegunRun { ends: run.ends, is_stopped: false });
    }

    /// A run whose time is over is stopped, if the agent can know the time.
    fn check_overdue(&self) {
        let Some(learned) = self.learned.filter(|_| self.is_honest) else { return };
        let drift = Span::from_ns(self.passed.saturating_sub(learned).as_ns() / 10_000);
        let latest = self.now().before(ANSWER_ERROR + drift);
        let late = self.active.iter().find(|(_, one)| !one.is_stopped && one.ends < latest);
        assert!(late.is_none(), "{:?} goes on after its time", late.map(|(run, _)| run));
    }

    /// What it has is never older than before, and what it remembers is what is in its calendar or its outbox.
    fn check(&mut self) {
        let held = self.held();
        if let (Some(held), Some(newest)) = (held, self.newest) {
            assert!(
                held.epoch >= newest.epoch && held.version >= newest.version,
                "{held:?} after {newest:?}"
            );
        }
        self.newest = held.or(self.newest);
        let disk = self.folder.disk();
        let Some(memory) = disk.files.get("memory.json") else { return };
        let memory: serde_json::Value = serde_json::from_slice(memory).unwrap_or_default();
        let length = |member: &str| match &memory[member] {
            serde_json::Value::Array(list) => list.len(),
            serde_json::Value::Object(list) => list.len(),
            _ => 0,
        };
        assert!(length("sessions") <= 16);
        let results = disk.files.keys().filter(|name| name.contains('-')).count();
        let scheduled = self.agent.calendar().map_or(0, |calendar| calendar.runs.len());
        // Results that could not be written are in memory. This many seconds of runs were ever scheduled.
        let unwritten = usize::try_from(self.agent.waiting()).unwrap_or_default();
        assert!(length("runs") <= results + scheduled + unwritten + self.active.len() + self.begun.len());
    }
}

fn session(number: u32) -> String {
    format!("s{number}")
}

fn open_agent(folder: &ScriptedFolder, number: u32) -> Result<CalendarAgent, AgentFolderError> {
    let identity = AgentIdentity {
        name: "a".to_owned(),
        key: key(1),
        centre: key(2).public(),
        program: "1.2.3".to_owned(),
        session: session(number).into(),
    };
    CalendarAgent::open(identity, Box::new(folder.clone()), u64::from(number))
}

/// Scripts: an agent that learns the time, measures, is restarted, loses its connection, its folder or its calendar.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let (pass, wait, answer, calendar, stored, ended, restart) = (0, 1, 2, 4, 5, 9, 10);
    let known = [15, 0, answer, 1];
    // Two runs, in 5 and in 30 seconds, of 15 and 20 seconds.
    let scheduled = [&known[..], &[calendar, 4, 4, 25, 20, 50, 25, 200]].concat();
    let begun = [&scheduled[..], &[pass, 50, pass, 5]].concat();
    let measured = [&begun[..], &[ended, 3, pass, 20, stored, 0, 1, stored, 0, 0, pass, 50]].concat();
    let both = [&measured[..], &[pass, 100, pass, 50, pass, 30, answer, 5, ended, 9, pass, 1, stored, 0, 0]]
        .concat();
    let overdue = [&begun[..], &[pass, 150, pass, 50, ended, 0, pass, 10]].concat();
    let restarted =
        [&begun[..], &[restart, 0, 15, 0, answer, 1, pass, 20, calendar, 2, 0, 200, pass, 1]].concat();
    let rebooted = [&scheduled[..], &[14, 100, restart, 1, 15, 0, answer, 1, pass, 50, pass, 1]].concat();
    let full = [&scheduled[..], &[11, 0, pass, 50, 11, 1, pass, 1, ended, 0, restart, 0, pass, 5]].concat();
    let lost = [&measured[..], &[calendar, 4 | 64, 2, 40, 20, 200, pass, 50, 8, 1, 8, 2]].concat();
    let refused =
        [&begun[..], &[wait, 1, 3, 0, pass, 1, calendar, 4, 2, 25, 20, 200, wait, 1, answer, 0]].concat();
    let over = [&known[..], &[calendar, 4, 2, 25, 100, 1, pass, 50, pass, 50, pass, 50]].concat();
    let damaged =
        [&known[..], &[7, 0, 0, 70, 57, 7, 1, 0, 9, 48, 13, 0, 0, 13, 1, 0, 13, 2, 3, 1, 2, 3, 12, 0]]
            .concat();
    let text = documents(&centre_messages());
    let raw = text
        .iter()
        .filter(|one| one.len() < 256)
        .map(|one| [&known[..], &[6, 0, one.len() as u8], one, &[pass, 20]].concat());
    let mut seeds = vec![
        scheduled, begun, measured, both, overdue, restarted, rebooted, full, lost, refused, over, damaged,
    ];
    seeds.extend(raw);
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_measure_and_are_rid_of_their_results() {
        let seeds = seeds();
        let after = |which: usize| {
            let site = play(&seeds[which]);
            (site.agent.calendar().is_some(), site.begun.len(), site.active.len(), site.agent.waiting())
        };
        assert_eq!(after(0), (true, 0, 0, 0), "a calendar");
        assert_eq!(after(1), (true, 1, 1, 0), "a run that has begun");
        assert_eq!(after(2), (true, 1, 0, 0), "one that is measured and stored");
        assert_eq!(after(3), (true, 2, 0, 0), "two of them");
        assert_eq!(after(5).1, 1, "a restart");
    }
}
