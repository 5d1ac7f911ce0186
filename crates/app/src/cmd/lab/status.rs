//! `linerate lab status`: hosts and ports of a running lab.

use std::time::Duration;

use clap::Args;
use linerate_lab::control_protocol::{HostStatus, PortStatus, Status};
use linerate_report::lab_status::{
    self, LabHost, LabPackets, LabPort, LabStatus, PortDrops, SwitchCounts, SwitchTiming,
};
use linerate_sock::clock;
use linerate_units::{Span, above_zero};

use super::which_lab::running;
use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{stdout, terminal};

/// Timeout for an answer of the switch.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The lab [default: the only one that is running]
    name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Repeat every second, or at the given interval, until Ctrl-C
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
        value_parser = above_zero::<Span>)]
    watch: Option<Span>,
    #[command(flatten)]
    place: RunFolder,
}

pub(super) fn run(args: &StatusArgs) -> Result<Exit, CommandError> {
    let lab = running(&args.place, args.name.as_deref())?;
    let ask = || lab.status(ANSWER_TIMEOUT).map_err(CommandError::failed);
    let Some(every) = args.watch else { return Ok(print(&ask()?, args.json)) };
    let signals = Signals::catch()?;
    let mut next = clock::now();
    loop {
        let status = ask()?;
        if !args.json {
            stdout::clear();
        }
        if print(&status, args.json) != Exit::Done {
            return Ok(Exit::Failed);
        }
        next += every.as_duration();
        while !next.has_passed() {
            if signals.which().is_some() {
                return Ok(Exit::Done);
            }
            clock::sleep_until(next.min(clock::now() + Duration::from_millis(50)));
        }
    }
}

/// Prints a status, as JSON or as text.
pub(super) fn print(status: &Status, json: bool) -> Exit {
    match json {
        true => stdout::print_json(status),
        false => stdout::print(lab_status::text(terminal::stdout_page(), &shown(status)).as_bytes()),
    }
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
