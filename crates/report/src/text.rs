//! Text output at the end of a test, and for an archived run.

#[cfg(test)]
mod tests;

use linerate_model::{
    Direction, FlowRecord, HostInfo, LatencyReport, LinkInfo, Outcome, ProbeTransport, RunRecord, World,
};
use linerate_units::{Ratio, Span};

use crate::answer::answer;
use crate::figure::{FlowFigure, caveats_without_one_way, imported};
use crate::layout::{TextLayout, TextRole, flow_pieces, wrap};
use crate::ports;
use crate::quantity::{ABSENT, known_to, nominal, or_absent, percent};
use crate::responsiveness;
use crate::sizes;
use crate::streams;
use crate::table::{Cell, Column, Table};
use crate::text_flow;
use crate::transactions;

/// Columns of the labels on the left, such as `download`.
pub(crate) const LABEL_WIDTH: usize = 12;

/// The whole run for a person: hosts, idle latency, a row per flow, evidence and settings, caveats, verdicts, its
/// name in the archive. The answer in one sentence is at the end, where it stays in sight.
#[must_use]
pub fn text(record: &RunRecord, view: &TextLayout) -> String {
    let mut lines = flow_pieces(&heading(record), view.columns());
    if let Some(idle) = &record.idle {
        lines.extend(flow_pieces(&idle_pieces(idle), view.columns()));
    }
    if sizes::is_series(record) {
        lines.extend(sizes::lines(record, view));
    } else if !record.flows.is_empty() {
        lines.push(String::new());
        if let Some(description) = transactions::description(record) {
            lines.extend(wrap(&description, view.columns()));
            lines.push(String::new());
        }
        lines.extend(results(record).lines(view));
        let streams = streams::lines(record, view);
        // The rate of requests is in the transactions.
        if !streams.is_empty() && !transactions::are_made(record) {
            lines.push(String::new());
            lines.extend(streams);
        }
        if let Some(ports) = ports::table(record) {
            lines.push(String::new());
            lines.extend(ports.lines(view));
        }
    }
    let responsiveness = responsiveness::lines(record).into_iter();
    let responsiveness =
        responsiveness.flat_map(|(name, text)| labelled(name, &text, TextRole::Plain, view)).collect();
    lines.extend(section("Responsiveness under load", responsiveness, view));
    if !sizes::is_series(record) {
        lines.extend(section("Evidence", text_flow::evidence_lines(&record.flows, view), view));
    }
    lines.extend(section("Caveats", caveat_lines(record, view), view));
    if !sizes::is_series(record) && !transactions::are_made(record) {
        let verdicts = record.flows.iter().flat_map(|flow| text_flow::verdict(flow, view)).collect();
        lines.extend(section("Verdict", verdicts, view));
    }
    let ending = ending(record, view);
    if !ending.is_empty() {
        lines.push(String::new());
        lines.extend(ending);
    }
    lines.join("\n") + "\n"
}

/// Lines below an empty line and a heading; nothing without lines.
fn section(heading: &str, lines: Vec<String>, view: &TextLayout) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    [String::new(), view.ink(TextRole::Faint, heading)].into_iter().chain(lines).collect()
}

/// The pieces of the first line: hosts, link and protocol.
pub(crate) fn heading(record: &RunRecord) -> Vec<String> {
    let start = record.start.as_ref();
    let mut pieces = vec![start.map_or("linerate".to_owned(), |s| format!("linerate {}", s.linerate))];
    if record.flows.iter().any(imported) {
        pieces[0].insert_str(0, "imported by ");
    }
    pieces.extend(record.labels.name.iter().map(ToString::to_string));
    pieces.push(match (record.hosts.first(), record.hosts.get(1)) {
        (Some(client), Some(server)) => format!("{} -> {}", host(client), host(server)),
        _ => start.map(|s| s.target.to_string()).unwrap_or_default(),
    });
    pieces.extend(record.hosts.first().and_then(|client| client.link.as_ref()).map(link));
    if let Some(start) = start {
        if start.world != World::Hosts {
            pieces.push(start.world.name().to_owned());
        }
        pieces.push(start.started_at.to_string());
    }
    pieces.extend(record.labels.notes.iter().map(|(key, note)| format!("{key}: {note}")));
    pieces
}

fn host(host: &HostInfo) -> String {
    let name = if host.name.is_empty() { "unnamed".to_owned() } else { host.name.to_string() };
    host.address.as_deref().map_or(name.clone(), |address| format!("{name} ({address})"))
}

pub(crate) fn link(link: &LinkInfo) -> String {
    let rate = link.speed.map(|speed| format!("{}, ", nominal(speed))).unwrap_or_default();
    let half = if link.full_duplex == Some(false) { "half duplex, " } else { "" };
    format!("{}, {rate}{half}MTU {}", link.name, link.mtu)
}

fn idle_pieces(idle: &LatencyReport) -> Vec<String> {
    let over = match idle.transport {
        ProbeTransport::Udp => "UDP",
        ProbeTransport::Tcp => "TCP",
    };
    let mut pieces = vec!["idle latency".to_owned()];
    if idle.rtt.count > 0 {
        let quantiles = [("p50", idle.rtt.p50_ns), ("p95", idle.rtt.p95_ns), ("p99", idle.rtt.p99_ns)];
        pieces.extend(quantiles.map(|(name, ns)| format!("{name} {}", Span::from_ns(ns))));
    } else {
        pieces.push("no answer".to_owned());
    }
    pieces.push(format!("({over}, {} probes, {} lost)", idle.sent, idle.lost));
    pieces
}

/// The results, one row per flow. Columns without any value are left out.
pub(crate) fn results(record: &RunRecord) -> Table {
    if transactions::are_made(record) {
        return transactions::table(record);
    }
    let flows = &record.flows;
    let column = |head, cell: &dyn Fn(&FlowRecord) -> Option<Cell>| {
        let cells: Vec<Option<Cell>> = flows.iter().map(cell).collect();
        let known = cells.iter().any(Option::is_some);
        let filled = cells.into_iter().map(|cell| cell.unwrap_or_else(|| Cell::plain(ABSENT))).collect();
        known.then(|| Column::numbers(head, filled))
    };
    let names = flows.iter().map(|flow| Cell::plain(format!("{:<9}", flow.plan.name.to_string()))).collect();
    let mut columns = vec![Column::words("", names)];
    columns.push(Column::numbers("bitrate", flows.iter().map(bitrate_cell).collect()));
    columns.extend(column("ceiling", &share_cell));
    let received = |flow: &FlowRecord| FlowFigure::of(flow).map(|f| Cell::plain(f.bytes.to_string()));
    columns.extend(column("received", &received).map(|column| column.of_importance(0)));
    let retransmits = |flow: &FlowRecord| Some(Cell::plain(flow.sender.as_ref()?.retransmits?.to_string()));
    columns.extend(column("retr", &retransmits).map(|column| column.of_importance(2)));
    columns.extend(column("lost", &lost_cell));
    columns.extend(column("jitter", &jitter_cell).map(|column| column.of_importance(3)));
    columns.extend(column("loaded p50 / p95", &latency_cell));
    columns.extend(column("cpu here/there", &busy_cell).map(|column| column.of_importance(1)));
    Table::new(columns)
}

fn bitrate_cell(flow: &FlowRecord) -> Cell {
    let Some(figure) = FlowFigure::of(flow) else { return Cell::plain(ABSENT) };
    match figure.bitrate {
        Some(rate) if figure.impossible => Cell::new(TextRole::Struck, format!("impossible: {rate}")),
        rate => Cell::new(TextRole::Result, or_absent(rate.map(|rate| known_to(flow, rate)))),
    }
}

fn share_cell(flow: &FlowRecord) -> Option<Cell> {
    let figure = FlowFigure::of(flow)?;
    let ink = if figure.impossible { TextRole::Struck } else { TextRole::Plain };
    figure.share.map(|share| Cell::new(ink, share.to_string()))
}

fn lost_cell(flow: &FlowRecord) -> Option<Cell> {
    let lost = flow.receiver.as_ref()?.udp.as_ref()?.lost;
    let (packets, ratio) = flow.datagrams()?;
    let ink = if lost > 0 { TextRole::Warning } else { TextRole::Plain };
    let share = ratio.map(|ratio| format!(" ({ratio})")).unwrap_or_default();
    Some(Cell::new(ink, format!("{lost}/{packets}{share}")))
}

fn jitter_cell(flow: &FlowRecord) -> Option<Cell> {
    flow.receiver.as_ref()?.udp.as_ref()?.jitter.map(|jitter| Cell::plain(jitter.to_string()))
}

fn latency_cell(flow: &FlowRecord) -> Option<Cell> {
    let rtt = flow.loaded.as_ref()?.rtt;
    let quantiles = (Span::from_ns(rtt.p50_ns), Span::from_ns(rtt.p95_ns));
    (rtt.count > 0).then(|| Cell::plain(format!("{} / {}", quantiles.0, quantiles.1)))
}

pub(crate) fn busy_cell(flow: &FlowRecord) -> Option<Cell> {
    let sender = flow.sender.as_ref().and_then(|tally| tally.host_busy);
    let receiver = flow.receiver.as_ref().and_then(|tally| tally.host_busy);
    sender.or(receiver)?;
    let show = |busy: Option<Ratio>| busy.map_or(ABSENT.to_owned(), percent);
    let (here, there) = match flow.plan.direction {
        Direction::Upload => (sender, receiver),
        Direction::Download => (receiver, sender),
    };
    Some(Cell::plain(format!("{} / {}", show(here), show(there))))
}

fn caveat_lines(record: &RunRecord, view: &TextLayout) -> Vec<String> {
    let of_flows = record.flows.iter().flat_map(|flow| {
        caveats_without_one_way(flow).into_iter().map(|caveat| (flow.plan.name.to_string(), caveat))
    });
    let of_run = record.caveats.iter().map(|caveat| ("run".to_owned(), caveat.clone()));
    let mut lines = Vec::new();
    for (name, caveat) in of_flows.chain(of_run) {
        lines.extend(labelled(&name, &caveat.text, TextRole::Warning, view));
    }
    lines
}

/// A label with its text, on as many lines as needed.
pub(crate) fn labelled(name: &str, text: &str, ink: TextRole, view: &TextLayout) -> Vec<String> {
    let wrapped = wrap(text, view.columns() - LABEL_WIDTH - 2);
    let lines = wrapped.iter().enumerate().map(|(number, line)| {
        let label = if number == 0 { name } else { "" };
        let label: String = label.chars().take(LABEL_WIDTH - 1).collect();
        format!("  {label:<LABEL_WIDTH$}{}", view.ink(ink, line)).trim_end().to_owned()
    });
    lines.collect()
}

fn ending(record: &RunRecord, view: &TextLayout) -> Vec<String> {
    let mut lines = Vec::new();
    let reason = record.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let word = match record.outcome {
        Some(Outcome::Completed) => None,
        Some(Outcome::Interrupted) => Some(format!("interrupted{reason}")),
        Some(Outcome::Failed) => Some(format!("failed{reason}")),
        None => {
            Some("not finished: the log has no end; the run is still in progress or was killed".to_owned())
        }
    };
    if let Some(word) = word {
        lines.extend(wrap(&word, view.columns()).iter().map(|line| view.ink(TextRole::Warning, line)));
    }
    if let Some(kept) = &view.kept {
        lines.push(view.ink(TextRole::Faint, &format!("archived as {kept} (linerate show {kept})")));
    }
    if let Some(answer) = answer(record) {
        lines.extend(wrap(&answer, view.columns()).iter().map(|line| view.ink(TextRole::Result, line)));
    }
    lines
}
