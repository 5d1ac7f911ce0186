//! Alarms about agents that are not heard although something was due.
//!
//! An agent measures without coordinator and broker too, and tells the results later. So its silence is no failure as such:
//! an alarm is raised when a test was due since it was heard last, and ended by the first result that arrives. A coordinator
//! that could not hear anybody itself raises none.

use std::collections::BTreeMap;

use linerate_archive::{CalendarError, CalendarTransaction};
use linerate_model::calendar::{AlarmKind, CalendarRun, FleetAgent, Schedule, UnixTime};
use linerate_units::Span;

use super::agents::silence;
use super::{FleetAction, FleetCoordinator, RUNS_AT_ONCE};
use crate::error::FleetError;

/// How long an agent must be silent. Restarts and short interruptions take less, and other failures get a second test within
/// the same time.
pub(super) const SILENCE: Span = Span::from_secs(15 * 60);
/// How often silent agents are looked for. They report as often.
const LOOK_INTERVAL: Span = Span::from_secs(30);

/// Since when a coordinator could have heard agents.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// Whether the broker is away.
    is_deaf: bool,
    /// Since when it leads without interruption, and hears or is deaf.
    since: Option<UnixTime>,
    /// When it looked for silent agents last.
    looked: Option<UnixTime>,
}

impl Hearing {
    /// Nobody may have been heard until now.
    pub(super) fn begin_anew(&mut self) {
        self.since = None;
    }
}

/// A test that was due at an agent that is silent.
struct Unheard {
    schedule: Schedule,
    run: CalendarRun,
    agent: FleetAgent,
}

impl FleetCoordinator {
    /// The broker is away, so that no agent can be heard, or it is back.
    pub fn set_deaf(&mut self, is_deaf: bool) {
        if self.hearing.is_deaf != is_deaf {
            self.hearing.is_deaf = is_deaf;
            self.hearing.begin_anew();
        }
    }

    /// Whether it hears no agents.
    fn is_deaf(&self) -> bool {
        self.hearing.is_deaf || self.centre.is_none()
    }

    /// An agent that was not heard since then is silent; absent as long as it may have spoken to nobody. Without a broker,
    /// agents measure as long as their calendars last.
    pub(super) fn silent_before(&mut self, now: UnixTime) -> Option<UnixTime> {
        let since = *self.hearing.since.get_or_insert(now);
        let silence = if self.is_deaf() { SILENCE.max(self.inventory.ahead) } else { SILENCE };
        (now.since(since) >= silence).then(|| now.before(silence))
    }

    /// Raises alarms of schedules whose agents are silent although something was due.
    pub(super) fn note_silent(
        &mut self,
        silent_before: Option<UnixTime>,
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        let Some(before) = silent_before else { return Ok(()) };
        if self.hearing.looked.is_some_and(|last| now.since(last) < LOOK_INTERVAL) {
            return Ok(());
        }
        self.hearing.looked = Some(now);
        let found = self.calendar.read(|calendar| unheard(calendar, before, now))?;
        if found.is_empty() {
            return Ok(());
        }
        if found.len() >= RUNS_AT_ONCE as usize {
            self.hearing.looked = None;
            self.has_more = true;
        }
        let note =
            if self.is_deaf() { "; the coordinator has no broker through which to hear it" } else { "" };
        self.with_judge(silent_before, epoch, now, actions, |judge| {
            let mut alarms = Vec::new();
            // Again, because a user may have paused or removed schedules before this transaction.
            for one in unheard(judge.calendar, before, now)? {
                let why = format!("{}{note}", silence(&one.agent));
                alarms.extend(judge.raise_silence(&one.schedule, &one.run, &why)?);
            }
            Ok(alarms)
        })
    }
}

/// The first test of each schedule that was due since its agent was heard last, of schedules that want an alarm and have none;
/// at most RUNS_AT_ONCE of them.
fn unheard(
    calendar: &mut CalendarTransaction<'_>,
    silent_before: UnixTime,
    now: UnixTime,
) -> Result<Vec<Unheard>, CalendarError> {
    let silent = calendar.schedules_of_silent_agents(silent_before, AlarmKind::Failure)?;
    let silent: Vec<Schedule> =
        silent.into_iter().map(|state| state.schedule).filter(|schedule| schedule.alarm.failure).collect();
    let mut hosts: Vec<&str> = silent.iter().map(|schedule| schedule.from.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let agents = calendar.agents_named(&hosts)?.into_iter();
    let agents: BTreeMap<String, FleetAgent> = agents.map(|agent| (agent.name.clone(), agent)).collect();
    let mut found = Vec::new();
    for schedule in silent {
        let Some(agent) = agents.get(schedule.from.as_str()) else { continue };
        let since = agent.seen.unwrap_or(agent.enrolled);
        if let Some(run) = calendar.first_unreported(&schedule.name, (since, now))? {
            found.push(Unheard { schedule, run, agent: agent.clone() });
        }
        if found.len() >= RUNS_AT_ONCE as usize {
            break;
        }
    }
    Ok(found)
}
