//! Tags: what users say about runs afterwards.

use std::collections::BTreeMap;

use linerate_model::ForeignText;

use crate::ArchiveError;
use crate::archive::{Archive, RUNS_BATCH, places};
use crate::store::Store;
use crate::value::Value;

/// Most characters of a tag.
const MAX_TAG_CHARS: usize = 64;

impl Archive {
    /// Adds a tag to a run. It stays when the tables are derived again, and is not part of the log.
    ///
    /// # Errors
    /// As for [`Store::find`], if `tag` cannot be one, and if the archive cannot be written.
    pub fn tag(&mut self, run: &str, tag: &str) -> Result<(), ArchiveError> {
        let fits = |c: char| !(c.is_whitespace() || c.is_control() || c == ',');
        if tag.is_empty() || tag.chars().count() > MAX_TAG_CHARS || !tag.chars().all(fits) {
            return Err(ArchiveError::BadTag { tag: ForeignText::from(tag) });
        }
        let number = self.number_of(&self.find(run)?)?;
        let insert = "INSERT INTO tag (run, tag) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.write(|database| database.execute(insert, &[number.into(), tag.into()])).map(drop)
    }

    /// Removes a tag from a run; whether it had it.
    ///
    /// # Errors
    /// As for [`Store::find`], and if the archive cannot be written.
    pub fn untag(&mut self, run: &str, tag: &str) -> Result<bool, ArchiveError> {
        let number = self.number_of(&self.find(run)?)?;
        let delete = "DELETE FROM tag WHERE run = ?1 AND tag = ?2";
        let removed = self.write(|database| database.execute(delete, &[number.into(), tag.into()]))?;
        Ok(removed > 0)
    }

    /// The tags of a run, in alphabetical order.
    ///
    /// # Errors
    /// As for [`Store::find`], and if the archive cannot be read.
    pub fn tags(&self, run: &str) -> Result<Vec<ForeignText>, ArchiveError> {
        let number = self.number_of(&self.find(run)?)?;
        Ok(self.tags_of(&[number])?.remove(&number).unwrap_or_default())
    }

    /// The tags of these runs by their numbers; a run without tags is absent.
    pub(crate) fn tags_of(&self, runs: &[i64]) -> Result<BTreeMap<i64, Vec<ForeignText>>, ArchiveError> {
        let mut tags: BTreeMap<i64, Vec<ForeignText>> = BTreeMap::new();
        for numbers in runs.chunks(RUNS_BATCH) {
            let sql =
                format!("SELECT run, tag FROM tag WHERE run IN ({}) ORDER BY tag", places(numbers.len()));
            let values: Vec<Value> = numbers.iter().map(|number| (*number).into()).collect();
            let found = self.read(|database| {
                let rows = database.query(&sql, &values)?;
                rows.into_iter()
                    .map(|mut row| Ok((row.integer(0)?, row.text(1)?)))
                    .collect::<Result<Vec<_>, _>>()
            })?;
            for (run, tag) in found {
                tags.entry(run).or_default().push(tag.into());
            }
        }
        Ok(tags)
    }
}
