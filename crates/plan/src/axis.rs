//! Axes: what is swept, and over which values.

use std::collections::BTreeMap;

use linerate_config::{
    ConfigContent, ConfigEntry, ConfigTable, ConfigValue, Mistakes, SourcePosition, check_name, hint,
};

use crate::keys::{AXIS, Fields, SETTINGS};
use crate::kind::{PlanValueKind, SettingValue, texts};
use crate::knobs::knob;
use crate::range;
use crate::sweep::MAX_POINTS;

/// Keys of a range of values.
pub(crate) const RANGE_KEYS: &[&str] = &["from", "to", "step", "factor", "points"];

/// Those that divide a range, each in its own way.
pub(crate) const DIVISION_KEYS: &[&str] = &["step", "factor", "points"];

/// Keys of a search.
const SEARCH_KEYS: &[&str] = &["resolution", "descend", "confirm"];

/// One axis of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Name.
    pub name: String,
    /// Everything that it sets.
    pub targets: Vec<AxisTarget>,
    /// Values, in the order of the file.
    pub values: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisValue {
    /// Text for users.
    pub label: String,
    /// The value.
    pub setting: SettingValue,
}

/// What an axis sets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AxisTarget {
    /// A knob of `[test]`.
    Test(String),
    /// A knob of one flow.
    Flow {
        /// Name of the flow.
        flow: String,
        /// Name of the knob.
        knob: String,
    },
    /// A setting of one host.
    Host {
        /// Name of the host.
        host: String,
        /// Name of the setting.
        key: String,
    },
    /// A parameter or key of the lab's topology.
    Lab(String),
    /// Which of these flows run: those that a value names, separated by spaces.
    Flows,
}

/// The names that axes may refer to.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) hosts: Vec<String>,
    pub(crate) flows: Vec<String>,
    pub(crate) lab: bool,
}

/// A table `[axis.NAME]`, or the short form `axis.NAME = […]`, before it is known whether the axis is swept or
/// searched.
#[derive(Debug)]
pub(crate) struct AxisTable<'t> {
    pub(crate) name: String,
    pub(crate) at: SourcePosition,
    pub(crate) targets: Vec<AxisTarget>,
    pub(crate) kind: PlanValueKind,
    /// Absent in the short form.
    pub(crate) fields: Option<Fields<'t>>,
    values: Option<&'t ConfigValue>,
}

impl<'t> AxisTable<'t> {
    /// Reads the head of an axis; `None` if it is wrong.
    pub(crate) fn read(entry: &'t ConfigEntry, names: &Names, mistakes: &mut Mistakes) -> Option<Self> {
        let name = entry.key.clone();
        // A hyphen would be a minus in an assertion.
        if name.contains('-') || check_name(&name.replace('_', "-")).is_err() {
            let text = format!(
                "'{name}' cannot be the name of an axis; use lower-case letters, digits and \
                         underscores"
            );
            mistakes.add(&entry.at, text);
        }
        let path = format!("axis.{name}.");
        let (fields, values) = match &entry.value.content {
            ConfigContent::Table(table) => {
                let fields = Fields::read(table, &path, &[AXIS], &[], mistakes);
                let values = fields.value("values");
                (Some(fields), values)
            }
            _ => (None, Some(&entry.value)),
        };
        let given = fields.as_ref().and_then(|fields| fields.value("key"));
        let at = given.map_or(&entry.at, |value| &value.at);
        let keys = match given.map(texts) {
            None => vec![format!("test.{name}")],
            Some(Ok(keys)) => keys,
            Some(Err(text)) => {
                mistakes.add(at, format!("{path}key: {text}"));
                return None;
            }
        };
        let mut found: Vec<(AxisTarget, PlanValueKind)> = Vec::new();
        for key in &keys {
            match targets(key, names) {
                Ok(targets) => found.extend(targets),
                Err(text) if given.is_none() => {
                    let text = format!(
                        "axis '{name}' does not name a knob{text}; or give what it sweeps with key \
                                 = \"…\""
                    );
                    mistakes.add(at, text);
                    return None;
                }
                Err(text) => {
                    mistakes.add(at, format!("{path}key: '{key}' cannot be swept{text}"));
                    return None;
                }
            }
        }
        let Some(kind) = found.first().map(|(_, kind)| kind.clone()) else {
            mistakes.add(at, format!("{path}key: the list is empty; name a key"));
            return None;
        };
        if found.iter().any(|(_, other)| *other != kind) {
            mistakes.add(
                at,
                format!("{path}key: the keys take values of different kinds; use one axis for each, and zip"),
            );
            return None;
        }
        let targets = found.into_iter().map(|(target, _)| target).collect();
        Some(Self { name, at: entry.at.clone(), targets, kind, fields, values })
    }

    /// Whether the axis is searched, not swept.
    pub(crate) fn is_search(&self) -> bool {
        self.fields.as_ref().is_some_and(|fields| fields.value("pass").is_some())
    }

    /// Reads the values; `None` if one of them is wrong.
    pub(crate) fn into_axis(self, mistakes: &mut Mistakes) -> Option<Axis> {
        let before = mistakes.len();
        self.refuse_unused(mistakes);
        let mut values = match (self.values, &self.fields) {
            (Some(list), _) => self.list(list, mistakes),
            (None, Some(fields)) => range::read(&self, fields, mistakes),
            (None, None) => Vec::new(),
        };
        if let Some(labels) = self.fields.as_ref().and_then(|fields| fields.value("labels")) {
            self.label(&mut values, labels, mistakes);
        }
        if mistakes.len() > before || self.fields.as_ref().is_some_and(|fields| !fields.sound) {
            return None;
        }
        self.refuse_duplicates(&values, mistakes);
        if values.is_empty() {
            mistakes.add(&self.at, format!("axis.{}: no values; give at least one", self.name));
        }
        (mistakes.len() == before).then_some(Axis { name: self.name, targets: self.targets, values })
    }

    /// Rejects keys that have no effect on an axis that is swept.
    fn refuse_unused(&self, mistakes: &mut Mistakes) {
        let Some(fields) = &self.fields else { return };
        let given = |keys: &'static [&'static str]| {
            keys.iter().filter_map(move |key| Some((*key, &fields.value(key)?.at)))
        };
        for (key, at) in given(RANGE_KEYS).filter(|_| self.values.is_some()) {
            let text = format!(
                "axis.{}.{key}: this does not apply to an axis with a list of values; remove it, or values",
                self.name
            );
            mistakes.add(at, text);
        }
        for (key, at) in given(SEARCH_KEYS) {
            let text = format!(
                "axis.{}.{key}: this applies only to an axis that is searched; remove it, or add pass = \"…\"",
                self.name
            );
            mistakes.add(at, text);
        }
    }

    fn list(&self, list: &ConfigValue, mistakes: &mut Mistakes) -> Vec<AxisValue> {
        let count = match &list.content {
            ConfigContent::List(items) => items.len(),
            ConfigContent::Typed(typed) => typed.split(',').count(),
            _ => 0,
        };
        if count > MAX_POINTS {
            let text = format!("axis.{}: {count} values; a plan has at most {MAX_POINTS} points", self.name);
            mistakes.add(&list.at, text);
            return Vec::new();
        }
        let mut values = Vec::new();
        let mut take = |item: &ConfigValue| match self.kind.read_or_default(item) {
            Ok(setting) => {
                let label = item.text().map_or_else(|| setting.to_string(), str::to_owned);
                values.push(AxisValue { label, setting });
            }
            Err(text) => mistakes.add(&item.at, format!("axis.{}: {text}", self.name)),
        };
        match &list.content {
            ConfigContent::List(items) => {
                items.iter().for_each(|item| take(&as_text(item, &self.kind)));
            }
            ConfigContent::Typed(typed) => {
                for item in typed.split(',') {
                    take(&ConfigValue {
                        at: list.at.clone(),
                        content: ConfigContent::Typed(item.trim().to_owned()),
                    });
                }
            }
            other => {
                let what = other.describe();
                mistakes.add(&list.at, format!("axis.{}: {what} is not a list of values", self.name));
            }
        }
        values
    }

    fn label(&self, values: &mut [AxisValue], labels: &ConfigValue, mistakes: &mut Mistakes) {
        match texts(labels) {
            Ok(texts) if texts.len() == values.len() => {
                for (value, label) in values.iter_mut().zip(texts) {
                    value.label = label;
                }
            }
            Ok(texts) => {
                let counts = format!("{} label(s) for {} values", texts.len(), values.len());
                mistakes.add(
                    &labels.at,
                    format!("axis.{}.labels: {counts}; give one label for each value", self.name),
                );
            }
            Err(text) => mistakes.add(&labels.at, format!("axis.{}.labels: {text}", self.name)),
        }
    }

    /// Rejects equal values and equal labels, because they could not be distinguished.
    fn refuse_duplicates(&self, values: &[AxisValue], mistakes: &mut Mistakes) {
        let (mut labels, mut settings): (BTreeMap<&str, &str>, BTreeMap<String, &str>) = Default::default();
        for value in values {
            let twin = settings.insert(value.setting.to_string(), &value.label);
            let twin = twin.or(labels.insert(&value.label, &value.label));
            if let Some(twin) = twin {
                let text =
                    format!("axis.{}: '{twin}' and '{}' are the same; leave one out", self.name, value.label);
                mistakes.add(self.values.map_or(&self.at, |values| &values.at), text);
                return;
            }
        }
    }
}

/// Topologies take all values as text.
fn as_text(item: &ConfigValue, kind: &PlanValueKind) -> ConfigValue {
    let content = match (&item.content, kind) {
        (ConfigContent::Number(number), PlanValueKind::Text) => ConfigContent::Text(number.clone()),
        (ConfigContent::Flag(flag), PlanValueKind::Text) => ConfigContent::Text(flag.to_string()),
        (other, _) => other.clone(),
    };
    ConfigValue { at: item.at.clone(), content }
}

/// The targets of a key, with the kind of their values.
///
/// # Errors
/// A text to append to the key.
fn targets(key: &str, names: &Names) -> Result<Vec<(AxisTarget, PlanValueKind)>, String> {
    let named = |name: &str, known: &[String], what: &str| {
        if known.iter().any(|one| one == name) {
            return Ok(());
        }
        Err(format!("; there is no {what} '{name}'{}", hint(name, known.iter().map(String::as_str))))
    };
    let parts: Vec<&str> = key.splitn(3, '.').collect();
    match parts[..] {
        ["test", name] => {
            let knob = knob(name)?;
            Ok(vec![(AxisTarget::Test(name.to_owned()), knob.kind.clone())])
        }
        ["flow", flow, name] => {
            named(flow, &names.flows, "flow")?;
            let kind = knob(name)?.kind.clone();
            Ok(vec![(AxisTarget::Flow { flow: flow.to_owned(), knob: name.to_owned() }, kind)])
        }
        ["host", host, name] => {
            let setting = SETTINGS.iter().find(|setting| setting.name == name);
            let setting = setting.ok_or_else(|| hint(name, SETTINGS.iter().map(|setting| setting.name)))?;
            let hosts: Vec<&String> = match host {
                "*" => names.hosts.iter().collect(),
                host => {
                    named(host, &names.hosts, "host")?;
                    names.hosts.iter().filter(|name| *name == host).collect()
                }
            };
            let target = |host: &String| AxisTarget::Host { host: host.clone(), key: name.to_owned() };
            Ok(hosts.into_iter().map(|host| (target(host), setting.kind.clone())).collect())
        }
        ["lab", ..] if key.len() > 4 => {
            if !names.lab {
                return Err("; the plan has no lab, add [lab] with topology = \"…\"".to_owned());
            }
            Ok(vec![(AxisTarget::Lab(key[4..].to_owned()), PlanValueKind::Text)])
        }
        ["flows"] => Ok(vec![(AxisTarget::Flows, PlanValueKind::FlowNames(names.flows.clone()))]),
        _ => Err("; write test.KNOB, flow.FLOW.KNOB, host.HOST.SETTING, lab.KEY or flows".to_owned()),
    }
}

impl Axis {
    /// Index of a value, found by its label or by the value itself.
    ///
    /// # Errors
    /// A text that lists the values.
    pub(crate) fn find(&self, meant: &ConfigValue) -> Result<usize, String> {
        let text = match &meant.content {
            ConfigContent::Flag(flag) => flag.to_string(),
            _ => meant.text().map(str::to_owned).unwrap_or_default(),
        };
        let by_label = self.values.iter().position(|value| value.label == text);
        let like = |setting: &SettingValue| match setting {
            SettingValue::Memory(_) => PlanValueKind::Memory.read(meant).as_ref() == Ok(setting),
            SettingValue::Rate(_) => PlanValueKind::Rate.read(meant).as_ref() == Ok(setting),
            SettingValue::Time(_) => PlanValueKind::Time.read(meant).as_ref() == Ok(setting),
            SettingValue::Share(_) => PlanValueKind::Share.read(meant).as_ref() == Ok(setting),
            SettingValue::Dscp(_) => PlanValueKind::Dscp.read(meant).as_ref() == Ok(setting),
            other => other.to_string() == text,
        };
        by_label.or_else(|| self.values.iter().position(|value| like(&value.setting))).ok_or_else(|| {
            let labels: Vec<&str> = self.values.iter().map(|value| value.label.as_str()).collect();
            let what = meant.content.describe();
            format!("{what} is not a value of axis '{}'; its values are {}", self.name, labels.join(", "))
        })
    }
}

/// A part of a plan's points: the selected values of some axes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PointSelection(pub(crate) BTreeMap<usize, Vec<usize>>);

impl PointSelection {
    /// Reads a table of axes and values. A value may be a list of values.
    pub(crate) fn read(table: &ConfigTable, axes: &[Axis], mistakes: &mut Mistakes) -> Self {
        let mut part = Self::default();
        for entry in &table.0 {
            let Some(number) = axes.iter().position(|axis| axis.name == entry.key) else {
                let known = axes.iter().map(|axis| axis.name.as_str());
                mistakes.add_with(&entry.at, || {
                    format!("there is no axis '{}'{}", entry.key, hint(&entry.key, known))
                });
                continue;
            };
            let one = std::slice::from_ref(&entry.value);
            let meant =
                if let ConfigContent::List(items) = &entry.value.content { items.as_slice() } else { one };
            let mut values = Vec::new();
            for value in meant {
                match axes[number].find(value) {
                    Ok(found) => values.push(found),
                    Err(text) => mistakes.add(&value.at, text),
                }
            }
            part.0.insert(number, values);
        }
        part
    }

    /// Whether a point with these values, one per axis, belongs to this part.
    #[must_use]
    pub fn holds(&self, choice: &[usize]) -> bool {
        self.0.iter().all(|(axis, values)| choice.get(*axis).is_some_and(|value| values.contains(value)))
    }
}
