//! Reads flows that are series over message sizes.

use linerate_config::{ConfigContent, hint};
use linerate_model::{HostKnobs, SocketKnobs, Sweep, TestSpec};

use super::PlanReader;
use crate::keys::Fields;
use crate::kind::SettingValue;
use crate::knobs::{Knob, knob, series, series_knobs};

impl PlanReader<'_> {
    /// The series of a flow; `None` for a test, and if the series is wrong.
    pub(super) fn series(&mut self, fields: &Fields<'_>, path: &str) -> Option<Sweep> {
        let value = fields.value("series")?;
        let ConfigContent::Table(table) = &value.content else {
            let text = format!(
                "{path}series: {} is not a table such as {{ sizes = \"1..1M\", time = \"10s\" }}",
                value.content.describe()
            );
            self.mistakes.add(&value.at, text);
            return None;
        };
        let before = self.mistakes.len();
        let mut set: Vec<(&Knob, SettingValue)> = Vec::new();
        for entry in &table.0 {
            let Some(knob) = series_knobs().iter().find(|knob| knob.name == entry.key) else {
                self.mistakes.add_with(&entry.at, || {
                    let hint = hint(&entry.key, series_knobs().iter().map(|knob| knob.name.as_str()));
                    format!("there is no knob {path}series.{}{hint}", entry.key)
                });
                continue;
            };
            let read = knob.kind.read_or_default(&entry.value);
            // Parsed one at a time, so that the position of a mistake is known.
            match read.and_then(|setting| series([(knob, &setting)]).map(|_| setting)) {
                Ok(setting) => set.push((knob, setting)),
                Err(text) => {
                    self.mistakes.add(&entry.value.at, format!("{path}series.{}: {text}", entry.key));
                }
            }
        }
        self.refuse_for_a_series(fields, path);
        if self.mistakes.len() > before {
            return None;
        }
        let found = series(set.iter().map(|(knob, setting)| (*knob, setting))).ok()?;
        let spec = TestSpec::of_sweep(found.clone(), SocketKnobs::default(), HostKnobs::default());
        if let Err(error) = spec.check() {
            let name = error.knob.trim_start_matches('-').replace('-', "_");
            let at = table.get(&name).map_or(&value.at, |entry| &entry.value.at);
            self.mistakes.add(at, format!("{path}series.{name}: {}; {}", error.trouble, error.remedy));
            return None;
        }
        Some(found)
    }

    /// Rejects keys that have no effect on a series.
    fn refuse_for_a_series(&mut self, fields: &Fields<'_>, path: &str) {
        if fields.flag("cross_traffic")
            && let Some(value) = fields.value("cross_traffic")
        {
            let text = format!(
                "{path}cross_traffic: a series ends by itself and cannot be cross traffic; \
                                remove one of the two"
            );
            self.mistakes.add(&value.at, text);
        }
        let Some(ConfigContent::Table(table)) = fields.value("test").map(|value| &value.content) else {
            return;
        };
        for entry in &table.0 {
            if knob(&entry.key).is_ok_and(Knob::is_traffic) {
                let name = &entry.key;
                let text = format!(
                    "{path}test.{name}: this knob does not apply to a series; see the knobs \
                                    of series"
                );
                self.mistakes.add(&entry.at, text);
            }
        }
    }
}
