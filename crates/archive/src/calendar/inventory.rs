//! The hosts and links of a fleet.

use std::collections::BTreeSet;

use linerate_model::calendar::{Resource, ResourceKind, UnixTime};

use super::rows::{self, RowError, value_of};
use super::{CalendarError, CalendarTransaction, NAMES_AT_ONCE, names};
use crate::value::Value;

impl CalendarTransaction<'_> {
    /// The description of the fleet that was stored last, and when; absent if there is none.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn inventory(&mut self) -> Result<Option<(String, UnixTime)>, CalendarError> {
        let all = "SELECT content, applied FROM fleet_inventory";
        self.first(all, &[], |row| Ok((row.text(0)?, rows::time(row, 1)?)))
    }

    /// Stores the description of a fleet and its resources. Resources that are gone stay as long as runs refer to them.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn set_inventory(
        &mut self,
        content: &str,
        resources: &[Resource],
        now: UnixTime,
    ) -> Result<(), CalendarError> {
        let store = "INSERT INTO fleet_inventory (number, applied, content) VALUES (1, ?1, ?2)
                     ON CONFLICT (number) DO UPDATE SET applied = excluded.applied, content = excluded.content";
        self.execute(store, &[value_of(now), content.into()])?;
        for resource in resources {
            let store = "INSERT INTO fleet_resource (name, kind, capacity) VALUES (?1, ?2, ?3)
                         ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, capacity = excluded.capacity";
            let row = [
                resource.name.as_str().into(),
                resource.kind.name().into(),
                i64::from(resource.capacity).into(),
            ];
            self.execute(store, &row)?;
        }
        let kept: BTreeSet<&str> = resources.iter().map(|resource| resource.name.as_str()).collect();
        let known = self.resources()?;
        let gone = known.iter().map(|one| one.name.as_str()).filter(|name| !kept.contains(name));
        let gone: Vec<Value> = gone.map(Value::from).collect();
        for group in gone.chunks(NAMES_AT_ONCE) {
            let unused = format!(
                "DELETE FROM fleet_resource WHERE name IN ({}) AND number NOT IN (SELECT resource FROM fleet_reservation)",
                names(1, group.len())
            );
            self.execute(&unused, group)?;
        }
        Ok(())
    }

    /// The resources, by name.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn resources(&mut self) -> Result<Vec<Resource>, CalendarError> {
        let all = "SELECT name, kind, capacity FROM fleet_resource ORDER BY name";
        self.list(all, &[], |row| {
            let kind = row.text(1)?;
            let kind =
                ResourceKind::named(&kind).ok_or_else(|| RowError::Content(format!("the kind '{kind}'")))?;
            Ok(Resource { name: row.text(0)?.into(), kind, capacity: rows::number(row, 2)? })
        })
    }
}
