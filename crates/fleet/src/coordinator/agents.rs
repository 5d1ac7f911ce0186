//! Agents that carry out their part of the calendar by themselves: hands out calendars, and stores what they report.
//!
//! There is no queue of commands. What an agent has to be told follows from the calendar: its row says which version it
//! should have and which one it has confirmed, and it gets the newest one until it does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use linerate_archive::{CalendarError, CalendarTransaction, DueLimits, ResultParts, RunFilter};
use linerate_model::ForeignText;
use linerate_model::calendar::{CalendarRun, CalendarRunState, FleetAgent, FleetAgentState, UnixTime};
use linerate_proto::fleet::{
    AgentCalendar, AgentReport, AgentRun, CentreAnswer, CentreMessage, FleetAgentMessage, FleetKey,
    HeldCalendar, MAX_PARTS, MessageOrigin, PlainName, PublicFleetKey, ResultDocument, ResultPart,
    StoredResult, is_proven, open, proof, seal,
};
use linerate_units::Span;

use super::{FleetAction, FleetCoordinator, HORIZON};
use crate::error::FleetError;
use crate::inventory::Inventory;

/// How long the end of a run of an agent may stay unknown.
const REPORT_WAIT: Span = Span::from_secs(48 * 3600);
/// How soon a schedule of an agent that takes no runs is due, before one is noted as not booked.
const SOON: Span = Span::from_secs(60);
/// How long the process of an agent may be silent before another one with its key may take its place.
const SESSION_TIMEOUT: Span = Span::from_secs(90);
/// Parts of results that one transaction takes at most.
const RESULTS_AT_ONCE: u32 = 8;
/// Bytes of results, uncompressed, after which a transaction takes no further ones.
const BYTES_AT_ONCE: usize = 8 << 20;
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
    /// The database may have lost something that so many agents have: nothing is booked until they have new calendars.
    Loss(u64),
}

impl fmt::Display for AgentNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up { agent, program } => write!(f, "the agent of {agent} is there (linerate {program})"),
            Self::Refused { agent, why } => write!(f, "the agent of {agent} is refused: {why}"),
            Self::Full { agent, why } => write!(f, "the agent of {agent} takes no further runs: {why}"),
            Self::Loss(agents) => write!(
                f,
                "the database may have lost what it wrote last; nothing is booked until every agent has a new calendar \
                 ({agents} have not), or for 24 hours"
            ),
        }
    }
}

/// How a coordinator speaks to agents.
pub(super) struct Centre {
    key: FleetKey,
    /// The newest calendar of each agent, to send it again.
    handed: BTreeMap<String, (u64, Vec<u8>)>,
    /// The last report of each agent: its process and number.
    reports: BTreeMap<ForeignText, (PlainName, u64)>,
    /// Agents that were refused, so that it is told once.
    refused: BTreeMap<String, String>,
}

impl Centre {
    pub(super) fn new(key: FleetKey) -> Self {
        Self { key, handed: BTreeMap::new(), reports: BTreeMap::new(), refused: BTreeMap::new() }
    }

    /// Whether a report is later than all before of the same process. A result may come again.
    fn is_new(&mut self, message: &FleetAgentMessage) -> bool {
        let FleetAgentMessage::Report(report) = message else { return true };
        match self.reports.get_mut(&report.agent) {
            Some((session, nonce)) if *session == report.session => {
                let is_new = report.nonce > *nonce;
                *nonce = report.nonce.max(*nonce);
                is_new
            }
            _ => {
                self.reports.insert(report.agent.clone(), (report.session.clone(), report.nonce));
                true
            }
        }
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

/// Why an agent takes no runs at present, such as one that was not heard since `seen_after`; absent if it does.
pub(crate) fn why_no_runs(agent: &FleetAgent, seen_after: UnixTime) -> Option<String> {
    if agent.revoked.is_some() {
        return Some(format!("the agent of {} was revoked", agent.name));
    }
    if !agent.note.as_str().is_empty() {
        return Some(format!("the agent of {} takes no further runs: {}", agent.name, agent.note));
    }
    match agent.seen {
        None => Some(format!("the agent of {} was never there", agent.name)),
        Some(seen) if seen < seen_after => {
            let since = crate::recurrence::rfc3339(seen);
            Some(format!("the agent of {} was not heard since {since}", agent.name))
        }
        Some(_) => None,
    }
}

impl FleetCoordinator {
    /// How far ahead runs are booked.
    pub(super) fn horizon(&self) -> Span {
        let of_agents = self.centre.as_ref().map(|_| self.inventory.ahead);
        self.horizon.unwrap_or_else(|| HORIZON.max(of_agents.unwrap_or(HORIZON)))
    }

    pub(super) fn due_limits(&self, now: UnixTime) -> DueLimits {
        DueLimits {
            before: now.after(self.horizon()),
            soon: now.after(SOON),
            seen_after: now.before(self.inventory.ahead),
        }
    }

    /// Tells once that nothing is booked because of a loss.
    pub(super) fn note_lost_agents(&mut self, lost: u64, actions: &mut Vec<FleetAction>) {
        if lost > 0 && !self.told_loss {
            actions.push(FleetAction::Agent(AgentNotice::Loss(lost)));
        }
        self.told_loss = lost > 0;
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
                agent: agent.as_str().into(),
                epoch,
                version: handed.version,
                proof: proof(&centre.key, &agent, HeldCalendar { epoch, version: handed.version }),
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
        let senders: Vec<&str> = senders.into_iter().collect();
        let known = self.calendar.read(|calendar| named(calendar, &senders))?;
        let mut results = 0;
        let opened: Vec<FleetAgentMessage> = messages
            .iter()
            .filter_map(|(sender, bytes)| {
                let key = PublicFleetKey::read(&known.get(sender)?.key).ok()?;
                open(MessageOrigin::Agent, &key, bytes).filter(|message| agent_of(message) == sender)
            })
            .filter(|message| centre.is_new(message))
            // A result may be large, and the calendar is locked meanwhile. Others are sent again.
            .filter(|message| {
                results += u32::from(matches!(message, FleetAgentMessage::Result(_)));
                results <= RESULTS_AT_ONCE || matches!(message, FleetAgentMessage::Report(_))
            })
            .collect();
        if opened.is_empty() {
            return Ok(());
        }
        let done = self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            // Again, because another coordinator may have changed them before this transaction.
            let known = named(calendar, &senders)?;
            let mut work = ReportWork {
                calendar,
                known,
                handed: &centre.handed,
                key: centre.key.public(),
                epoch,
                now,
                taken_bytes: 0,
                done: Vec::new(),
            };
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
        let (epoch, centre) = (self.epoch?, self.centre.as_ref()?);
        let stored = StoredResult { agent: agent.into(), run: run.into(), epoch, part: None };
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

/// The agents of these names.
fn named(
    calendar: &mut CalendarTransaction<'_>,
    names: &[&str],
) -> Result<BTreeMap<String, FleetAgent>, CalendarError> {
    let found = calendar.agents_named(names)?.into_iter();
    Ok(found.map(|agent| (agent.name.clone(), agent)).collect())
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
    Part { agent: String, run: PlainName, part: u32 },
    Whole { agent: String, run: PlainName, log: String, is_known: bool },
}

/// Takes messages within a transaction.
struct ReportWork<'w, 'd> {
    calendar: &'w mut CalendarTransaction<'d>,
    /// The agents that have said nothing yet in this transaction.
    known: BTreeMap<String, FleetAgent>,
    handed: &'w BTreeMap<String, (u64, Vec<u8>)>,
    key: PublicFleetKey,
    epoch: u64,
    now: UnixTime,
    /// Bytes of results that were read, whatever is in them.
    taken_bytes: usize,
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
        let known = self.known.remove(report.agent.as_str());
        let known = known.map_or_else(|| self.calendar.agent(&report.agent), |agent| Ok(Some(agent)))?;
        let Some(agent) = known else { return Ok(()) };
        let is_new = agent.session != report.session.as_str();
        let refused = refusal(&agent, report, self.now);
        let mut loss = false;
        if refused.is_empty() {
            let state = FleetAgentState {
                session: report.session.to_string(),
                program: report.program.clone(),
                note: report.full.clone(),
                waiting: report.waiting,
            };
            self.calendar.note_agent(&agent.name, &state, self.now)?;
            loss = self.holds(&agent, report)?;
            for (run, begun) in &report.begun {
                if let Some(run) = self.calendar.run(run)?.filter(|run| run.from == agent.name && run.handed)
                {
                    self.calendar.begin_run(&run.id, self.epoch, self.within(&run, *begun))?;
                }
            }
            let has = report.holds.is_some_and(|holds| holds.version == agent.version);
            let is_kept = self.handed.get(&agent.name).is_some_and(|(version, _)| *version == agent.version);
            if !has && !is_kept {
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

    /// What an agent has is confirmed, or proves that the database lost something; then true.
    fn holds(&mut self, agent: &FleetAgent, report: &AgentReport) -> Result<bool, CalendarError> {
        if let Some(newest) = report.newest
            && (newest.epoch > self.epoch || newest.version > agent.version)
        {
            let proven = is_proven(&self.key, &agent.name, newest, &report.proof);
            if proven {
                self.known.clear();
                self.calendar.note_loss(self.now)?;
                self.calendar.note_unknown_version(&agent.name, newest.version)?;
                self.calendar.raise_epoch(newest.epoch)?;
            }
            return Ok(proven);
        }
        let confirmed = |holds: &HeldCalendar| agent.acked < holds.version && holds.version <= agent.version;
        if let Some(holds) = report.holds.filter(confirmed) {
            self.calendar.confirm_calendar(&agent.name, holds.version)?;
        }
        Ok(false)
    }

    /// A time that an agent gives for a run, as far as it is possible.
    fn within(&self, run: &CalendarRun, time: UnixTime) -> UnixTime {
        time.max(run.starts).min(run.ends.min(self.now).max(run.starts))
    }

    fn part(&mut self, part: &ResultPart) -> Result<(), CalendarError> {
        let run = self.calendar.run(&part.run)?;
        let agent = self.calendar.agent(&part.agent)?;
        let foreign = run.as_ref().is_some_and(|run| run.from != part.agent || !run.handed);
        let revoked = agent.is_none_or(|agent| agent.revoked.is_some());
        // One that follows on a large one is sent again.
        let enough = self.taken_bytes > BYTES_AT_ONCE;
        if foreign || revoked || enough || part.part >= part.parts || part.parts > MAX_PARTS {
            return Ok(());
        }
        let (agent, id) = (part.agent.to_string(), part.run.clone());
        let parts = (part.part, part.parts);
        match self.calendar.add_result_part((&agent, &id), parts, &part.content, self.now)? {
            ResultParts::Refused => {}
            ResultParts::Kept => self.done.push(Heard::Part { agent, run: id, part: part.part }),
            ResultParts::Whole(whole) => {
                self.calendar.remove_result_parts(&id)?;
                let text = ResultDocument::unpack(&whole);
                // One that cannot be unpacked may have been a long one.
                self.taken_bytes += text.as_ref().map_or(BYTES_AT_ONCE + 1, Vec::len);
                let Some(document) = text.and_then(|text| ResultDocument::read(&text)) else {
                    return Ok(());
                };
                if let Some(run) = &run {
                    self.store_end(run, &document)?;
                }
                let log = document.log.into_string();
                self.done.push(Heard::Whole { agent, run: id, log, is_known: run.is_some() });
            }
        }
        Ok(())
    }

    fn store_end(&mut self, run: &CalendarRun, document: &ResultDocument) -> Result<(), CalendarError> {
        if let Some(begun) = document.begun {
            self.calendar.begin_run(&run.id, self.epoch, self.within(run, begun))?;
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
        let ended = self.within(run, document.ended);
        self.calendar.store_end(&run.id, state, reason, document.result.as_ref(), ended)?;
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
    let known = agent.session.is_empty()
        || agent.session == report.session.as_str()
        || report.previous.iter().any(|one| *agent.session == **one);
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
            let name = agent.name.clone();
            let said = CentreAnswer {
                agent: name.as_str().into(),
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
            let stored = StoredResult { agent: agent.as_str().into(), run, epoch, part: Some(part) };
            actions.push(centre.message(&agent, &CentreMessage::Stored(stored)));
        }
        Heard::Whole { agent, run, log, is_known } => {
            actions.push(FleetAction::Archive { agent, run: run.into(), log, is_known });
        }
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
            id: run.id.as_str().into(),
            schedule: run.schedule.as_str().into(),
            to: run.to.as_str().into(),
            address: host.address.as_str().into(),
            test_address: host.test_address.as_deref().map(Into::into),
            port: host.port,
            spec,
            starts: run.starts,
            ends: run.ends,
        });
    }
    (specs, entries)
}
