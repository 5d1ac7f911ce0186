//! What both ends have in common in a test: the timer, the console lines, the result.

use std::collections::BTreeMap;

use linerate_model::{Direction, Side};
use linerate_units::{Bytes, Span, Timestamp};

use super::console::NtttcpConsole;
use super::meter::{NtttcpMeter, NtttcpPhaseChange, PhaseDurations};
use super::options::{NtttcpOptions, NtttcpRole};
use super::report::{self, NtttcpFigures};
use crate::stand_in::{
    EndMark, FlowId, FlowTask, Input, Link, Output, Pattern, Payload, Planned, RunId, Stop,
};
use linerate_model::flow::StampLayout;

/// Timeout for the end of flows.
const FLOW_END_TIMEOUT: Span = Span::from_secs(5);

/// Time between the end of the last flow and the result, for the answers to the last requests.
const SETTLE_TIME: Span = Span::from_ms(1);

/// How much earlier the peer may end, because it has its own timer.
const EARLY_END_TOLERANCE: Span = Span::from_ms(500);

/// One end's part of a running test.
#[derive(Debug)]
pub(super) struct NtttcpRun {
    pub(super) run: RunId,
    pub(super) meter: NtttcpMeter,
    schedule: PhaseDurations,
    /// The thread of each stream, and the number of threads.
    thread_of: BTreeMap<(FlowId, usize), usize>,
    threads: usize,
    /// The running flows.
    flows: Vec<FlowId>,
    next_flow: FlowId,
    /// The flows that have ended.
    over: Vec<FlowId>,
    /// Whether the test was stopped early.
    broken: bool,
    /// When the result is printed at the latest, after the flows were stopped.
    settles: Option<Timestamp>,
    /// How the flows are stopped.
    stops: Stop,
}

/// The result of a tick besides its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// The test is over and its flows were stopped.
    Ending,
    /// The flows have ended, and the result can be printed.
    Settled,
}

impl NtttcpRun {
    pub(super) fn new(
        now: Timestamp,
        run: RunId,
        schedule: PhaseDurations,
        threads: usize,
        options: &NtttcpOptions,
        console: &mut NtttcpConsole,
    ) -> Self {
        let meter = NtttcpMeter::new(now, schedule);
        let run = Self {
            run,
            meter,
            schedule,
            thread_of: BTreeMap::new(),
            threads,
            flows: Vec::new(),
            next_flow: FlowId(0),
            over: Vec::new(),
            broken: false,
            settles: None,
            stops: Stop::AtOnce,
        };
        if schedule.warmup == Span::ZERO {
            request_counts(options, console, true);
        }
        run
    }

    /// Passes links to the engine, each with the index of its thread.
    pub(super) fn start(
        &mut self,
        links: &[(Link, usize)],
        options: &NtttcpOptions,
        console: &mut NtttcpConsole,
    ) {
        if links.is_empty() {
            return;
        }
        let flow = self.next_flow;
        self.next_flow = self.next_flow.next();
        self.flows.push(flow);
        self.thread_of.extend(links.iter().enumerate().map(|(at, (_, thread))| ((flow, at), *thread)));
        let sends = options.role == NtttcpRole::Sender;
        let pattern = Pattern::Byte(if options.udp { b'B' } else { b'A' });
        console.outputs.push_back(Output::Start(Box::new(FlowTask {
            flow,
            run: self.run,
            side: if sends { Side::Sender } else { Side::Receiver },
            direction: Direction::Upload,
            transport: options.transport(),
            links: links.iter().map(|(link, _)| *link).collect(),
            length: Bytes::new(options.block()),
            payload: Payload { head: Vec::new(), pattern, first_length: None },
            framing: Default::default(),
            stamp: StampLayout::NONE,
            bytes: options.buffers().filter(|_| sends).map(|buffers| {
                let each = buffers.saturating_mul(options.block());
                Bytes::new(each.saturating_mul(links.len() as u64))
            }),
            time: self.schedule.measured.filter(|_| !sends),
            omit: self.schedule.warmup,
            offered: options.each(options.rate).filter(|_| sends),
            burst: None,
            pacing_tick: None,
            fq_rate: options.fq_rate.filter(|_| sends),
            socket: options.knobs(),
            affinity: options.affinity,
            end_mark: EndMark::None,
            read_before: Vec::new(),
            note: None,
            transit: Default::default(),
            together: false,
            file: None,
        })));
    }

    /// Handles the timer and prints the lines that are due.
    pub(super) fn tick(
        &mut self,
        now: Timestamp,
        options: &NtttcpOptions,
        console: &mut NtttcpConsole,
    ) -> Due {
        if let Some(settles) = self.settles {
            return if now >= settles { Due::Settled } else { Due::Nothing };
        }
        while let Some(turn) = self.meter.turn(now) {
            match turn {
                NtttcpPhaseChange::Progress => request_counts(options, console, false),
                NtttcpPhaseChange::Measured => {
                    console.info(now, "Test warmup completed.");
                    request_counts(options, console, true);
                }
                NtttcpPhaseChange::Done { cooldown } => {
                    request_counts(options, console, true);
                    console.info(now, "Test run completed.");
                    if cooldown {
                        console.info(now, "Test cooldown is in progress...");
                    }
                }
                NtttcpPhaseChange::Finished => {
                    console.info(now, "Test cycle finished.");
                    self.stop(now, self.stops, console);
                    return Due::Ending;
                }
            }
        }
        Due::Nothing
    }

    /// When the timer is due next.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.settles.or_else(|| self.meter.deadline())
    }

    /// Whether the peer may disconnect, because the test is over or almost over.
    pub(super) fn may_be_left(&self, now: Timestamp) -> bool {
        self.meter.end().is_some_and(|end| now + EARLY_END_TOLERANCE >= end)
    }

    /// Ends the test early.
    pub(super) fn stop_early(
        &mut self,
        now: Timestamp,
        options: &NtttcpOptions,
        console: &mut NtttcpConsole,
    ) {
        self.broken |= !self.meter.is_over();
        self.complete(now, self.stops, options, console);
    }

    /// Ends a test that has no duration.
    pub(super) fn complete(
        &mut self,
        now: Timestamp,
        how: Stop,
        options: &NtttcpOptions,
        console: &mut NtttcpConsole,
    ) {
        if !self.meter.is_over() {
            self.meter.stop_early(now);
            request_counts(options, console, true);
            console.info(now, "Test run completed.");
            console.info(now, "Test cycle finished.");
        }
        self.stop(now, how, console);
    }

    fn stop(&mut self, now: Timestamp, how: Stop, console: &mut NtttcpConsole) {
        for flow in &self.flows {
            console.outputs.push_back(Output::Stop { flow: *flow, how });
        }
        self.settles = Some(now + if self.flows.is_empty() { SETTLE_TIME } else { FLOW_END_TIMEOUT });
    }

    /// Sets how the flows are stopped when the time is over; the default is immediately.
    pub(super) fn stops_by(&mut self, how: Stop) {
        self.stops = how;
    }

    /// Sets the number of the next flow, because those of the previous run may still be in use.
    pub(super) fn number_from(&mut self, flow: FlowId) {
        self.next_flow = flow;
    }

    /// The number of the next flow.
    pub(super) fn next_flow(&self) -> FlowId {
        self.next_flow
    }

    /// Outputs that forget the flows that have ended.
    pub(super) fn release_flows(&self) -> impl Iterator<Item = Output> + '_ {
        self.over.iter().map(|flow| Output::Forget { flow: *flow })
    }

    pub(super) fn was_broken_off(&self) -> bool {
        self.broken
    }

    /// Takes counts of flows or of the host.
    pub(super) fn take_counts(
        &mut self,
        now: Timestamp,
        input: &Input<'_>,
        options: &NtttcpOptions,
        console: &mut NtttcpConsole,
    ) {
        match input {
            Input::Host(host) => self.meter.host(host),
            Input::Counts { cpu, flows } => {
                if let Some(bps) = self.meter.counts(*cpu, flows).filter(|_| !options.quiet) {
                    console.plain(&format!("Real-time throughput: {}", report::rate(bps)));
                }
            }
            Input::NotWritten { name, reason } => {
                console.disable_log(name);
                console.error(now, &format!("cannot write {name}: {}", reason.text));
            }
            _ => {}
        }
    }

    /// The running flows.
    pub(super) fn running(&self) -> &[FlowId] {
        &self.flows
    }

    pub(super) fn has_flow(&self, flow: FlowId) -> bool {
        self.flows.contains(&flow)
    }

    pub(super) fn ended(&mut self, now: Timestamp, flow: FlowId) {
        if self.has_flow(flow) {
            self.over.push(flow);
        }
        self.flows.retain(|other| *other != flow);
        if self.settles.is_some() && self.flows.is_empty() {
            self.settles = Some(now + SETTLE_TIME);
        }
    }

    /// Prints the result and writes it to the requested files.
    pub(super) fn report(&self, now: Timestamp, options: &NtttcpOptions, console: &mut NtttcpConsole) {
        let outcome = self.meter.outcome(self.threads, &self.thread_of);
        let figures = NtttcpFigures::new(options, &outcome);
        if options.windows.is_some() {
            console.plain(&report::tables(&figures));
            return write_files(&figures, options, console);
        }
        if options.verbose {
            for line in report::threads(&figures) {
                console.info(now, &line);
            }
        }
        if options.role == NtttcpRole::Sender {
            console.info(now, &format!("{} connections tested", outcome.connections));
        }
        for line in report::totals(&figures) {
            console.info(now, &line);
        }
        console.rule();
        write_files(&figures, options, console);
    }
}

fn write_files(figures: &NtttcpFigures<'_>, options: &NtttcpOptions, console: &mut NtttcpConsole) {
    let write = |name: &Option<String>, text: String| {
        name.clone().map(|name| Output::WriteFile { name, text, append: false })
    };
    console.outputs.extend(write(&options.xml, report::xml(figures)));
    console.outputs.extend(write(&options.json, report::json(figures)));
}

/// Requests the counts, and at the ends of the measured part also those of the host.
fn request_counts(options: &NtttcpOptions, console: &mut NtttcpConsole, host: bool) {
    console.outputs.push_back(Output::Look);
    if host {
        let (interrupts, interface) = (options.interrupts.clone(), options.interface.clone());
        console.outputs.push_back(Output::LookHost { interrupts, interface });
    }
}

pub(super) fn planned(
    run: RunId,
    link: Link,
    options: &NtttcpOptions,
    schedule: &PhaseDurations,
    streams: u32,
) -> Planned {
    let measured = schedule.measured;
    Planned {
        run,
        tool: "ntttcp",
        peer: None,
        link,
        client: options.role == NtttcpRole::Sender,
        spec: options.spec(measured, streams),
        flows: vec![(FlowId(0), Direction::Upload)],
        expected: measured.map(|measured| schedule.warmup + measured + schedule.cooldown),
    }
}

/// The lines of an end at its start.
pub(super) fn banner(now: Timestamp, console: &mut NtttcpConsole, options: &NtttcpOptions) {
    console.plain(if options.windows.is_some() {
        "NTTTCP for Windows 5.40"
    } else {
        "NTTTCP for Linux 1.4.3"
    });
    console.rule();
    for note in &options.notes {
        console.info(now, note);
    }
    if options.verbose {
        console.plain(report::settings(options).trim_end());
        console.rule();
    }
}
