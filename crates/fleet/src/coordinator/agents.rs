//! Agents that carry out their part of the calendar by themselves: hands out calendars, and stores what they report.
//!
//! There is no queue of commands. What an agent has to be told follows from the calendar: its row says which version it
//! should have and which one it has confirmed, and it gets the newest one until it does.

mod notice;
mod report_work;

use std::collections::{BTreeMap, BTreeSet};

use linerate_archive::{CalendarError, CalendarTransaction, DueLimits, RunFilter};
use linerate_model::ForeignText;
use linerate_model::calendar::{CalendarRun, CalendarRunState, FleetAgent, UnixTime};
use linerate_proto::fleet::{
    AgentCalendar, AgentRun, CentreAnswer, CentreMessage, FleetAgentMessage, FleetKey, HeldCalendar,
    MessageOrigin, PlainName, PublicFleetKey, ResultDigest, StoredResult, open, proof, seal,
};
use linerate_units::Span;

pub use notice::AgentNotice;
use report_work::{AcceptedMessage, ReportWork};

use super::{FleetAction, FleetCoordinator, HORIZON};
use crate::error::FleetError;
use crate::inventory::Inventory;
use crate::recurrence::rfc3339;

/// How long the end of a run of an agent may stay unknown.
const REPORT_WAIT: Span = Span::from_secs(48 * 3600);
/// How soon a schedule of an agent that takes no runs is due, before one is noted as not booked.
const SOON: Span = Span::from_secs(60);
/// Parts of results that one transaction takes at most.
const RESULTS_AT_ONCE: u32 = 8;
/// Runs that one look ends which nobody reported.
const ENDED_AT_ONCE: u32 = 256;

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
    agent.seen.is_none_or(|seen| seen < seen_after).then(|| silence(agent))
}

/// Since when an agent is silent, in words.
pub(super) fn silence(agent: &FleetAgent) -> String {
    match agent.seen {
        None => format!("the agent of {} was never there", agent.name),
        Some(seen) => format!("the agent of {} was not heard since {}", agent.name, rfc3339(seen)),
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
            let with_new_runs = calendar.lost_agents(now)? == 0;
            let hand = |name: &String| Ok((name.clone(), calendar.hand_out(name, times, with_new_runs)?));
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

    /// The log of a run of an agent is in the archive, from the result with this digest.
    #[must_use]
    pub fn archived(&mut self, agent: &str, run: &str, digest: ResultDigest) -> Option<FleetAction> {
        let (epoch, centre) = (self.epoch?, self.centre.as_ref()?);
        let stored = StoredResult { agent: agent.into(), run: run.into(), epoch, part: None, digest };
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

fn answer(
    centre: &mut Centre,
    heard: AcceptedMessage,
    epoch: u64,
    now: UnixTime,
    actions: &mut Vec<FleetAction>,
) {
    match heard {
        AcceptedMessage::Report { report, agent, refused, loss, is_new } => {
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
        AcceptedMessage::Part { agent, run, part, digest } => {
            let stored = StoredResult { agent: agent.as_str().into(), run, epoch, part: Some(part), digest };
            actions.push(centre.message(&agent, &CentreMessage::Stored(stored)));
        }
        AcceptedMessage::Whole { agent, run, log, is_known, digest } => {
            actions.push(FleetAction::Archive { agent, run: run.into(), log, is_known, digest });
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
