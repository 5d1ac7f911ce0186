//! Origin of a run: hosts with everything that explains a result, versions, and the specification.

use linerate_model::{HostInfo, RunRecord};
use maud::{Markup, html};

use super::parts::pairs;
use crate::text::link;

/// Hosts, run and specification.
pub(super) fn markup(record: &RunRecord) -> Markup {
    html! {
        details open {
            summary { "Where it was measured" }
            (pairs(&run(record)))
            @for (number, host) in record.hosts.iter().enumerate() {
                h4 { @if number == 0 { "client" } @else { "server" } " " (host.name.to_string()) }
                (pairs(&facts(host)))
                @if !host.sysctls.is_empty() {
                    details {
                        summary { (host.sysctls.len()) " kernel settings" }
                        (pairs(&host.sysctls.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<Vec<_>>()))
                    }
                }
            }
        }
        @if let Some(start) = &record.start {
            details {
                summary { "Specification as JSON" }
                pre { (serde_json::to_string_pretty(&start.spec).unwrap_or_default()) }
            }
        }
    }
}

fn run(record: &RunRecord) -> Vec<(String, String)> {
    let mut pairs = vec![("run".to_owned(), record.run.to_string())];
    if let Some(start) = &record.start {
        pairs.push(("started".to_owned(), start.started_at.to_string()));
        pairs.push(("world".to_owned(), start.world.name().to_owned()));
        pairs.push(("server as typed".to_owned(), start.target.to_string()));
        pairs.push(("linerate".to_owned(), start.linerate.to_string()));
    }
    pairs.extend(record.labels.name.iter().map(|name| ("name".to_owned(), name.to_string())));
    pairs.extend(record.labels.notes.iter().map(|(key, note)| (key.to_string(), note.to_string())));
    if let Some(group) = &record.group {
        pairs.push(("group".to_owned(), group.group.to_string()));
    }
    pairs.retain(|(_, text)| !text.is_empty());
    pairs
}

fn facts(host: &HostInfo) -> Vec<(String, String)> {
    let mut facts = vec![
        ("address", host.address.as_deref().unwrap_or_default().to_owned()),
        ("kernel", host.kernel.to_string()),
        ("processor", host.cpu.to_string()),
        ("processors online", if host.cores > 0 { host.cores.to_string() } else { String::new() }),
        ("linerate", host.linerate.to_string()),
    ];
    if let Some(interface) = &host.link {
        facts.push(("interface", link(interface)));
        facts.push(("driver", interface.driver.as_deref().unwrap_or_default().to_owned()));
        facts.push(("offloads on", interface.offloads.join(", ")));
    }
    facts.extend(host.memory_copy.map(|rate| ("copies memory at", rate.to_string())));
    facts.retain(|(_, text)| !text.is_empty());
    facts.into_iter().map(|(label, text)| (label.to_owned(), text)).collect()
}
