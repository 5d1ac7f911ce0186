//! A report for a ticket.

use linerate_model::{HostInfo, RunRecord};
use linerate_units::Span;

use crate::figure::{caveats_without_one_way, imported};
use crate::ports;
use crate::quantity::or_absent;
use crate::responsiveness;
use crate::sizes;
use crate::text::{heading, link, results};
use crate::text_flow::details;
use crate::transactions;

/// The run as Markdown: results as a table, then verdict, settings and caveats of each flow, then the hosts.
#[must_use]
pub fn report(record: &RunRecord) -> String {
    let mut pieces = heading(record).into_iter().filter(|piece| !piece.is_empty());
    let mut out = format!("# {}\n", escaped(&pieces.next().unwrap_or_default()));
    let rest: Vec<String> = pieces.map(|piece| escaped(&piece)).collect();
    if !rest.is_empty() {
        out += &format!("\n{}\n", rest.join(" · "));
    }
    let series = sizes::is_series(record);
    if !record.flows.is_empty() && !series {
        out += "\n";
        out += &table(&results(record).texts());
        if let Some(ports) = ports::table(record) {
            out += &format!("\n{}", table(&ports.texts()));
        }
    }
    for (name, text) in responsiveness::lines(record) {
        out += &format!("\nResponsiveness under load, {name}: {}\n", escaped(&text));
    }
    for flow in &record.flows {
        out += &format!("\n## {}\n\n", escaped(&flow.plan.name));
        out += &match &flow.verdict {
            Some(verdict) => format!("**{}**\n", escaped(&verdict.text)),
            None if series => table(&sizes::table(flow).texts()),
            None if transactions::are_made(record) => {
                format!("{}\n", escaped(&transactions::description(record).unwrap_or_default()))
            }
            None if imported(flow) => "Not judged: it was not measured here.\n".to_owned(),
            None => "Not judged: the flow ended before there was enough data.\n".to_owned(),
        };
        let facts = if series { sizes::facts(flow) } else { details(flow) };
        if !facts.is_empty() {
            out += "\n";
        }
        for (label, text) in facts {
            out += &format!("- {label}: {}\n", escaped(&text));
        }
        for caveat in caveats_without_one_way(flow) {
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
    let facts = [host.kernel.clone(), host.cpu.clone(), or_absent(host.link.as_ref().map(link)).into()];
    let facts: Vec<String> = facts.iter().filter(|fact| !fact.is_empty()).map(|fact| escaped(fact)).collect();
    format!("- host {}: {}", escaped(&host.name), facts.join("; "))
}

/// A table with its head. Escapes the cells.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
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

/// Escapes `text` so that Markdown shows it unchanged.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '|' | '~' | '&') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use expect_test::expect;
    use linerate_model::{Caveat, CaveatKind};

    #[test]
    fn a_report_for_a_ticket() {
        expect![[r#"
            # linerate 0.1.0

            laptop (10.0.0.1) -> server (10.0.0.2) · eth0, 1 Gb/s, MTU 1500 · 2026-11-21T10:00:00Z

            |  | bitrate | ceiling | received | retr | loaded p50 / p95 | cpu here/there |
            | --- | --- | --- | --- | --- | --- | --- |
            | download | 941.4 Mb/s | 100.0 % | 1.10 GiB | 17 | 900 us / 1.80 ms | 12 % / 8 % |
            | upload | 600.0 Mb/s | 63.7 % | 715.26 MiB | 17 | 900 us / 1.80 ms | 8 % / 12 % |

            ## download

            **The link is full: this is the maximum of 1000BASE-T at MTU 1500.**

            - cause: link, rule V02, confirmed, 98 % of the time
            - evidence: ceiling 941.5 Mb/s, interval variation 0.00421, min rtt 210 us, snd wnd 3 MiB
            - ceiling: 941.5 Mb/s: 1000BASE-T, MTU 1500, IPv4, TCP timestamps
            - steady: 941.5 Mb/s (938.6 to 944.3), 95 % interval, after a ramp-up of 120 ms
            - bytes: written 1.10 GiB, delivered 1.10 GiB, never sent 3 MiB, unaccounted 0 B
            - settings: 1 stream, window 4 MiB asked (granted 8 MiB send, 6 MiB receive), MSS 1448, congestion control cubic (asked bbr)

            ## upload

            **The send buffer holds less than the path.**

            - cause: sender\_window, rule V06, probable, 98 % of the time
            - remedy: Raise net.ipv4.tcp\_wmem or leave -w out.
            - also: Latency rises under load. (congestion, rule V22, confirmed, 98 % of the time)
            - evidence: ceiling 941.5 Mb/s, interval variation 0.00421, min rtt 210 us, snd wnd 3 MiB
            - ceiling: 941.5 Mb/s: 1000BASE-T, MTU 1500, IPv4, TCP timestamps
            - settings: 1 stream, window 4 MiB asked (granted 8 MiB send, 6 MiB receive), MSS 1448, congestion control cubic (asked bbr)
            - caveat: bbr was asked for and the kernel has only cubic; load the module tcp\_bbr

            ## Run

            - idle latency: p50 210 us, p95 420 us, p99 630 us (200 probes, 0 lost)
            - host laptop: Linux 6.1.0; Example CPU; eth0, 1 Gb/s, MTU 1500
            - host server: Linux 6.1.0; Example CPU; eth0, 1 Gb/s, MTU 1500
            - run: 7f3a9c21
        "#]].assert_eq(&report(&RunRecord::fold(&runs::tcp_run())));
    }

    #[test]
    fn the_ports_of_an_emulated_network_are_a_table() {
        let report = report(&RunRecord::fold(&runs::lab_run()));
        let lines: Vec<&str> =
            report.lines().filter(|line| line.contains("s>") || line.contains("port")).collect();
        expect![[r#"
            | port | during | rate | busy | packets | dropped | largest queue |
            | s>b | upload | 1.000 Gb/s | 100.0 % | 162702 | 160 | 488.28 KiB |
            | s>a | upload | 20.00 Mb/s | 2.0 % | 3243 | 0 | 9.77 KiB |"#]]
        .assert_eq(&lines.join("\n"));
    }

    #[test]
    fn a_flow_of_another_program_was_not_measured_here() {
        let mut record = RunRecord::fold(&runs::killed_run());
        let ended = "Not judged: the flow ended before there was enough data.";
        let elsewhere = "Not judged: it was not measured here.";
        let texts = |record: &RunRecord| {
            let report = report(record);
            (report.contains(ended), report.contains(elsewhere))
        };
        assert_eq!(texts(&record), (true, false));
        for flow in &mut record.flows {
            flow.caveats.push(Caveat { kind: CaveatKind::Imported, text: "by iperf3".into() });
        }
        assert_eq!(texts(&record), (false, true));
    }

    #[test]
    fn what_others_wrote_cannot_become_markup() {
        assert_eq!(
            escaped(&linerate_model::ForeignText::new("<b>*x*</b>|a_b\n# c")),
            "\\<b>\\*x\\*\\</b>\\|a\\_b # c"
        );
    }
}
