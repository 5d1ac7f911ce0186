//! The log of a run in the database: adding events, merging parts, reading.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use linerate_model::{Body, Event, ForeignText, GroupPlace, RunRecord};

use crate::ArchiveError;
use crate::database::Database;
use crate::derive::{derive_rows, insert_flows, serialised_name};
use crate::error::DatabaseFault;
use crate::part::{self, LogPart};
use crate::value::Value;

/// Small parts of the log of an active run that are merged into one.
const MERGE_PARTS: i64 = 128;

/// Most bytes of a text in a column with an index. An entry of an index of PostgreSQL has at most 2,704 bytes.
pub(crate) const MAX_INDEXED_BYTES: usize = 2400;

/// A text as the columns of a run have it that have an index, and conditions on them. The log has all of it.
pub(crate) fn indexed(text: &str) -> &str {
    let end = (0..=MAX_INDEXED_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// Events of one run by their numbers, with their bodies as JSON.
pub(crate) type NewEvents<'a> = BTreeMap<i64, (&'a Event, String)>;

/// Adds events to the log of one run, without those whose numbers it has. If they end the run and rows for lists are
/// wanted, derives them too.
pub(crate) fn append_log(
    database: &mut Database,
    run: &ForeignText,
    log: &NewEvents<'_>,
    derives: bool,
) -> Result<(), DatabaseFault> {
    // The update locks the row, so that no other program adds the same events meanwhile.
    let row = "INSERT INTO run (id) VALUES (?1) ON CONFLICT (id) DO UPDATE SET id = excluded.id
               RETURNING number, event_count, small_parts";
    let mut row = database.query(row, &[run.as_str().into()])?;
    let Some(row) = row.first_mut() else { return Ok(()) };
    let (number, count, small_parts) = (row.integer(0)?, row.integer(1)?, row.integer(2)?);
    let known = if count > 0 { known_numbers(database, number, log)? } else { Vec::new() };
    let is_new = |seq: &i64| known.iter().all(|known| !known.contains(seq));
    let added: BTreeMap<i64, &(&Event, String)> =
        log.iter().filter(|(seq, _)| is_new(seq)).map(|(seq, event)| (*seq, event)).collect();
    let parts = LogPart::merge(
        added.iter().map(|(seq, (event, body))| LogPart::new(*seq, event.at, event.host, body)),
    );
    let mut update = RunUpdate::of(number);
    insert_parts(database, &parts, &mut update)?;
    let added: Vec<&Event> = added.values().map(|(event, _)| *event).collect();
    head_of(&added, &mut update);
    let ended = added.iter().any(|event| matches!(event.body, Body::RunEnded { .. }));
    let whole = count == 0;
    let small_parts = small_parts + parts.len() as i64;
    let merges = (ended && !whole) || small_parts >= MERGE_PARTS;
    if !merges && !ended {
        update.set("small_parts", small_parts.into());
    }
    update.execute(database)?;
    if merges {
        merge_parts(database, number, small_parts)?;
    }
    match (ended && derives, whole) {
        (false, _) => Ok(()),
        (true, true) => insert_flows(database, number, &RunRecord::fold(added)),
        (true, false) => {
            let log = log_of(database, number, run)?;
            derive_rows(database, number, &RunRecord::fold(&log))
        }
    }
}

/// The numbers of events that a log has, among those of `new`.
fn known_numbers(
    database: &mut Database,
    number: i64,
    new: &NewEvents<'_>,
) -> Result<Vec<RangeInclusive<i64>>, DatabaseFault> {
    let (Some((first, _)), Some((last, _))) = (new.first_key_value(), new.last_key_value()) else {
        return Ok(Vec::new());
    };
    let known =
        "SELECT first_seq, last_seq FROM log_part WHERE run = ?1 AND first_seq <= ?2 AND last_seq >= ?3";
    let parts = database.query(known, &[number.into(), (*last).into(), (*first).into()])?;
    parts.into_iter().map(|mut part| Ok(part.integer(0)?..=part.integer(1)?)).collect()
}

/// New values of the columns of a run, for one statement.
struct RunUpdate {
    columns: Vec<(&'static str, bool)>,
    /// The number of the run, then the values of the columns.
    values: Vec<Value>,
}

impl RunUpdate {
    fn of(number: i64) -> Self {
        Self { columns: Vec::new(), values: vec![number.into()] }
    }

    fn set(&mut self, column: &'static str, value: Value) {
        // The last of several events counts.
        match self.columns.iter().position(|(known, _)| *known == column) {
            Some(at) => self.values[at + 1] = value,
            None => self.put(column, false, value),
        }
    }

    /// The columns that its first event tells.
    fn start(&mut self, values: [&str; 5]) {
        let columns = ["started_at", "target", "world", "linerate", "kind"];
        columns.into_iter().zip(values).for_each(|(column, value)| self.set(column, indexed(value).into()));
    }

    fn add(&mut self, column: &'static str, amount: i64) {
        match self.columns.iter().position(|(known, _)| *known == column) {
            Some(at) => {
                if let Value::Integer(sum) = &mut self.values[at + 1] {
                    *sum += amount;
                }
            }
            None => self.put(column, true, amount.into()),
        }
    }

    fn put(&mut self, column: &'static str, adds: bool, value: Value) {
        self.columns.push((column, adds));
        self.values.push(value);
    }

    fn execute(&self, database: &mut Database) -> Result<(), DatabaseFault> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let one = |(place, (column, adds)): (usize, &(&str, bool))| match adds {
            true => format!("{column} = {column} + ?{}", place + 2),
            false => format!("{column} = ?{}", place + 2),
        };
        let all: Vec<String> = self.columns.iter().enumerate().map(one).collect();
        database.execute(&format!("UPDATE run SET {} WHERE number = ?1", all.join(", ")), &self.values)?;
        Ok(())
    }
}

/// Stores parts, and counts their events and bytes.
fn insert_parts(
    database: &mut Database,
    parts: &[LogPart],
    update: &mut RunUpdate,
) -> Result<(), DatabaseFault> {
    let (mut events, mut bytes) = (0, 0);
    for part in parts {
        let content = part.compressed()?;
        (events, bytes) = (events + part.len() as i64, bytes + content.len() as i64);
        let insert = "INSERT INTO log_part (run, first_seq, last_seq, content) VALUES (?1, ?2, ?3, ?4)";
        let number = update.values[0].clone();
        database.execute(insert, &[number, part.first.into(), part.last.into(), content.into()])?;
    }
    update.add("event_count", events);
    update.add("bytes", bytes);
    Ok(())
}

/// Merges the newest parts of a log, those that were added since the last time and the one before them. Older ones are
/// not read again, however large their events are.
pub(crate) fn merge_parts(database: &mut Database, number: i64, added: i64) -> Result<(), DatabaseFault> {
    let select =
        "SELECT first_seq, last_seq, content FROM log_part WHERE run = ?1 ORDER BY first_seq DESC LIMIT ?2";
    let (mut parts, mut bytes, mut events) = (Vec::new(), 0, 0);
    for mut row in database.query(select, &[number.into(), added.saturating_add(1).into()])? {
        let (first, last, content) = (row.integer(0)?, row.integer(1)?, row.blob(2)?);
        let part = LogPart::decompress(first, last, &content)?;
        (events, bytes) = (events + part.len() as i64, bytes + content.len() as i64);
        parts.push(part);
    }
    let mut update = RunUpdate::of(number);
    if let [_, .., oldest] = parts.as_slice() {
        let delete = "DELETE FROM log_part WHERE run = ?1 AND first_seq >= ?2";
        database.execute(delete, &[number.into(), oldest.first.into()])?;
        update.add("event_count", -events);
        update.add("bytes", -bytes);
        insert_parts(database, &LogPart::merge(parts.into_iter().rev()), &mut update)?;
    }
    update.set("small_parts", 0_i64.into());
    update.execute(database)
}

/// The columns of a run that its events tell.
fn head_of(events: &[&Event], update: &mut RunUpdate) {
    for event in events {
        match &event.body {
            Body::RunStarted(run) => {
                update.start([&*run.started_at, &*run.target, run.world.name(), &*run.linerate, "test"])
            }
            Body::PlanStarted(plan) => {
                update.start([&*plan.started_at, &*plan.name, plan.world.name(), &*plan.linerate, "plan"])
            }
            Body::Labelled(labels) => update.set("name", labels.name.as_deref().map(indexed).into()),
            Body::PlanResumed => update.set("outcome", Value::Null),
            Body::Grouped(GroupPlace { plan: Some(place), .. }) => {
                update.set("part_of", indexed(&place.run).into())
            }
            Body::RunEnded { outcome, .. } => update.set("outcome", serialised_name(outcome).into()),
            _ => {}
        }
    }
}

/// The log of a run, in order.
pub(crate) fn log_of(
    database: &mut Database,
    number: i64,
    run: &ForeignText,
) -> Result<Vec<Event>, DatabaseFault> {
    let parts = "SELECT first_seq, content FROM log_part WHERE run = ?1 ORDER BY first_seq";
    let mut events = Vec::new();
    for mut row in database.query(parts, &[number.into()])? {
        part::events_of(run, row.integer(0)?, &row.blob(1)?, &mut events)?;
    }
    Ok(events)
}

/// The body of an event as it is stored.
pub(crate) fn encode(event: &Event) -> Result<String, ArchiveError> {
    serde_json::to_string(&event.body).map_err(|source| ArchiveError::Encode {
        run: event.run.to_string(),
        seq: event.seq,
        source,
    })
}
