//! Agents that carry out a calendar by themselves, and what each of them may still have in hand.
//!
//! Every version of an agent's calendar has a number, higher than that of the one before. A run that ends here while its
//! agent may still carry it out stays *held*: its reservations are not free until the agent confirms a later version, or
//! until nothing that it has can be in force any more.

use linerate_model::calendar::{CalendarRun, CalendarRunState, FleetAgent, FleetAgentState, UnixTime};
use linerate_units::Span;

use super::rows::{self, RUN_COLUMNS, optional_time, value_of};
use super::runs::RUNS;
use super::{CalendarError, CalendarTransaction, RunFilter, names};
use crate::value::{DatabaseRow, Value};

const AGENT_COLUMNS: &str =
    "name, key, enrolled, coalesce(revoked, -1), session, coalesce(seen, -1), program, note, waiting, version, until,
     acked, lease_until, lost";

/// The longest that a calendar is in force.
const LONGEST: Span = Span::from_secs(24 * 3600);
/// How far the numbers of versions jump after a loss: further than versions were lost.
const JUMP: i64 = 1_000_000;
/// Runs of one calendar at most. One with more of them ends earlier.
const RUNS_AT_ONCE: usize = 1000;

/// Runs of one calendar at most whose time is over and whose ends are not known.
const PAST_RUNS_AT_ONCE: usize = 100;
/// What the agent of host `?1` has to carry out, or may be carrying out: not what a coordinator began.
const OWN_RUNS: &str = "r.from_host = ?1 AND (r.state = 'booked' OR r.state = 'running' AND r.handed = 1)";

/// A calendar that is handed out to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct HandedCalendar {
    /// Its number.
    pub version: u64,
    /// When it ends.
    pub until: UnixTime,
    /// Whether the database lost something since the agent confirmed one.
    pub lost: bool,
    /// The runs, in the order of their times; also those of before that nothing is known of.
    pub runs: Vec<CalendarRun>,
}

/// Whether an agent was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentRemoval {
    /// It was.
    Removed,
    /// The host has none.
    NoAgent,
    /// It has to be revoked before.
    NotRevoked,
    /// It may have a calendar that is in force until this time.
    InForce(UnixTime),
}

impl CalendarTransaction<'_> {
    /// The agents, by name.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn agents(&mut self) -> Result<Vec<FleetAgent>, CalendarError> {
        self.list(&format!("SELECT {AGENT_COLUMNS} FROM fleet_agent ORDER BY name"), &[], agent)
    }

    /// The agent of a host, if it has one.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn agent(&mut self, name: &str) -> Result<Option<FleetAgent>, CalendarError> {
        let one = format!("SELECT {AGENT_COLUMNS} FROM fleet_agent WHERE name = ?1");
        self.first(&one, &[name.into()], agent)
    }

    /// The agents of hosts, of those that have one.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn agents_named(&mut self, hosts: &[&str]) -> Result<Vec<FleetAgent>, CalendarError> {
        let mut found = Vec::new();
        for group in hosts.chunks(super::NAMES_AT_ONCE) {
            // Statements are kept by their text, so there are few different ones: the last name is repeated.
            let count = group.len().next_power_of_two();
            let padded =
                group.iter().chain(std::iter::repeat_n(&group[group.len() - 1], count - group.len()));
            let which =
                format!("SELECT {AGENT_COLUMNS} FROM fleet_agent WHERE name IN ({})", names(1, count));
            let padded: Vec<Value> = padded.map(|host| (*host).into()).collect();
            found.extend(self.list(&which, &padded, agent)?);
        }
        Ok(found)
    }

    /// Enrolls an agent, in place of one with its name, whose calendars count until they end.
    ///
    /// # Errors
    /// [`CalendarError::KeyTaken`], or the calendar cannot be written.
    pub fn enroll_agent(&mut self, name: &str, key: &str, now: UnixTime) -> Result<(), CalendarError> {
        let other = "SELECT name FROM fleet_agent WHERE key = ?1 AND name <> ?2";
        if let Some(other) = self.first(other, &[key.into(), name.into()], |row| Ok(row.text(0)?))? {
            return Err(CalendarError::KeyTaken(other));
        }
        if self.agent(name)?.is_some_and(|known| known.key != key) {
            // A process with the earlier key cannot be heard any more, and may go on.
            self.leave_behind(name, "its host was enrolled anew", now)?;
        }
        let store = "INSERT INTO fleet_agent (name, key, enrolled) VALUES (?1, ?2, ?3)
             ON CONFLICT (name) DO UPDATE SET key = excluded.key, enrolled = excluded.enrolled, revoked = NULL,
                 session = '', seen = NULL, note = '', changed = 1";
        self.execute(store, &[name.into(), key.into(), value_of(now)]).map(drop)
    }

    /// Another process takes the place of an agent that may go on, unheard: what that has is held until it is over,
    /// whatever the new one confirms.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn leave_behind(&mut self, name: &str, why: &str, now: UnixTime) -> Result<(), CalendarError> {
        self.end_all_of(name, why, now)?;
        let hold = "UPDATE fleet_run SET held = ?2 WHERE from_host = ?1 AND held IS NOT NULL";
        self.execute(hold, &[name.into(), i64::MAX.into()]).map(drop)
    }

    /// Ends what the agent of a host would carry out. What it may have is held.
    fn end_all_of(&mut self, name: &str, why: &str, now: UnixTime) -> Result<(), CalendarError> {
        let all = format!("SELECT {RUN_COLUMNS} FROM {RUNS} WHERE {OWN_RUNS}");
        for run in self.list(&all, &[name.into()], rows::run)? {
            let state = match run.state {
                CalendarRunState::Running => CalendarRunState::Failed,
                _ if run.starts <= now => CalendarRunState::Missed,
                _ => CalendarRunState::Cancelled,
            };
            self.end_run(&run.id, state, why, None, now)?;
        }
        Ok(())
    }

    /// Revokes an agent; false if there is none, or it was revoked before. Its runs end, and what it has in hand is
    /// held until that is over.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn revoke_agent(&mut self, name: &str, now: UnixTime) -> Result<bool, CalendarError> {
        let revoke = "UPDATE fleet_agent SET revoked = ?2 WHERE name = ?1 AND revoked IS NULL";
        let revoked = self.execute(revoke, &[name.into(), value_of(now)])? > 0;
        if revoked {
            self.end_all_of(name, "its agent was revoked", now)?;
        }
        Ok(revoked)
    }

    /// Removes an agent that was revoked, if nothing that it has is in force any more. Its host is then one without agent.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn remove_agent(&mut self, name: &str, now: UnixTime) -> Result<AgentRemoval, CalendarError> {
        let Some(agent) = self.agent(name)? else { return Ok(AgentRemoval::NoAgent) };
        if agent.revoked.is_none() {
            return Ok(AgentRemoval::NotRevoked);
        }
        let held = "SELECT coalesce(max(free), -1) FROM fleet_run WHERE from_host = ?1 AND held IS NOT NULL";
        let held = self.first(held, &[name.into()], |row| optional_time(row, 0))?.flatten();
        let until = held.map_or(agent.lease_until, |held| held.max(agent.lease_until));
        if until > now {
            return Ok(AgentRemoval::InForce(until));
        }
        self.give_back("from_host = ?1 AND held IS NOT NULL", &[name.into()])?;
        self.execute("DELETE FROM fleet_result_part WHERE agent = ?1", &[name.into()])?;
        self.execute("DELETE FROM fleet_agent WHERE name = ?1", &[name.into()])?;
        Ok(AgentRemoval::Removed)
    }

    /// Stores what an agent says of itself.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn note_agent(
        &mut self,
        name: &str,
        state: &FleetAgentState,
        now: UnixTime,
    ) -> Result<(), CalendarError> {
        let store = "UPDATE fleet_agent SET session = ?2, program = ?3, note = ?4, waiting = ?5, seen = ?6 WHERE name = ?1";
        let row = [
            name.into(),
            state.session.as_str().into(),
            state.program.as_str().into(),
            state.note.as_str().into(),
            i64::try_from(state.waiting).unwrap_or(i64::MAX).into(),
            value_of(now),
        ];
        self.execute(store, &row).map(drop)
    }

    /// Agents that need another version of their calendar: because something in it changed, or because a quarter of its
    /// time has passed.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn agents_to_hand(&mut self, now: UnixTime, limit: u32) -> Result<Vec<String>, CalendarError> {
        let wanted = "SELECT name FROM fleet_agent WHERE revoked IS NULL AND (changed = 1 OR renew <= ?1)
                      ORDER BY until, name LIMIT ?2";
        self.list(wanted, &[value_of(now), i64::from(limit).into()], |row| Ok(row.text(0)?))
    }

    /// Makes the next version of the calendar of an agent: its runs until `until`, without those that are to be
    /// stopped, and those since `since` whose ends are not known. Without new runs, it has only those that the agent was
    /// given before: as long as any agent may have a calendar that the database knows nothing of, the time of others may
    /// not be free.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn hand_out(
        &mut self,
        name: &str,
        (since, now, until): (UnixTime, UnixTime, UnixTime),
        with_new_runs: bool,
    ) -> Result<HandedCalendar, CalendarError> {
        let past = format!(
            "SELECT {RUN_COLUMNS} FROM {RUNS} WHERE {OWN_RUNS} AND r.ends > ?2 AND r.ends <= ?3
             ORDER BY r.ends DESC, r.id LIMIT {PAST_RUNS_AT_ONCE}"
        );
        let mut runs = self.list(&past, &[name.into(), value_of(since), value_of(now)], rows::run)?;
        let coming = format!(
            "SELECT {RUN_COLUMNS} FROM {RUNS} WHERE {OWN_RUNS} AND r.reason = '' AND r.ends > ?2 AND r.ends <= ?3
                 {} ORDER BY r.starts, r.id LIMIT {}",
            if with_new_runs { "" } else { "AND r.handed = 1" },
            RUNS_AT_ONCE + 1
        );
        let mut coming = self.list(&coming, &[name.into(), value_of(now), value_of(until)], rows::run)?;
        let more = (coming.len() > RUNS_AT_ONCE).then(|| coming.pop()).flatten();
        let until = more.map_or(until, |next| next.starts.min(until));
        runs.extend(coming.into_iter().filter(|run| run.ends <= until));
        runs.sort_by(|a, b| (a.starts, &a.id).cmp(&(b.starts, &b.id)));
        let renew = now.after(Span::from_ns(until.since(now).as_ns() / 4));
        let next = "UPDATE fleet_agent SET version = version + 1, until = ?2, renew = ?3, changed = 0,
                        lease_until = CASE WHEN lease_until < ?2 THEN ?2 ELSE lease_until END
                    WHERE name = ?1 RETURNING version, lost";
        let next = self.first(next, &[name.into(), value_of(until), value_of(renew)], |row| {
            Ok((rows::number(row, 0)?, row.integer(1)? != 0))
        })?;
        let new: Vec<Value> =
            runs.iter().filter(|run| !run.handed).map(|run| run.id.as_str().into()).collect();
        for group in new.chunks(super::NAMES_AT_ONCE) {
            let hand = format!("UPDATE fleet_run SET handed = 1 WHERE id IN ({})", names(1, group.len()));
            self.execute(&hand, group)?;
        }
        let (version, lost) = next.ok_or_else(|| CalendarError::Content(format!("no agent '{name}'")))?;
        Ok(HandedCalendar { version, until, lost, runs })
    }

    /// An agent has this version of its calendar and none before, and does nothing that is not in it: what others held is
    /// free.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn confirm_calendar(&mut self, name: &str, version: u64) -> Result<(), CalendarError> {
        let version = i64::try_from(version).unwrap_or(i64::MAX);
        let confirm = "UPDATE fleet_agent SET acked = ?2,
                 lease_until = CASE WHEN version = ?2 THEN until ELSE lease_until END,
                 lost = CASE WHEN version = ?2 THEN 0 ELSE lost END
             WHERE name = ?1 AND acked < ?2 AND version >= ?2";
        if self.execute(confirm, &[name.into(), version.into()])? > 0 {
            let which = "from_host = ?1 AND held IS NOT NULL AND held < ?2";
            self.give_back(which, &[name.into(), version.into()])?;
        }
        Ok(())
    }

    /// Agents get what was booked before a loss and not handed out, if no agent may have a calendar any more that the
    /// database knows nothing of.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn hand_out_what_waited(&mut self, now: UnixTime) -> Result<(), CalendarError> {
        let waited = "UPDATE fleet_agent SET changed = 1
                      WHERE NOT EXISTS (SELECT 1 FROM fleet_agent WHERE lost > ?1)
                      AND EXISTS (SELECT 1 FROM fleet_run r
                                  WHERE r.from_host = fleet_agent.name AND r.state = 'booked' AND r.handed = 0)";
        self.execute(waited, &[value_of(now)]).map(drop)
    }

    /// Frees what was held by agents that have not confirmed a later calendar, once nothing that they have is in force.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn free_held(&mut self, now: UnixTime) -> Result<(), CalendarError> {
        self.give_back("held IS NOT NULL AND free <= ?1", &[value_of(now)])
    }

    /// Whether something is held that is free by now.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn is_held_too_long(&mut self, now: UnixTime) -> Result<bool, CalendarError> {
        let any = "SELECT count(*) FROM fleet_run WHERE held IS NOT NULL AND free <= ?1";
        Ok(self.first(any, &[value_of(now)], |row| Ok(row.integer(0)?))?.is_some_and(|count| count > 0))
    }

    /// What is held now was booked by another description of the fleet: it may use more than it has reserved. Nothing is
    /// booked until it is given back, and not before `active_until`.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn note_other_uses(&mut self, active_until: Option<UnixTime>) -> Result<(), CalendarError> {
        self.execute("UPDATE fleet_run SET other_uses = 1 WHERE held IS NOT NULL", &[])?;
        active_until.map_or(Ok(()), |until| self.stay_calm(until))
    }

    /// Books nothing before `until`.
    fn stay_calm(&mut self, until: UnixTime) -> Result<(), CalendarError> {
        self.execute("UPDATE fleet_lease SET calm = ?1 WHERE calm < ?1", &[value_of(until)]).map(drop)
    }

    /// Until when something is held at the latest that another description of the fleet has booked; absent if nothing is.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn other_uses_until(&mut self) -> Result<Option<UnixTime>, CalendarError> {
        let held = "SELECT coalesce(max(free), -1) FROM fleet_run WHERE held IS NOT NULL AND other_uses = 1";
        Ok(self.first(held, &[], |row| optional_time(row, 0))?.flatten())
    }

    /// Every agent needs another calendar.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn hand_out_to_all(&mut self) -> Result<(), CalendarError> {
        self.execute("UPDATE fleet_agent SET changed = 1", &[]).map(drop)
    }

    fn give_back(&mut self, which: &str, values: &[Value]) -> Result<(), CalendarError> {
        let free = format!(
            "UPDATE fleet_reservation SET active = 0 WHERE active = 1 AND run IN (SELECT id FROM fleet_run WHERE {which})"
        );
        self.execute(&free, values)?;
        self.execute(&format!("UPDATE fleet_run SET held = NULL, free = NULL WHERE {which}"), values)
            .map(drop)
    }

    /// Holds the reservations of a run that has ended, if its agent may have it in its calendar.
    pub(super) fn hold_handed(&mut self, id: &str, now: UnixTime) -> Result<(), CalendarError> {
        let own = "(SELECT from_host FROM fleet_run WHERE id = ?1 AND handed = 1)";
        let hold = format!(
            "UPDATE fleet_run SET held = (SELECT version FROM fleet_agent WHERE name = from_host),
                 free = CASE WHEN (SELECT lease_until FROM fleet_agent WHERE name = from_host) <= starts
                             THEN (SELECT lease_until FROM fleet_agent WHERE name = from_host) ELSE ends END
             WHERE id = ?1 AND from_host = {own}"
        );
        if self.execute(&hold, &[id.into()])? > 0 {
            let over = "UPDATE fleet_run SET held = NULL, free = NULL WHERE id = ?1 AND free <= ?2";
            self.execute(over, &[id.into(), value_of(now)])?;
            self.note_changed(id)?;
        }
        Ok(())
    }

    /// The agent that may have a run in its calendar needs another one.
    pub(super) fn note_changed(&mut self, run: &str) -> Result<(), CalendarError> {
        let note = "UPDATE fleet_agent SET changed = 1
                    WHERE name = (SELECT from_host FROM fleet_run WHERE id = ?1 AND handed = 1)";
        self.execute(note, &[run.into()]).map(drop)
    }

    /// An agent lacks the calendar that was handed out to it last, and nobody has that any more.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn hand_out_again(&mut self, name: &str) -> Result<(), CalendarError> {
        self.execute("UPDATE fleet_agent SET changed = 1 WHERE name = ?1", &[name.into()]).map(drop)
    }

    /// The agent of a run is done with it: nothing holds its time.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn free_reported(&mut self, id: &str) -> Result<(), CalendarError> {
        self.give_back("id = ?1", &[id.into()])
    }

    /// The agents of new runs need another calendar.
    pub(super) fn note_new_runs(&mut self, runs: &[CalendarRun]) -> Result<(), CalendarError> {
        let mut hosts: Vec<&str> =
            runs.iter().filter(|run| !run.state.is_end()).map(|run| run.from.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.is_empty() {
            return Ok(());
        }
        let note = format!(
            "UPDATE fleet_agent SET changed = 1 WHERE changed = 0 AND name IN ({})",
            names(1, hosts.len())
        );
        let hosts: Vec<Value> = hosts.into_iter().map(Value::from).collect();
        self.execute(&note, &hosts).map(drop)
    }

    /// Something that was written may be lost. Every agent may have a calendar that the database knows nothing of, until
    /// it confirms a new one or until the longest calendar has ended; and a test may be on the wire that nobody knows of.
    /// What was to begin in the meantime ends.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn note_loss(&mut self, now: UnixTime) -> Result<(), CalendarError> {
        let longest = "SELECT coalesce(max(longest), 0) FROM fleet_resource";
        let longest = self.first(longest, &[], |row| Ok(row.integer(0)?))?.unwrap_or(0);
        let calm = UnixTime::from_ms(now.as_ms().saturating_add(longest));
        self.stay_calm(calm)?;
        let lost = "UPDATE fleet_agent SET lost = ?2, changed = 1, version = version + ?1,
                    lease_until = CASE WHEN lease_until < ?2 THEN ?2 ELSE lease_until END";
        self.execute(lost, &[JUMP.into(), value_of(now.after(LONGEST))])?;
        let soon = RunFilter {
            states: vec![CalendarRunState::Booked, CalendarRunState::Running],
            starts_before: Some(calm),
            ends_after: Some(now),
            ..RunFilter::default()
        };
        for run in self.runs(&soon)? {
            let state = match run.state {
                CalendarRunState::Running => CalendarRunState::Failed,
                _ => CalendarRunState::Missed,
            };
            self.store_end(&run.id, state, "the database lost what was written last", None, now)?;
        }
        Ok(())
    }

    /// Until when an agent may have a calendar that the database knows nothing of; in the past if none has.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn lost_until(&mut self) -> Result<UnixTime, CalendarError> {
        let lost = "SELECT coalesce(max(lost), 0) FROM fleet_agent";
        Ok(self.first(lost, &[], |row| rows::time(row, 0))?.unwrap_or(UnixTime::from_ms(0)))
    }

    /// Until when something may be on the wire that the database has lost, or that has reserved less than it uses.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn calm_until(&mut self) -> Result<UnixTime, CalendarError> {
        let calm = "SELECT coalesce(max(calm), 0) FROM fleet_lease";
        Ok(self.first(calm, &[], |row| rows::time(row, 0))?.unwrap_or(UnixTime::from_ms(0)))
    }

    /// An agent has a calendar with a higher number than the database knows.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn note_unknown_version(&mut self, name: &str, version: u64) -> Result<(), CalendarError> {
        let raise = "UPDATE fleet_agent SET version = ?2, changed = 1 WHERE name = ?1 AND version < ?2";
        self.execute(raise, &[name.into(), i64::try_from(version).unwrap_or(i64::MAX).into()]).map(drop)
    }

    /// The agents that may have a calendar which the database knows nothing of.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn lost_agents(&mut self, now: UnixTime) -> Result<u64, CalendarError> {
        let count = "SELECT count(*) FROM fleet_agent WHERE lost > ?1";
        let count = self.first(count, &[value_of(now)], |row| rows::number(row, 0))?;
        Ok(count.unwrap_or(0))
    }
}

fn agent(row: &mut DatabaseRow) -> Result<FleetAgent, rows::RowError> {
    Ok(FleetAgent {
        name: row.text(0)?,
        key: row.text(1)?,
        enrolled: rows::time(row, 2)?,
        revoked: optional_time(row, 3)?,
        session: row.text(4)?,
        seen: optional_time(row, 5)?,
        program: row.text(6)?.into(),
        note: row.text(7)?.into(),
        waiting: rows::number(row, 8)?,
        version: rows::number(row, 9)?,
        until: rows::time(row, 10)?,
        acked: rows::number(row, 11)?,
        lease_until: rows::time(row, 12)?,
        lost: row.integer(13)? != 0,
    })
}
