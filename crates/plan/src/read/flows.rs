//! Reads flows, and checks whether each of them can start and end.

use std::collections::{BTreeMap, BTreeSet};

use linerate_config::{ConfigContent, SourcePosition, hint};
use linerate_units::Span;

use super::PlanReader;
use crate::keys::{FLOW, Fields};
use crate::kind::{SettingValue, texts};
use crate::plan::{ENDING_KNOBS, Flow, Host};

impl PlanReader<'_> {
    /// The flows; a plan with two hosts needs none.
    pub(super) fn flows(&mut self, hosts: &[Host]) -> Vec<Flow> {
        let mut flows = Vec::new();
        let tables = self.named("flow");
        for (entry, table) in &tables {
            let path = format!("flow.{}.", entry.key);
            let fields = Fields::read(table, &path, &[FLOW], &[], self.mistakes);
            let end = |reader: &mut Self, key: &str| {
                let Some(value) = fields.value(key) else {
                    if table.get(key).is_none() {
                        reader.mistakes.add(&entry.at, format!("{path}{key} is missing; name a host"));
                    }
                    return String::new();
                };
                let name = fields.text(key).unwrap_or_default();
                if !hosts.iter().any(|host| host.name == name) {
                    let hint = hint(&name, hosts.iter().map(|host| host.name.as_str()));
                    reader.mistakes.add(&value.at, format!("{path}{key}: there is no host '{name}'{hint}"));
                }
                name
            };
            let (from, to) = (end(self, "from"), end(self, "to"));
            let after = fields.value("after").map(|value| (value, texts(value)));
            let after = match after {
                Some((value, Err(text))) => {
                    self.mistakes.add(&value.at, format!("{path}after: {text}"));
                    Vec::new()
                }
                Some((_, Ok(names))) => names,
                None => Vec::new(),
            };
            let test = match fields.value("test").map(|value| (value, &value.content)) {
                Some((_, ConfigContent::Table(table))) => self.knobs(table, &format!("{path}test.")),
                Some((value, other)) => {
                    self.mistakes
                        .add(&value.at, format!("{path}test: {} is not a table of knobs", other.describe()));
                    BTreeMap::new()
                }
                None => BTreeMap::new(),
            };
            let series = self.series(&fields, &path);
            if fields.flag("cross_traffic") && fields.value("series").is_none() {
                self.refuse_an_end(&fields, &test, &path);
            }
            flows.push(Flow {
                name: entry.key.clone(),
                from,
                to,
                at: fields.span("at").unwrap_or_default(),
                after,
                cross_traffic: fields.flag("cross_traffic"),
                test,
                series,
            });
        }
        if tables.is_empty() && self.document.get("flow").is_none() {
            flows.extend(self.only_flow(hosts));
        }
        self.check_flows(&flows);
        flows
    }

    /// Rejects knobs with which cross traffic would end before the other flows.
    fn refuse_an_end(&mut self, fields: &Fields<'_>, test: &BTreeMap<String, SettingValue>, path: &str) {
        let Some(ConfigContent::Table(table)) = fields.value("test").map(|value| &value.content) else {
            return;
        };
        for entry in table.0.iter().filter(|entry| ENDING_KNOBS.contains(&entry.key.as_str())) {
            if test.get(&entry.key).is_some_and(|setting| *setting != SettingValue::Default) {
                let text = format!(
                    "{path}test.{}: cross traffic runs until the last other flow has ended; remove this, or \
                     cross_traffic",
                    entry.key
                );
                self.mistakes.add(&entry.at, text);
            }
        }
    }

    /// The default flow of a plan with two hosts: from the first to the second.
    fn only_flow(&mut self, hosts: &[Host]) -> Option<Flow> {
        if let [from, to] = hosts {
            return Some(Flow {
                name: format!("{}-{}", from.name, to.name).chars().take(32).collect(),
                from: from.name.clone(),
                to: to.name.clone(),
                at: Span::ZERO,
                after: Vec::new(),
                cross_traffic: false,
                test: BTreeMap::new(),
                series: None,
            });
        }
        // If the lab could not be read, that mistake is already reported.
        if self.mistakes.is_empty() {
            let text = match hosts.len() {
                0 => {
                    "the plan has no hosts; add [host.NAME] with address = \"…\", or [lab] with topology = \
                     \"…\""
                }
                1 => "the plan has only one host; add a second one",
                _ => {
                    "a plan with more than two hosts needs flows; add [flow.NAME] with from = \"…\" and to \
                     = \"…\""
                }
            };
            self.mistakes.add(&SourcePosition::START, text);
        }
        None
    }

    /// Rejects flows that wait for each other, or for a flow that never ends by itself.
    fn check_flows(&mut self, flows: &[Flow]) {
        let place = |name: &str, key: &str| {
            let table = self.document.table("flow").and_then(|flows| flows.get(name));
            let own = table.and_then(|entry| match &entry.value.content {
                ConfigContent::Table(table) => table.get(key).map(|entry| entry.value.at.clone()),
                _ => None,
            });
            own.or_else(|| table.map(|entry| entry.at.clone())).unwrap_or(SourcePosition::START)
        };
        let mut found = Vec::new();
        for flow in flows {
            for name in &flow.after {
                let path = format!("flow.{}.after", flow.name);
                match flows.iter().find(|other| other.name == *name) {
                    None => {
                        let hint = hint(name, flows.iter().map(|flow| flow.name.as_str()));
                        found.push((
                            place(&flow.name, "after"),
                            format!("{path}: there is no flow '{name}'{hint}"),
                        ));
                    }
                    Some(other) if other.cross_traffic => {
                        let text = format!(
                            "{path}: '{name}' is cross traffic and runs until the others have ended; name \
                             another flow"
                        );
                        found.push((place(&flow.name, "after"), text));
                    }
                    Some(_) => {}
                }
            }
        }
        let to_a_group = self.document.table("test").is_some_and(|test| test.get(GROUP).is_some());
        for (number, flow) in flows.iter().enumerate() {
            let shares = |other: &&Flow| other.from == flow.from && other.test == flow.test;
            let to_a_group = to_a_group || flow.test.contains_key(GROUP);
            let first = flows[..number].iter().find(shares).filter(|_| to_a_group);
            if let Some(first) = first.filter(|first| (first.at, &first.after) != (flow.at, &flow.after)) {
                let text = format!(
                    "flow.{}.at: this flow and '{}' share one sender to a multicast group, which starts once; give both \
                     the same at and after",
                    flow.name, first.name
                );
                found.push((place(&flow.name, if flow.at == first.at { "after" } else { "at" }), text));
            }
        }
        if let Some(flow) = in_a_circle(flows) {
            let text = format!(
                "flow.{}.after: these flows wait for each other; remove `after` from one of them",
                flow.name
            );
            found.push((place(&flow.name, "after"), text));
        }
        if let Some(flow) = flows.first().filter(|_| flows.iter().all(|flow| flow.cross_traffic)) {
            let text = "every flow is cross traffic, so none of them ends; remove cross_traffic from one";
            found.push((place(&flow.name, "cross_traffic"), text.to_owned()));
        }
        for (place, text) in found {
            self.mistakes.add(&place, text);
        }
    }
}

/// The knob of a multicast group.
const GROUP: &str = "multicast";

/// A flow that waits for itself, directly or through others.
fn in_a_circle(flows: &[Flow]) -> Option<&Flow> {
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    loop {
        let free = |flow: &&Flow| {
            let waits = |name: &String| {
                flows.iter().any(|other| other.name == *name) && !placed.contains(name.as_str())
            };
            !placed.contains(flow.name.as_str()) && !flow.after.iter().any(waits)
        };
        let next: Vec<&str> = flows.iter().filter(free).map(|flow| flow.name.as_str()).collect();
        if next.is_empty() {
            return flows.iter().find(|flow| !placed.contains(flow.name.as_str()));
        }
        placed.extend(next);
    }
}
