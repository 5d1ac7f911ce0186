//! Which runs are too much, and removing them.

use crate::database::Database;
use crate::error::DatabaseFault;
use crate::store::RetentionLimits;
use crate::value::Value;

/// Which runs `prune` may remove: whole ones without a tag, and plans whose runs have none either.
pub(crate) const PRUNED: &str = "part_of IS NULL AND NOT EXISTS (
  SELECT 1 FROM tag JOIN run AS tagged ON tagged.number = tag.run
  WHERE tagged.number = run.number OR tagged.part_of = run.id)";

/// The statement for the numbers of the runs among `candidates`, a condition, that exceed `limits`; and its parameters.
pub(crate) fn excess(candidates: &str, limits: &RetentionLimits) -> (String, [Value; 4]) {
    // The condition has no parameters of its own.
    let sql = format!(
        "SELECT number FROM (
           SELECT number, started_at, outcome,
             row_number() OVER (ORDER BY number DESC) AS place,
             sum(bytes + coalesce((SELECT sum(bytes) FROM run AS part WHERE part.part_of = run.id), 0))
               OVER (ORDER BY number DESC) AS total
           FROM run WHERE {candidates}) AS candidate
         WHERE (place > ?1 OR total > CAST(?2 AS BIGINT) OR started_at < ?3)
           AND (outcome IS NOT NULL OR coalesce(started_at, '') < ?4)"
    );
    let most = |limit: Option<u64>| limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let values = [
        most(limits.runs.map(u64::from)).into(),
        most(limits.bytes).into(),
        limits.oldest.as_deref().unwrap_or_default().into(),
        limits.under_way.as_str().into(),
    ];
    (sql, values)
}

/// Removes what [`excess`] finds, and the runs of removed plans.
pub(crate) fn remove_excess(
    database: &mut Database,
    candidates: &str,
    limits: &RetentionLimits,
) -> Result<u64, DatabaseFault> {
    let (numbers, values) = excess(candidates, limits);
    let numbers = database.query(&numbers, &values)?.into_iter();
    numbers.map(|mut row| remove(database, row.integer(0)?)).sum()
}

/// Removes a run and the runs that are parts of it.
pub(crate) fn remove(database: &mut Database, number: i64) -> Result<u64, DatabaseFault> {
    let parts = "DELETE FROM run WHERE part_of = (SELECT id FROM run WHERE number = ?1)";
    let parts = database.execute(parts, &[number.into()])?;
    Ok(parts + database.execute("DELETE FROM run WHERE number = ?1", &[number.into()])?)
}
