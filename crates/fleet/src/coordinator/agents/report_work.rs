//! Stores what agents report, within a transaction.

use std::collections::BTreeMap;

use linerate_archive::{CalendarError, CalendarTransaction, ResultParts};
use linerate_model::calendar::{CalendarRun, CalendarRunState, FleetAgent, FleetAgentState, UnixTime};
use linerate_proto::fleet::{
    AgentReport, FleetAgentMessage, HeldCalendar, MAX_PARTS, PlainName, PublicFleetKey, ResultDigest,
    ResultDocument, ResultPart, is_proven,
};
use linerate_units::Span;

use crate::coordinator::due_again_from;

/// How long the process of an agent may be silent before another one with its key may take its place.
const SESSION_TIMEOUT: Span = Span::from_secs(90);
/// Bytes of results, uncompressed, after which a transaction takes no further ones.
const BYTES_AT_ONCE: usize = 8 << 20;

/// What became of a message.
pub(super) enum AcceptedMessage {
    Report { report: AgentReport, agent: Box<FleetAgent>, refused: String, loss: bool, is_new: bool },
    Part { agent: String, run: PlainName, part: u32, digest: ResultDigest },
    Whole { agent: String, run: PlainName, log: String, is_known: bool, digest: ResultDigest },
}

/// Takes messages within a transaction.
pub(super) struct ReportWork<'w, 'd> {
    pub(super) calendar: &'w mut CalendarTransaction<'d>,
    /// The agents that have said nothing yet in this transaction.
    pub(super) known: BTreeMap<String, FleetAgent>,
    pub(super) handed: &'w BTreeMap<String, (u64, Vec<u8>)>,
    pub(super) key: PublicFleetKey,
    pub(super) epoch: u64,
    pub(super) now: UnixTime,
    /// Bytes of results that were read, whatever is in them.
    pub(super) taken_bytes: usize,
    pub(super) done: Vec<AcceptedMessage>,
}

impl ReportWork<'_, '_> {
    pub(super) fn take(&mut self, message: &FleetAgentMessage) -> Result<(), CalendarError> {
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
            if !is_known(&agent, report) {
                self.calendar.leave_behind(
                    &agent.name,
                    "another process took the place of its agent",
                    self.now,
                )?;
                due_again_from(self.calendar, &agent.name, self.now)?;
            }
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
        self.done.push(AcceptedMessage::Report {
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
            if agent.lost {
                self.calendar.hand_out_what_waited(self.now)?;
            }
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
        // A database that lost its last commits may not know any more that an agent had the run. One that is active and not
        // handed out is carried out by a coordinator.
        let is_carried_out_here = |run: &CalendarRun| !run.handed && run.state == CalendarRunState::Running;
        let foreign = run.as_ref().is_some_and(|run| run.from != part.agent || is_carried_out_here(run));
        let revoked = agent.is_none_or(|agent| agent.revoked.is_some());
        // One that follows on a large one is sent again.
        let enough = self.taken_bytes > BYTES_AT_ONCE;
        if foreign || revoked || enough || part.part >= part.parts || part.parts > MAX_PARTS {
            return Ok(());
        }
        let (agent, id) = (part.agent.to_string(), part.run.clone());
        let parts = (part.part, part.parts);
        match self.calendar.add_result_part((&agent, &id), parts, &part.content, self.now)? {
            ResultParts::Kept => {
                let digest = ResultDigest::of([part.content.as_str()]);
                self.done.push(AcceptedMessage::Part { agent, run: id, part: part.part, digest });
            }
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
                let digest = ResultDigest::of([whole.as_str()]);
                self.done.push(AcceptedMessage::Whole {
                    agent,
                    run: id,
                    log,
                    is_known: run.is_some(),
                    digest,
                });
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

/// Whether a report is from the process of an agent that was heard before, or from the next one in its folder.
fn is_known(agent: &FleetAgent, report: &AgentReport) -> bool {
    agent.session.is_empty()
        || agent.session == report.session.as_str()
        || report.previous.iter().any(|one| *agent.session == **one)
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
    let known = is_known(agent, report);
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
