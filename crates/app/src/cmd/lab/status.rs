//! `linerate lab status`: hosts and ports of a running lab.

use std::time::Duration;

use linerate_lab::control_protocol::{PortStatus, Status};
use linerate_sock::clock;
use linerate_units::{Bitrate, Span};

use super::super::page::{self, Ink, Page};
use super::StatusArgs;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{print, terminal};

/// Timeout for an answer of the switch.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(args: &StatusArgs) -> Exit {
    let lab = match args.place.lab(args.name.as_deref()) {
        Ok(lab) => lab,
        Err(trouble) => return trouble.report(),
    };
    let Some(every) = args.watch else {
        return match lab.status(ANSWER_TIMEOUT) {
            Ok(status) => print(&status, args.json),
            Err(error) => {
                print::error(error);
                Exit::Failed
            }
        };
    };
    let Ok(signals) = Signals::catch() else {
        print::error("cannot catch signals");
        return Exit::Failed;
    };
    let mut next = clock::now();
    loop {
        match lab.status(ANSWER_TIMEOUT) {
            Ok(status) => {
                if !args.json {
                    page::clear();
                }
                if print(&status, args.json) != Exit::Done {
                    return Exit::Failed;
                }
            }
            Err(error) => {
                print::error(error);
                return Exit::Failed;
            }
        }
        next += every.as_duration();
        while !next.has_passed() {
            if signals.which().is_some() {
                return Exit::Done;
            }
            clock::sleep_until(next.min(clock::now() + Duration::from_millis(50)));
        }
    }
}

fn print(status: &Status, json: bool) -> Exit {
    if json {
        return page::print_json(status);
    }
    let view = terminal::stdout_view();
    page::print(text(status, view.width, view.colour).as_bytes())
}

/// The status as text.
pub(super) fn text(status: &Status, columns: usize, colour: bool) -> String {
    let mut page = Page::new(columns, colour);
    let up = status.up_ns.map(|ns| format!(", up {}", Span::from_secs(ns / 1_000_000_000)));
    page.heading(&format!(
        "{}: {} host{}{}, seed {}{}",
        status.name,
        status.hosts.len(),
        if status.hosts.len() == 1 { "" } else { "s" },
        up.unwrap_or_default(),
        status.seed,
        if status.name == status.topology {
            String::new()
        } else {
            format!(", topology {}", status.topology)
        },
    ));
    hosts(&mut page, status);
    if status.pid.is_some() {
        ports(&mut page, &status.ports);
        keeping_up(&mut page, status);
    } else {
        page.heading("Ports");
        page.remark(
            0,
            Ink::Plain,
            "this lab runs in the kernel; show its counters with: ip netns exec NAMESPACE tc -s qdisc",
        );
    }
    for note in &status.notes {
        page.remark(0, Ink::Warning, note);
    }
    page.into_text()
}

fn hosts(page: &mut Page, status: &Status) {
    let rows: Vec<[&str; 4]> =
        status.hosts.iter().map(|h| [&*h.name, &*h.address, &*h.address6, &*h.netns]).collect();
    let head = ["host", "address", "", "network namespace"];
    let widths = widths(std::iter::once(&head).chain(&rows));
    page.row(&head.map(|cell| (Ink::Faint, cell)), &widths);
    for row in &rows {
        page.row(&row.map(|cell| (Ink::Plain, cell)), &widths);
    }
}

fn ports(page: &mut Page, ports: &[PortStatus]) {
    const HEAD: [&str; 9] =
        ["port", "link", "rate", "now", "busy", "packets", "dropped", "queue", "largest in 1 s"];
    let cells: Vec<[String; 9]> = ports.iter().map(cells).collect();
    let mut rows: Vec<[&str; 9]> = vec![HEAD];
    rows.extend(cells.iter().map(|row| std::array::from_fn(|column| row[column].as_str())));
    let widths = widths(rows.iter());
    page.heading("Ports");
    for (number, row) in rows.iter().enumerate() {
        // Numbers are right-aligned.
        let padded: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(column, (cell, &width))| {
                    if column < 2 { (*cell).to_owned() } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        let ink = |column: usize| match (number, column) {
            (0, _) => Ink::Faint,
            (_, 6) if row[6] != "0" => Ink::Warning,
            _ => Ink::Plain,
        };
        let mut row: Vec<(Ink, &str)> =
            padded.iter().enumerate().map(|(column, cell)| (ink(column), cell.as_str())).collect();
        // The last cell of a row is wrapped, which would lose the alignment.
        row.push((Ink::Plain, ""));
        page.row(&row, &widths);
    }
    for port in ports.iter().filter(|port| port.dropped > 0 || port.counts.marked > 0) {
        page.remark(2, Ink::Faint, &causes(port));
    }
}

fn cells(port: &PortStatus) -> [String; 9] {
    let rate = |bps: f64| Bitrate::from_bps(bps).map_or_else(String::new, |rate| rate.to_string());
    [
        port.counts.name.clone(),
        port.link.clone(),
        port.rate_bps.map_or_else(|| "endless".to_owned(), rate),
        rate(port.wire_bps),
        port.rate_bps.map_or_else(String::new, |_| format!("{:.0} %", port.busy * 100.0)),
        port.counts.packets.to_string(),
        port.dropped.to_string(),
        port.counts.queue_bytes.to_string(),
        port.counts.queue_max_bytes.to_string(),
    ]
}

/// What happened to a port's dropped and marked packets.
fn causes(port: &PortStatus) -> String {
    let counts = &port.counts;
    let parts = [
        (counts.dropped_queue, "dropped by the queue"),
        (counts.dropped_policer, "dropped by the policer"),
        (counts.dropped_wire, "lost on the wire"),
        (counts.dropped_too_big, "above the MTU"),
        (counts.marked, "marked (ECN)"),
    ];
    let told: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    format!("{}: {}", counts.name, told.join(", "))
}

fn keeping_up(page: &mut Page, status: &Status) {
    let (packets, keeping) = (&status.packet_accounting, &status.keeping_up);
    page.heading("Switch");
    page.remark(
        0,
        Ink::Plain,
        &format!(
            "{} packets in, {} duplicated, {} out, {} dropped, {} filtered, {} in transit{}",
            packets.entered,
            packets.made,
            packets.delivered,
            packets.dropped,
            packets.filtered,
            packets.held,
            if packets.balanced() {
                ""
            } else {
                ": the packet counts do not balance, which is a bug in linerate"
            },
        ),
    );
    let late = |ns: u64| Span::from_ns(ns).to_string();
    page.remark(
        0,
        Ink::Plain,
        &format!(
            "{:.0} % of a core; frames delivered late by {} (median), {} (99th percentile), {} (maximum)",
            keeping.cpu * 100.0,
            late(keeping.late_p50_ns),
            late(keeping.late_p99_ns),
            late(keeping.late_max_ns),
        ),
    );
    if keeping.late * 1000 > keeping.frames {
        let text = format!(
            "{} of {} frames were more than {} late: figures from this lab are doubtful; give the switch a \
             core of its own, or reduce the load",
            keeping.late,
            keeping.frames,
            late(keeping.bound_ns)
        );
        page.remark(0, Ink::Warning, &text);
    }
    for (count, what) in [
        (keeping.overrun, "packets were dropped by the kernel before the switch could read them"),
        (keeping.malformed, "frames could not be parsed and were not forwarded"),
        (keeping.refused, "packets reached a host whose interface is down"),
    ] {
        if count > 0 {
            page.remark(0, Ink::Warning, &format!("{count} {what}"));
        }
    }
}

fn widths<'a, const N: usize>(rows: impl Iterator<Item = &'a [&'a str; N]>) -> Vec<usize> {
    let mut widths = vec![0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_emu::fabric::{PacketAccounting, PortCounts};
    use linerate_lab::control_protocol::{HostStatus, KeepingUp};
    use linerate_units::Bytes;

    fn status() -> Status {
        let counts = PortCounts {
            name: "s>b".into(),
            packets: 1000,
            dropped_queue: 3,
            marked: 2,
            queue_bytes: Bytes::new(1518),
            queue_max_bytes: Bytes::new(512 << 10),
            ..PortCounts::default()
        };
        Status {
            name: "pair".into(),
            topology: "pair".into(),
            seed: 1,
            pid: Some(7),
            rootless: false,
            up_ns: Some(61_000_000_000),
            hosts: vec![HostStatus {
                name: "a".into(),
                address: "10.77.0.1/24".into(),
                address6: "fd77::1/64".into(),
                netns: "linerate-pair-a".into(),
            }],
            ports: vec![PortStatus {
                link: "b".into(),
                rate_bps: Some(1e9),
                wire_bps: 5e8,
                pps: 40_000.0,
                busy: 0.5,
                dropped: 3,
                counts,
            }],
            packet_accounting: PacketAccounting {
                entered: 1003,
                delivered: 1000,
                dropped: 3,
                ..PacketAccounting::default()
            },
            keeping_up: KeepingUp { frames: 100, bound_ns: 1_000_000, ..KeepingUp::default() },
            notes: vec!["a note".into()],
        }
    }

    #[test]
    fn a_person_sees_hosts_ports_drops_and_whether_the_switch_keeps_up() {
        let text = text(&status(), 120, false);
        for part in [
            "pair: 1 host, up 61 s, seed 1",
            "linerate-pair-a",
            "s>b",
            "500.0 Mb/s",
            "50 %",
            "512 KiB",
            "s>b: 3 dropped by the queue, 2 marked (ECN)",
            "1003 packets in",
            "a note",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let ends =
            |cell: &str| text.lines().find(|line| line.ends_with(cell)).map(|line| line.chars().count());
        assert_eq!(ends("largest in 1 s"), ends("512 KiB"), "numbers stand right:\n{text}");
        assert!(!text.contains("doubtful") && !text.contains("do not balance"), "{text}");
    }

    #[test]
    fn a_switch_that_is_late_and_packets_that_do_not_balance_are_told() {
        let mut status = status();
        status.keeping_up.late = 5;
        status.packet_accounting.delivered = 999;
        let text = text(&status, 120, false);
        assert!(text.contains("5 of 100 frames") && text.contains("do not balance"), "{text}");
    }
}
