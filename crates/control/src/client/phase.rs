//! One phase: one direction, or both directions at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_engine::{Connector, FlowSetup, TransactionConnections};
use linerate_model::flow::FlowId;
use linerate_model::{Body, CheckedSpec, Direction, ProbePhase, Side};
use linerate_proto::native::{ConnectionPurpose, Preface};
use linerate_proto::{FlowOrder, Progress, SessionInput, SessionOutput};
use linerate_sock::open::{ConnectOptions, connect_tcp};
use linerate_sock::{Mono, clock};

use super::merge::Merge;
use super::{ClientRun, POLL_INTERVAL, TestRequest, phase_gate};
use crate::dialogue::DialogueEvent;
use crate::error::ControlError;
use crate::flow_log;
use crate::judge::{self, ReceivedSeries};
use crate::log::Log;
use crate::multicast::{self, MulticastSenders, SenderShare};
use crate::port_observer;
use crate::probe::Prober;
use crate::setup::{fastest_method, flow_setup, length, side, socket_options};

/// Records the progress that the receiver of either end reports.
fn note_progress(event: &DialogueEvent, series: &mut BTreeMap<FlowId, ReceivedSeries>) {
    if let DialogueEvent::Progress(progress) | DialogueEvent::Session(SessionOutput::PeerProgress(progress)) =
        event
        && progress.side == Side::Receiver
    {
        series.entry(progress.flow).or_default().note(progress.bytes, progress.elapsed_ns);
    }
}

/// How long after the planned start the data threads are checked that have not reported their start.
const START_CHECK_DELAY: Duration = Duration::from_micros(500);

/// Time to open the connection of a transaction, after which the transaction has failed.
const TRANSACTION_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The flows of a phase, numbered from `first`.
pub(super) fn orders(
    spec: &CheckedSpec,
    directions: &[Direction],
    first: u16,
) -> Result<Vec<FlowOrder>, ControlError> {
    let length = length(spec);
    let order = |(direction, flow): (&Direction, u16)| FlowOrder::new(spec, FlowId(flow), *direction, length);
    let orders: Result<_, _> = directions.iter().zip(first..).map(order).collect();
    orders.map_err(|error| ControlError::Local(error.to_string()))
}

impl ClientRun<'_> {
    /// Measures one phase. If it fails midway, what was measured is logged before the error is returned.
    pub(super) fn measure_phase(
        &mut self,
        orders: &[FlowOrder],
        request: &TestRequest<'_>,
        log: &mut Log<'_>,
    ) -> Result<(), ControlError> {
        let began = clock::now();
        for order in orders {
            let plan = flow_log::plan(order.flow(), order.direction(), &self.spec, log);
            log.note(Body::FlowPlanned(plan));
        }
        let mut merge = Merge::new(orders, &self.spec);
        let result = self.phase_steps(orders, request.stop, log, &mut merge);
        if result.is_err() {
            for event in self.dialogue.abort_flows() {
                self.take(event, log, &mut merge);
            }
            for order in orders {
                flow_log::warn_partial(order.flow(), log);
            }
        }
        merge.finish(log);
        if let Some(observer) = request.observer {
            let flows: Vec<FlowId> = orders.iter().map(FlowOrder::flow).collect();
            port_observer::record_observations(observer, began, &flows, log);
        }
        for order in orders {
            judge::judge(order.flow(), log);
        }
        result
    }

    fn phase_steps(
        &mut self,
        orders: &[FlowOrder],
        stop: &AtomicBool,
        log: &mut Log<'_>,
        merge: &mut Merge,
    ) -> Result<(), ControlError> {
        self.dialogue.idle_ends();
        self.dialogue.input(SessionInput::Measure(orders.to_vec()))?;
        let mut prober = None;
        let mut planned = None;
        let mut begun = None;
        let mut stopped = false;
        let mut until = judge::Until::new(orders.iter().map(FlowOrder::flow), &self.spec);
        let mut series = BTreeMap::<FlowId, ReceivedSeries>::new();
        loop {
            let mut events = std::mem::take(&mut self.early);
            let look = if events.is_empty() { self.next_look(planned, begun) } else { clock::now() };
            events.extend(self.dialogue.turn(look, &[])?);
            if begun.is_none() {
                begun = self.dialogue.began();
                if let Some(begun) = begun {
                    phase_gate::note_start(planned, begun, log);
                    prober = self.prober(ProbePhase::Loaded, None, log.epoch());
                }
            }
            for event in events {
                merge.admit(&event, clock::now())?;
                note_progress(&event, &mut series);
                match event {
                    DialogueEvent::Session(SessionOutput::Open(_)) => {
                        planned = self.open(orders, stop, log)?
                    }
                    DialogueEvent::Session(SessionOutput::PhaseDone) => {
                        return self.end_probes(prober, merge);
                    }
                    other => self.take(other, log, merge),
                }
            }
            if let Some(prober) = &prober {
                // The direction with the lower rate determines the probe rate.
                if let Some(path) = series.values().filter_map(ReceivedSeries::path_bps).reduce(f64::min) {
                    prober.follow(path);
                }
                if merge.load_over() {
                    prober.stop();
                }
            }
            // Nothing has started, so there is nothing to end. The peer may never become ready.
            if stop.load(Ordering::Relaxed) && !self.dialogue.is_started() {
                return Err(ControlError::Stopped);
            }
            let enough = until.is_reached(log.record(), &series);
            if !stopped && (enough || stop.load(Ordering::Relaxed)) {
                stopped = true;
                self.dialogue.input(SessionInput::Stop)?;
            }
        }
    }

    /// Adds the report of the probes. The last answers may take seconds, in which heartbeats go on.
    fn end_probes(&mut self, prober: Option<Prober>, merge: &mut Merge) -> Result<(), ControlError> {
        let Some(prober) = prober else { return Ok(()) };
        prober.stop();
        let mut alive = Ok(());
        while alive.is_ok() && !prober.finished() {
            alive = self.dialogue.turn(clock::now() + POLL_INTERVAL.as_duration(), &[]).map(drop);
        }
        let (report, clocks) = prober.report().unzip();
        self.clocks = clocks.unwrap_or_else(|| std::mem::take(&mut self.clocks));
        merge.latency(report);
        alive
    }

    /// When to poll the dialogue if no event occurs before.
    fn next_look(&self, planned: Option<Mono>, begun: Option<Mono>) -> Mono {
        let now = clock::now();
        match begun {
            // Data threads start without notification, and polling at their start time would disturb them.
            None if self.dialogue.is_started() => planned.unwrap_or_default().max(now) + START_CHECK_DELAY,
            _ => now + POLL_INTERVAL.as_duration(),
        }
    }

    /// Opens the data sockets. Returns the start time if a gate determines it.
    fn open(
        &mut self,
        orders: &[FlowOrder],
        stop: &AtomicBool,
        log: &mut Log<'_>,
    ) -> Result<Option<Mono>, ControlError> {
        let opened = self.join_sender().and_then(|share| {
            let sockets = self.open_flows(orders, share.as_ref(), stop)?;
            Ok((share, sockets))
        });
        match opened {
            Ok((share, sockets)) => {
                let setups = orders.iter().map(|order| self.setup_of(order, share.as_ref(), log));
                let flows: Vec<_> = setups.zip(sockets).collect();
                match share {
                    None => self.dialogue.arm(flows)?,
                    // The sockets of this run have shown the server its source; what they opened, the sender fills.
                    Some(share) => {
                        let setup = flows.into_iter().next().map(|(setup, _)| setup);
                        setup.map_or(Ok(()), |setup| self.dialogue.arm_shared(setup, share))?;
                    }
                }
                let peer_sends = orders.iter().any(|order| order.direction() == Direction::Download);
                let planned = self.wait_at_gate(peer_sends, stop)?;
                self.dialogue.begin(planned)?;
                Ok(planned)
            }
            Err(error) => {
                // The server learns the reason before we give up.
                let _ = self.dialogue.input(SessionInput::FlowsFailed(error.to_string()));
                self.dialogue.flush_at_end();
                Err(error)
            }
        }
    }

    /// The part of this run in the sender to a multicast group; absent for other tests.
    fn join_sender(&self) -> Result<Option<SenderShare>, ControlError> {
        if self.spec.traffic.multicast.is_none() {
            return Ok(None);
        }
        let local = self.dialogue.stream().local_addr();
        let local = local.map_err(|error| ControlError::Local(format!("the control connection: {error}")))?;
        let Some(path) = multicast::path(&self.spec, local.ip(), local.ip())? else { return Ok(None) };
        let options = socket_options(&self.spec, true);
        match self.gate {
            Some(gate) => gate.senders().join(&self.spec, path, &options).map(Some),
            None => MulticastSenders::default().join(&self.spec, path, &options).map(Some),
        }
    }

    fn setup_of(&self, order: &FlowOrder, share: Option<&SenderShare>, log: &Log<'_>) -> FlowSetup {
        let here = log.record().hosts.first();
        let cookie = share.map_or(self.cookie, SenderShare::cookie);
        let mut setup = flow_setup(&self.spec, order, true, &cookie);
        setup.file = self.file.clone();
        setup.interface = here.and_then(|host| host.link.as_ref()).map(|link| link.name.clone().into());
        setup.fastest_method = here.and_then(|here| fastest_method(&self.spec, here));
        if let Some(transactions) = &mut setup.transactions
            && self.spec.transactions.reconnect()
        {
            transactions.connections = TransactionConnections::Opened(self.connector(order));
        }
        setup
    }

    /// Opens the connections of single transactions.
    fn connector(&self, order: &FlowOrder) -> Connector {
        let preface = Preface {
            connection: ConnectionPurpose::Transaction,
            flow: order.flow(),
            stream: 0,
            cookie: self.cookie,
        };
        let (server, socket) = (self.server, socket_options(&self.spec, true));
        Connector::new(&preface.encode(), move || {
            let (addresses, deadline) = (vec![server], clock::now() + TRANSACTION_CONNECT_TIMEOUT);
            let socket = socket.clone();
            connect_tcp(&ConnectOptions { addresses, socket, deadline }).map(|connected| connected.stream)
        })
    }

    fn take(&mut self, event: DialogueEvent, log: &mut Log<'_>, merge: &mut Merge) {
        match event {
            DialogueEvent::Started { flow, side, settings } => {
                log.note(Body::FlowOpened { flow, side, settings: *settings });
            }
            DialogueEvent::Progress(progress)
            | DialogueEvent::Session(SessionOutput::PeerProgress(progress)) => {
                merge.progress(&progress);
                self.note_progress(&progress, log, merge);
            }
            DialogueEvent::Cut { interrupted } => merge.cut(&interrupted),
            DialogueEvent::Streams { flow, counted, bytes } => {
                log.note(Body::Streams { flow, counted, bytes });
            }
            DialogueEvent::Samples { flow, samples } => merge.samples(0, flow, samples, log),
            DialogueEvent::Session(SessionOutput::PeerSamples { flow, samples }) => {
                merge.samples(1, flow, samples, log)
            }
            DialogueEvent::Ended(ended) => merge.ended(0, *ended),
            DialogueEvent::Session(SessionOutput::PeerEnded(ended)) => merge.ended(1, *ended),
            _ => {}
        }
    }

    /// The displayed progress is the receiver's count; the sender adds its round-trip time and retransmissions.
    fn note_progress(&self, progress: &Progress, log: &mut Log<'_>, merge: &Merge) {
        if progress.side != Side::Receiver {
            return;
        }
        let sender = merge.sender_progress(progress.flow);
        let host = u16::from(merge.direction(progress.flow).map(|d| side(d, true)) != Some(Side::Receiver));
        log.note_from(
            host,
            Body::Progress {
                flow: progress.flow,
                bytes: progress.bytes,
                elapsed: progress.elapsed_ns,
                srtt: sender.and_then(|s| s.srtt_ns),
                retransmits: sender.and_then(|s| s.retransmits),
            },
        );
    }
}
