//! Settings of hosts as the points of a plan ask for them.

use std::collections::BTreeMap;

use linerate_plan::Point;

use super::RunError;
use super::drive::{Drive, host_errors};
use crate::print;

/// What hosts of the rig shall have, by their places in it.
type Wanted = Vec<(usize, BTreeMap<String, String>)>;

impl Drive<'_> {
    /// What a point asks of each host. A host that it leaves alone gets back what was found on it.
    fn wanted_settings(&self, point: &Point) -> Result<Wanted, RunError> {
        let of_host = |(host, settings): (&String, &BTreeMap<String, linerate_plan::SettingValue>)| {
            let at = self.names.iter().position(|name| name == host).ok_or_else(|| {
                RunError::usage(format!("the plan sets something on host {host}, which no flow uses"))
            })?;
            let mut values: BTreeMap<String, String> =
                settings.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
            let known = self.prepared.plan.hosts.iter().find(|known| known.name == *host);
            if let Some(interface) = known.and_then(|known| known.interface.clone()) {
                values.insert("interface".to_owned(), interface);
            }
            Ok((at, values))
        };
        point.hosts.iter().map(of_host).collect()
    }

    /// Whether every host can be set as every point asks, before anything is; then whether the plan sets anything at all.
    pub(super) fn check_settings(&mut self) -> Result<bool, RunError> {
        let mut asked: Vec<Wanted> = Vec::new();
        for number in 0..self.prepared.plan.grid.len() {
            let point = self.prepared.plan.point(number).map_err(RunError::usage)?;
            let wanted = self.wanted_settings(&point)?;
            if !wanted.is_empty() && !asked.contains(&wanted) {
                asked.push(wanted);
            }
        }
        let Some(coordinator) = &mut self.coordinator else { return Ok(false) };
        let mut troubles = Vec::new();
        for wanted in &asked {
            for trouble in coordinator.check_settings(wanted, self.signals.stop()) {
                if !troubles.contains(&trouble) {
                    troubles.push(trouble);
                }
            }
        }
        if troubles.is_empty() { Ok(!asked.is_empty()) } else { Err(host_errors(&troubles)) }
    }

    /// Makes the hosts be set as a point asks; what an earlier one set and this one does not ask for is put back. A host
    /// that is gone, or refuses, fails its own flows.
    pub(super) fn apply_settings(&mut self, point: &Point) -> Result<(), RunError> {
        if !self.sets_hosts {
            return Ok(());
        }
        let wanted = self.wanted_settings(point)?;
        let Some(coordinator) = &mut self.coordinator else { return Ok(()) };
        let applied = coordinator.apply_where_possible(&wanted, self.signals.stop());
        applied.map(drop).map_err(|troubles| host_errors(&troubles))
    }

    /// Puts everything back.
    pub(super) fn restore_settings(&mut self) {
        if let Some(coordinator) = &mut self.coordinator {
            for trouble in coordinator.restore_settings() {
                print::warning(trouble);
            }
        }
    }
}
