//! A report to paste into a ticket.

use linerate_model::{HostInfo, RunRecord};
use linerate_units::Span;

use crate::figure::caveats;
use crate::layout::harmless;
use crate::quantity::or_absent;
use crate::text::{heading, link, results};
use crate::text_flow::details;

/// The run as Markdown: results as a table, then verdict, settings and caveats of each flow, then the hosts.
#[must_use]
pub fn report(record: &RunRecord) -> String {
    let mut pieces = heading(record).into_iter().filter(|piece| !piece.is_empty());
    let mut out = format!("# {}\n", escaped(&pieces.next().unwrap_or_default()));
    let rest: Vec<String> = pieces.map(|piece| escaped(&piece)).collect();
    if !rest.is_empty() {
        out += &format!("\n{}\n", rest.join(" · "));
    }
    if !record.flows.is_empty() {
        out += "\n";
        out += &table(&results(record).texts());
    }
    for flow in &record.flows {
        out += &format!("\n## {}\n\n", escaped(&flow.plan.name));
        out += &match &flow.verdict {
            Some(verdict) => format!("**{}**\n", escaped(&verdict.text)),
            None => "Not judged: the flow ended before there was enough to judge by.\n".to_owned(),
        };
        let facts = details(flow);
        if !facts.is_empty() {
            out += "\n";
        }
        for (label, text) in facts {
            out += &format!("- {label}: {}\n", escaped(&text));
        }
        for caveat in caveats(flow) {
            out += &format!("- caveat: {}\n", escaped(&caveat.text));
        }
    }
    out += &run_section(record);
    out
}

fn run_section(record: &RunRecord) -> String {
    let mut lines = Vec::new();
    if let Some(idle) = record.idle.as_ref().filter(|idle| idle.rtt.count > 0) {
        let [p50, p95, p99] = [idle.rtt.p50_ns, idle.rtt.p95_ns, idle.rtt.p99_ns].map(Span::from_ns);
        lines.push(format!(
            "- idle latency: p50 {p50}, p95 {p95}, p99 {p99} ({} probes, {} lost)",
            idle.sent, idle.lost
        ));
    }
    lines.extend(record.hosts.iter().map(host));
    lines.extend(record.caveats.iter().map(|caveat| format!("- caveat: {}", escaped(&caveat.text))));
    lines.extend(record.reason.iter().map(|reason| format!("- ended: {}", escaped(reason))));
    if !record.run.is_empty() {
        lines.push(format!("- run: {}", escaped(&record.run)));
    }
    if lines.is_empty() { String::new() } else { format!("\n## Run\n\n{}\n", lines.join("\n")) }
}

fn host(host: &HostInfo) -> String {
    let facts = [host.kernel.clone(), host.cpu.clone(), or_absent(host.link.as_ref().map(link))];
    let facts: Vec<String> = facts.iter().filter(|fact| !fact.is_empty()).map(|fact| escaped(fact)).collect();
    format!("- host {}: {}", escaped(&host.name), facts.join("; "))
}

/// A table with its head; the cells are escaped here.
fn table(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell.trim())).collect();
        out += &format!("| {} |\n", cells.join(" | "));
        if number == 0 {
            out += &format!("|{}\n", " --- |".repeat(row.len()));
        }
    }
    out
}

/// `text` so that it reads in Markdown as it is, whoever wrote it.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in harmless(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
