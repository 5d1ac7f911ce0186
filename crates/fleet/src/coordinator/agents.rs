//! Agents that carry out their part of the calendar by themselves: hands out calendars, and stores what they report.
//!
//! There is no queue of commands. What an agent has to be told follows from the calendar: its row says which version it
//! should have and which one it has confirmed, and it gets the newest one until it does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use linerate_archive::{CalendarError, CalendarTransaction, DueLimits, RunFilter};
use linerate_model::ForeignText;
use linerate_model::calendar::{CalendarRun, CalendarRunState, FleetAgent, FleetAgentState, UnixTime};
use linerate_units::Span;

use super::{FleetAction, FleetCoordinator, HORIZON};
use crate::agent::MAX_PARTS;
use crate::agent::{
    AgentCalendar, AgentReport, AgentRun, CentreAnswer, CentreMessage, FleetAgentMessage, FleetKey,
    HeldCalendar, MessageOrigin, PublicFleetKey, ResultDocument, ResultPart, StoredResult, open, seal,
};
use crate::error::FleetError;
use crate::inventory::Inventory;

/// How long the end of a run of an agent may stay unknown.
const REPORT_WAIT: Span = Span::from_secs(48 * 3600);
/// How soon a schedule of an agent that takes no runs is due, before one is noted as not booked.
const SOON: Span = Span::from_secs(60);
/// How long the process of an agent may be silent before another one with its key may take its place.
const SESSION_TIMEOUT: Span = Span::from_secs(90);
/// Runs that one look ends which nobody reported.
const ENDED_AT_ONCE: u32 = 256;

/// Something that users should know about an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentNotice {
    /// It is heard for the first time, or by another process than before.
    Up {
        /// Its name.
        agent: String,
        /// Its version of the program.
        program: ForeignText,
    },
    /// It is refused.
    Refused {
        /// Its name.
        agent: String,
        /// Why.
        why: String,
    },
    /// It takes no further runs.
    Full {
        /// Its name.
        agent: String,
        /// Why.
        why: ForeignText,
    },
    /// The database lost something that agents have: nothing is booked until they have new calendars.
    Loss,
}

impl fmt::Display for AgentNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up { agent, program } => write!(f, "the agent of {agent} is there (linerate {program})"),
            Self::Refused { agent, why } => write!(f, "the agent of {agent} is refused: {why}"),
            Self::Full { agent, why } => write!(f, "the agent of {agent} takes no further runs: {why}"),
            Self::Loss => f.write_str(
                "an agent has a calendar that the database knows nothing of, so the database lost something; nothing is \
                 booked until all agents have new calendars, or theirs have ended",
            ),
        }
    }
}

/// How a coordinator speaks to agents.
pub(super) struct Centre {
    key: FleetKey,
    /// The newest calendar of each agent, to send it again.
    handed: BTreeMap<String, (u64, Vec<u8>)>,
    /// Agents that were refused, so that it is told once.
    refused: BTreeMap<String, String>,
}

impl Centre {
    pub(super) fn new(key: FleetKey) -> Self {
        Self { key, handed: BTreeMap::new(), refused: BTreeMap::new() }
    }

    /// Another coordinator may have handed out others since.
    pub(super) fn forget_handed(&mut self) {
        self.handed.clear();
    }

    fn message(&self, agent: &str, message: &CentreMessage) -> FleetAction {
        FleetAction::Send {
            agent: agent.to_owned(),
            message: seal(MessageOrigin::Centre, &self.key, message),
        }
    }
}

/// Runs of agents whose ends nobody will report any more.
pub(super) fn unreported(now: UnixTime) -> RunFilter {
    RunFilter {
        states: vec![CalendarRunState::Booked, CalendarRunState::Running],
        ends_before: Some(now.before(REPORT_WAIT)),
        by_agents: Some(true),
        ..RunFilter::default()
    }
}

/// Why an agent takes no runs at present; absent if it does.
pub(crate) fn why_no_runs(agent: &FleetAgent, limits: &DueLimits) -> Option<String> {
    if agent.revoked.is_some() {
        return Some(format!("the agent of {} was revoked", agent.name));
    }
    if !agent.note.as_str().is_empty() {
        return Some(format!("the agent of {} takes no further runs: {}", agent.name, agent.note));
    }
    match agent.seen {
        None => Some(format!("the agent of {} was never there", agent.name)),
        Some(seen) if seen < limits.seen_after => {
            let since = crate::recurrence::rfc3339(seen);
            Some(format!("the agent of {} was not heard since {since}", agent.name))
        }
        Some(_) => None,
    }
}

impl FleetCoordinator {
    /// How far ahead runs are booked.
    pub(super) fn horizon(&self) -> Span {
        match &self.centre {
            Some(_) if self.horizon == HORIZON => self.inventory.ahead.max(HORIZON),
            _ => self.horizon,
        }
    }

    pub(super) fn due_limits(&self, now: UnixTime) -> DueLimits {
        DueLimits {
            before: now.after(self.horizon()),
            soon: now.after(SOON),
            seen_after: now.before(self.inventory.ahead),
        }
    }

    /// Calendars that end before this time are renewed: each is in force for three quarters of its time at least.
    pub(super) fn renew_before(&self, now: UnixTime) -> UnixTime {
        now.after(Span::from_ns(self.inventory.ahead.as_ns() / 4 * 3))
    }

    /// Gives agents new versions of their calendars.
    pub(super) fn hand_out(
        &mut self,
        agents: &[String],
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        let Some(centre) = self.centre.as_mut().filter(|_| !agents.is_empty()) else { return Ok(()) };
        let times = (now.before(REPORT_WAIT), now, now.after(self.inventory.ahead));
        let handed = self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            let hand = |name: &String| Ok((name.clone(), calendar.hand_out(name, times)?));
            agents.iter().map(hand).collect::<Result<Vec<_>, CalendarError>>()
        })?;
        for (agent, handed) in handed {
            let (specs, runs) = entries(&handed.runs, &self.inventory);
            let calendar = AgentCalendar {
                agent: agent.clone(),
                epoch,
                version: handed.version,
                issued: now,
                lost: handed.lost,
                until: handed.until,
                set_up: self.inventory.set_up,
                settle: self.inventory.settle,
                specs,
                runs,
            };
            let message = seal(MessageOrigin::Centre, &centre.key, &CentreMessage::Calendar(calendar));
            centre.handed.insert(agent.clone(), (handed.version, message.clone()));
            actions.push(FleetAction::Send { agent, message });
        }
        Ok(())
    }

    /// Hears messages of agents, each with the name under which it was sent. Only the coordinator that leads listens: what
    /// matters is repeated.
    ///
    /// # Errors
    /// The calendar cannot be read or written. What was appended before has to be done all the same.
    pub fn receive(
        &mut self,
        messages: &[(String, Vec<u8>)],
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        let (Some(epoch), Some(centre)) = (self.epoch, self.centre.as_mut()) else { return Ok(()) };
        let senders: BTreeSet<&str> = messages.iter().map(|(sender, _)| sender.as_str()).collect();
        let known = self.calendar.read(|calendar| {
            let mut known = BTreeMap::new();
            for sender in senders {
                known.extend(calendar.agent(sender)?.map(|agent| (sender.to_owned(), agent)));
            }
            Ok(known)
        })?;
        let opened: Vec<FleetAgentMessage> = messages
            .iter()
            .filter_map(|(sender, bytes)| {
                let key = PublicFleetKey::read(&known.get(sender)?.key).ok()?;
                open(MessageOrigin::Agent, &key, bytes).filter(|message| agent_of(message) == sender)
            })
            .collect();
        if opened.is_empty() {
            return Ok(());
        }
        let done = self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            let mut work = ReportWork { calendar, handed: &centre.handed, epoch, now, done: Vec::new() };
            opened.iter().try_for_each(|message| work.take(message))?;
            Ok(work.done)
        });
        let done = match done {
            // Another one leads, or will: it hears them again.
            Err(CalendarError::Superseded { .. }) => {
                self.epoch = None;
                return Ok(());
            }
            done => done?,
        };
        for one in done {
            answer(centre, one, epoch, now, actions);
        }
        Ok(())
    }

    /// The log of a run of an agent is in the archive.
    #[must_use]
    pub fn archived(&mut self, agent: &str, run: &str) -> Option<FleetAction> {
        let stored = StoredResult { agent: agent.to_owned(), run: run.to_owned(), part: None };
        let centre = self.centre.as_ref()?;
        Some(centre.message(agent, &CentreMessage::Stored(stored)))
    }

    /// Ends runs whose ends nobody will report any more, and frees what is not in force any more.
    pub(super) fn end_unreported(&mut self, epoch: u64, now: UnixTime) -> Result<(), FleetError> {
        self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            for run in calendar.runs(&RunFilter { limit: Some(ENDED_AT_ONCE), ..unreported(now) })? {
                let (state, why) = match run.state {
                    CalendarRunState::Running => {
                        (CalendarRunState::Failed, "its agent did not say how it ended")
                    }
                    _ => (CalendarRunState::Missed, "its agent did not say whether it carried it out"),
                };
                calendar.store_end(&run.id, state, why, None, now)?;
            }
            calendar.free_held(now)
        })?;
        Ok(())
    }
}

fn agent_of(message: &FleetAgentMessage) -> &str {
    match message {
        FleetAgentMessage::Report(report) => &report.agent,
        FleetAgentMessage::Result(part) => &part.agent,
    }
}

/// What became of a message.
enum Heard {
    Report { report: AgentReport, agent: Box<FleetAgent>, refused: String, loss: bool, is_new: bool },
    Part { agent: String, run: String, part: u32 },
    Whole { agent: String, run: String, log: String },
}

/// Takes messages within a transaction.
struct ReportWork<'w, 'd> {
    calendar: &'w mut CalendarTransaction<'d>,
    handed: &'w BTreeMap<String, (u64, Vec<u8>)>,
    epoch: u64,
    now: UnixTime,
    done: Vec<Heard>,
}

impl ReportWork<'_, '_> {
    fn take(&mut self, message: &FleetAgentMessage) -> Result<(), CalendarError> {
        match message {
            FleetAgentMessage::Report(report) => self.report(report),
            FleetAgentMessage::Result(part) => self.part(part),
        }
    }

    fn report(&mut self, report: &AgentReport) -> Result<(), CalendarError> {
        let Some(agent) = self.calendar.agent(&report.agent)? else { return Ok(()) };
        let is_new = agent.session != report.session;
        let refused = refusal(&agent, report, self.now);
        let mut loss = false;
        if refused.is_empty() {
            let state = FleetAgentState {
                session: report.session.clone(),
                program: report.program.clone(),
                note: report.full.clone(),
                waiting: report.waiting,
            };
            self.calendar.note_agent(&agent.name, &state, self.now)?;
            loss = self.holds(&agent, report.holds)?;
            for (run, begun) in &report.begun {
                if self.calendar.run(run)?.is_some_and(|run| run.from == agent.name && run.handed) {
                    self.calendar.begin_run(run, self.epoch, *begun)?;
                }
            }
            let has = report.holds.is_some_and(|holds| holds.version == agent.version);
            let known = self.handed.get(&agent.name).is_some_and(|(version, _)| *version == agent.version);
            if !has && !known {
                self.calendar.hand_out_again(&agent.name)?;
            }
        }
        self.done.push(Heard::Report {
            report: report.clone(),
            agent: Box::new(agent),
            refused,
            loss,
            is_new,
        });
        Ok(())
    }

    /// What an agent has is confirmed, or shows that the database lost something; then true.
    fn holds(&mut self, agent: &FleetAgent, holds: Option<HeldCalendar>) -> Result<bool, CalendarError> {
        let Some(holds) = holds else { return Ok(false) };
        if holds.epoch > self.epoch || holds.version > agent.version {
            self.calendar.note_loss(self.now)?;
            self.calendar.note_unknown_version(&agent.name, holds.version)?;
            self.calendar.raise_epoch(holds.epoch)?;
            return Ok(true);
        }
        self.calendar.confirm_calendar(&agent.name, holds.version)?;
        Ok(false)
    }

    fn part(&mut self, part: &ResultPart) -> Result<(), CalendarError> {
        let run = self.calendar.run(&part.run)?;
        // One that was removed from the calendar long ago is archived all the same.
        let foreign = run.as_ref().is_some_and(|run| run.from != part.agent);
        if foreign || part.part >= part.parts || part.parts > MAX_PARTS {
            return Ok(());
        }
        let parts = (part.part, part.parts);
        let whole = self.calendar.add_result_part(&part.run, parts, &part.content, self.now)?;
        let Some(whole) = whole else {
            let (agent, run) = (part.agent.clone(), part.run.clone());
            self.done.push(Heard::Part { agent, run, part: part.part });
            return Ok(());
        };
        self.calendar.remove_result_parts(&part.run)?;
        let Some(document) = ResultDocument::of(&whole) else { return Ok(()) };
        if let Some(run) = run {
            self.store_end(&run, &document)?;
        }
        let (agent, run) = (part.agent.clone(), part.run.clone());
        self.done.push(Heard::Whole { agent, run, log: document.log });
        Ok(())
    }

    fn store_end(&mut self, run: &CalendarRun, document: &ResultDocument) -> Result<(), CalendarError> {
        if let Some(begun) = document.begun {
            self.calendar.begin_run(&run.id, self.epoch, begun)?;
        }
        let (state, reason) = match (document.state, document.reason.as_str()) {
            (CalendarRunState::Finished, _) => (CalendarRunState::Finished, ""),
            // A user wanted it to be stopped.
            _ if !run.state.is_end() && !run.reason.as_str().is_empty() => {
                (CalendarRunState::Cancelled, run.reason.as_str())
            }
            (state, "") => (state, "its agent gives no reason"),
            (state, reason) => (state, reason),
        };
        self.calendar.store_end(&run.id, state, reason, document.result.as_ref(), document.ended)?;
        // Its agent is done with it, also if it had ended here before.
        self.calendar.free_reported(&run.id)
    }
}

/// Why an agent may not take part; empty if it may.
fn refusal(agent: &FleetAgent, report: &AgentReport, now: UnixTime) -> String {
    if let Some(revoked) = agent.revoked {
        let when = crate::recurrence::rfc3339(revoked);
        return format!(
            "the agent {} was revoked at {when}; enrol it again with `linerate agent enroll`",
            agent.name
        );
    }
    let known =
        agent.session.is_empty() || agent.session == report.session || agent.session == report.previous;
    let silent = agent.seen.is_none_or(|seen| now.since(seen) >= SESSION_TIMEOUT);
    if known || silent {
        return String::new();
    }
    format!(
        "another process uses the key of the agent {}: its folder was copied, or it runs twice; end one of them, or enrol \
         it again with a new key",
        agent.name
    )
}

fn answer(centre: &mut Centre, heard: Heard, epoch: u64, now: UnixTime, actions: &mut Vec<FleetAction>) {
    match heard {
        Heard::Report { report, agent, refused, loss, is_new } => {
            if loss {
                actions.push(FleetAction::Agent(AgentNotice::Loss));
            }
            let name = agent.name.clone();
            let said = CentreAnswer {
                agent: name.clone(),
                session: report.session,
                nonce: report.nonce,
                epoch,
                now,
                refused: refused.as_str().into(),
            };
            actions.push(centre.message(&name, &CentreMessage::Answer(said)));
            if refused.is_empty() {
                centre.refused.remove(&name);
                if is_new {
                    let notice = AgentNotice::Up { agent: name.clone(), program: report.program };
                    actions.push(FleetAction::Agent(notice));
                }
                if report.full.as_str() != agent.note.as_str() && !report.full.as_str().is_empty() {
                    let notice = AgentNotice::Full { agent: name.clone(), why: report.full };
                    actions.push(FleetAction::Agent(notice));
                }
                let has = report.holds.is_some_and(|holds| holds.version == agent.version);
                if let Some((version, message)) = centre.handed.get(&name)
                    && *version == agent.version
                    && !has
                    && !loss
                {
                    actions.push(FleetAction::Send { agent: name, message: message.clone() });
                }
            } else if centre.refused.insert(name.clone(), refused.clone()).as_ref() != Some(&refused) {
                actions.push(FleetAction::Agent(AgentNotice::Refused { agent: name, why: refused }));
            }
        }
        Heard::Part { agent, run, part } => {
            let stored = StoredResult { agent: agent.clone(), run, part: Some(part) };
            actions.push(centre.message(&agent, &CentreMessage::Stored(stored)));
        }
        Heard::Whole { agent, run, log } => actions.push(FleetAction::Archive { agent, run, log }),
    }
}

/// The runs of a calendar and what they measure. One whose host is gone from the fleet is left out.
fn entries(runs: &[CalendarRun], inventory: &Inventory) -> (Vec<linerate_model::TestSpec>, Vec<AgentRun>) {
    let mut specs = Vec::new();
    let mut entries = Vec::new();
    for run in runs {
        let Ok(host) = inventory.host(&run.to) else { continue };
        let spec = specs.iter().position(|known| *known == run.spec).unwrap_or_else(|| {
            specs.push(run.spec.clone());
            specs.len() - 1
        });
        entries.push(AgentRun {
            id: run.id.clone(),
            schedule: run.schedule.clone(),
            to: run.to.clone(),
            address: host.address.clone(),
            test_address: host.test_address.clone(),
            port: host.port,
            spec,
            starts: run.starts,
            ends: run.ends,
        });
    }
    (specs, entries)
}
