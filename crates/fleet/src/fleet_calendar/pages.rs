//! Schedules and meshes page by page: a fleet may have 200,000 of them, and runs of each for hours ahead.

use std::collections::BTreeMap;

use linerate_archive::RunFilter;
use linerate_model::calendar::{
    Alarm, CalendarRun, CalendarRunState, MeshCell, MeshGrid, ScheduleResult, ScheduleState, UnixTime,
};

use super::{FleetCalendar, MAX_ALARMS};
use crate::error::FleetError;
use crate::inventory::{Inventory, Mesh};

/// Active runs that a page of schedules has at most.
const MAX_ACTIVE: u32 = 500;
/// Pairs that a page of meshes has at most.
const MAX_PAIRS: usize = 10_000;

/// Some schedules.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedulePage {
    /// The schedules, by name.
    pub schedules: Vec<ScheduleState>,
    /// The active runs of the fleet, and the next one of each of these schedules.
    pub runs: Vec<CalendarRun>,
    /// After which the next page begins; absent on the last one.
    pub next: Option<String>,
}

/// Some meshes.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshPage {
    /// The meshes, in the order of the fleet's file.
    pub meshes: Vec<MeshGrid>,
    /// After which the next page begins; absent on the last one.
    pub next: Option<String>,
}

impl FleetCalendar {
    /// At most `size` schedules after the one with this name, or the first ones.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn schedule_page(
        &mut self,
        after: Option<&str>,
        size: u32,
        now: UnixTime,
    ) -> Result<SchedulePage, FleetError> {
        let active = RunFilter {
            states: vec![CalendarRunState::Running],
            limit: Some(MAX_ACTIVE),
            ..RunFilter::default()
        };
        Ok(self.calendar.read(|calendar| {
            // One more, to know whether there is another page.
            let mut schedules = calendar.schedules_after(after, size.saturating_add(1))?;
            let has_more = schedules.len() > size as usize;
            schedules.truncate(size as usize);
            let names: Vec<&str> = schedules.iter().map(|state| state.schedule.name.as_str()).collect();
            let mut runs = calendar.runs(&active)?;
            runs.extend(calendar.next_runs(&names, false, now)?);
            let next = names.last().filter(|_| has_more).map(|name| (*name).to_owned());
            Ok(SchedulePage { schedules, runs, next })
        })?)
    }

    /// At most `size` meshes after the one with this name, or the first ones. The page ends before the mesh with which it
    /// would have too many pairs; one that is too large itself is not complete.
    ///
    /// # Errors
    /// There is no such mesh, or the calendar cannot be read.
    pub fn mesh_page(
        &mut self,
        after: Option<&str>,
        size: usize,
        now: UnixTime,
    ) -> Result<MeshPage, FleetError> {
        let inventory = self.inventory()?;
        let first = match after {
            None => 0,
            Some(name) => {
                let mesh = inventory.mesh(name)?;
                inventory.meshes.iter().take_while(|one| one.name != mesh.name).count() + 1
            }
        };
        let mut page = MeshPage { meshes: Vec::new(), next: None };
        let mut pairs = 0;
        for mesh in inventory.meshes.iter().skip(first) {
            let own = mesh.pairs(&inventory).take(MAX_PAIRS).count();
            let is_full = page.meshes.len() >= size || pairs + own > MAX_PAIRS;
            if is_full && let Some(last) = page.meshes.last() {
                page.next = Some(last.name.clone());
                break;
            }
            page.meshes.push(self.grid_of(&inventory, mesh, MAX_PAIRS, now)?);
            pairs += own;
        }
        Ok(page)
    }

    /// The first pairs of all meshes, `most` in all.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn first_pairs(&mut self, most: usize, now: UnixTime) -> Result<Vec<MeshGrid>, FleetError> {
        let inventory = self.inventory()?;
        let mut left = most;
        let mut grids = Vec::new();
        for mesh in &inventory.meshes {
            let grid = self.grid_of(&inventory, mesh, left, now)?;
            left = left.saturating_sub(grid.cells.len());
            grids.push(grid);
        }
        Ok(grids)
    }

    /// The newest results of the first schedules that belong to no mesh, and how many others there are.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn last_results_without_mesh(&mut self, most: u32) -> Result<(Vec<ScheduleResult>, u64), FleetError> {
        let (schedules, count, last, results) = self.calendar.read(|calendar| {
            let (schedules, count) = calendar.schedules_without_mesh(most)?;
            let names: Vec<&str> = schedules.iter().map(|state| state.schedule.name.as_str()).collect();
            let (last, results) = (calendar.last_runs(&names, false)?, calendar.last_runs(&names, true)?);
            Ok((schedules, count, last, results))
        })?;
        let (mut last, mut results) = (by_schedule(last), by_schedule(results));
        let left_out = count.saturating_sub(schedules.len() as u64);
        let result = |state: ScheduleState| {
            let name = state.schedule.name.into_string();
            ScheduleResult {
                from: state.schedule.from.into_string(),
                to: state.schedule.to.into_string(),
                last: last.remove(&name).and_then(|run| Some((run.state, run.ended?))),
                result: results.remove(&name).and_then(|run| run.result),
                name,
            }
        };
        Ok((schedules.into_iter().map(result).collect(), left_out))
    }

    /// A mesh as a grid.
    ///
    /// # Errors
    /// There is no such mesh, or the calendar cannot be read.
    pub fn grid(&mut self, mesh: &str, now: UnixTime) -> Result<MeshGrid, FleetError> {
        let inventory = self.inventory()?;
        self.grid_of(&inventory, inventory.mesh(mesh)?, usize::MAX, now)
    }

    /// The first pairs of a mesh as a grid.
    fn grid_of(
        &mut self,
        inventory: &Inventory,
        mesh: &Mesh,
        most: usize,
        now: UnixTime,
    ) -> Result<MeshGrid, FleetError> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        let mut left_out = 0;
        for pair in mesh.pairs(inventory) {
            if pairs.len() < most {
                pairs.push(pair);
            } else {
                left_out += 1;
            }
        }
        let schedules: Vec<String> = pairs.iter().map(|(from, to)| mesh.schedule_name(from, to)).collect();
        let names: Vec<&str> = schedules.iter().map(String::as_str).collect();
        let (last, results, coming, mut due, alarms) = self.calendar.read(|calendar| {
            Ok((
                calendar.last_runs(&names, false)?,
                calendar.last_runs(&names, true)?,
                calendar.next_runs(&names, true, now)?,
                calendar.next_due(&names)?,
                calendar.alarms(true, MAX_ALARMS)?,
            ))
        })?;
        let (mut last, mut results, coming) = (by_schedule(last), by_schedule(results), by_schedule(coming));
        let mut open: BTreeMap<String, Vec<Alarm>> = BTreeMap::new();
        for alarm in alarms {
            open.entry(alarm.schedule.clone()).or_default().push(alarm);
        }
        let cell = |((from, to), name): (&(&str, &str), &String)| {
            let newest = last.remove(name);
            MeshCell {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
                last: newest.as_ref().and_then(|run| Some((run.state, run.ended?))),
                run: newest.as_ref().map(|run| run.id.clone()),
                reason: newest.map(|run| run.reason).unwrap_or_default(),
                result: results.remove(name).and_then(|run| Some((run.result?, run.ended?))),
                next: coming.get(name).map(|run| run.starts).into_iter().chain(due.remove(name)).min(),
                alarms: open.remove(name).unwrap_or_default(),
            }
        };
        let cells = pairs.iter().zip(&schedules).map(cell).collect();
        Ok(MeshGrid { name: mesh.name.clone(), hosts: mesh.hosts.clone(), cells, left_out })
    }
}

fn by_schedule(runs: Vec<CalendarRun>) -> BTreeMap<String, CalendarRun> {
    runs.into_iter().map(|run| (run.schedule.clone(), run)).collect()
}
