//! Points: one combination of values, resolved to the settings of every flow, host and the lab.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use linerate_model::TestSpec;
use linerate_units::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twox_hash::XxHash64;

use crate::axis::AxisTarget;
use crate::kind::SettingValue;
use crate::knobs;
use crate::plan::{Flow, Host, Plan, PlanLab};

/// Identifier of a point. It depends only on the names and values of the axes: reordering axes, values or
/// points, and adding values, do not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointId(u64);

impl fmt::Display for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for PointId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

impl Serialize for PointId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PointId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| serde::de::Error::custom(format!("'{text}' is not the name of a point")))
    }
}

/// A resolved point.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Identifier.
    pub id: PointId,
    /// Index in the plan, from 0.
    pub number: usize,
    /// Names of the axes and labels of their values.
    pub values: Vec<(String, String)>,
    /// The test of each flow that runs at this point, in the order of the plan.
    pub tests: Vec<PointFlow>,
    /// Settings by host; hosts without settings are absent.
    pub hosts: BTreeMap<String, BTreeMap<String, SettingValue>>,
    /// The emulated network.
    pub lab: Option<PlanLab>,
    /// Digest of everything that is measured and set, between which hosts, or in which emulated network. Results with
    /// another digest belong to another measurement.
    pub content: u64,
}

/// One flow of a point.
#[derive(Debug, Clone, PartialEq)]
pub struct PointFlow {
    /// The flow.
    pub flow: String,
    /// Its client.
    pub from: String,
    /// Its server.
    pub to: String,
    /// Whether it runs until the others have ended.
    pub cross_traffic: bool,
    /// Specification.
    pub spec: TestSpec,
}

/// A point that cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("flow {flow}: {text}")]
pub struct PointError {
    /// The flow.
    pub flow: String,
    /// The knob that causes it, if it is a single one.
    pub knob: Option<String>,
    /// What is wrong, and how to correct it.
    pub text: String,
}

/// Knobs and their values; later ones override earlier ones.
type Layers<'p> = Vec<(&'p str, &'p SettingValue)>;

impl Plan {
    /// The point with this index.
    ///
    /// # Errors
    /// A flow whose knobs contradict each other, or an index out of range.
    pub fn point(&self, number: usize) -> Result<Point, PointError> {
        self.point_with(number, None)
    }

    /// The point with a value of the searched axis; without a value, with the largest.
    ///
    /// # Errors
    /// As [`Plan::point`].
    pub fn point_with(&self, number: usize, searched: Option<&SettingValue>) -> Result<Point, PointError> {
        let choice = self.grid.choice(number).ok_or_else(|| PointError {
            flow: String::new(),
            knob: None,
            text: format!("there is no point number {number}; the plan has {} points", self.grid.len()),
        })?;
        let mut tests = Vec::new();
        for (index, flow) in self.flows.iter().enumerate().filter(|(_, flow)| self.runs(flow, &choice)) {
            let layers = self.layers(&choice, index, searched);
            let mut spec =
                resolve(&layers).and_then(|spec| as_series(spec, flow)).map_err(|(knob, text)| {
                    PointError {
                        flow: flow.name.clone(),
                        knob,
                        text: if self.axes.is_empty() {
                            text
                        } else {
                            format!("{text} (at {})", self.label(&choice))
                        },
                    }
                })?;
            if flow.cross_traffic && spec.phases().len() > 1 {
                // The first direction lasts until the end of the trial, so the second one would never begin.
                spec.traffic.bidir = true;
            }
            tests.push(PointFlow {
                flow: flow.name.clone(),
                from: flow.from.clone(),
                to: flow.to.clone(),
                cross_traffic: flow.cross_traffic,
                spec,
            });
        }
        let mut point = Point {
            id: self.id(&choice),
            number,
            values: self.values(&choice).map(|(axis, label)| (axis.to_owned(), label.to_owned())).collect(),
            tests,
            hosts: self.host_settings(&choice, searched),
            lab: self.lab_at(&choice, searched),
            content: 0,
        };
        point.content = point.digest(self);
        Ok(point)
    }

    /// The point at a step of the search: with the value to try, and if the trial confirms it, with the duration of
    /// [`crate::Search::confirm`].
    ///
    /// # Errors
    /// As [`Plan::point`].
    pub fn point_of_step(
        &self,
        number: usize,
        value: &SettingValue,
        confirms: bool,
    ) -> Result<Point, PointError> {
        let mut point = self.point_with(number, Some(value))?;
        let confirm = self.search.as_ref().and_then(|search| search.confirm).filter(|_| confirms);
        if let Some(length) = confirm {
            for test in point.tests.iter_mut().filter(|test| !test.cross_traffic) {
                test.spec.traffic.duration = Some(length);
            }
            point.content = point.digest(self);
        }
        Ok(point)
    }

    /// Whether a flow runs at these values: an axis over flows may leave it out.
    fn runs(&self, flow: &Flow, choice: &[usize]) -> bool {
        let names = |setting: &SettingValue| match setting {
            SettingValue::Text(text) => text.split_whitespace().any(|name| name == flow.name),
            _ => false,
        };
        let of_flows = |axis: &&crate::axis::Axis| axis.targets.contains(&AxisTarget::Flows);
        let mut axes = self.axes.iter().zip(choice).filter(|(axis, _)| of_flows(axis));
        axes.all(|(axis, value)| {
            let chosen = axis.values.get(*value).is_some_and(|value| names(&value.setting));
            chosen || !axis.values.iter().any(|value| names(&value.setting))
        })
    }

    /// Identifier of the point with these values, one per axis.
    pub(crate) fn id(&self, choice: &[usize]) -> PointId {
        let mut parts: Vec<String> = self
            .axes
            .iter()
            .zip(choice)
            .filter_map(|(axis, value)| Some(format!("{}={}", axis.name, axis.values.get(*value)?.setting)))
            .collect();
        parts.sort();
        PointId(XxHash64::oneshot(0, parts.join("\n").as_bytes()))
    }

    /// Axes and labels of these values, as text.
    #[must_use]
    pub fn label(&self, choice: &[usize]) -> String {
        let parts: Vec<String> = self.values(choice).map(|(axis, label)| format!("{axis}={label}")).collect();
        if parts.is_empty() { "the only point".to_owned() } else { parts.join(" ") }
    }

    fn values<'p>(&'p self, choice: &'p [usize]) -> impl Iterator<Item = (&'p str, &'p str)> {
        let chosen = self.axes.iter().zip(choice);
        chosen.filter_map(|(axis, value)| Some((axis.name.as_str(), axis.values.get(*value)?.label.as_str())))
    }

    /// Everything that the axes and the search set at these values.
    fn chosen<'p>(
        &'p self,
        choice: &'p [usize],
        searched: Option<&'p SettingValue>,
    ) -> impl Iterator<Item = (&'p AxisTarget, &'p SettingValue)> {
        let swept = self.axes.iter().zip(choice).flat_map(|(axis, value)| {
            let setting = axis.values.get(*value).map(|value| &value.setting);
            axis.targets.iter().filter_map(move |target| Some((target, setting?)))
        });
        let search = self.search.iter().flat_map(move |search| {
            let setting = searched.unwrap_or(&search.high);
            search.targets.iter().map(move |target| (target, setting))
        });
        swept.chain(search)
    }

    /// The knobs of a flow, in this order: those of the plan, of its axes, of the flow, of axes over that flow. What
    /// ends the other flows does not end cross traffic.
    fn layers<'p>(
        &'p self,
        choice: &'p [usize],
        flow: usize,
        searched: Option<&'p SettingValue>,
    ) -> Layers<'p> {
        let Some(flow) = self.flows.get(flow) else { return Vec::new() };
        let of_all = self.chosen(choice, searched).filter_map(|(target, setting)| match target {
            AxisTarget::Test(knob) => Some((knob.as_str(), setting)),
            _ => None,
        });
        let of_one = self.chosen(choice, searched).filter_map(|(target, setting)| match target {
            AxisTarget::Flow { flow: name, knob } if *name == flow.name => Some((knob.as_str(), setting)),
            _ => None,
        });
        let plan = self.test.iter().map(|(knob, setting)| (knob.as_str(), setting));
        let own = flow.test.iter().map(|(knob, setting)| (knob.as_str(), setting));
        let applies = |(knob, _): &(&str, &SettingValue)| !flow.ignores(knob);
        plan.chain(of_all).filter(applies).chain(own).chain(of_one).collect()
    }

    fn host_settings(
        &self,
        choice: &[usize],
        searched: Option<&SettingValue>,
    ) -> BTreeMap<String, BTreeMap<String, SettingValue>> {
        let mut hosts: BTreeMap<String, BTreeMap<String, SettingValue>> =
            self.hosts.iter().map(|host| (host.name.clone(), host.settings.clone())).collect();
        for (target, setting) in self.chosen(choice, searched) {
            if let AxisTarget::Host { host, key } = target {
                hosts.entry(host.clone()).or_default().insert(key.clone(), setting.clone());
            }
        }
        // The default means that the setting stays as it is.
        for settings in hosts.values_mut() {
            settings.retain(|_, setting| *setting != SettingValue::Default);
        }
        hosts.retain(|_, settings| !settings.is_empty());
        hosts
    }

    fn lab_at(&self, choice: &[usize], searched: Option<&SettingValue>) -> Option<PlanLab> {
        let mut lab = self.lab.clone()?;
        for (target, setting) in self.chosen(choice, searched) {
            match (target, setting) {
                (AxisTarget::Lab(key), SettingValue::Default) => drop(lab.set.remove(key)),
                (AxisTarget::Lab(key), setting) => drop(lab.set.insert(key.clone(), setting.to_string())),
                _ => {}
            }
        }
        Some(lab)
    }
}

/// The specification of a flow that is a series. It keeps the socket and host settings of the test.
fn as_series(spec: TestSpec, flow: &Flow) -> Result<TestSpec, (Option<String>, String)> {
    let Some(sweep) = &flow.series else { return Ok(spec) };
    let mut series = TestSpec::of_sweep(sweep.clone(), spec.socket, spec.host);
    // Its result is that of messages sent by the client.
    series.traffic.upload = true;
    match series.check() {
        Ok(()) => Ok(series),
        Err(error) => Err((None, error.to_string())),
    }
}

/// Builds a specification from knobs, or returns the wrong one.
fn resolve(layers: &Layers<'_>) -> Result<TestSpec, (Option<String>, String)> {
    let spec = knobs::spec(layers.iter().copied()).map_err(|(knob, text)| (Some(knob), text))?;
    let check = |spec: &TestSpec| spec.check().and_then(|()| spec.agree());
    let Err(error) = check(&spec) else { return Ok(spec) };
    // The knob that the message names. If it has another name here, the one without which the specification is
    // valid.
    let named = error.knob.trim_start_matches('-').replace('-', "_");
    let set = || layers.iter().rev().map(|(knob, _)| *knob);
    let guilty = set().find(|knob| *knob == named).or_else(|| {
        set().find(|knob| {
            let others = layers.iter().copied().filter(|(name, _)| name != knob);
            knobs::spec(others).is_ok_and(|spec| check(&spec).is_ok())
        })
    });
    Err((guilty.map(str::to_owned), error.to_string()))
}

impl Point {
    /// Axes and labels, as text.
    #[must_use]
    pub fn label(&self) -> String {
        let parts: Vec<String> = self.values.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
        if parts.is_empty() { "the only point".to_owned() } else { parts.join(" ") }
    }

    /// The test of a flow, if it runs at this point.
    #[must_use]
    pub fn test_of(&self, flow: &str) -> Option<&PointFlow> {
        self.tests.iter().find(|test| test.flow == flow)
    }

    fn digest(&self, plan: &Plan) -> u64 {
        let mut text = String::new();
        for test in &self.tests {
            let Some(flow) = plan.flow(&test.flow) else { continue };
            // A specification always has a JSON form.
            let spec = serde_json::to_string(&test.spec).unwrap_or_default();
            let begins: (Span, &Vec<String>) = (flow.at, &flow.after);
            text.push_str(&format!(
                "{} {} {} {begins:?} {} {spec}\n",
                test.flow, test.from, test.to, test.cross_traffic
            ));
        }
        let is_used =
            |host: &&Host| self.tests.iter().any(|test| test.from == host.name || test.to == host.name);
        for host in plan.hosts.iter().filter(is_used) {
            // A name is only a label: another address or port is another host. The interface matters if it is set.
            let interface = host.interface.as_ref().filter(|_| self.hosts.contains_key(&host.name));
            text.push_str(&format!("{} {:?} {} {interface:?}\n", host.name, host.address, host.port));
        }
        text.push_str(&format!("{:?}\n{:?}\n{:?}\n", self.hosts, self.lab, plan.topology_digest));
        XxHash64::oneshot(0, text.as_bytes())
    }
}
