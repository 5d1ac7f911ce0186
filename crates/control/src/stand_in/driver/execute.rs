//! Executes the outputs of a stand-in.

use std::net::SocketAddr;

use linerate_compat::stand_in::{
    CpuTime, Exchange, FlowTask, Link, LinkOptions, Output, Planned, ResourceUsage, RunId, SystemError,
    Transport,
};
use linerate_engine::{FlowSetup, Sockets, connection_counts, memory_needed};
use linerate_sock::clock;

use super::super::driver_event::{DriverEvent, own_reason, reason_of};
use super::super::endpoint::resolve_local;
use super::super::host_counts;
use super::super::server_ports::MeasurementPermit;
use super::{Driver, INTERIM_INTERVAL};
use crate::memory::Loan;
use crate::setup::sample_tick;

impl Driver<'_> {
    pub(super) fn execute(&mut self, output: Output) {
        let events = &mut self.events;
        match output {
            Output::Connect { link, port, to, options } => self.connect(link, port, to, options),
            Output::Listen { link, port, options } => self.listen(link, port, options),
            Output::Adopt { listener, peer, options } => {
                self.core.links.adopt(listener, peer, &options, events)
            }
            Output::Send { link, bytes } => self.core.links.send(link, &bytes, events),
            Output::Urgent { link, byte } => self.core.links.send_urgent(link, byte, events),
            Output::SendTo { link, to, bytes } => self.core.links.send_to(link, to, &bytes),
            Output::FinishWriting { link } => self.core.links.finish_writing(link, events),
            Output::Close { link } => self.core.links.close(link),
            Output::Reset { link } => self.core.links.reset(link),
            Output::Discard { link } => self.core.links.discard(link),
            Output::Hold { link } => self.core.links.hold_back(link),
            Output::Tune { link, options } => self.core.links.tune(link, &options, events),
            Output::Reserve { run, tool, link } => self.reserve(run, tool, link),
            Output::Ask(planned) => self.ask(*planned),
            Output::Plan(planned) => self.runs.begin(*planned, 0, &self.core.links),
            Output::Start(task) => self.start_flow(*task),
            Output::Stop { flow, how } => self.core.flows.stop(flow, how),
            Output::Insert { flow, bytes } => self.core.flows.insert(flow, &bytes),
            Output::Forget { flow } => self.core.flows.remove(flow),
            Output::Exchange(exchange) => self.exchange(*exchange),
            Output::Look => self.look(),
            Output::LookLink { link } => {
                let counts = self.core.links.stream(link).and_then(connection_counts).map(Box::new);
                self.events.push_front(DriverEvent::LinkCounts { link, counts });
            }
            Output::LookHost { interrupts, interface } => {
                let counts = host_counts::read(interrupts.as_deref(), interface.as_deref());
                self.events.push_front(DriverEvent::Host(Box::new(counts)));
            }
            Output::Latency { run, flow, probes } => {
                let probes: Vec<_> = probes.into_iter().map(|(at, rtt)| (self.moment(at), rtt)).collect();
                self.runs.probed(run, flow, &probes);
            }
            Output::Responsiveness { run, report } => self.runs.responsiveness(run, report),
            Output::Browser { flow, note } => self.runs.browser(flow, *note),
            Output::Counted { run, flow, counted } => self.runs.counted(run, flow, *counted),
            Output::Moved { run, bytes } => self.moved(run, bytes),
            Output::PeerCounted { flow, tally } => self.runs.peer_counted(flow, *tally),
            Output::RunOver { run, trouble } => self.run_over(run, trouble),
            Output::Print(text) => self.console.print(text.as_bytes()),
            Output::PrintError(text) => self.console.print_error(&text),
            Output::Read => self.events.extend(self.console.ask(&self.core.helpers)),
            Output::Write(bytes) => self.console.print(&bytes),
            Output::WriteFile { name, text, append } => {
                events.extend(self.console.write_file(name, &text, append));
            }
            Output::Exit(code) => self.exit = Some(code),
            Output::Point { run, flow, point } => self.runs.measured(run, flow, *point),
            // An output that this version does not know.
            other => tracing::warn!(?other, "an output of an unknown kind is ignored"),
        }
    }

    fn connect(&mut self, link: Link, port: u16, to: Option<SocketAddr>, mut options: LinkOptions) {
        let addresses = match to {
            Some(mut to) => {
                // An address with a zone keeps it.
                to.set_port(port);
                resolve_local(&mut options).map(|()| vec![to])
            }
            None => resolve_local(&mut options).and_then(|()| self.core.host.addresses(port, &mut options)),
        };
        match addresses {
            Ok(addresses) => self.core.links.connect(link, addresses, &options, &mut self.events),
            Err(reason) => self.events.push_back(DriverEvent::NotOpened { link, reason }),
        }
    }

    fn listen(&mut self, link: Link, port: u16, mut options: LinkOptions) {
        // A stand-in that requests Multipath TCP also accepts plain TCP.
        let transport = if options.transport == Transport::Udp { Transport::Udp } else { Transport::Tcp };
        match self.ports.as_ref().map(|ports| ports.shared_ports(transport, port)) {
            Some(shared_ports) if !shared_ports.is_empty() => {
                self.core.links.listen_on_shared_ports(link, shared_ports, &options, &mut self.events);
            }
            _ => match resolve_local(&mut options) {
                Ok(()) => self.core.links.listen(link, port, &options, &mut self.events),
                Err(reason) => self.events.push_back(DriverEvent::NotOpened { link, reason }),
            },
        }
    }

    fn reserve(&mut self, run: RunId, tool: &'static str, link: Link) {
        let peer = self.core.links.ends(link).and_then(|(_, remote)| remote);
        let permit = match &mut self.ports {
            Some(ports) => ports.reserve(run, tool, peer),
            None => Ok(MeasurementPermit::ALONE),
        };
        match permit {
            Ok(permit) => {
                self.admit(run, link, None, peer, permit);
                self.events.push_back(DriverEvent::Admitted { run });
            }
            Err(refusal) => self.events.push_back(DriverEvent::Refused { run, refusal }),
        }
    }

    fn ask(&mut self, planned: Planned) {
        let run = planned.run;
        let peer = self.core.links.ends(planned.link).and_then(|(_, remote)| remote);
        let leave = match &mut self.ports {
            Some(ports) => ports.ask(&planned, peer),
            None => Ok(MeasurementPermit::ALONE),
        };
        match leave {
            Ok(leave) => {
                let concurrent_runs = leave.concurrent_runs;
                self.admit(run, planned.link, planned.expected, peer, leave);
                self.runs.begin(planned, concurrent_runs, &self.core.links);
                self.events.push_back(DriverEvent::Admitted { run });
                if let Some(id) = self.runs.id(run) {
                    self.events.push_back(DriverEvent::Logged { run, id });
                }
            }
            Err(refusal) => self.events.push_back(DriverEvent::Refused { run, refusal }),
        }
    }

    fn run_over(&mut self, run: RunId, trouble: Option<String>) {
        let admitted = self.admitted.remove(&run);
        // If this end ended the run, its own reason counts, and not the error that the tool makes of it.
        let own = admitted.as_ref().and_then(|admitted| admitted.ended_for).map(str::to_owned);
        let trouble = own.or(trouble);
        // The place is free for the next client before this run is judged.
        let left = self.ports.as_mut().filter(|_| admitted.is_some()).and_then(|ports| ports.leave(run));
        if let Some(left) = left {
            self.runs.concurrent_runs(run, left.concurrent_runs);
        }
        let flows = self.runs.over(run, trouble.clone(), self.interrupted);
        if let Some((left, ports)) = left.zip(self.ports.as_mut()) {
            ports.ended(left.client, trouble.map_or(Ok(flows), Err));
        }
    }

    pub(super) fn start_flow(&mut self, task: FlowTask) {
        if task.links.iter().any(|link| self.core.links.has_unsent(*link)) {
            self.waiting.push(task);
            return;
        }
        let mut setup = FlowSetup::of_task(&task);
        setup.channels = self.core.links.channels(&task.links);
        setup.interface = self.runs.interface(task.run);
        setup.account = self.admitted.get(&task.run).and_then(|run| run.account.clone());
        if let Some(planned) = self.runs.planned(task.run) {
            setup.tick = sample_tick(&planned.spec);
        }
        if !self.core.flows.any() {
            self.next_interim = clock::now() + INTERIM_INTERVAL;
        }
        let flow = task.flow;
        let loan = match self.reserve_memory(&task, &setup) {
            Ok(loan) => loan,
            Err(reason) => return self.not_started(&task, reason),
        };
        self.runs.starting(task.run, flow);
        match self.core.flows.start(&task, setup, loan, &mut self.core.links, self.core.epoch) {
            Ok(settings) => {
                self.runs.started(task.run, flow, task.side, settings.clone());
                self.events.push_back(DriverEvent::Started { flow, settings: Box::new(settings) });
            }
            Err(reason) => self.not_started(&task, reason),
        }
    }

    /// Reserves the memory of a flow from the budget of the server, for an embedded server.
    fn reserve_memory(&mut self, task: &FlowTask, setup: &FlowSetup) -> Result<Option<Loan>, SystemError> {
        let Some(ports) = &mut self.ports else { return Ok(None) };
        let needed = memory_needed(setup, task.links.len());
        let loan = needed.map_err(|error| error.to_string()).and_then(|needed| ports.reserve_memory(needed));
        loan.map(Some).map_err(own_reason)
    }

    fn not_started(&mut self, task: &FlowTask, reason: SystemError) {
        task.links.iter().for_each(|link| self.core.links.close(*link));
        self.events.push_back(DriverEvent::NotStarted { flow: task.flow, reason });
    }

    /// The counts are delivered before all queued events.
    fn look(&mut self) {
        let used = clock::process_usage();
        let (user_before, system_before) = self.core.cpu_before;
        let cpu = CpuTime {
            elapsed: clock::now().since(self.core.epoch).into(),
            user: used.user.saturating_sub(user_before).into(),
            system: used.system.saturating_sub(system_before).into(),
            usage: used.counts.map(|counts| ResourceUsage {
                max_resident_kib: counts.max_resident_kib,
                minor_faults: counts.minor_faults,
                major_faults: counts.major_faults,
                voluntary_switches: counts.voluntary_switches,
                involuntary_switches: counts.involuntary_switches,
            }),
        };
        let flows = self.core.flows.counts(&self.core.links);
        flows.iter().for_each(|counts| self.runs.recounted(counts));
        self.events.push_front(DriverEvent::Counts { cpu, flows });
    }

    fn exchange(&mut self, exchange: Exchange) {
        let link = exchange.link;
        let fail = |reason| DriverEvent::Exchanged { link, result: Err(reason) };
        let stream = match self.core.links.lend(&[link]) {
            Ok(Sockets::Tcp(streams)) => streams.into_iter().next(),
            Ok(Sockets::Udp(_)) | Err(_) => None,
        };
        let Some(stream) = stream else {
            return self.events.push_back(fail(own_reason("messages are exchanged over an open connection")));
        };
        self.exchange_begins(link);
        let post = self.core.helpers.post();
        let work = move || {
            let result = linerate_engine::exchange(&stream, &exchange);
            post.send(DriverEvent::Exchanged { link, result });
        };
        if let Err(error) = linerate_sock::thread::spawn("exchange", work) {
            self.core.links.restore(&[link]);
            self.events.push_back(fail(reason_of(&error)));
        }
    }
}
