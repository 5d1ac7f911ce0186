//! `linerate lab status`: hosts and ports of a running lab.

use std::time::Duration;

use linerate_lab::control_protocol::{HostStatus, PortStatus, Status};
use linerate_report::lab_status::{
    self, LabHost, LabPackets, LabPort, LabStatus, PortDrops, SwitchCounts, SwitchTiming,
};
use linerate_sock::clock;
use linerate_units::Span;

use super::super::page::{self, Page};
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
    lab_status::text(Page::new(columns, colour), &shown(status))
}

/// The status as the report shows it.
fn shown(status: &Status) -> LabStatus<'_> {
    LabStatus {
        name: &status.name,
        topology: &status.topology,
        seed: status.seed,
        up: status.up_ns.map(Span::from_ns),
        hosts: status.hosts.iter().map(host).collect(),
        // Without a process of its own, a lab has no switch.
        switch: status.pid.is_some().then(|| switch(status)),
        notes: &status.notes,
    }
}

fn host(host: &HostStatus) -> LabHost<'_> {
    LabHost { name: &host.name, address: &host.address, address6: &host.address6, netns: &host.netns }
}

fn switch(status: &Status) -> SwitchCounts<'_> {
    let (packets, keeping) = (&status.packet_accounting, &status.keeping_up);
    SwitchCounts {
        ports: status.ports.iter().map(port).collect(),
        packets: LabPackets {
            entered: packets.entered,
            made: packets.made,
            delivered: packets.delivered,
            dropped: packets.dropped,
            filtered: packets.filtered,
            held: packets.held,
            balanced: packets.balanced(),
        },
        timing: SwitchTiming {
            cpu: keeping.cpu,
            frames: keeping.frames,
            late_p50: Span::from_ns(keeping.late_p50_ns),
            late_p99: Span::from_ns(keeping.late_p99_ns),
            late_max: Span::from_ns(keeping.late_max_ns),
            late: keeping.late,
            bound: Span::from_ns(keeping.bound_ns),
            overrun: keeping.overrun,
            malformed: keeping.malformed,
            refused: keeping.refused,
        },
    }
}

fn port(port: &PortStatus) -> LabPort<'_> {
    let counts = &port.counts;
    LabPort {
        name: &counts.name,
        link: &port.link,
        rate_bps: port.rate_bps,
        wire_bps: port.wire_bps,
        busy: port.busy,
        packets: counts.packets,
        drops: PortDrops {
            total: port.dropped,
            queue: counts.dropped_queue,
            policer: counts.dropped_policer,
            wire: counts.dropped_wire,
            too_big: counts.dropped_too_big,
        },
        marked: counts.marked,
        queue: counts.queue_bytes,
        queue_max: counts.queue_max_bytes,
    }
}
