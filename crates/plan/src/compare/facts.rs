//! Facts that may explain a difference: hosts, links and settings.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::RunRecord;
use serde_json::Value;

use super::Candidate;

/// A fact that differs between two configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Index of the candidate.
    pub candidate: usize,
    /// Name of the fact.
    pub what: String,
    /// All values in the base.
    pub base: String,
    /// All values in the candidate.
    pub other: String,
}

/// Adds the hosts, links and settings of a run.
pub(super) fn note(facts: &mut BTreeMap<String, BTreeSet<String>>, run: &RunRecord) {
    let mut add = |what: String, value: String| {
        if !value.is_empty() {
            facts.entry(what).or_default().insert(value);
        }
    };
    for (host, side) in run.hosts.iter().zip(["client", "server"]) {
        add(format!("kernel of the {side}"), host.kernel.to_string());
        add(format!("CPU of the {side}"), host.cpu.to_string());
        add(format!("number of CPUs of the {side}"), host.cores.to_string());
        add(format!("linerate version of the {side}"), host.linerate.to_string());
        for (name, value) in &host.sysctls {
            add(format!("{name} of the {side}"), value.to_string());
        }
        if let Some(link) = &host.link {
            add(format!("link of the {side}"), link.speed.map(|speed| speed.to_string()).unwrap_or_default());
            add(format!("MTU of the {side}"), link.mtu.to_string());
            add(format!("driver of the {side}"), link.driver.clone().unwrap_or_default().into());
            add(format!("offloads of the {side}"), link.offloads.join(" "));
        }
    }
    for flow in &run.flows {
        add("streams".to_owned(), flow.plan.streams.to_string());
        add("transport".to_owned(), flow.plan.transport.name().to_owned());
        for (settings, side) in [(&flow.sender_settings, "sender"), (&flow.receiver_settings, "receiver")] {
            if let Ok(value) = serde_json::to_value(settings) {
                every_setting(&value, "", &mut |name, value| add(format!("{name} of the {side}"), value));
            }
            // Of settings that were read here, the absence of a file is known too.
            if let Some(settings) = settings.as_ref().filter(|settings| !settings.local.is_empty()) {
                let file = settings.file.as_ref().map(|file| format!("file {}", file.name));
                add(format!("data of the {side}"), file.unwrap_or_else(|| "in memory".to_owned()));
            }
        }
    }
}

/// Addresses of sockets differ between runs but explain nothing, and so does the rate of a disk, which is measured before
/// each.
const LEFT_OUT_KEYS: [&str; 3] = ["local", "remote", "file"];

/// Settings by their names in results, whatever they are. Nested names are joined with dots.
fn every_setting(value: &Value, name: &str, add: &mut dyn FnMut(&str, String)) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (field, value) in fields.iter().filter(|(field, _)| !LEFT_OUT_KEYS.contains(&field.as_str()))
            {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                every_setting(value, &name, add);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(bare).collect();
            add(name, items.join(" "));
        }
        other => add(name, bare(other)),
    }
}

/// A value without quotes.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Facts that differ between the base and each candidate. A fact that is known for one side only is left out.
pub(super) fn differences(base: &Candidate, others: &[Candidate]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (candidate, other) in others.iter().enumerate() {
        for (what, seen) in &base.facts {
            if let Some(there) = other.facts.get(what)
                && there != seen
            {
                differences.push(Difference {
                    candidate,
                    what: what.clone(),
                    base: list(seen),
                    other: list(there),
                });
            }
        }
    }
    differences
}

fn list(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
