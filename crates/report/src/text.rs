//! What a person sees at the end of a test, and of an archived run.

use linerate_model::{
    Direction, FlowRecord, HostInfo, LatencyReport, LinkInfo, Outcome, ProbeTransport, RunRecord, World,
};
use linerate_units::{Ratio, Span};

use crate::figure::{Figure, caveats, datagrams};
use crate::layout::{Ink, View, flow_pieces, harmless, wrap};
use crate::quantity::{ABSENT, nominal, or_absent, percent};
use crate::table::{Cell, Column, Table};
use crate::text_flow;

/// Columns of the labels at the left: `download` and what stands below it.
pub(crate) const LABEL: usize = 12;

/// The whole run for a person: hosts, idle latency, a row for each flow, verdicts, caveats, and where it is kept.
#[must_use]
pub fn text(record: &RunRecord, view: &View) -> String {
    let mut lines = flow_pieces(&heading(record), view.columns());
    if let Some(idle) = &record.idle {
        lines.extend(flow_pieces(&idle_pieces(idle), view.columns()));
    }
    if !record.flows.is_empty() {
        lines.push(String::new());
        lines.extend(results(record).lines(view));
        lines.push(String::new());
        lines.push(view.ink(Ink::Faint, "Verdict"));
        for flow in &record.flows {
            lines.extend(text_flow::verdict(flow, view));
        }
    }
    lines.extend(caveat_lines(record, view));
    let ending = ending(record, view);
    if !ending.is_empty() {
        lines.push(String::new());
        lines.extend(ending);
    }
    lines.join("\n") + "\n"
}

/// The pieces of the first line: who measured with whom, over what.
pub(crate) fn heading(record: &RunRecord) -> Vec<String> {
    let start = record.start.as_ref();
    let mut pieces =
        vec![start.map_or("linerate".to_owned(), |s| format!("linerate {}", harmless(&s.linerate)))];
    pieces.push(match (record.hosts.first(), record.hosts.get(1)) {
        (Some(client), Some(server)) => format!("{} -> {}", host(client), host(server)),
        _ => start.map(|s| harmless(&s.target)).unwrap_or_default(),
    });
    pieces.extend(record.hosts.first().and_then(|client| client.link.as_ref()).map(link));
    if let Some(start) = start {
        if start.world != World::Hosts {
            pieces.push(start.world.name().to_owned());
        }
        pieces.push(harmless(&start.started_at));
    }
    pieces
}

fn host(host: &HostInfo) -> String {
    let name = if host.name.is_empty() { "unnamed".to_owned() } else { harmless(&host.name) };
    host.address.as_deref().map_or(name.clone(), |address| format!("{name} ({})", harmless(address)))
}

pub(crate) fn link(link: &LinkInfo) -> String {
    let rate = link.speed.map(|speed| format!("{}, ", nominal(speed))).unwrap_or_default();
    let half = if link.full_duplex == Some(false) { "half duplex, " } else { "" };
    format!("{}, {rate}{half}MTU {}", harmless(&link.name), link.mtu)
}

fn idle_pieces(idle: &LatencyReport) -> Vec<String> {
    let over = match idle.over {
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

/// The results, one row for each flow; a column that no flow has a value for is left out.
pub(crate) fn results(record: &RunRecord) -> Table {
    let flows = &record.flows;
    let column = |head, cell: &dyn Fn(&FlowRecord) -> Option<Cell>| {
        let cells: Vec<Option<Cell>> = flows.iter().map(cell).collect();
        let known = cells.iter().any(Option::is_some);
        let filled = cells.into_iter().map(|cell| cell.unwrap_or_else(|| Cell::plain(ABSENT))).collect();
        known.then(|| Column::numbers(head, filled))
    };
    let names = flows.iter().map(|flow| Cell::plain(format!("{:<9}", harmless(&flow.plan.name)))).collect();
    let mut columns = vec![Column::words("", names)];
    columns.push(Column::numbers("bitrate", flows.iter().map(bitrate_cell).collect()));
    columns.extend(column("of ceiling", &share_cell));
    columns.extend(column("received", &|flow| Figure::of(flow).map(|f| Cell::plain(f.bytes.to_string()))));
    columns.extend(column("retr", &|flow| {
        flow.sender.as_ref()?.retransmits.map(|n| Cell::plain(n.to_string()))
    }));
    columns.extend(column("lost", &lost_cell));
    columns.extend(column("jitter", &|flow| {
        flow.receiver.as_ref()?.udp.as_ref()?.jitter.map(|jitter| Cell::plain(jitter.to_string()))
    }));
    columns.extend(column("loaded latency p50 / p95", &latency_cell));
    columns.extend(column("cpu here / there", &busy_cell));
    Table::new(columns)
}

fn bitrate_cell(flow: &FlowRecord) -> Cell {
    let Some(figure) = Figure::of(flow) else { return Cell::plain(ABSENT) };
    match figure.bitrate {
        Some(rate) if figure.impossible => Cell::new(Ink::Struck, format!("impossible: {rate}")),
        rate => Cell::new(Ink::Result, or_absent(rate)),
    }
}

fn share_cell(flow: &FlowRecord) -> Option<Cell> {
    let figure = Figure::of(flow)?;
    let ink = if figure.impossible { Ink::Struck } else { Ink::Plain };
    figure.share.map(|share| Cell::new(ink, share.to_string()))
}

fn lost_cell(flow: &FlowRecord) -> Option<Cell> {
    let lost = flow.receiver.as_ref()?.udp.as_ref()?.lost;
    let (packets, ratio) = datagrams(flow)?;
    let ink = if lost > 0 { Ink::Warning } else { Ink::Plain };
    let share = ratio.map(|ratio| format!(" ({ratio})")).unwrap_or_default();
    Some(Cell::new(ink, format!("{lost}/{packets}{share}")))
}

fn latency_cell(flow: &FlowRecord) -> Option<Cell> {
    let rtt = flow.loaded.as_ref()?.rtt;
    let quantiles = (Span::from_ns(rtt.p50_ns), Span::from_ns(rtt.p95_ns));
    (rtt.count > 0).then(|| Cell::plain(format!("{} / {}", quantiles.0, quantiles.1)))
}

fn busy_cell(flow: &FlowRecord) -> Option<Cell> {
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

fn caveat_lines(record: &RunRecord, view: &View) -> Vec<String> {
    let of_flows = record
        .flows
        .iter()
        .flat_map(|flow| caveats(flow).into_iter().map(|caveat| (harmless(&flow.plan.name), caveat)));
    let of_run = record.caveats.iter().map(|caveat| ("run".to_owned(), caveat.clone()));
    let mut lines = Vec::new();
    for (name, caveat) in of_flows.chain(of_run) {
        if lines.is_empty() {
            lines.extend([String::new(), view.ink(Ink::Faint, "Caveats")]);
        }
        lines.extend(labelled(&name, &caveat.text, Ink::Warning, view));
    }
    lines
}

/// A name at the left and its text beside it, on as many lines as it takes.
pub(crate) fn labelled(name: &str, text: &str, ink: Ink, view: &View) -> Vec<String> {
    let wrapped = wrap(&harmless(text), view.columns() - LABEL - 2);
    let lines = wrapped.iter().enumerate().map(|(number, line)| {
        let label = if number == 0 { name } else { "" };
        let label: String = label.chars().take(LABEL - 1).collect();
        format!("  {label:<LABEL$}{}", view.ink(ink, line)).trim_end().to_owned()
    });
    lines.collect()
}

fn ending(record: &RunRecord, view: &View) -> Vec<String> {
    let mut lines = Vec::new();
    let reason = record.reason.as_deref().map(|reason| format!(": {}", harmless(reason))).unwrap_or_default();
    let word = match record.outcome {
        Some(Outcome::Completed) => None,
        Some(Outcome::Interrupted) => Some(format!("interrupted{reason}")),
        Some(Outcome::Failed) => Some(format!("failed{reason}")),
        None => Some("not finished: the log has no end, so the run goes on or was killed".to_owned()),
    };
    if let Some(word) = word {
        lines.extend(wrap(&word, view.columns()).iter().map(|line| view.ink(Ink::Warning, line)));
    }
    if let Some(kept) = &view.kept {
        lines.push(view.ink(Ink::Faint, &format!("kept as {kept} (linerate show {kept})")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use expect_test::{Expect, expect};
    use linerate_model::Event;

    fn check(log: &[Event], width: usize, expected: &Expect) {
        let view = View { width, colour: false, kept: Some("7f3a".into()) };
        let text = text(&RunRecord::fold(log), &view);
        assert!(text.is_ascii(), "{text}");
        assert!(text.lines().all(|line| line.len() <= width && line.trim_end() == line), "{text}");
        expected.assert_eq(&text);
    }

    #[test]
    fn both_directions_over_a_full_link() {
        check(
            &runs::tcp_run(),
            110,
            &expect![[r#"
            linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500   2026-11-21T10:00:00Z
            idle latency   p50 210 us   p95 420 us   p99 630 us   (UDP, 200 probes, 0 lost)

                           bitrate   of ceiling     received   retr   loaded latency p50 / p95   cpu here / there
            download    941.4 Mb/s      100.0 %     1.10 GiB     17           900 us / 1.80 ms         12 % / 8 %
            upload      600.0 Mb/s       63.7 %   715.26 MiB     17           900 us / 1.80 ms         8 % / 12 %

            Verdict
              download    The link is full: this is the maximum of 1000BASE-T at MTU 1500.
                          cause     link, rule V02, confirmed, 98 % of the time
                          evidence  ceiling 941.5 Mb/s, interval variation 0.00421, min rtt 210 us, snd wnd 3 MiB
                          ceiling   941.5 Mb/s: 1000BASE-T, MTU 1500, IPv4, TCP timestamps
                          steady    941.5 Mb/s +/- 0.3 % (95 % interval) after a ramp-up of 120 ms
                          settings  1 stream, window 4 MiB asked (granted 8 MiB send, 6 MiB receive), MSS 1448, congestion
                                    control cubic (asked bbr)
                          books     written 1.10 GiB, delivered 1.10 GiB, never sent 3 MiB, unaccounted 0 B
              upload      The send buffer holds less than the path.
                          cause     sender_window, rule V06, probable, 98 % of the time
                          evidence  ceiling 941.5 Mb/s, interval variation 0.00421, min rtt 210 us, snd wnd 3 MiB
                          remedy    Raise net.ipv4.tcp_wmem or leave -w out.
                          ceiling   941.5 Mb/s: 1000BASE-T, MTU 1500, IPv4, TCP timestamps
                          also      Latency rises under load. (congestion, rule V22, confirmed, 98 % of the time)
                          settings  1 stream, window 4 MiB asked (granted 8 MiB send, 6 MiB receive), MSS 1448, congestion
                                    control cubic (asked bbr)

            Caveats
              upload      bbr was asked for and the kernel has only cubic; load the module tcp_bbr

            kept as 7f3a (linerate show 7f3a)
        "#]],
        );
    }

    #[test]
    fn a_narrow_page_stacks_the_columns() {
        check(
            &runs::tcp_run()[..12],
            48,
            &expect![[r#"
            linerate 0.1.0
            laptop (10.0.0.1) -> server (10.0.0.2)
            eth0, 1 Gb/s, MTU 1500   2026-11-21T10:00:00Z
            idle latency   p50 210 us   p95 420 us
            p99 630 us   (UDP, 200 probes, 0 lost)

            download
              bitrate                   -
              retr                      17
              loaded latency p50 / p95  900 us / 1.80 ms
              cpu here / there          - / 8 %

            Verdict
              download    not judged: the flow ended before
                          there was enough to judge by.
                          settings  1 stream, window 4 MiB
                                    asked (granted 8 MiB
                                    send, 6 MiB receive),
                                    MSS 1448, congestion
                                    control cubic (asked
                                    bbr)

            Caveats
              download    no count of the receiver was seen
                          before the flow ended

            not finished: the log has no end, so the run
            goes on or was killed
            kept as 7f3a (linerate show 7f3a)
        "#]],
        );
    }

    #[test]
    fn datagrams_show_loss_and_jitter() {
        check(
            &runs::udp_run(),
            90,
            &expect![[r#"
            linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500
            2026-11-21T10:00:00Z

                           bitrate   received               lost    jitter   cpu here / there
            upload      1.000 Mb/s   1.19 MiB   25/10000 (0.2 %)   54.7 us        12 % / 12 %

            Verdict
              upload      not judged: the flow ended before there was enough to judge by.

            kept as 7f3a (linerate show 7f3a)
        "#]],
        );
    }

    #[test]
    fn a_killed_run_shows_what_was_counted() {
        check(
            &runs::killed_run(),
            90,
            &expect![[r#"
            linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500
            2026-11-21T10:00:00Z

                           bitrate     received
            download    800.0 Mb/s   238.42 MiB
            upload               -            -

            Verdict
              download    not judged: the flow ended before there was enough to judge by.
              upload      not judged: the flow ended before there was enough to judge by.

            Caveats
              download    the receiver's final count is missing; the figures are its last ones, 2.5 s
                          after its first read
              upload      no count of the receiver was seen before the flow ended

            not finished: the log has no end, so the run goes on or was killed
            kept as 7f3a (linerate show 7f3a)
        "#]],
        );
    }

    #[test]
    fn an_impossible_figure_is_never_printed_plainly() {
        check(
            &runs::impossible_run(),
            90,
            &expect![[r#"
            linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500
            2026-11-21T10:00:00Z

                                       bitrate   of ceiling   received   cpu here / there
            download    impossible: 1.200 Gb/s      127.5 %   1.40 GiB           12 % / -

            Verdict
              download    not judged: the flow ended before there was enough to judge by.
                          figure    impossible: it exceeds what the path can carry, or the sender's
                                    own count.
                          ceiling   941.5 Mb/s: 1000BASE-T, MTU 1500, IPv4, TCP timestamps
                          limit     receiver_window 8.000 Gb/s: 6 MiB / 6 ms

            kept as 7f3a (linerate show 7f3a)
        "#]],
        );
    }

    #[test]
    fn an_empty_log_is_a_text_all_the_same() {
        check(
            &[],
            40,
            &expect![[r#"
            linerate

            not finished: the log has no end, so the
            run goes on or was killed
            kept as 7f3a (linerate show 7f3a)
        "#]],
        );
    }

    #[test]
    fn colour_only_adds_escape_sequences() {
        let record = RunRecord::fold(&runs::impossible_run());
        let plain = text(&record, &View { width: 90, colour: false, kept: None });
        let coloured = text(&record, &View { width: 90, colour: true, kept: None });
        assert!(coloured.contains("\u{1b}["));
        let mut stripped = String::new();
        for (number, part) in coloured.split("\u{1b}[").enumerate() {
            let visible = if number == 0 { Some(part) } else { part.split_once('m').map(|(_, rest)| rest) };
            stripped.push_str(visible.unwrap());
        }
        assert_eq!(stripped, plain);
    }

    #[test]
    fn names_from_elsewhere_cannot_steer_the_terminal() {
        let mut log = runs::impossible_run();
        for event in &mut log {
            if let linerate_model::Body::Host { info } = &mut event.body {
                info.name = "\u{1b}]0;owned\u{7}\u{202e}\n".into();
            }
        }
        let text = text(&RunRecord::fold(&log), &View::default());
        assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{text:?}");
        assert!(text.starts_with("linerate 0.1.0   ?]0;owned?? "), "{text}");
    }
}
