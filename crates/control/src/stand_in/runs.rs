//! The event logs of a stand-in's runs.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_compat::stand_in::{CountedFlow, FlowCounts, FlowId, Planned, RunId};
use linerate_model::{
    Body, BrowserNote, ByteAccounting, Calibration, CaveatKind, Direction, EVENT_SCHEMA, FlowOutcome,
    HostInfo, Outcome, ProbePhase, ResponsivenessReport, RunLabels, RunStart, Side, SideSettings, SizePoint,
    Tally, World,
};
use linerate_proto::Ended;
use linerate_sock::iface::ConnectionEnds;
use linerate_sock::{Mono, clock};
use linerate_units::Span;

use super::flows::{FlowInterim, Over};
use super::links::Links;
use crate::host;
use crate::interface_watch::InterfaceWatch;
use crate::log::{Log, Sink};
use crate::port_observer::{self, PortObserver};
use crate::probe::{IntervalGrid, round_trips};
use crate::setup::{sample_tick, side};
use crate::{flow_log, judge};

/// What TLS costs a test (RFC 8446, section 5.2).
const ENCRYPTED: &str = "the connections were encrypted (TLS), which takes CPU time at both ends and adds 22 bytes to each \
                         16 KiB of data";

/// Stores the event logs of runs with foreign tools.
pub trait LogStore: Send + Sync + std::fmt::Debug {
    /// Opens the log of a run that begins, with the other end at this address; absent if logs are not stored.
    fn open(&self, planned: &Planned, peer: Option<IpAddr>) -> Option<StoredRun>;
}

/// An event log that has been opened.
pub struct StoredRun {
    /// Id of the run.
    pub name: String,
    /// Wall-clock start, RFC 3339.
    pub started_at: String,
    /// The name and the notes that its user gave it.
    pub labels: RunLabels,
    /// Receive the events; they are dropped when the run ends.
    pub sinks: Vec<Box<dyn Sink>>,
    /// The stored calibration of this host; absent if it was never calibrated.
    pub calibration: Option<Box<Calibration>>,
}

/// A run that is not stored.
#[derive(Debug)]
pub struct UnstoredRun {
    /// Its id.
    pub name: String,
    /// Wall-clock start, RFC 3339.
    pub started_at: String,
    /// The stored calibration of this host; absent if it was never calibrated.
    pub calibration: Option<Box<Calibration>>,
}

impl From<UnstoredRun> for StoredRun {
    fn from(run: UnstoredRun) -> Self {
        let UnstoredRun { name, started_at, calibration } = run;
        Self { name, started_at, labels: RunLabels::default(), sinks: Vec::new(), calibration }
    }
}

/// What the logs of all runs of a stand-in have in common.
pub(super) struct Runs<'a> {
    log_store: Option<&'a dyn LogStore>,
    world: World,
    observer: Option<&'a dyn PortObserver>,
    /// The host from the command line of a client.
    typed: Option<String>,
    open: BTreeMap<RunId, StandInRun>,
}

struct StandInRun {
    log: Log<'static>,
    planned: Planned,
    began: Mono,
    /// The address of this end, and both ends if the peer is known.
    local: Option<IpAddr>,
    connection: Option<ConnectionEnds>,
    flows: BTreeMap<FlowId, FlowReports>,
}

struct FlowReports {
    own_side: Side,
    /// Counts the interface while the flow runs.
    interface: InterfaceWatch,
    own: Option<Ended>,
    peer: Option<Tally>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        log_store: Option<&'a dyn LogStore>,
        world: World,
        observer: Option<&'a dyn PortObserver>,
        typed: Option<String>,
    ) -> Self {
        if log_store.is_some() {
            host::get_ready();
        }
        Self { log_store, world, observer, typed, open: BTreeMap::new() }
    }

    /// Opens the log of a run, with the number of other runs at the same time.
    pub(super) fn begin(&mut self, planned: Planned, concurrent_runs: u32, links: &Links) {
        let ends = links.ends(planned.link);
        let address = ends.and_then(|(_, remote)| remote).map(|remote| remote.ip());
        let kept = self.log_store.and_then(|log_store| log_store.open(&planned, address));
        let Some(kept) = kept else { return };
        let mut log = Log::owning(kept.name, kept.sinks);
        let address = address.map(|address| address.to_string());
        let peer = self.typed.clone().or_else(|| address.clone()).unwrap_or_default();
        log.note(Body::RunStarted(Box::new(RunStart {
            schema: EVENT_SCHEMA.into(),
            started_at: kept.started_at.into(),
            world: self.world,
            linerate: env!("CARGO_PKG_VERSION").into(),
            target: format!("{peer} ({})", planned.tool).into(),
            spec: planned.spec.clone(),
        })));
        if !kept.labels.is_empty() {
            log.note(Body::Labelled(kept.labels));
        }
        let (local, connection) = (ends.map(|(local, _)| local.ip()), links.connection(planned.link));
        let here =
            HostInfo { calibration: kept.calibration, ..host::host_info_at_once(local, connection.as_ref()) };
        let there = HostInfo { name: peer.into(), address: address.map(Into::into), ..HostInfo::default() };
        let hosts = if planned.client { [here, there] } else { [there, here] };
        for (host, info) in (0..).zip(hosts) {
            log.note_from(host, Body::Host { info });
        }
        let flows = planned.flows.clone();
        let mut begun =
            StandInRun { log, planned, began: clock::now(), local, connection, flows: BTreeMap::new() };
        flows.into_iter().for_each(|(flow, direction)| begun.plan(flow, direction));
        let who = begun.planned.peer.as_deref().unwrap_or(begun.planned.tool);
        let text = format!("the other end is {who}: its counters were not read, only what it says of itself");
        begun.log.warn(None, CaveatKind::ForeignPeer, text);
        if links.is_encrypted(begun.planned.link) {
            begun.log.warn(None, CaveatKind::Encrypted, ENCRYPTED.to_owned());
        }
        let run = begun.planned.run;
        self.open.insert(run, begun);
        self.concurrent_runs(run, concurrent_runs);
    }

    /// Whether a run is in progress.
    pub(super) fn any(&self) -> bool {
        !self.open.is_empty()
    }

    /// Notes the number of other runs at the same time.
    pub(super) fn concurrent_runs(&mut self, run: RunId, concurrent_runs: u32) {
        let Some(log) = self.open.get_mut(&run).map(|run| &mut run.log) else { return };
        let known = log.record().caveats.iter().any(|caveat| caveat.kind == CaveatKind::ConcurrentRun);
        if concurrent_runs > 0 && !known {
            let text = format!("{concurrent_runs} other run(s) on this server at the same time");
            log.warn(None, CaveatKind::ConcurrentRun, text);
        }
    }

    /// The interface that carries a run.
    pub(super) fn interface(&self, run: RunId) -> Option<String> {
        let run = self.open.get(&run)?;
        let here = usize::from(!run.planned.client);
        run.log.record().hosts.get(here)?.link.as_ref().map(|link| link.name.clone()).map(Into::into)
    }

    pub(super) fn planned(&self, run: RunId) -> Option<&Planned> {
        self.open.get(&run).map(|run| &run.planned)
    }

    /// Begins counting what passes the interface with a flow that is about to start.
    pub(super) fn starting(&mut self, run: RunId, flow: FlowId) {
        let Some(run) = self.open.get_mut(&run) else { return };
        let watch = match (&run.connection, run.local) {
            (Some(ends), _) => InterfaceWatch::between(ends),
            (None, Some(local)) => InterfaceWatch::at(local),
            (None, None) => return,
        };
        if let Some(flow) = run.flows.get_mut(&flow) {
            flow.interface = watch;
            flow.interface.phase_begins(None);
        }
    }

    pub(super) fn started(&mut self, run: RunId, flow: FlowId, side: Side, settings: SideSettings) {
        // What is a part of a flow has no entries of its own.
        let Some(run) = self.open.get_mut(&run).filter(|run| run.flows.contains_key(&flow)) else { return };
        run.log.note_from(run.here(), Body::FlowOpened { flow, side, settings });
    }

    /// Logs samples and progress of a running flow.
    pub(super) fn interim(&mut self, interim: FlowInterim) {
        let is_known = |run: &&mut StandInRun| run.flows.contains_key(&interim.flow);
        let Some(run) = self.open.get_mut(&interim.run).filter(is_known) else { return };
        let (flow, here) = (interim.flow, run.here());
        for sample in interim.samples {
            run.log.note_from(here, Body::Sample { flow, sample });
        }
        // The displayed progress is the receiver's count, which a sender to a foreign tool does not know.
        if interim.side == Side::Receiver {
            let progress = interim.progress;
            let (bytes, elapsed) = (progress.bytes, progress.elapsed);
            let body = Body::Progress { flow, bytes, elapsed, srtt: None, retransmits: None };
            run.log.note_from(here, body);
        }
    }

    pub(super) fn ended(&mut self, number: FlowId, over: Over) {
        let Some(run) = self.open.get_mut(&over.run).filter(|run| run.flows.contains_key(&number)) else {
            return;
        };
        let here = run.here();
        for sample in over.samples {
            run.log.note_from(here, Body::Sample { flow: number, sample });
        }
        if let Some(flow) = run.flows.get_mut(&number) {
            let mut report = over.report;
            if let Some((counts, _)) = flow.interface.counted(None) {
                report.tally.kernel.get_or_insert_default().interface = Some(counts);
            }
            flow.own = Some(Ended {
                flow: number,
                side: over.side,
                settings: report.settings,
                tally: report.tally,
                caveats: report.caveats,
            });
        }
    }

    /// Takes over what the kernel has counted since a flow ended.
    pub(super) fn recounted(&mut self, counts: &FlowCounts) {
        let known = self.open.values_mut().find_map(|run| run.flows.get_mut(&counts.flow));
        let own = known.and_then(|flow| flow.own.as_mut()).filter(|own| own.side == Side::Sender);
        if let Some((own, tally)) = own.zip(counts.tally.as_ref()) {
            own.tally.retransmits = tally.retransmits;
            own.tally.streams.clone_from(&tally.streams);
        }
    }

    /// The id of a run's log.
    pub(super) fn id(&self, run: RunId) -> Option<String> {
        self.open.get(&run).map(|run| run.log.id().to_owned())
    }

    /// Logs round trips over a connection of a run, during a flow or before all of them.
    pub(super) fn probed(&mut self, run: RunId, flow: Option<FlowId>, probes: &[(Mono, Option<Span>)]) {
        let Some(run) = self.open.get_mut(&run) else { return };
        let grid = IntervalGrid { epoch: run.log.epoch(), tick: sample_tick(&run.planned.spec) };
        let phase = if flow.is_some() { ProbePhase::Loaded } else { ProbePhase::Idle };
        if let Some(report) = round_trips(phase, probes, grid) {
            run.log.note_from(run.here(), Body::Latency { flow, report });
        }
    }

    /// Logs a responsiveness.
    pub(super) fn responsiveness(&mut self, run: RunId, report: Box<ResponsivenessReport>) {
        let Some(run) = self.open.get_mut(&run) else { return };
        let is_known = run.log.record().caveats.iter().any(|caveat| caveat.kind == CaveatKind::Encrypted);
        if report.encrypted && !is_known {
            run.log.warn(None, CaveatKind::Encrypted, ENCRYPTED.to_owned());
        }
        run.log.note_from(run.here(), Body::Responsiveness(report));
    }

    pub(super) fn browser(&mut self, flow: FlowId, note: BrowserNote) {
        if let Some(run) = self.open.values_mut().find(|run| run.flows.contains_key(&flow)) {
            run.log.note_from(1 - run.here(), Body::Browser { flow, note });
        }
    }

    /// Takes over the result of a flow that the stand-in has counted from its parts.
    pub(super) fn counted(&mut self, run: RunId, number: FlowId, counted: CountedFlow) {
        let Some(run) = self.open.get_mut(&run) else { return };
        if !run.flows.contains_key(&number) {
            run.planned.spec.traffic.streams = counted.streams;
            run.plan(number, counted.direction);
        }
        let (here, CountedFlow { side, settings, tally, receiver, samples, .. }) = (run.here(), counted);
        for sample in samples {
            run.log.note_from(here, Body::Sample { flow: number, sample });
        }
        if let Some(flow) = run.flows.get_mut(&number) {
            flow.own = Some(Ended { flow: number, side, settings, tally, caveats: Vec::new() });
            flow.peer = receiver;
        }
    }

    pub(super) fn peer_counted(&mut self, flow: FlowId, tally: Tally) {
        let known = self.open.values_mut().find_map(|run| run.flows.get_mut(&flow));
        if let Some(flow) = known {
            flow.peer = Some(tally);
        }
    }

    /// Logs the result of one message size.
    pub(super) fn measured(&mut self, run: RunId, flow: FlowId, point: SizePoint) {
        if let Some(run) = self.open.get_mut(&run) {
            run.log.note_from(run.here(), Body::Size { flow, point });
        }
    }

    /// Ends a run: logs the final reports of both sides, the observations of the network, and the verdict. Returns
    /// the results.
    pub(super) fn over(
        &mut self,
        run: RunId,
        trouble: Option<String>,
        interrupted: bool,
    ) -> Vec<FlowOutcome> {
        let Some(run) = self.open.remove(&run) else { return Vec::new() };
        let (outcome, reason) = match trouble {
            None => (Outcome::Completed, None),
            Some(_) if interrupted => (Outcome::Interrupted, Some("stopped by a signal".to_owned())),
            Some(why) => (Outcome::Failed, Some(why)),
        };
        run.finish(outcome, reason, self.observer)
    }

    /// Ends the runs that are still open when the program ends.
    pub(super) fn end(&mut self, interrupted: bool) {
        let open: Vec<RunId> = self.open.keys().copied().collect();
        for run in open {
            self.over(run, Some("the program ended in the middle of the run".to_owned()), interrupted);
        }
    }
}

impl StandInRun {
    /// Number of this host in the log: 0 is the client.
    fn here(&self) -> u16 {
        u16::from(!self.planned.client)
    }

    /// Notes a flow of which there will be a result.
    fn plan(&mut self, flow: FlowId, direction: Direction) {
        let plan = flow_log::plan(flow, direction, &self.planned.spec, &self.log);
        self.log.note(Body::FlowPlanned(plan));
        let own_side = side(direction, self.planned.client);
        let reports = FlowReports { own_side, interface: InterfaceWatch::default(), own: None, peer: None };
        self.flows.insert(flow, reports);
    }

    fn finish(
        mut self,
        outcome: Outcome,
        reason: Option<String>,
        observer: Option<&dyn PortObserver>,
    ) -> Vec<FlowOutcome> {
        let (here, there) = (self.here(), 1 - self.here());
        let log = &mut self.log;
        let flows: Vec<FlowId> = self.flows.keys().copied().collect();
        for (number, flow) in std::mem::take(&mut self.flows) {
            let byte_accounting = match (&flow.own, &flow.peer) {
                (Some(own), Some(peer)) if own.tally.udp.is_none() => Some(match own.side {
                    Side::Sender => ByteAccounting::close(&own.tally, peer),
                    Side::Receiver => ByteAccounting::close(peer, &own.tally),
                }),
                _ => None,
            };
            if let Some(own) = flow.own {
                flow_log::note_end(number, here, own, log);
            }
            if let Some(tally) = flow.peer {
                let side = flow.own_side.other();
                log.note_from(there, Body::FlowEnded { flow: number, side, tally });
            }
            if outcome != Outcome::Completed {
                flow_log::warn_partial(number, log);
            }
            if let Some(byte_accounting) = byte_accounting {
                log.note(Body::BytesAccounted { flow: number, byte_accounting });
            }
        }
        if let Some(observer) = observer {
            port_observer::record_observations(observer, self.began, &flows, log);
        }
        flows.iter().for_each(|flow| judge::judge(*flow, log));
        log.note(Body::RunEnded { outcome, reason: reason.map(Into::into) });
        FlowOutcome::all(log.record())
    }
}
