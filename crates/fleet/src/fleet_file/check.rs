//! Checks meshes as a whole: they have pairs, and each of them can be measured at some time.

use linerate_config::{ConfigEntry, SourcePosition, hint};
use linerate_model::calendar::{Schedule, UnixTime};
use linerate_plan::file_keys::Fields;

use super::read::FleetReader;
use crate::error::FleetError;
use crate::inventory::{Inventory, Mesh, MeshTemplate};
use crate::recurrence::DueTimes;
use crate::request::check_length;

/// Largest number of pairs of all meshes.
const MAX_PAIRS: usize = 200_000;

impl FleetReader<'_> {
    pub(super) fn check_mesh(
        &mut self,
        entry: &ConfigEntry,
        fields: &Fields<'_>,
        mesh: &Mesh,
        fleet: &Inventory,
    ) {
        let path = format!("mesh.{}", mesh.name);
        let at = |key: &str| fields.value(key).map_or(&entry.at, |value| &value.at).clone();
        match (fields.value("every"), fields.value("cron")) {
            (Some(_), Some(cron)) => {
                self.mistakes.add(&cron.at, format!("{path} has both every and cron; remove one of them"));
            }
            (None, None) if fields.sound => {
                self.mistakes.add(
                    &entry.at,
                    format!("{path} has no times; add every = \"1h\" or cron = \"0 * * * *\""),
                );
            }
            _ => {}
        }
        if let Some(jitter) = fields.value("jitter").filter(|_| mesh.cron.is_some()) {
            self.mistakes.add(
                &jitter.at,
                format!("{path}.jitter: it is for every; a crontab expression has H instead"),
            );
        }
        match (&mesh.center, mesh.template) {
            (None, MeshTemplate::Star) => {
                self.mistakes
                    .add(&entry.at, format!("{path} is a star without a center; add center = \"…\""));
            }
            (Some(center), MeshTemplate::Star) if !mesh.hosts.contains(center) => {
                let hint = hint(center, mesh.hosts.iter().map(String::as_str));
                self.mistakes
                    .add(&at("center"), format!("{path}.center: '{center}' is no host of the mesh{hint}"));
            }
            (Some(_), template) if template != MeshTemplate::Star => {
                self.mistakes
                    .add(&at("center"), format!("{path}.center: only a star has a center; remove it"));
            }
            _ => {}
        }
        for label in &mesh.labels {
            if !fleet.hosts.iter().any(|host| host.labels.contains(label)) {
                let known = fleet.hosts.iter().flat_map(|host| &host.labels);
                let hint = hint(label, known.map(String::as_str));
                self.mistakes
                    .add(&at("labels"), format!("{path}.labels: no host has the label '{label}'{hint}"));
            }
        }
        if let Some(hosts) = fields.value("hosts").filter(|_| mesh.template == MeshTemplate::Pairs) {
            self.mistakes
                .add(&hosts.at, format!("{path}.hosts: its pairs say which hosts it has; remove this"));
        }
        if mesh.template == MeshTemplate::BetweenLabels && mesh.labels.len() < 2 {
            self.mistakes
                .add(&at("labels"), format!("{path}.labels: between-labels needs at least two labels"));
        }
        if !fields.sound || !self.mistakes.is_empty() {
            return;
        }
        let Some(first) = mesh.schedules(fleet).next() else {
            self.mistakes
                .add(&entry.at, format!("{path} has no pair of hosts; check its hosts, labels and pairs"));
            return;
        };
        self.check_times(fields, &entry.at, mesh, &first, fleet);
    }

    /// Checks that the pairs of a mesh can be measured at some time.
    fn check_times(
        &mut self,
        fields: &Fields<'_>,
        place: &SourcePosition,
        mesh: &Mesh,
        first: &Schedule,
        fleet: &Inventory,
    ) {
        let path = format!("mesh.{}", mesh.name);
        let at = |key: &str| fields.value(key).map_or(place, |value| &value.at).clone();
        let length = check_length(first, fleet);
        // One pair stands for all, as they only differ in their hosts; but H is another value for each.
        let differ = mesh.cron.as_ref().is_some_and(|expression| expression.contains('H'));
        let tried = if differ { MAX_PAIRS } else { 1 };
        let never = mesh.schedules(fleet).take(tried).find_map(|schedule| {
            let check = DueTimes::of(&schedule).and_then(|due| {
                due.check(UnixTime::from_ms(0), length.as_ref().copied().unwrap_or_default())
            });
            Some((schedule.name, check.err()?))
        });
        if let Some((name, error)) = never {
            let key =
                ["cron", "every"].into_iter().find(|key| fields.value(key).is_some()).unwrap_or("every");
            let whose = if differ { name.to_string() } else { path.clone() };
            self.mistakes.add(&at(key), format!("{whose}: {error}"));
        }
        match length {
            Err(FleetError::NoLength) => {
                let text = format!(
                    "{path}.test: how long it takes depends on the network; give a duration instead of an amount"
                );
                self.mistakes.add(&at("test"), text);
            }
            Err(error) if self.mistakes.is_empty() => {
                self.mistakes.add(&at("every"), format!("{path}: {error}"));
            }
            Ok(_) | Err(_) => {}
        }
    }

    pub(super) fn check_pairs(&mut self, fleet: &Inventory) {
        // Not all of them are counted: many hosts have more pairs than anybody waits for.
        let pairs = fleet.meshes.iter().flat_map(|mesh| mesh.pairs(fleet));
        if pairs.take(MAX_PAIRS + 1).count() > MAX_PAIRS {
            let text = format!(
                "the meshes have more than {MAX_PAIRS} pairs of hosts; use stars, pairs or fewer hosts"
            );
            self.mistakes.add(&SourcePosition::START, text);
        }
    }
}
