//! What may explain a difference: hosts, links and settings.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::{RunRecord, SideSettings};

use super::Candidate;

/// Something that is not the same in two configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The number of the candidate.
    pub candidate: usize,
    /// What differs.
    pub what: String,
    /// As it was in the base, every value that was seen.
    pub base: String,
    /// As it was in the candidate.
    pub other: String,
}

/// Notes the hosts, links and settings of a run.
pub(super) fn note(facts: &mut BTreeMap<String, BTreeSet<String>>, run: &RunRecord) {
    let mut add = |what: String, value: String| {
        if !value.is_empty() {
            facts.entry(what).or_default().insert(value);
        }
    };
    for (host, side) in run.hosts.iter().zip(["client", "server"]) {
        add(format!("kernel of the {side}"), host.kernel.clone());
        add(format!("processor of the {side}"), host.cpu.clone());
        add(format!("processors of the {side}"), host.cores.to_string());
        add(format!("linerate at the {side}"), host.linerate.clone());
        for (name, value) in &host.sysctls {
            add(format!("{name} of the {side}"), value.clone());
        }
        if let Some(link) = &host.link {
            add(format!("link of the {side}"), link.speed.map(|speed| speed.to_string()).unwrap_or_default());
            add(format!("MTU of the {side}"), link.mtu.to_string());
            add(format!("driver of the {side}"), link.driver.clone().unwrap_or_default());
            add(format!("offloads of the {side}"), link.offloads.join(" "));
        }
    }
    for flow in &run.flows {
        add("streams".to_owned(), flow.plan.streams.to_string());
        add("transport".to_owned(), flow.plan.transport.name().to_owned());
        if let Some(settings) = &flow.sender_settings {
            of_side(settings, &mut add);
        }
    }
}

fn of_side(settings: &SideSettings, add: &mut dyn FnMut(String, String)) {
    let text = |value: Option<String>| value.unwrap_or_default();
    add("congestion control".to_owned(), text(settings.congestion.effective.clone()));
    add("segment size".to_owned(), text(settings.mss.effective.map(|mss| format!("{mss} bytes"))));
    add("window asked for".to_owned(), text(settings.window.map(|window| window.to_string())));
    add("block".to_owned(), settings.length.to_string());
}

/// What differs between the base and each candidate; what is known of one side only says nothing.
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
