//! Settings of hosts as required by the points of a plan.

use std::collections::BTreeMap;

use linerate_plan::Point;

use super::drive::Drive;
use super::error::PlanRunError;
use super::observer::PlanNotice;

/// Settings that the hosts should have, by their index in the test bed.
type SettingsByHost = Vec<(usize, BTreeMap<String, String>)>;

impl Drive<'_, '_> {
    /// The settings of a point for each host. Settings that it does not mention are restored.
    fn wanted_settings(&self, point: &Point) -> Result<SettingsByHost, PlanRunError> {
        let of_host = |(host, settings): (&String, &BTreeMap<String, linerate_plan::SettingValue>)| {
            let at = self.names.iter().position(|name| name == host);
            let at = at.ok_or_else(|| PlanRunError::UnusedHost(host.clone()))?;
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

    /// Checks before any change that all hosts can apply the settings of all points; true if the plan changes
    /// any.
    pub(super) fn check_settings(&mut self) -> Result<bool, PlanRunError> {
        let mut asked: Vec<SettingsByHost> = Vec::new();
        for number in 0..self.prepared.plan.grid.len() {
            let point = self.prepared.plan.point(number)?;
            let wanted = self.wanted_settings(&point)?;
            if !wanted.is_empty() && !asked.contains(&wanted) {
                asked.push(wanted);
            }
        }
        let Some(coordinator) = &mut self.coordinator else { return Ok(false) };
        let mut troubles = Vec::new();
        for wanted in &asked {
            for trouble in coordinator.check_settings(wanted, self.cancel.flag()) {
                if !troubles.contains(&trouble) {
                    troubles.push(trouble);
                }
            }
        }
        if troubles.is_empty() { Ok(!asked.is_empty()) } else { Err(PlanRunError::Hosts(troubles)) }
    }

    /// Applies the settings of a point, and restores those of earlier points that it does not mention. A host
    /// that is gone or refuses fails its own flows.
    pub(super) fn apply_settings(&mut self, point: &Point) -> Result<(), PlanRunError> {
        if !self.sets_hosts {
            return Ok(());
        }
        let wanted = self.wanted_settings(point)?;
        let Some(coordinator) = &mut self.coordinator else { return Ok(()) };
        let applied = coordinator.apply_where_possible(&wanted, self.cancel.flag());
        applied.map(drop).map_err(PlanRunError::Hosts)
    }

    /// Restores all settings.
    pub(super) fn restore_settings(&mut self) {
        if let Some(coordinator) = &mut self.coordinator {
            for trouble in coordinator.restore_settings() {
                self.observer.notice(&PlanNotice::SettingLeft(trouble));
            }
        }
    }
}
