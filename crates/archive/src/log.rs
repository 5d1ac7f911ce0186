//! The log of a run in the database: adding events, merging parts, reading.

use std::collections::BTreeMap;

use linerate_model::{Body, Event, ForeignText, GroupPlace, RunRecord};

use crate::ArchiveError;
use crate::database::Database;
use crate::derive::serialised_name;
use crate::error::DatabaseFault;
use crate::part::{self, LogPart};
use crate::value::Value;

/// Small parts of the log of an active run that are merged into one.
const MERGE_PARTS: i64 = 128;

/// Events of one run by their numbers, with their bodies as JSON.
pub(crate) type NewEvents<'a> = BTreeMap<i64, (&'a Event, String)>;

/// Adds events to the log of one run, without those whose numbers it has. If they end the run, its number and its record.
pub(crate) fn append_log(
    database: &mut Database,
    run: &ForeignText,
    mut log: NewEvents<'_>,
) -> Result<Option<(i64, RunRecord)>, DatabaseFault> {
    // The update locks the row, so that no other program adds the same events meanwhile.
    let row = "INSERT INTO run (id) VALUES (?1) ON CONFLICT (id) DO UPDATE SET id = excluded.id
               RETURNING number, event_count, small_parts";
    let mut row = database.query(row, &[run.as_str().into()])?;
    let Some(row) = row.first_mut() else { return Ok(None) };
    let (number, count, small_parts) = (row.integer(0)?, row.integer(1)?, row.integer(2)?);
    if count > 0
        && let (Some((first, _)), Some((last, _))) = (log.first_key_value(), log.last_key_value())
    {
        let known =
            "SELECT first_seq, last_seq FROM log_part WHERE run = ?1 AND first_seq <= ?2 AND last_seq >= ?3";
        for mut part in database.query(known, &[number.into(), (*last).into(), (*first).into()])? {
            let known = part.integer(0)?..=part.integer(1)?;
            log.retain(|seq, _| !known.contains(seq));
        }
    }
    let added: Vec<&Event> = log.values().map(|(event, _)| *event).collect();
    let parts =
        LogPart::merge(log.iter().map(|(seq, (event, body))| LogPart::new(*seq, event.at, event.host, body)));
    store_parts(database, number, &parts)?;
    update_head(database, number, &added)?;
    let ended = added.iter().any(|event| matches!(event.body, Body::RunEnded { .. }));
    let whole = count == 0;
    let small_parts = small_parts + parts.len() as i64;
    if (ended && !whole) || small_parts >= MERGE_PARTS {
        merge_parts(database, number, small_parts)?;
    } else if !ended {
        let set = "UPDATE run SET small_parts = ?2 WHERE number = ?1";
        database.execute(set, &[number.into(), small_parts.into()])?;
    }
    Ok(match (ended, whole) {
        (true, true) => Some((number, RunRecord::fold(added))),
        (true, false) => Some((number, RunRecord::fold(&log_of(database, number, run)?))),
        (false, _) => None,
    })
}

/// Stores parts, and counts their events and bytes.
fn store_parts(database: &mut Database, number: i64, parts: &[LogPart]) -> Result<(), DatabaseFault> {
    let (mut events, mut bytes) = (0, 0);
    for part in parts {
        let content = part.compressed()?;
        (events, bytes) = (events + part.len() as i64, bytes + content.len() as i64);
        let insert = "INSERT INTO log_part (run, first_seq, last_seq, content) VALUES (?1, ?2, ?3, ?4)";
        database.execute(insert, &[number.into(), part.first.into(), part.last.into(), content.into()])?;
    }
    let count = "UPDATE run SET event_count = event_count + ?2, bytes = bytes + ?3 WHERE number = ?1";
    database.execute(count, &[number.into(), events.into(), bytes.into()])?;
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
    if let [_, .., oldest] = parts.as_slice() {
        let delete = "DELETE FROM log_part WHERE run = ?1 AND first_seq >= ?2";
        database.execute(delete, &[number.into(), oldest.first.into()])?;
        let count = "UPDATE run SET event_count = event_count - ?2, bytes = bytes - ?3 WHERE number = ?1";
        database.execute(count, &[number.into(), events.into(), bytes.into()])?;
        store_parts(database, number, &LogPart::merge(parts.into_iter().rev()))?;
    }
    database.execute("UPDATE run SET small_parts = 0 WHERE number = ?1", &[number.into()])?;
    Ok(())
}

/// The columns of a run that its events tell.
fn update_head(database: &mut Database, number: i64, events: &[&Event]) -> Result<(), DatabaseFault> {
    let started =
        "UPDATE run SET started_at = ?2, target = ?3, world = ?4, linerate = ?5, kind = ?6 WHERE number = ?1";
    let number = Value::from(number);
    let of_start = |told: [&str; 5]| [vec![number.clone()], told.map(Value::from).to_vec()].concat();
    for event in events {
        match &event.body {
            Body::RunStarted(run) => {
                let told = [&*run.started_at, &*run.target, run.world.name(), &*run.linerate, "test"];
                database.execute(started, &of_start(told))?
            }
            Body::PlanStarted(plan) => {
                let told = [&*plan.started_at, &*plan.name, plan.world.name(), &*plan.linerate, "plan"];
                database.execute(started, &of_start(told))?
            }
            Body::Labelled(labels) => {
                let name = labels.name.as_deref().into();
                database.execute("UPDATE run SET name = ?2 WHERE number = ?1", &[number.clone(), name])?
            }
            Body::PlanResumed => database
                .execute("UPDATE run SET outcome = NULL WHERE number = ?1", std::slice::from_ref(&number))?,
            Body::Grouped(GroupPlace { plan: Some(place), .. }) => {
                let plan = place.run.as_str().into();
                database.execute("UPDATE run SET part_of = ?2 WHERE number = ?1", &[number.clone(), plan])?
            }
            Body::RunEnded { outcome, .. } => {
                let outcome = serialised_name(outcome).into();
                database
                    .execute("UPDATE run SET outcome = ?2 WHERE number = ?1", &[number.clone(), outcome])?
            }
            _ => 0,
        };
    }
    Ok(())
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
