//! Runs and their reservations.

use std::collections::BTreeMap;

use linerate_model::calendar::{CalendarRun, CalendarRunState, CellResult, ResourceReservation, UnixTime};
use linerate_units::Span;

use super::rows::{self, RESERVATION_COLUMNS, RUN_COLUMNS, nanoseconds, value_of};
use super::schedules::unwritable;
use super::{CalendarError, CalendarTransaction, NAMES_AT_ONCE, names};
use crate::value::Value;

/// Resources that are parameters of a query; more than that are written into it.
const MAX_PARAMETERS: usize = 16;
/// Rows that one statement inserts at most.
const ROWS_AT_ONCE: usize = 256;
/// Where the columns of runs are.
pub(super) const RUNS: &str = "fleet_run r JOIN fleet_spec s ON s.number = r.spec";
/// Where the columns of reservations are.
const RESERVATIONS: &str = "fleet_reservation v JOIN fleet_run r ON r.id = v.run";

/// Which runs to list. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of this schedule.
    pub schedule: Option<String>,
    /// Only runs of this mesh.
    pub mesh: Option<String>,
    /// Only runs from this host to that one.
    pub pair: Option<(String, String)>,
    /// Only runs in one of these states; empty for all.
    pub states: Vec<CalendarRunState>,
    /// Only runs whose reservations end after this time.
    pub ends_after: Option<UnixTime>,
    /// Only runs whose reservations end before this time.
    pub ends_before: Option<UnixTime>,
    /// Only runs whose reservations start before this time.
    pub starts_before: Option<UnixTime>,
    /// Those that end last first, instead of those that start first.
    pub newest_first: bool,
    /// Only runs from hosts whose agents carry them out by themselves, or only from other hosts.
    pub by_agents: Option<bool>,
    /// At most this number.
    pub limit: Option<u32>,
}

/// The last attempt to make a run of a schedule at a time at which it is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAttempt {
    /// How often it was tried before.
    pub number: u32,
    /// What became of it.
    pub state: CalendarRunState,
    /// Why; empty for most states.
    pub reason: String,
}

impl CalendarTransaction<'_> {
    /// The runs that a filter selects, in the order of their times.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn runs(&mut self, filter: &RunFilter) -> Result<Vec<CalendarRun>, CalendarError> {
        let mut values: Vec<Value> = Vec::new();
        let mut clauses = Vec::new();
        let mut add = |clause: &str, value: Value| {
            values.push(value);
            clauses.push(clause.replace('#', &format!("?{}", values.len())));
        };
        if let Some(schedule) = &filter.schedule {
            add("r.schedule = #", schedule.as_str().into());
        }
        if let Some(mesh) = &filter.mesh {
            add("r.mesh = #", mesh.as_str().into());
        }
        if let Some((from, to)) = &filter.pair {
            add("r.from_host = #", from.as_str().into());
            add("r.to_host = #", to.as_str().into());
        }
        if let Some(time) = filter.ends_after {
            add("r.ends > #", value_of(time));
        }
        if let Some(time) = filter.ends_before {
            add("r.ends < #", value_of(time));
            // What has ended has started, and there is an index by starts: those to come are many.
            add("r.starts < #", value_of(time));
        }
        if let Some(time) = filter.starts_before {
            add("r.starts < #", value_of(time));
        }
        if !filter.states.is_empty() {
            let names: Vec<String> =
                filter.states.iter().map(|state| format!("'{}'", state.name())).collect();
            clauses.push(format!("r.state IN ({})", names.join(", ")));
        }
        if let Some(by_agents) = filter.by_agents {
            let not = if by_agents { "" } else { "NOT " };
            clauses.push(format!("{not}EXISTS (SELECT 1 FROM fleet_agent a WHERE a.name = r.from_host)"));
        }
        let wanted =
            if clauses.is_empty() { String::new() } else { format!("WHERE {}", clauses.join(" AND ")) };
        let order =
            if filter.newest_first { "coalesce(r.ended, r.ends) DESC, r.id DESC" } else { "r.starts, r.id" };
        let limit = filter.limit.map(|limit| format!("LIMIT {limit}")).unwrap_or_default();
        let all = format!("SELECT {RUN_COLUMNS} FROM {RUNS} {wanted} ORDER BY {order} {limit}");
        self.list(&all, &values, rows::run)
    }

    /// The run with this name, if there is one.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn run(&mut self, id: &str) -> Result<Option<CalendarRun>, CalendarError> {
        let one = format!("SELECT {RUN_COLUMNS} FROM {RUNS} WHERE r.id = ?1");
        self.first(&one, &[id.into()], rows::run)
    }

    /// The runs whose names begin like this, at most two.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn runs_named(&mut self, beginning: &str) -> Result<Vec<CalendarRun>, CalendarError> {
        let last = format!("{beginning}\u{10ffff}");
        let all =
            format!("SELECT {RUN_COLUMNS} FROM {RUNS} WHERE r.id >= ?1 AND r.id <= ?2 ORDER BY r.id LIMIT 2");
        self.list(&all, &[beginning.into(), last.into()], rows::run)
    }

    /// For each time from `due` on of these schedules that has runs, the last of its attempts.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn attempts(
        &mut self,
        schedules: &[&str],
        due: UnixTime,
    ) -> Result<BTreeMap<(String, UnixTime), LastAttempt>, CalendarError> {
        let mut all = BTreeMap::new();
        for group in schedules.chunks(NAMES_AT_ONCE) {
            let in_order = format!(
                "SELECT schedule, due, attempt, state, reason FROM fleet_run
                 WHERE schedule IN ({}) AND due >= ?1 AND confirms = '' ORDER BY schedule, due, attempt",
                names(2, group.len())
            );
            let mut values = vec![value_of(due)];
            values.extend(group.iter().map(|name| Value::from(*name)));
            // A later attempt takes the place of an earlier one.
            all.extend(self.list(&in_order, &values, |row| {
                let last = LastAttempt {
                    number: rows::number(row, 2)?,
                    state: rows::named(row, 3, CalendarRunState::named)?,
                    reason: row.text(4)?,
                };
                Ok(((row.text(0)?, rows::time(row, 1)?), last))
            })?);
        }
        Ok(all)
    }

    /// Gives the cancelled runs of a schedule another reason that are due after a time and have this one.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn change_cancellations(
        &mut self,
        schedule: &str,
        (reason, other): (&str, &str),
        due_after: UnixTime,
    ) -> Result<(), CalendarError> {
        let change = "UPDATE fleet_run SET reason = ?3
                      WHERE schedule = ?1 AND state = 'cancelled' AND reason = ?2 AND due > ?4";
        self.execute(change, &[schedule.into(), reason.into(), other.into(), value_of(due_after)]).map(drop)
    }

    /// How many runs are in each state, among those whose reservations start at a time or later.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn run_counts(
        &mut self,
        starts_from: UnixTime,
    ) -> Result<Vec<(CalendarRunState, u64)>, CalendarError> {
        // All states are named because the index is by state and start.
        let all = CalendarRunState::ALL.map(|state| format!("'{}'", state.name())).join(", ");
        let counts = format!(
            "SELECT state, count(*) FROM fleet_run WHERE state IN ({all}) AND starts >= ?1 GROUP BY state ORDER BY state"
        );
        self.list(&counts, &[value_of(starts_from)], |row| {
            let state = row.text(0)?;
            let count = rows::number(row, 1)?;
            Ok((CalendarRunState::named(&state), count))
        })
        .map(|counts| counts.into_iter().filter_map(|(state, count)| Some((state?, count))).collect())
    }

    /// The reservations of runs that have not ended, which hold a part of one of these resources at some time in a
    /// range.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn reservations(
        &mut self,
        resources: &[&str],
        from: UnixTime,
        until: UnixTime,
    ) -> Result<Vec<ResourceReservation>, CalendarError> {
        let mut all = Vec::new();
        for group in resources.chunks(NAMES_AT_ONCE) {
            let known = format!(
                "SELECT number, name, longest FROM fleet_resource WHERE name IN ({})",
                names(1, group.len())
            );
            let group: Vec<Value> = group.iter().map(|name| Value::from(*name)).collect();
            let known =
                self.list(&known, &group, |row| Ok((row.integer(0)?, row.text(1)?, row.integer(2)?)))?;
            // No earlier one still lasts, and there is an index on starts.
            let oldest = from.as_ms().saturating_sub(known.iter().map(|one| one.2).max().unwrap_or(0));
            let mut values = vec![value_of(from), value_of(until), oldest.into()];
            let wanted = if known.len() > MAX_PARAMETERS {
                // PostgreSQL looks constants up by hashing, and parameters one after the other.
                known.iter().map(|(number, ..)| number.to_string()).collect::<Vec<_>>().join(", ")
            } else {
                values.extend(known.iter().map(|(number, ..)| Value::from(*number)));
                names(4, known.len())
            };
            if wanted.is_empty() {
                continue;
            }
            let held = format!(
                "SELECT {RESERVATION_COLUMNS} FROM {RESERVATIONS}
                 WHERE v.active = 1 AND v.ends > ?1 AND v.starts < ?2 AND v.starts > ?3 AND v.resource IN ({wanted})"
            );
            let known: BTreeMap<i64, String> =
                known.into_iter().map(|(number, name, _)| (number, name)).collect();
            all.extend(self.list(&held, &values, |row| rows::reservation(row, &known))?);
        }
        all.sort_by(|a, b| (a.starts, &a.run, &a.resource).cmp(&(b.starts, &b.run, &b.resource)));
        Ok(all)
    }

    /// Stores new runs with their reservations. A run that exists already, for the same time of the same schedule, is a
    /// conflict, as a reservation that has a unit in common with another one.
    ///
    /// # Errors
    /// [`CalendarError::Conflict`], or the calendar cannot be written.
    pub fn insert_runs(
        &mut self,
        runs: &[CalendarRun],
        reservations: &[ResourceReservation],
    ) -> Result<(), CalendarError> {
        let mut specs: Vec<(String, i64)> = Vec::new();
        for group in runs.chunks(ROWS_AT_ONCE) {
            let mut values = Vec::new();
            for run in group {
                let text = rows::json(&run.spec).map_err(unwritable)?;
                let known = specs.iter().find(|(known, _)| *known == text).map(|(_, number)| *number);
                let spec = match known {
                    Some(number) => number,
                    None => {
                        let number = self.spec_number(&text)?;
                        specs.push((text, number));
                        number
                    }
                };
                values.extend(run_values(run, spec)?);
            }
            let insert = format!(
                "INSERT INTO fleet_run (id, schedule, mesh, from_host, to_host, spec, confirms, due, attempt, latest,
                     starts, ends, set_up, settle, priority, state, reason, epoch, begun, ended, result) VALUES {}",
                places(group.len(), 21)
            );
            self.execute(&insert, &values)?;
            self.note_new_runs(group)?;
        }
        // In one order for all transactions, so that two of them do not wait for each other.
        let mut sorted: Vec<&ResourceReservation> = reservations.iter().collect();
        sorted.sort_by(|a, b| (&a.resource, a.starts, &a.run).cmp(&(&b.resource, b.starts, &b.run)));
        for group in sorted.chunks(ROWS_AT_ONCE) {
            let mut values = Vec::new();
            let mut numbers = Vec::new();
            for reservation in group {
                let first = values.len() + 1;
                numbers.push(format!(
                    "(?{}, (SELECT number FROM fleet_resource WHERE name = ?{}), ?{}, ?{}, ?{}, ?{})",
                    first,
                    first + 1,
                    first + 2,
                    first + 3,
                    first + 4,
                    first + 5
                ));
                values.extend([
                    reservation.run.as_str().into(),
                    reservation.resource.as_str().into(),
                    i64::from(reservation.first_unit).into(),
                    i64::from(reservation.last_unit).into(),
                    value_of(reservation.starts),
                    value_of(reservation.ends),
                ]);
            }
            let insert = format!(
                "INSERT INTO fleet_reservation (run, resource, first_unit, last_unit, starts, ends) VALUES {}",
                numbers.join(", ")
            );
            self.execute(&insert, &values)?;
        }
        Ok(())
    }

    fn spec_number(&mut self, text: &str) -> Result<i64, CalendarError> {
        self.execute("INSERT INTO fleet_spec (content) VALUES (?1) ON CONFLICT DO NOTHING", &[text.into()])?;
        let number = "SELECT number FROM fleet_spec WHERE content = ?1";
        let found = self.first(number, &[text.into()], |row| Ok(row.integer(0)?))?;
        found.ok_or_else(|| CalendarError::Content("no specification".to_owned()))
    }

    /// Makes a booked run a running one; false if it is not booked any more.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn begin_run(&mut self, id: &str, epoch: u64, now: UnixTime) -> Result<bool, CalendarError> {
        let begin = "UPDATE fleet_run SET state = 'running', begun = ?2, epoch = ?3 WHERE id = ?1 AND state = 'booked'";
        self.execute(begin, &[id.into(), value_of(now), (epoch as i64).into()]).map(|rows| rows > 0)
    }

    /// Stores how an active run ended, for the coordinator that leads to judge it; false if its end was stored already.
    /// Its reservations are free from now on.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn store_end(
        &mut self,
        id: &str,
        state: CalendarRunState,
        reason: &str,
        result: Option<&CellResult>,
        now: UnixTime,
    ) -> Result<bool, CalendarError> {
        let ended = self.end_run(id, state, reason, result, now)?;
        if ended {
            self.set_to_judge(id, true)?;
        }
        Ok(ended)
    }

    /// The first runs whose ends nobody has judged, in the order of their ends.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn runs_to_judge(&mut self, limit: u32) -> Result<Vec<CalendarRun>, CalendarError> {
        let first =
            format!("SELECT {RUN_COLUMNS} FROM {RUNS} WHERE r.to_judge = 1 ORDER BY r.ended, r.id LIMIT ?1");
        self.list(&first, &[i64::from(limit).into()], rows::run)
    }

    /// Notes whether the end of a run is still to be judged.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn set_to_judge(&mut self, id: &str, to_judge: bool) -> Result<(), CalendarError> {
        let set = "UPDATE fleet_run SET to_judge = ?2 WHERE id = ?1";
        self.execute(set, &[id.into(), i64::from(to_judge).into()]).map(drop)
    }

    /// Ends a run that is booked or running; false if it has ended already. Its reservations are free from now on, unless
    /// an agent may still carry it out: then they are [given back](Self::confirm_calendar) later.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn end_run(
        &mut self,
        id: &str,
        state: CalendarRunState,
        reason: &str,
        result: Option<&CellResult>,
        now: UnixTime,
    ) -> Result<bool, CalendarError> {
        let result = result.map(rows::json).transpose().map_err(unwritable)?;
        let end = "UPDATE fleet_run SET state = ?2, reason = ?3, result = ?4, ended = ?5
                   WHERE id = ?1 AND state IN ('booked', 'running')";
        let row = [id.into(), state.name().into(), reason.into(), result.into(), value_of(now)];
        let ended = self.execute(end, &row)? > 0;
        if ended {
            self.hold_handed(id, now)?;
            let free = "UPDATE fleet_reservation SET active = 0 WHERE run = ?1 AND active = 1
                        AND NOT EXISTS (SELECT 1 FROM fleet_run WHERE id = ?1 AND held IS NOT NULL)";
            self.execute(free, &[id.into()])?;
        }
        Ok(ended)
    }

    /// Asks the coordinator to stop a run that is active. Until it has stopped, its reservations hold; false if it is not
    /// active.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn ask_to_stop(&mut self, id: &str, reason: &str) -> Result<bool, CalendarError> {
        let ask = "UPDATE fleet_run SET reason = ?2 WHERE id = ?1 AND state = 'running'";
        let asked = self.execute(ask, &[id.into(), reason.into()])? > 0;
        if asked {
            self.note_changed(id)?;
        }
        Ok(asked)
    }

    /// Removes runs that ended before a time, and what no run refers to any more; the number of runs.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn forget_runs(&mut self, before: UnixTime, now: UnixTime) -> Result<u64, CalendarError> {
        let old = "DELETE FROM fleet_run WHERE ended IS NOT NULL AND ended < ?1";
        let removed = self.execute(old, &[value_of(before)])?;
        // Parts that nobody completes within a day.
        let day = value_of(before.max(now.before(Span::from_secs(24 * 3600))));
        self.execute("DELETE FROM fleet_result_part WHERE arrived < ?1", &[day])?;
        if removed > 0 {
            let unused = "DELETE FROM fleet_spec WHERE NOT EXISTS (SELECT 1 FROM fleet_run WHERE spec = fleet_spec.number)";
            self.execute(unused, &[])?;
        }
        Ok(removed)
    }
}

fn run_values(run: &CalendarRun, spec: i64) -> Result<[Value; 21], CalendarError> {
    let result = run.result.as_ref().map(rows::json).transpose().map_err(unwritable)?;
    Ok([
        run.id.as_str().into(),
        run.schedule.as_str().into(),
        run.mesh.clone().into(),
        run.from.as_str().into(),
        run.to.as_str().into(),
        spec.into(),
        run.confirms.as_deref().unwrap_or_default().into(),
        value_of(run.due),
        i64::from(run.attempt).into(),
        value_of(run.latest),
        value_of(run.starts),
        value_of(run.ends),
        nanoseconds(run.set_up),
        nanoseconds(run.settle),
        i64::from(run.priority).into(),
        run.state.name().into(),
        run.reason.as_str().into(),
        (run.epoch as i64).into(),
        run.begun.map(UnixTime::as_ms).into(),
        run.ended.map(UnixTime::as_ms).into(),
        result.into(),
    ])
}

/// `(?1, ?2), (?3, ?4)` for two rows of two columns.
fn places(rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let places: Vec<String> =
            (1..=columns).map(|column| format!("?{}", row * columns + column)).collect();
        format!("({})", places.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}
