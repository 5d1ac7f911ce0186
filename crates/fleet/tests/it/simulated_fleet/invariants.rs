//! What must hold of every history.

use std::collections::BTreeMap;

use linerate_archive::RunFilter;
use linerate_model::calendar::{CalendarRun, CalendarRunState};

use super::{MAX_SKEW_MS, OnTheWire, STEP_MS, SimulatedFleet};

impl SimulatedFleet {
    pub(super) fn check(&mut self) {
        self.check_wire();
        let runs = self.users.runs(&RunFilter::default()).unwrap();
        let mut started: BTreeMap<&str, u32> = BTreeMap::new();
        for one in &self.wire {
            *started.entry(&one.run.id).or_default() += 1;
        }
        for run in &runs {
            if !run.state.is_end() {
                self.fail(&format!("I2: run {} is still {} ({run:?})", run.id, run.state.name()));
            }
            if run.reason.is_empty() != (run.state == CalendarRunState::Finished) {
                self.fail(&format!(
                    "I2: run {} is {} with the reason '{}'",
                    run.id,
                    run.state.name(),
                    run.reason
                ));
            }
            // A copy of an agent does what it does, and a lost beginning is repeated.
            let may_repeat = self.losses > 0 || self.agents.copied.contains(&run.from);
            if started.get(run.id.as_str()).is_some_and(|times| *times > 1) && !may_repeat {
                self.fail(&format!("run {} was started twice", run.id));
            }
            if run.state == CalendarRunState::Finished && !started.contains_key(run.id.as_str()) {
                self.fail(&format!("run {} has a result, but was never on the wire", run.id));
            }
        }
        if !runs.iter().any(|run| run.state == CalendarRunState::Finished) {
            self.fail("nothing was measured");
        }
        // What a copy of an agent had is gone with it.
        let kept = |host: &String| !self.agents.copied.contains(host);
        let mut acked = self.agents.acked.iter().filter(|(_, host)| kept(host));
        if let Some((lost, host)) = acked.find(|(run, _)| !self.archived.contains(*run)) {
            self.fail(&format!("I3: the result of run {lost} of {host} was acknowledged and is gone"));
        }
    }

    /// I1: what is exclusive does not overlap, and no capacity is exceeded. I5: nothing is sent after the reservation.
    fn check_wire(&self) {
        for one in &self.wire {
            let slack = 2 * MAX_SKEW_MS + 100 + STEP_MS;
            if one.ends_ms > one.run.ends.as_ms() + slack && one.ends_ms > one.begins_ms {
                self.fail(&format!(
                    "I5: run {} sends {} ms after its end",
                    one.run.id,
                    one.ends_ms - one.run.ends.as_ms()
                ));
            }
        }
        let inventory = &self.inventory;
        let uses = |one: &OnTheWire| {
            let shared = self.is_shared(&one.run);
            inventory.uses(&one.run.from, &one.run.to, shared).unwrap()
        };
        for (at, one) in self.wire.iter().enumerate() {
            let sends = |other: &&OnTheWire| other.begins_ms < one.ends_ms && one.begins_ms < other.ends_ms;
            let together: Vec<&OnTheWire> = self
                .wire
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|(_, other)| other)
                .filter(sends)
                .collect();
            for needed in uses(one) {
                let others: Vec<&&OnTheWire> = together
                    .iter()
                    .filter(|other| uses(other).iter().any(|used| used.resource == needed.resource))
                    .collect();
                if needed.exclusive && !others.is_empty() {
                    self.fail(&format!("I1: {} is used by {one:?}\nand {:?}", needed.resource, others[0]));
                }
                // All that overlap with this one at its start are at the same time.
                let at_start = others
                    .iter()
                    .filter(|other| other.begins_ms <= one.begins_ms && one.begins_ms < other.ends_ms);
                if at_start.count() as u32 + 1 > needed.capacity {
                    self.fail(&format!("I1: the capacity of {} is exceeded by {one:?}", needed.resource));
                }
            }
        }
    }

    fn is_shared(&self, run: &CalendarRun) -> bool {
        match &run.mesh {
            Some(mesh) => self.inventory.mesh(mesh).unwrap().shared,
            None => self.shared.contains(&run.schedule),
        }
    }
}
