//! Results of agents that arrive in parts.

use linerate_model::calendar::UnixTime;

use super::rows::value_of;
use super::{CalendarError, CalendarTransaction};

/// Results of an agent of which some parts have arrived, at most. Agents send two at a time; one that was started again
/// may send two others.
const UNFINISHED_RESULTS: i64 = 4;

/// What became of a part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultParts {
    /// Others are missing.
    Kept,
    /// It was the last one: all of them, one after the other.
    Whole(String),
}

impl CalendarTransaction<'_> {
    /// Adds a part of a result of an agent, which has `parts` of them. If there are too many unfinished results of the
    /// agent, the one that was not continued for the longest time is removed: the agent sends it again.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn add_result_part(
        &mut self,
        (agent, run): (&str, &str),
        (part, parts): (u32, u32),
        content: &str,
        now: UnixTime,
    ) -> Result<ResultParts, CalendarError> {
        if parts == 1 {
            return Ok(ResultParts::Whole(content.to_owned()));
        }
        let others = "SELECT count(DISTINCT run) FROM fleet_result_part WHERE agent = ?1 AND run <> ?2";
        let others = self.first(others, &[agent.into(), run.into()], |row| Ok(row.integer(0)?))?;
        if others.is_some_and(|others| others >= UNFINISHED_RESULTS) {
            let oldest = "DELETE FROM fleet_result_part WHERE run =
                 (SELECT run FROM fleet_result_part WHERE agent = ?1 AND run <> ?2
                  GROUP BY run ORDER BY max(arrived), run LIMIT 1)";
            self.execute(oldest, &[agent.into(), run.into()])?;
        }
        let store =
            "INSERT INTO fleet_result_part (run, part, agent, arrived, content) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (run, part) DO UPDATE SET arrived = excluded.arrived, content = excluded.content";
        let row = [run.into(), i64::from(part).into(), agent.into(), value_of(now), content.into()];
        self.execute(store, &row)?;
        let count = "SELECT count(*) FROM fleet_result_part WHERE run = ?1 AND part < ?2";
        let count = self.first(count, &[run.into(), i64::from(parts).into()], |row| Ok(row.integer(0)?))?;
        if count != Some(i64::from(parts)) {
            return Ok(ResultParts::Kept);
        }
        let all = "SELECT content FROM fleet_result_part WHERE run = ?1 AND part < ?2 ORDER BY part";
        let all = self.list(all, &[run.into(), i64::from(parts).into()], |row| Ok(row.text(0)?))?;
        Ok(ResultParts::Whole(all.concat()))
    }

    /// Removes the parts of a result that have arrived.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn remove_result_parts(&mut self, run: &str) -> Result<(), CalendarError> {
        self.execute("DELETE FROM fleet_result_part WHERE run = ?1", &[run.into()]).map(drop)
    }
}
