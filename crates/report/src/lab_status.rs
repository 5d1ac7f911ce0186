//! The document of `linerate lab status`: hosts and ports of an emulated network.
//!
//! This crate knows no lab, so the caller says what its switch reported:
//!
//! ```
//! use linerate_report::lab_status::{LabHost, LabStatus, text};
//! use linerate_report::page::Page;
//!
//! let host = LabHost {
//!     name: "a",
//!     address: "10.77.0.1/24",
//!     address6: "fd77::1/64",
//!     netns: "linerate-pair-a",
//! };
//! let status = LabStatus {
//!     name: "pair",
//!     topology: "pair",
//!     seed: 1,
//!     up: None,
//!     hosts: vec![host],
//!     switch: None,
//!     notes: &[],
//! };
//! assert!(text(Page::new(80, false), &status).starts_with("pair: 1 host, seed 1"));
//! ```

use linerate_units::{Bitrate, Bytes, Span};

use crate::page::{Page, TextStyle};

/// The status of a lab.
#[derive(Debug, Clone, PartialEq)]
pub struct LabStatus<'s> {
    /// Name of the lab.
    pub name: &'s str,
    /// Name of its topology.
    pub topology: &'s str,
    /// Seed of all its randomness.
    pub seed: u64,
    /// Time since it started, if known.
    pub up: Option<Span>,
    /// The hosts.
    pub hosts: Vec<LabHost<'s>>,
    /// What its switch counted; absent for a lab that runs in the kernel.
    pub switch: Option<SwitchCounts<'s>>,
    /// What differs from the description: settings that could not be applied, interfaces that are gone.
    pub notes: &'s [String],
}

/// A host of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabHost<'s> {
    /// Its name.
    pub name: &'s str,
    /// Its IPv4 address with the prefix length.
    pub address: &'s str,
    /// Its IPv6 address with the prefix length.
    pub address6: &'s str,
    /// Its network namespace.
    pub netns: &'s str,
}

/// What the switch of a lab counted.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchCounts<'s> {
    /// The ports.
    pub ports: Vec<LabPort<'s>>,
    /// What happened to every packet.
    pub packets: LabPackets,
    /// Whether it delivers frames on time.
    pub timing: SwitchTiming,
}

/// A port of a lab.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabPort<'s> {
    /// `from>to`.
    pub name: &'s str,
    /// Name of its link.
    pub link: &'s str,
    /// Line rate, bit/s; absent: unlimited.
    pub rate_bps: Option<f64>,
    /// Bits on the wire per second over the last second.
    pub wire_bps: f64,
    /// Share of the last second in which its lines were sending.
    pub busy: f64,
    /// Packets that left the line.
    pub packets: u64,
    /// Packets dropped since the start.
    pub drops: PortDrops,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// Bytes waiting now.
    pub queue: Bytes,
    /// Most bytes waiting in the last second.
    pub queue_max: Bytes,
}

/// Packets that a port dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortDrops {
    /// For any reason.
    pub total: u64,
    /// The buffer was full, or the queueing discipline dropped them.
    pub queue: u64,
    /// They exceeded the policer.
    pub policer: u64,
    /// They were lost on the wire.
    pub wire: u64,
    /// They were above the MTU.
    pub too_big: u64,
}

/// What happened to every packet of a lab.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabPackets {
    /// Sent by hosts.
    pub entered: u64,
    /// Created by the network.
    pub made: u64,
    /// Delivered to hosts.
    pub delivered: u64,
    /// Dropped, for any reason.
    pub dropped: u64,
    /// Not forwarded.
    pub filtered: u64,
    /// Still in flight.
    pub held: u64,
    /// Whether no packet is unaccounted for.
    pub balanced: bool,
}

/// How well a switch keeps up with real time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SwitchTiming {
    /// Share of one core that it used over the last second.
    pub cpu: f64,
    /// Frames delivered to hosts.
    pub frames: u64,
    /// Half of them were at most this late.
    pub late_p50: Span,
    /// 99 % of them were at most this late.
    pub late_p99: Span,
    /// The maximum.
    pub late_max: Span,
    /// How many were later than `bound`.
    pub late: u64,
    /// The limit above which a frame counts as late.
    pub bound: Span,
    /// Packets that the kernel dropped before the switch could read them.
    pub overrun: u64,
    /// Frames that could not be parsed and were not forwarded.
    pub malformed: u64,
    /// Frames that a host could not accept: its interface was down.
    pub refused: u64,
}

/// The status as text.
#[must_use]
pub fn text(mut page: Page, status: &LabStatus<'_>) -> String {
    let up = status.up.map(|up| format!(", up {}", Span::from_secs(up.as_ns() / 1_000_000_000)));
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
    hosts(&mut page, &status.hosts);
    if let Some(switch) = &status.switch {
        ports(&mut page, &switch.ports);
        accounting(&mut page, &switch.packets);
        timing(&mut page, &switch.timing);
    } else {
        page.heading("Ports");
        page.remark(
            0,
            TextStyle::Plain,
            "this lab runs in the kernel; show its counters with: ip netns exec NAMESPACE tc -s qdisc",
        );
    }
    for note in status.notes {
        page.remark(0, TextStyle::Warning, note);
    }
    page.into_text()
}

fn hosts(page: &mut Page, hosts: &[LabHost<'_>]) {
    let rows: Vec<[&str; 4]> = hosts.iter().map(|h| [h.name, h.address, h.address6, h.netns]).collect();
    let head = ["host", "address", "", "network namespace"];
    let widths = widths(std::iter::once(&head).chain(&rows));
    page.row(&head.map(|cell| (TextStyle::Faint, cell)), &widths);
    for row in &rows {
        page.row(&row.map(|cell| (TextStyle::Plain, cell)), &widths);
    }
}

fn ports(page: &mut Page, ports: &[LabPort<'_>]) {
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
            (0, _) => TextStyle::Faint,
            (_, 6) if row[6] != "0" => TextStyle::Warning,
            _ => TextStyle::Plain,
        };
        let mut row: Vec<(TextStyle, &str)> =
            padded.iter().enumerate().map(|(column, cell)| (ink(column), cell.as_str())).collect();
        // The last cell of a row is wrapped, which would lose the alignment.
        row.push((TextStyle::Plain, ""));
        page.row(&row, &widths);
    }
    for port in ports.iter().filter(|port| port.drops.total > 0 || port.marked > 0) {
        page.remark(2, TextStyle::Faint, &causes(port));
    }
}

fn cells(port: &LabPort<'_>) -> [String; 9] {
    let rate = |bps: f64| Bitrate::from_bps(bps).map_or_else(String::new, |rate| rate.to_string());
    [
        port.name.to_owned(),
        port.link.to_owned(),
        port.rate_bps.map_or_else(|| "endless".to_owned(), rate),
        rate(port.wire_bps),
        port.rate_bps.map_or_else(String::new, |_| format!("{:.0} %", port.busy * 100.0)),
        port.packets.to_string(),
        port.drops.total.to_string(),
        port.queue.to_string(),
        port.queue_max.to_string(),
    ]
}

/// What happened to a port's dropped and marked packets.
fn causes(port: &LabPort<'_>) -> String {
    let parts = [
        (port.drops.queue, "dropped by the queue"),
        (port.drops.policer, "dropped by the policer"),
        (port.drops.wire, "lost on the wire"),
        (port.drops.too_big, "above the MTU"),
        (port.marked, "marked (ECN)"),
    ];
    let drops: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    format!("{}: {}", port.name, drops.join(", "))
}

fn accounting(page: &mut Page, packets: &LabPackets) {
    page.heading("Switch");
    page.remark(
        0,
        TextStyle::Plain,
        &format!(
            "{} packets in, {} duplicated, {} out, {} dropped, {} filtered, {} in transit{}",
            packets.entered,
            packets.made,
            packets.delivered,
            packets.dropped,
            packets.filtered,
            packets.held,
            if packets.balanced {
                ""
            } else {
                ": the packet counts do not balance, which is a bug in linerate"
            },
        ),
    );
}

fn timing(page: &mut Page, switch: &SwitchTiming) {
    page.remark(
        0,
        TextStyle::Plain,
        &format!(
            "{:.0} % of a core; frames delivered late by {} (median), {} (99th percentile), {} (maximum)",
            switch.cpu * 100.0,
            switch.late_p50,
            switch.late_p99,
            switch.late_max,
        ),
    );
    if switch.late.saturating_mul(1000) > switch.frames {
        let text = format!(
            "{} of {} frames were more than {} late: figures from this lab are doubtful; give the switch a \
             core of its own, or reduce the load",
            switch.late, switch.frames, switch.bound
        );
        page.remark(0, TextStyle::Warning, &text);
    }
    for (count, what) in [
        (switch.overrun, "packets were dropped by the kernel before the switch could read them"),
        (switch.malformed, "frames could not be parsed and were not forwarded"),
        (switch.refused, "packets reached a host whose interface is down"),
    ] {
        if count > 0 {
            page.remark(0, TextStyle::Warning, &format!("{count} {what}"));
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

    fn switch() -> SwitchCounts<'static> {
        SwitchCounts {
            ports: vec![LabPort {
                name: "s>b",
                link: "b",
                rate_bps: Some(1e9),
                wire_bps: 5e8,
                busy: 0.5,
                packets: 1000,
                drops: PortDrops { total: 3, queue: 3, ..PortDrops::default() },
                marked: 2,
                queue: Bytes::new(1518),
                queue_max: Bytes::new(512 << 10),
            }],
            packets: LabPackets {
                entered: 1003,
                delivered: 1000,
                dropped: 3,
                balanced: true,
                ..LabPackets::default()
            },
            timing: SwitchTiming { frames: 100, bound: Span::from_ms(1), ..SwitchTiming::default() },
        }
    }

    fn shown(switch: Option<SwitchCounts<'_>>) -> String {
        let host =
            LabHost { name: "a", address: "10.77.0.1/24", address6: "fd77::1/64", netns: "linerate-pair-a" };
        let status = LabStatus {
            name: "pair",
            topology: "pair",
            seed: 1,
            up: Some(Span::from_ms(61_900)),
            hosts: vec![host],
            switch,
            notes: &["a note".to_owned()],
        };
        text(Page::new(120, false), &status)
    }

    #[test]
    fn a_person_sees_hosts_ports_drops_and_whether_the_switch_keeps_up() {
        let text = shown(Some(switch()));
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
    fn a_late_switch_and_packets_that_do_not_balance_are_reported() {
        let mut switch = switch();
        switch.timing.late = 5;
        switch.packets.balanced = false;
        let text = shown(Some(switch));
        assert!(text.contains("5 of 100 frames") && text.contains("do not balance"), "{text}");
    }

    #[test]
    fn a_lab_in_the_kernel_has_no_counters_here() {
        let text = shown(None);
        assert!(text.contains("runs in the kernel") && !text.contains("packets in"), "{text}");
    }
}
