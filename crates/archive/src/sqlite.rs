//! The archive in one SQLite file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_model::flow::FlowId;
use linerate_model::{Body, Event, FlowHead, ForeignText, GroupPlace, RunHead, RunRecord, Sample};
use linerate_units::{Bitrate, Timestamp};
use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, named_params, params,
};
use serde::Deserialize;

use crate::ArchiveError;
use crate::derive::{self, serialised_name};
use crate::migrate::{is_current, migrate, prepare};
use crate::store::{Filter, ForeignRunLimits, RunCursor, RunPage, Store};

/// How long a statement waits for another process's lock. Transactions take milliseconds, and events queue up
/// during the wait.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);
/// Serialises writers within this process. SQLite's own waiting is polling without order: if hundreds of runs
/// end in one program at once, some would never get the lock.
static WRITE_LOCK: Mutex<()> = Mutex::new(());
/// Approximate bytes of an event in the file in addition to its text.
const ROW_BYTES: usize = 24;
/// Smallest number of letters of a short name.
const MIN_NAME_CHARS: usize = 4;

/// A run with its number, and whether its derived rows are complete.
type NumberedRun = (i64, bool, RunHead);

/// An archive in one SQLite file in write-ahead mode: any number of readers and one writer at a time, from any
/// number of processes.
#[derive(Debug)]
pub struct SqliteArchive {
    path: PathBuf,
    connection: Connection,
}

/// The URI of a database that nobody writes: it has no write-ahead log.
fn unchanging(path: &Path) -> Option<String> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let path = path.to_str().filter(|_| !Path::new(&log).exists())?;
    let escaped: String = path
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02x}"),
        })
        .collect();
    Some(format!("file:{escaped}?immutable=1"))
}

fn turn() -> MutexGuard<'static, ()> {
    WRITE_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SqliteArchive {
    /// Opens the archive at `path`. Creates it and its directory if they are missing.
    ///
    /// # Errors
    /// If the file cannot be opened, is damaged, belongs to another program, or has a newer format.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|source| ArchiveError::Folder { path: folder.to_owned(), source })?;
        }
        let fail = |source| ArchiveError::of(path, source);
        let _turn = turn();
        let mut connection = Connection::open(path).map_err(fail)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(fail)?;
        migrate(&mut connection, path)?;
        prepare(&connection).map_err(fail)?;
        Ok(Self { path: path.to_owned(), connection })
    }

    /// Opens the archive at `path` without writing anything, also in a folder that this user cannot write. It has to
    /// have the format of this version.
    ///
    /// # Errors
    /// If there is no archive of this format, or it cannot be read.
    pub fn open_to_read(path: &Path) -> Result<Self, ArchiveError> {
        let fail = |source| ArchiveError::of(path, source);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // With a write-ahead log, SQLite makes an index of it. Without one, nothing is made.
        let connection = match unchanging(path) {
            Some(uri) => Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI),
            None => Connection::open_with_flags(path, flags),
        };
        let connection = connection.map_err(fail)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
        let current = is_current(&connection, path)?;
        if !current {
            return Err(ArchiveError::Older { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), connection })
    }

    /// The shortest prefix of the name `run` that no other run shares, at least four letters.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn short_name(&self, run: &str) -> Result<String, ArchiveError> {
        let neighbours = self.with(|connection| {
            let below = "SELECT max(id) FROM run WHERE id < ?1";
            let above = "SELECT min(id) FROM run WHERE id > ?1";
            let one = |sql| connection.query_row(sql, [run], |row| row.get::<_, Option<String>>(0));
            Ok([one(below)?, one(above)?])
        })?;
        let shared = neighbours
            .iter()
            .flatten()
            .map(|other| run.chars().zip(other.chars()).take_while(|(a, b)| a == b).count());
        let letters = shared.max().map_or(0, |shared| shared + 1).max(MIN_NAME_CHARS);
        let mut short: String = run.chars().take(letters).collect();
        // A beginning that is the name of another run would select that one.
        while short.len() < run.len() && self.is_name(&short)? {
            short.extend(run[short.len()..].chars().next());
        }
        Ok(short)
    }

    /// Whether a user gave this name to a run or a plan.
    fn is_name(&self, name: &str) -> Result<bool, ArchiveError> {
        self.with(|connection| {
            let wanted = "SELECT 1 FROM run WHERE name = ?1 OR (kind = 'plan' AND target = ?1)";
            connection.prepare_cached(wanted)?.exists([name])
        })
    }

    /// Whether there is a run with this full name.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn contains(&self, run: &str) -> Result<bool, ArchiveError> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached("SELECT 1 FROM run WHERE id = ?1")?;
            statement.exists([run])
        })
    }

    /// Makes room for `run`, which an unknown client of a server started, and marks it as such. Removes the
    /// oldest runs of unknown clients that exceed `limits`. The user's own runs and active runs are never
    /// removed.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn admit_unknown_client(&mut self, run: &str, limits: &ForeignRunLimits) -> Result<(), ArchiveError> {
        self.write(|transaction| {
            transaction.execute(
                "DELETE FROM run WHERE number IN (
                   SELECT number FROM (
                     SELECT number, started_at, outcome,
                       row_number() OVER (ORDER BY number DESC) AS place,
                       sum(bytes) OVER (ORDER BY number DESC) AS total
                     FROM run WHERE foreign_client = 1)
                   WHERE (place >= :runs OR total > :bytes OR started_at < :oldest)
                     AND (outcome IS NOT NULL OR coalesce(started_at, '') < :under_way))",
                named_params! {
                    ":runs": limits.runs, ":bytes": limits.bytes as i64, ":oldest": limits.oldest,
                    ":under_way": limits.under_way,
                },
            )?;
            transaction.execute(
                "INSERT INTO run (id, foreign_client) VALUES (?1, 1) ON CONFLICT (id) DO UPDATE SET foreign_client = 1",
                [run],
            )
        })?;
        Ok(())
    }

    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ArchiveError> {
        work(&self.connection).map_err(|source| ArchiveError::of(&self.path, source))
    }

    /// Executes `work` in one transaction that takes the write lock at its start, so that it cannot fail for
    /// lack of the lock later.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, ArchiveError> {
        let Self { path, connection } = self;
        let _turn = turn();
        let done =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
                let value = work(&transaction)?;
                transaction.commit()?;
                Ok(value)
            });
        done.map_err(|source| ArchiveError::of(path, source))
    }

    fn number(&self, run: &str) -> Result<i64, ArchiveError> {
        self.number_of(&self.find(run)?)
    }

    /// The number of a run with this full name.
    fn number_of(&self, id: &str) -> Result<i64, ArchiveError> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached("SELECT number FROM run WHERE id = ?1")?;
            statement.query_row([id], |row| row.get(0))
        })
    }

    fn log(&self, number: i64) -> Result<Vec<Event>, ArchiveError> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, seq, at_ns, host, body FROM event JOIN run ON number = run WHERE run = ?1 ORDER BY seq",
            )?;
            statement.query_map([number], read_event)?.collect()
        })
    }

    /// The runs that match, newest first, each with its number and whether its derived rows are complete.
    fn rows(&self, filter: &Filter, after: Option<RunCursor>) -> Result<Vec<NumberedRun>, ArchiveError> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT number, derived_at = event_count, id, started_at, target, world, linerate, outcome, event_count,
                        kind, part_of, name
                 FROM run
                 WHERE (:after IS NULL OR number < :after)
                   AND (:target IS NULL OR target = :target OR name = :target) AND (:world IS NULL OR world = :world)
                   AND (:since IS NULL OR started_at >= :since) AND (:until IS NULL OR started_at < :until)
                   AND NOT (:whole AND part_of IS NOT NULL) AND (:part_of IS NULL OR part_of = :part_of)
                   AND (:plan IS NULL OR (kind = 'plan' AND target = :plan)) AND (:name IS NULL OR name = :name)
                   AND (:cause IS NULL OR EXISTS (SELECT 1 FROM flow WHERE run = number AND cause = :cause))
                 ORDER BY number DESC LIMIT :limit",
            )?;
            let parameters = named_params! {
                // No run has a number beyond the signed range.
                ":after": after.map(|cursor| i64::try_from(cursor.0).unwrap_or(i64::MAX)),
                ":target": filter.name_or_target, ":world": filter.world, ":since": filter.since,
                ":until": filter.until, ":whole": filter.whole, ":part_of": filter.part_of, ":plan": filter.plan,
                ":name": filter.name, ":cause": filter.cause,
                ":limit": filter.limit.map_or(-1, i64::from),
            };
            statement.query_map(parameters, read_head)?.collect()
        })
    }

    fn with_flows(&self, (number, derived, mut head): NumberedRun) -> Result<RunHead, ArchiveError> {
        head.flows = if derived {
            self.flows_of(number)?
        } else {
            derive::flow_heads(&RunRecord::fold(&self.log(number)?))
        };
        Ok(head)
    }

    fn flows_of(&self, number: i64) -> Result<Vec<FlowHead>, ArchiveError> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT flow, name, direction, transport, bitrate_bps, cause FROM flow WHERE run = ?1 ORDER BY flow",
            )?;
            statement.query_map([number], read_flow)?.collect()
        })
    }

    fn derive(&mut self, number: i64) -> Result<(), ArchiveError> {
        let log = self.log(number)?;
        let record = RunRecord::fold(&log);
        let (flows, summary) = (derive::flow_heads(&record), derive::summary(&record));
        self.write(|transaction| {
            transaction.execute("DELETE FROM flow WHERE run = ?1", [number])?;
            transaction.execute("DELETE FROM summary WHERE run = ?1", [number])?;
            // A log may contain a flow twice. The record keeps both, the list only the first.
            let mut insert = transaction
                .prepare_cached("INSERT OR IGNORE INTO flow VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
            for head in flows {
                let bitrate = head.bitrate.map(Bitrate::bps);
                insert.execute(params![
                    number,
                    head.flow.0,
                    head.name.as_str(),
                    head.direction.as_str(),
                    head.transport.as_str(),
                    bitrate,
                    head.cause.as_deref()
                ])?;
            }
            let mut insert = transaction
                .prepare_cached("INSERT OR IGNORE INTO summary VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
            for row in summary {
                insert.execute(params![
                    number,
                    row.flow.0,
                    row.side,
                    row.metric,
                    row.statistic,
                    row.value
                ])?;
            }
            let derived_at = log.len() as i64;
            transaction
                .execute("UPDATE run SET derived_at = ?2 WHERE number = ?1", params![number, derived_at])
        })?;
        Ok(())
    }
}

impl Store for SqliteArchive {
    fn append(&mut self, events: &[Event]) -> Result<(), ArchiveError> {
        let encoded: Vec<(&Event, String)> = events.iter().map(encode).collect::<Result<_, _>>()?;
        self.write(|transaction| {
            encoded.iter().try_for_each(|(event, body)| insert(transaction, event, body))
        })?;
        // The log is committed now. Derived rows can be rebuilt later, so a failure here is not a failure of
        // the run.
        for ended in events.iter().filter(|event| matches!(event.body, Body::RunEnded { .. })) {
            let _ = self.number_of(&ended.run).and_then(|number| self.derive(number));
        }
        Ok(())
    }

    fn runs(&self, filter: &Filter) -> Result<Vec<RunHead>, ArchiveError> {
        let rows = self.rows(filter, None)?;
        rows.into_iter().map(|row| self.with_flows(row)).collect()
    }

    fn page(&self, filter: &Filter, after: Option<RunCursor>, size: u32) -> Result<RunPage, ArchiveError> {
        // One more than the page shows whether there is a next one.
        let limited = Filter { limit: Some(size.saturating_add(1)), ..filter.clone() };
        let mut rows = self.rows(&limited, after)?;
        let more = rows.len() > size as usize;
        rows.truncate(size as usize);
        let next = rows.last().filter(|_| more).map(|(number, ..)| RunCursor(number.unsigned_abs()));
        let runs = rows.into_iter().map(|row| self.with_flows(row)).collect::<Result<_, _>>()?;
        Ok(RunPage { runs, next })
    }

    fn find(&self, prefix: &str) -> Result<String, ArchiveError> {
        let found: Vec<String> = self.with(|connection| {
            if prefix == "latest" {
                let newest = "SELECT id FROM run WHERE part_of IS NULL ORDER BY number DESC LIMIT 1";
                return Ok(connection
                    .query_row(newest, [], |row| row.get(0))
                    .optional()?
                    .into_iter()
                    .collect());
            }
            // The id of a run comes before a name that a user gave to runs, and the name before the beginning of ids.
            for wanted in [
                "SELECT id FROM run WHERE id = ?1",
                "SELECT id FROM run WHERE name = ?1 OR (kind = 'plan' AND target = ?1) ORDER BY number DESC LIMIT 4",
                "SELECT id FROM run WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 4",
            ] {
                let mut statement = connection.prepare_cached(wanted)?;
                let found: Vec<String> =
                    statement.query_map([prefix], |row| row.get(0))?.collect::<Result<_, _>>()?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            Ok(Vec::new())
        })?;
        match found.as_slice() {
            [] => Err(ArchiveError::NotFound { prefix: prefix.to_owned() }),
            [only] => Ok(only.clone()),
            several if several.iter().all(|id| id.starts_with(prefix)) => {
                Err(ArchiveError::Ambiguous { prefix: prefix.to_owned(), examples: several.to_vec() })
            }
            several => Err(ArchiveError::SharedName { name: prefix.to_owned(), examples: several.to_vec() }),
        }
    }

    fn events(&self, run: &str) -> Result<Vec<Event>, ArchiveError> {
        self.log(self.number(run)?)
    }

    fn rebuild(&mut self, run: &str) -> Result<(), ArchiveError> {
        self.derive(self.number(run)?)
    }

    fn delete(&mut self, run: &str) -> Result<(), ArchiveError> {
        let number = self.number(run)?;
        self.write(|transaction| transaction.execute("DELETE FROM run WHERE number = ?1", [number]))?;
        Ok(())
    }
}

fn encode(event: &Event) -> Result<(&Event, String), ArchiveError> {
    match serde_json::to_string(&event.body) {
        Ok(body) => Ok((event, body)),
        Err(source) => Err(ArchiveError::Encode { run: event.run.to_string(), seq: event.seq, source }),
    }
}

fn insert(transaction: &Transaction<'_>, event: &Event, body: &str) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT OR IGNORE INTO run (id) VALUES (?1)")?
        .execute([event.run.as_str()])?;
    // SQLite integers are signed; the bits are the same.
    let added = transaction
        .prepare_cached("INSERT OR IGNORE INTO event SELECT number, ?2, ?3, ?4, ?5 FROM run WHERE id = ?1")?
        .execute(params![event.run.as_str(), event.seq as i64, event.at.as_ns() as i64, event.host, body])?;
    transaction
        .prepare_cached("UPDATE run SET event_count = event_count + ?2, bytes = bytes + ?3 WHERE id = ?1")?
        .execute(params![event.run.as_str(), added as i64, (added * (body.len() + ROW_BYTES)) as i64])?;
    match &event.body {
        Body::RunStarted(start) => {
            transaction
                .prepare_cached(
                    "UPDATE run SET started_at = ?2, target = ?3, world = ?4, linerate = ?5 WHERE id = ?1",
                )?
                .execute(params![
                    event.run.as_str(),
                    start.started_at.as_str(),
                    start.target.as_str(),
                    start.world.name(),
                    start.linerate.as_str()
                ])?;
        }
        Body::PlanStarted(start) => {
            transaction
                .prepare_cached(
                    "UPDATE run SET started_at = ?2, target = ?3, world = ?4, linerate = ?5, kind = 'plan' WHERE id = ?1",
                )?
                .execute(params![
                    event.run.as_str(),
                    start.started_at.as_str(),
                    start.name.as_str(),
                    start.world.name(),
                    start.linerate.as_str()
                ])?;
        }
        Body::Labelled(labels) => {
            transaction
                .prepare_cached("UPDATE run SET name = ?2 WHERE id = ?1")?
                .execute(params![event.run.as_str(), labels.name.as_deref()])?;
        }
        Body::PlanResumed => {
            transaction
                .prepare_cached("UPDATE run SET outcome = NULL WHERE id = ?1")?
                .execute([event.run.as_str()])?;
        }
        Body::Grouped(GroupPlace { plan: Some(place), .. }) => {
            transaction
                .prepare_cached("UPDATE run SET part_of = ?2 WHERE id = ?1")?
                .execute([event.run.as_str(), place.run.as_str()])?;
        }
        Body::RunEnded { outcome, .. } => {
            transaction
                .prepare_cached("UPDATE run SET outcome = ?2 WHERE id = ?1")?
                .execute(params![event.run.as_str(), serialised_name(outcome)])?;
        }
        _ => {}
    }
    Ok(())
}

fn read_event(row: &Row<'_>) -> rusqlite::Result<Event> {
    let seq = row.get::<_, i64>(1)? as u64;
    let text = row.get_ref(4)?.as_str()?;
    let body = sample(text).map_or_else(|| serde_json::from_str(text).and_then(Body::read), Ok);
    let body = body.unwrap_or_else(|error| Body::unreadable(seq, &error));
    let at = Timestamp::from_ns(row.get::<_, i64>(2)? as u64);
    Ok(Event { run: row.get::<_, String>(0)?.into(), host: row.get(3)?, seq, at, body })
}

/// Parses a sample, the most frequent event of a long log, without trying the other event types first. That
/// takes less than half the time. `None` for other events and for errors.
fn sample(text: &str) -> Option<Body> {
    #[derive(Deserialize)]
    struct Told<'t> {
        kind: &'t str,
        flow: FlowId,
        sample: Sample,
    }

    if !text.starts_with(r#"{"kind":"sample""#) {
        return None;
    }
    let Told { kind, flow, sample } = serde_json::from_str(text).ok()?;
    (kind == "sample").then_some(Body::Sample { flow, sample })
}

fn read_head(row: &Row<'_>) -> rusqlite::Result<NumberedRun> {
    let outcome: Option<String> = row.get(7)?;
    let head = RunHead {
        id: row.get::<_, String>(2)?.into(),
        started_at: text(row, 3)?,
        target: text(row, 4)?,
        world: text(row, 5)?,
        linerate: text(row, 6)?,
        outcome: outcome.and_then(|name| serde_json::from_value(name.into()).ok()),
        event_count: row.get::<_, i64>(8)? as u64,
        is_plan: row.get::<_, String>(9)? == "plan",
        part_of: text(row, 10)?,
        name: text(row, 11)?,
        flows: Vec::new(),
    };
    Ok((row.get(0)?, row.get(1)?, head))
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<ForeignText>> {
    Ok(row.get::<_, Option<String>>(column)?.map(Into::into))
}

fn read_flow(row: &Row<'_>) -> rusqlite::Result<FlowHead> {
    Ok(FlowHead {
        flow: FlowId(row.get(0)?),
        name: row.get::<_, String>(1)?.into(),
        direction: row.get::<_, String>(2)?.into(),
        transport: row.get::<_, String>(3)?.into(),
        bitrate: row.get::<_, Option<f64>>(4)?.and_then(Bitrate::from_bps),
        cause: text(row, 5)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Outcome;

    fn in_memory() -> SqliteArchive {
        SqliteArchive::open(Path::new(":memory:")).unwrap()
    }

    fn ended(seq: u64) -> Event {
        let body = Body::RunEnded { outcome: Outcome::Failed, reason: Some("x".repeat(1000).into()) };
        Event { run: "r".into(), host: 0, seq, at: Timestamp::from_ns(seq), body }
    }

    #[test]
    fn a_full_archive_says_so_and_keeps_what_it_has() {
        let mut archive = in_memory();
        archive.append(&[ended(0)]).unwrap();
        let pages: i64 = archive.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        archive.connection.pragma_update_and_check(None, "max_page_count", pages + 1, |_| Ok(())).unwrap();
        let error = archive.append(&(1..100).map(ended).collect::<Vec<_>>()).unwrap_err();
        assert!(matches!(error, ArchiveError::Full { .. }), "{error:?}");
        assert_eq!(archive.events("r").unwrap(), [ended(0)]);
    }

    #[test]
    fn an_archive_that_may_not_be_written_says_so() {
        let mut archive = in_memory();
        archive.connection.pragma_update(None, "query_only", true).unwrap();
        let error = archive.append(&[ended(0)]).unwrap_err();
        assert!(matches!(error, ArchiveError::ReadOnly { .. }), "{error:?}");
    }

    #[test]
    fn numbers_beyond_the_signed_range_keep_their_bits() {
        let mut archive = in_memory();
        let mut event = ended(0);
        event.at = Timestamp::from_ns(u64::MAX);
        archive.append(std::slice::from_ref(&event)).unwrap();
        assert_eq!(archive.events("r").unwrap(), [event]);
    }

    /// Everything that is not exactly a sample is left to the general parser.
    #[test]
    fn a_sample_is_read_as_every_other_body() {
        let readings = r#""readings":{"flow.bytes":18446744073709551615,"host.busy":0.1,"new.thing":-2}"#;
        let times = r#""side":"sender","start_ns":5,"end_ns":9"#;
        let whole = format!(r#"{{"kind":"sample","flow":3,"sample":{{{times},"outside":true,{readings}}}}}"#);
        assert_eq!(sample(&whole), serde_json::from_str(&whole).ok());
        assert!(sample(&whole).is_some());
        let others = [
            r#"{"kind":"run_ended","outcome":"failed"}"#.to_owned(),
            whole.replace("\"sample\",", "\"sampler\","),
            whole.replace("\"flow\":3", "\"flow\":65536"),
            whole.replace("\"flow\":3,", "\"flow\":3,\"kind\":\"sample\","),
            whole.replace("\"end_ns\":9,", ""),
        ];
        for text in others {
            assert_eq!(sample(&text), None, "{text}");
        }
    }
}
