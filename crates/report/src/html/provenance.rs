//! Where a run comes from: hosts with everything that explains a result, versions, and what was asked.

use linerate_model::{HostInfo, RunRecord};
use maud::{Markup, html};

use super::parts::pairs;
use crate::layout::harmless;
use crate::text::link;

/// Hosts, run and specification.
pub(super) fn markup(record: &RunRecord) -> Markup {
    html! {
        details open {
            summary { "Where it was measured" }
            (pairs(&run(record)))
            @for (number, host) in record.hosts.iter().enumerate() {
                h4 { @if number == 0 { "client" } @else { "server" } " " (harmless(&host.name)) }
                (pairs(&facts(host)))
                @if !host.sysctls.is_empty() {
                    details {
                        summary { (host.sysctls.len()) " kernel settings" }
                        (pairs(&host.sysctls.iter().map(|(name, value)| (harmless(name), harmless(value))).collect::<Vec<_>>()))
                    }
                }
            }
        }
        @if let Some(start) = &record.start {
            details {
                summary { "What was asked, as JSON" }
                pre { (serde_json::to_string_pretty(&start.spec).unwrap_or_default()) }
            }
        }
    }
}

fn run(record: &RunRecord) -> Vec<(String, String)> {
    let mut pairs = vec![("run".to_owned(), harmless(&record.run))];
    if let Some(start) = &record.start {
        pairs.push(("started".to_owned(), harmless(&start.started_at)));
        pairs.push(("world".to_owned(), start.world.name().to_owned()));
        pairs.push(("server as typed".to_owned(), harmless(&start.target)));
        pairs.push(("linerate".to_owned(), harmless(&start.linerate)));
    }
    if let Some(group) = &record.group {
        pairs.push(("group".to_owned(), harmless(&group.group)));
    }
    pairs.retain(|(_, text)| !text.is_empty());
    pairs
}

fn facts(host: &HostInfo) -> Vec<(String, String)> {
    let mut facts = vec![
        ("address", host.address.as_deref().map(harmless).unwrap_or_default()),
        ("kernel", harmless(&host.kernel)),
        ("processor", harmless(&host.cpu)),
        ("processors online", if host.cores > 0 { host.cores.to_string() } else { String::new() }),
        ("linerate", harmless(&host.linerate)),
    ];
    if let Some(interface) = &host.link {
        facts.push(("interface", link(interface)));
        facts.push(("driver", interface.driver.as_deref().map(harmless).unwrap_or_default()));
        facts.push(("offloads on", harmless(&interface.offloads.join(", "))));
    }
    facts.extend(host.memory_copy.map(|rate| ("copies memory at", rate.to_string())));
    facts.retain(|(_, text)| !text.is_empty());
    facts.into_iter().map(|(label, text)| (label.to_owned(), text)).collect()
}
