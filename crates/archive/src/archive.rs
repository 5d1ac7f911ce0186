//! The archive: its statements, which are the same for both databases.

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::path::Path;

use linerate_model::flow::FlowId;
use linerate_model::{Event, FlowHead, ForeignText, RunHead, RunRecord};
use linerate_units::Bitrate;

use crate::ArchiveError;
use crate::database::Database;
use crate::derive::{self, derive_rows};
use crate::error::DatabaseFault;
use crate::log::{MAX_INDEXED_BYTES, NewEvents, append_log, encode, indexed, log_of, merge_parts};
use crate::retention::{PRUNED, excess, remove, remove_excess};
use crate::sqlite::SqliteDatabase;
use crate::store::{EventStore, Filter, RetentionLimits, RunCursor, RunPage, Store};
use crate::value::{DatabaseRow, Value};

/// Smallest number of letters of a short name.
const MIN_NAME_CHARS: usize = 4;
/// Runs whose flows, or whose tags, are read by one statement.
pub(crate) const RUNS_BATCH: usize = 256;

/// A run with its number, and whether its derived rows are complete.
type NumberedRun = (i64, bool, RunHead);

/// An archive in an SQLite file or in a PostgreSQL database. Any number of programs may use it at the same time.
#[derive(Debug)]
pub struct Archive {
    database: RefCell<Database>,
    shown: String,
}

impl Archive {
    pub(crate) fn new(database: Database) -> Self {
        Self { shown: database.shown().to_owned(), database: RefCell::new(database) }
    }

    /// Opens the SQLite file at `path`. Creates it and its directory if they are missing.
    ///
    /// # Errors
    /// If the file cannot be opened, is damaged, belongs to another program, or has a newer format.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        SqliteDatabase::open(path).map(Database::Sqlite).map(Self::new)
    }

    /// Opens the SQLite file at `path` without writing anything, also in a folder that this user cannot write. It has
    /// to have the format of this version.
    ///
    /// # Errors
    /// If there is no archive of this format, or it cannot be read.
    pub fn open_to_read(path: &Path) -> Result<Self, ArchiveError> {
        SqliteDatabase::open_to_read(path).map(Database::Sqlite).map(Self::new)
    }

    pub(crate) fn into_database(self) -> Database {
        self.database.into_inner()
    }

    /// The location, as messages show it: a path, or a URL without a password.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether the archive is in a database server, which can be reached again if the connection is lost.
    #[must_use]
    pub fn is_on_a_server(&self) -> bool {
        !matches!(*self.database(), Database::Sqlite(_))
    }

    /// The shortest prefix of the name `run` that no other run shares, at least four letters.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn short_name(&self, run: &str) -> Result<String, ArchiveError> {
        let neighbours = [
            self.texts("SELECT id FROM run WHERE id < ?1 ORDER BY id DESC LIMIT 1", &[run.into()])?,
            self.texts("SELECT id FROM run WHERE id > ?1 ORDER BY id LIMIT 1", &[run.into()])?,
        ];
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
        let wanted = "SELECT 1 FROM run WHERE name = ?1 OR (kind = 'plan' AND target = ?1) LIMIT 1";
        Ok(!self.rows(wanted, &[name.into()])?.is_empty())
    }

    /// Whether there is a run with this full name.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn contains(&self, run: &str) -> Result<bool, ArchiveError> {
        Ok(!self.rows("SELECT 1 FROM run WHERE id = ?1", &[run.into()])?.is_empty())
    }

    /// Makes room for `run`, which an unknown client of a server started, and marks it as such. Removes the
    /// oldest runs of unknown clients that exceed `limits`, which include the new one. The user's own runs and active
    /// runs are never removed.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn admit_unknown_client(&mut self, run: &str, limits: &RetentionLimits) -> Result<(), ArchiveError> {
        let before =
            RetentionLimits { runs: limits.runs.map(|runs| runs.saturating_sub(1)), ..limits.clone() };
        self.write(|database| {
            remove_excess(database, "foreign_client = 1", &before)?;
            let mark = "INSERT INTO run (id, foreign_client) VALUES (?1, 1)
                        ON CONFLICT (id) DO UPDATE SET foreign_client = 1";
            database.execute(mark, &[run.into()])
        })?;
        Ok(())
    }

    /// The runs that exceed `limits`, oldest last, without those that have a tag and those that may be active. A plan
    /// counts with its runs.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn excess(&self, limits: &RetentionLimits) -> Result<Vec<RunHead>, ArchiveError> {
        let (numbers, values) = excess(PRUNED, limits);
        let sql = format!("SELECT {HEAD} FROM run WHERE number IN ({numbers}) ORDER BY number DESC");
        let heads =
            self.read(|database| database.query(&sql, &values)?.into_iter().map(read_head).collect())?;
        self.with_flows(heads)
    }

    /// Removes the runs that [`Self::excess`] lists, and the runs of their plans; the number of runs removed.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn prune(&mut self, limits: &RetentionLimits) -> Result<u64, ArchiveError> {
        self.write(|database| remove_excess(database, PRUNED, limits))
    }

    /// Gives the space of removed runs back to the disk, and merges what killed runs left in small parts.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn vacuum(&mut self) -> Result<(), ArchiveError> {
        let loose = self.rows("SELECT number, small_parts FROM run WHERE small_parts > 0", &[])?;
        for mut row in loose {
            self.write(|database| merge_parts(database, row.integer(0)?, row.integer(1)?))?;
        }
        self.read(Database::vacuum)
    }

    /// The bytes that the archive uses on its disk, with those that removed runs left unused.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn size_bytes(&self) -> Result<u64, ArchiveError> {
        self.read(Database::size)
    }

    /// Number of runs that match. `limit` of the filter has no effect.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn count(&self, filter: &Filter) -> Result<u64, ArchiveError> {
        let wanted = Conditions::of(filter);
        let sql = format!("SELECT count(*) FROM run WHERE {}", wanted.text);
        let count = |database: &mut Database| {
            let mut rows = database.query(&sql, &wanted.values)?;
            rows.first_mut().map_or(Ok(0), |row| row.integer(0))
        };
        self.read(count).map(i64::unsigned_abs)
    }

    pub(crate) fn database(&self) -> RefMut<'_, Database> {
        self.database.borrow_mut()
    }

    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, DatabaseFault>,
    ) -> Result<T, ArchiveError> {
        work(&mut self.database()).map_err(|fault| ArchiveError::of(&self.shown, fault))
    }

    /// Executes `work` in one transaction.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, DatabaseFault>,
    ) -> Result<T, ArchiveError> {
        self.database().write(work).map_err(|fault| ArchiveError::of(&self.shown, fault))
    }

    fn rows(&self, sql: &str, parameters: &[Value]) -> Result<Vec<DatabaseRow>, ArchiveError> {
        self.read(|database| database.query(sql, parameters))
    }

    /// The texts in the first column.
    fn texts(&self, sql: &str, parameters: &[Value]) -> Result<Vec<String>, ArchiveError> {
        self.read(|database| {
            let rows = database.query(sql, parameters)?;
            rows.into_iter().map(|mut row| row.text(0)).collect()
        })
    }

    /// The number of a run with this full name.
    pub(crate) fn number_of(&self, id: &str) -> Result<i64, ArchiveError> {
        let found = self.read(|database| {
            let mut rows = database.query("SELECT number FROM run WHERE id = ?1", &[id.into()])?;
            rows.first_mut().map(|row| row.integer(0)).transpose()
        })?;
        // Another program may have removed it.
        found.ok_or_else(|| ArchiveError::NotFound { prefix: id.to_owned() })
    }

    /// The runs that match, newest first.
    fn heads(&self, filter: &Filter, after: Option<RunCursor>) -> Result<Vec<NumberedRun>, ArchiveError> {
        let mut wanted = Conditions::of(filter);
        // No run has a number beyond the signed range.
        wanted.add("number < ?", after.map(|cursor| i64::try_from(cursor.0).unwrap_or(i64::MAX)));
        let (mut sql, mut values) =
            (format!("SELECT {HEAD} FROM run WHERE {} ORDER BY number DESC", wanted.text), wanted.values);
        if let Some(limit) = filter.limit {
            values.push(limit.into());
            sql += &format!(" LIMIT ?{}", values.len());
        }
        self.read(|database| database.query(&sql, &values)?.into_iter().map(read_head).collect())
    }

    /// Adds the flows to heads of runs, by as few statements as possible.
    fn with_flows(&self, runs: Vec<NumberedRun>) -> Result<Vec<RunHead>, ArchiveError> {
        let derived: Vec<i64> = runs.iter().filter(|run| run.1).map(|run| run.0).collect();
        let mut flows: BTreeMap<i64, Vec<FlowHead>> = BTreeMap::new();
        for numbers in derived.chunks(RUNS_BATCH) {
            let sql = format!(
                "SELECT run, flow, name, direction, transport, bitrate_bps, cause FROM flow WHERE run IN ({})
                 ORDER BY run, flow",
                places(numbers.len())
            );
            let values: Vec<Value> = numbers.iter().map(|number| (*number).into()).collect();
            self.read(|database| {
                for mut row in database.query(&sql, &values)? {
                    flows.entry(row.integer(0)?).or_default().push(read_flow(&mut row)?);
                }
                Ok(())
            })?;
        }
        let numbers: Vec<i64> = runs.iter().map(|run| run.0).collect();
        let mut tags = self.tags_of(&numbers)?;
        let complete = |(number, derived, mut head): NumberedRun| {
            head.tags = tags.remove(&number).unwrap_or_default();
            head.flows = if derived {
                flows.remove(&number).unwrap_or_default()
            } else {
                let log = self.read(|database| log_of(database, number, &head.id))?;
                derive::flow_heads(&RunRecord::fold(&log))
            };
            Ok(head)
        };
        runs.into_iter().map(complete).collect()
    }
}

/// Places of this number of parameters, separated by commas.
pub(crate) fn places(count: usize) -> String {
    (1..=count).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ")
}

/// Columns that [`read_head`] reads.
const HEAD: &str =
    "number, derived_at = event_count, id, started_at, target, world, linerate, outcome, event_count,
                    kind, part_of, name";

/// Conditions of a statement, and the values of their parameters.
struct Conditions {
    text: String,
    values: Vec<Value>,
}

impl Conditions {
    fn of(filter: &Filter) -> Self {
        let mut all = Self { text: "TRUE".to_owned(), values: Vec::new() };
        all.add("(target = ? OR name = ?)", filter.name_or_target.as_deref().map(indexed));
        all.add("world = ?", filter.world.as_deref());
        all.add("started_at >= ?", filter.since.as_deref().map(indexed));
        all.add("started_at < ?", filter.until.as_deref().map(indexed));
        all.add("part_of = ?", filter.part_of.as_deref().map(indexed));
        all.add("(kind = 'plan' AND target = ?)", filter.plan.as_deref().map(indexed));
        all.add("name = ?", filter.name.as_deref().map(indexed));
        all.add("EXISTS (SELECT 1 FROM flow WHERE run = number AND cause = ?)", filter.cause.as_deref());
        all.add("EXISTS (SELECT 1 FROM tag WHERE run = number AND tag = ?)", filter.tag.as_deref());
        if filter.whole {
            all.text += " AND part_of IS NULL";
        }
        all
    }

    /// Adds a condition whose `?` stand for `value`, if there is one.
    fn add(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        let Some(value) = value else { return };
        self.values.push(value.into());
        self.text += " AND ";
        self.text += &condition.replace('?', &format!("?{}", self.values.len()));
    }
}

impl EventStore for Archive {
    fn append(&mut self, events: &[Event]) -> Result<(), ArchiveError> {
        // Runs get their numbers in the order in which they appear.
        let mut logs: Vec<(&ForeignText, NewEvents<'_>)> = Vec::new();
        let mut places: BTreeMap<&ForeignText, usize> = BTreeMap::new();
        for event in events {
            if event.run.len() > MAX_INDEXED_BYTES {
                return Err(ArchiveError::LongId { run: event.run.clone() });
            }
            let place = *places.entry(&event.run).or_insert(logs.len());
            if place == logs.len() {
                logs.push((&event.run, BTreeMap::new()));
            }
            let text = encode(event)?;
            if let Some((_, log)) = logs.get_mut(place) {
                // Integers of a database are signed; the bits are the same. Of two events with one number the first
                // counts.
                log.entry(event.seq as i64).or_insert((event, text));
            }
        }
        let append = |derives: bool| {
            self.write(|database| {
                logs.iter().try_for_each(|(run, log)| append_log(database, run, log, derives))
            })
        };
        match append(true) {
            // Derived rows can be rebuilt later, so the log is kept also where they cannot be stored.
            Err(ArchiveError::Failed { .. }) => append(false),
            appended => appended,
        }
    }
}

impl Store for Archive {
    fn runs(&self, filter: &Filter) -> Result<Vec<RunHead>, ArchiveError> {
        self.with_flows(self.heads(filter, None)?)
    }

    fn page(&self, filter: &Filter, after: Option<RunCursor>, size: u32) -> Result<RunPage, ArchiveError> {
        // One more than the page shows whether there is a next one.
        let limited = Filter { limit: Some(size.saturating_add(1)), ..filter.clone() };
        let mut heads = self.heads(&limited, after)?;
        let more = heads.len() > size as usize;
        heads.truncate(size as usize);
        let next = heads.last().filter(|_| more).map(|(number, ..)| RunCursor(number.unsigned_abs()));
        Ok(RunPage { runs: self.with_flows(heads)?, next })
    }

    fn find(&self, prefix: &str) -> Result<String, ArchiveError> {
        let mut found = Vec::new();
        // The id of a run comes before a name that a user gave to runs, and the name before the beginning of ids.
        for wanted in match prefix {
            "latest" => &["SELECT id FROM run WHERE part_of IS NULL ORDER BY number DESC LIMIT 1"][..],
            _ => &[
                "SELECT id FROM run WHERE id = ?1",
                "SELECT id FROM run WHERE name = ?1 OR (kind = 'plan' AND target = ?1) ORDER BY number DESC LIMIT 4",
                "SELECT id FROM run WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 4",
            ],
        } {
            let typed = [Value::from(prefix)];
            found = self.texts(wanted, if prefix == "latest" { &[] } else { &typed })?;
            if !found.is_empty() {
                break;
            }
        }
        match found.as_slice() {
            [] => Err(ArchiveError::NotFound { prefix: prefix.to_owned() }),
            [only] => Ok(only.clone()),
            several if several.iter().all(|id| id.starts_with(prefix)) => {
                Err(ArchiveError::Ambiguous { prefix: prefix.to_owned(), examples: several.to_vec() })
            }
            several => {
                let started = "SELECT coalesce(started_at, '?') FROM run WHERE id = ?1";
                let example = |id: &String| -> Result<String, ArchiveError> {
                    let started = self.texts(started, &[id.as_str().into()])?.concat();
                    Ok(format!("{} of {started}", self.short_name(id)?))
                };
                let examples = several.iter().map(example).collect::<Result<_, _>>()?;
                Err(ArchiveError::SharedName { name: prefix.to_owned(), examples })
            }
        }
    }

    fn events(&self, run: &str) -> Result<Vec<Event>, ArchiveError> {
        let id = self.find(run)?;
        let number = self.number_of(&id)?;
        self.read(|database| log_of(database, number, &id.into()))
    }

    fn rebuild(&mut self, run: &str) -> Result<(), ArchiveError> {
        let id = self.find(run)?;
        let number = self.number_of(&id)?;
        self.write(|database| {
            let log = log_of(database, number, &id.into())?;
            derive_rows(database, number, &RunRecord::fold(&log))
        })
    }

    fn delete(&mut self, run: &str) -> Result<(), ArchiveError> {
        let number = self.number_of(&self.find(run)?)?;
        self.write(|database| remove(database, number)).map(drop)
    }
}

fn read_head(mut row: DatabaseRow) -> Result<NumberedRun, DatabaseFault> {
    let text =
        |row: &mut DatabaseRow, column| row.optional_text(column).map(|text| text.map(ForeignText::from));
    let outcome = row.optional_text(7)?;
    let head = RunHead {
        id: row.text(2)?.into(),
        started_at: text(&mut row, 3)?,
        target: text(&mut row, 4)?,
        world: text(&mut row, 5)?,
        linerate: text(&mut row, 6)?,
        outcome: outcome.and_then(|name| serde_json::from_value(name.into()).ok()),
        event_count: row.integer(8)?.unsigned_abs(),
        is_plan: row.text(9)? == "plan",
        part_of: text(&mut row, 10)?,
        name: text(&mut row, 11)?,
        tags: Vec::new(),
        flows: Vec::new(),
    };
    Ok((row.integer(0)?, row.integer(1)? != 0, head))
}

fn read_flow(row: &mut DatabaseRow) -> Result<FlowHead, DatabaseFault> {
    Ok(FlowHead {
        flow: FlowId(u16::try_from(row.integer(1)?).unwrap_or(u16::MAX)),
        name: row.text(2)?.into(),
        direction: row.text(3)?.into(),
        transport: row.text(4)?.into(),
        bitrate: row.real(5)?.and_then(Bitrate::from_bps),
        cause: row.optional_text(6)?.map(Into::into),
    })
}
