//! Merges the reports of both ends about the flows of one phase.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_engine::complete_udp;
use linerate_model::flow::FlowId;
use linerate_model::{Body, ByteAccounting, CaveatKind, Direction, LatencyReport, Sample, Side, TestSpec};
use linerate_proto::{Ended, FlowOrder, PeerError, Progress, SessionOutput};
use linerate_sock::{Mono, clock};
use linerate_units::{Bytes, Span};

use crate::dialogue::DialogueEvent;
use crate::error::ControlError;
use crate::flow_log::note_end;
use crate::log::Log;
use crate::setup::{flow_tick, side};

/// Samples of a flow that the peer may send beyond one per interval: it begins before the first interval, ends
/// after the last, and may poll late.
const EXTRA_SAMPLES: u64 = 100;

/// Progress reports of a flow that the peer may send beyond one per [`PROGRESS_INTERVAL`]: reports that a
/// congested path has delayed arrive together.
const EXTRA_PROGRESS: u64 = 100;
const PROGRESS_INTERVAL: Span = Span::from_ms(100);

/// Most readings of a sample: several times the number of metrics in our catalogue.
const MAX_READINGS: usize = 256;

/// The flows of one phase, from both ends.
#[derive(Debug)]
pub(super) struct Merge {
    flows: BTreeMap<FlowId, MergedFlow>,
    udp: bool,
    /// The group that the datagrams go to.
    multicast: Option<IpAddr>,
    /// Whether both ends count the same bytes: not if a transaction that breaks off has a connection of its own.
    accounts: bool,
    latency: Option<LatencyReport>,
    cut: bool,
    began: Mono,
    /// The interval between samples.
    tick: Span,
}

#[derive(Debug)]
struct MergedFlow {
    direction: Direction,
    sender_progress: Option<Progress>,
    sender: Option<(u16, Ended)>,
    receiver: Option<(u16, Ended)>,
    /// Sides that the cut of the drain has ended.
    cut_sides: Vec<Side>,
    /// Number of samples and progress reports that the peer has sent.
    samples_received: u64,
    progress_received: u64,
}

impl Merge {
    pub(super) fn new(orders: &[FlowOrder], spec: &TestSpec) -> Self {
        let flow = |order: &FlowOrder| MergedFlow {
            direction: order.direction(),
            sender_progress: None,
            sender: None,
            receiver: None,
            cut_sides: Vec::new(),
            samples_received: 0,
            progress_received: 0,
        };
        Self {
            flows: orders.iter().map(|order| (order.flow(), flow(order))).collect(),
            udp: spec.traffic.udp,
            multicast: spec.traffic.multicast,
            accounts: !spec.traffic.udp && !spec.transactions.reconnect(),
            latency: None,
            cut: false,
            began: clock::now(),
            tick: flow_tick(spec),
        }
    }

    /// Checks that the peer reports no more than is possible, because everything that it reports is kept.
    ///
    /// # Errors
    /// It reports more.
    pub(super) fn admit(&mut self, event: &DialogueEvent, now: Mono) -> Result<(), ControlError> {
        let elapsed = Span::from(now.since(self.began)).as_ns();
        let can_be = |every: Span, spare: u64| spare + 2 * (elapsed / every.as_ns().max(1));
        let within = match event {
            DialogueEvent::Session(SessionOutput::PeerSamples { flow, samples }) => {
                let Some(flow) = self.flows.get_mut(flow) else { return Ok(()) };
                flow.samples_received += samples.len() as u64;
                flow.samples_received <= can_be(self.tick, EXTRA_SAMPLES)
                    && samples.iter().all(|sample| sample.readings.iter().count() <= MAX_READINGS)
            }
            DialogueEvent::Session(SessionOutput::PeerProgress(progress)) => {
                let Some(flow) = self.flows.get_mut(&progress.flow) else { return Ok(()) };
                flow.progress_received += 1;
                flow.progress_received <= can_be(PROGRESS_INTERVAL, EXTRA_PROGRESS)
            }
            _ => true,
        };
        let what = "it reports more intervals than the flow had";
        if within { Ok(()) } else { Err(PeerError::Misbehaved { what: what.into() }.into()) }
    }

    pub(super) fn direction(&self, flow: FlowId) -> Option<Direction> {
        self.flows.get(&flow).map(|flow| flow.direction)
    }

    pub(super) fn progress(&mut self, progress: &Progress) {
        if let Some(flow) = self.flows.get_mut(&progress.flow)
            && progress.side == Side::Sender
        {
            flow.sender_progress = Some(*progress);
        }
    }

    pub(super) fn sender_progress(&self, flow: FlowId) -> Option<&Progress> {
        self.flows.get(&flow)?.sender_progress.as_ref()
    }

    /// Logs samples of host number `host`. A peer's samples are accepted only for its own side.
    pub(super) fn samples(&self, host: u16, flow: FlowId, samples: Vec<Sample>, log: &mut Log<'_>) {
        let Some(direction) = self.direction(flow) else { return };
        let own = side(direction, host == 0);
        for sample in samples.into_iter().filter(|sample| sample.side == own) {
            log.note_from(host, Body::Sample { flow, sample });
        }
    }

    pub(super) fn ended(&mut self, host: u16, ended: Ended) {
        let Some(flow) = self.flows.get_mut(&ended.flow) else { return };
        match ended.side {
            Side::Sender => flow.sender = Some((host, ended)),
            Side::Receiver => flow.receiver = Some((host, ended)),
        }
    }

    /// Whether this end has nothing more to send or receive, so that the path is no longer loaded for the
    /// probes.
    pub(super) fn load_over(&self) -> bool {
        self.flows.values().all(|flow| flow.sender.is_some() || flow.receiver.is_some())
    }

    /// Notes that the drain was cut off, which has ended the flows `interrupted`. A side that has reported its end before
    /// was not ended by it, and a flow that had failed would have failed without it.
    pub(super) fn cut(&mut self, interrupted: &[FlowId]) {
        self.cut = true;
        for number in interrupted {
            let Some(flow) = self.flows.get_mut(number) else { continue };
            let open = [(Side::Sender, flow.sender.is_none()), (Side::Receiver, flow.receiver.is_none())];
            flow.cut_sides = open.into_iter().filter(|(_, open)| *open).map(|(side, _)| side).collect();
        }
    }

    pub(super) fn latency(&mut self, report: Option<LatencyReport>) {
        self.latency = report;
    }

    /// Logs the final report of both sides, the byte accounting and the latency.
    pub(super) fn finish(mut self, log: &mut Log<'_>) {
        for (number, flow) in &mut self.flows {
            if let (true, Some((_, sender)), Some((_, receiver))) =
                (self.udp, &flow.sender, &mut flow.receiver)
            {
                complete_udp(&sender.tally, &mut receiver.tally);
                if let Some(group) = self.multicast.filter(|_| receiver.tally.bytes == Bytes::new(0)) {
                    let text = format!(
                        "no datagram to {group} reached this receiver: check that switches and routers forward the \
                         group (where switches snoop IGMP or MLD, the network needs a querier), and give --ttl if \
                         routers are between"
                    );
                    log.warn(Some(*number), CaveatKind::MulticastBlocked, text);
                }
            }
            let byte_accounting = match (&flow.sender, &flow.receiver) {
                (Some((_, sender)), Some((_, receiver))) if self.accounts => {
                    Some(ByteAccounting::close(&sender.tally, &receiver.tally))
                }
                _ => None,
            };
            for (host, mut ended) in [flow.sender.take(), flow.receiver.take()].into_iter().flatten() {
                if flow.cut_sides.contains(&ended.side) {
                    // The reset came from us, after the measured part, so the requested measurement is
                    // complete.
                    ended.tally.complete = true;
                    ended.tally.error = None;
                }
                note_end(*number, host, ended, log);
            }
            if let Some(bytes) = byte_accounting.filter(|bytes| self.cut && bytes.never_sent_bytes.get() > 0)
            {
                let text = format!(
                    "{} were still in the sender's queue when the wait for the last bytes ended. The result \
                     does not count them; a count at the sender would",
                    bytes.never_sent_bytes
                );
                log.warn(Some(*number), CaveatKind::DrainCut, text);
            }
            if let Some(byte_accounting) = byte_accounting {
                log.note(Body::BytesAccounted { flow: *number, byte_accounting });
            }
            if let Some(report) = self.latency.clone() {
                log.note(Body::Latency { flow: Some(*number), report });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_model::{CheckedSpec, Readings, SideSettings, Tally};
    use linerate_units::Timestamp;

    use super::*;

    /// The number of messages that are admitted after a time, each with some samples or one progress report.
    /// The limit of one million means unlimited.
    fn passed(after: Duration, event: &DialogueEvent) -> u32 {
        let order =
            FlowOrder::new(&CheckedSpec::default(), FlowId(0), Direction::Download, Bytes::new(1)).unwrap();
        let mut merge = Merge::new(&[order], &TestSpec::default());
        let now = merge.began + after;
        (0..1_000_000).take_while(|_| merge.admit(event, now).is_ok()).count() as u32
    }

    fn samples(readings: Readings) -> DialogueEvent {
        let (start_ns, end_ns) = (Timestamp::START, Timestamp::from_ns(1));
        let each = Sample { side: Side::Sender, start_ns, end_ns, outside: false, readings };
        DialogueEvent::Session(SessionOutput::PeerSamples { flow: FlowId(0), samples: vec![each; 10] })
    }

    #[test]
    fn the_other_end_reports_no_more_intervals_than_possible() {
        let (minute, at_once) = (Duration::from_secs(60), Duration::ZERO);
        // Ten per second by default, times two, plus one hundred.
        assert_eq!(passed(minute, &samples(Readings::default())), 130);
        assert_eq!(passed(at_once, &samples(Readings::default())), 10);
        let progress = Progress {
            flow: FlowId(0),
            side: Side::Sender,
            bytes: Bytes::default(),
            elapsed_ns: Span::ZERO,
            srtt_ns: None,
            retransmits: None,
        };
        let progress = DialogueEvent::Session(SessionOutput::PeerProgress(progress));
        assert_eq!((passed(minute, &progress), passed(at_once, &progress)), (1_300, 100));
    }

    #[test]
    fn a_cut_drain_excuses_only_what_it_has_ended() {
        let spec = CheckedSpec::default();
        let order = |flow| FlowOrder::new(&spec, FlowId(flow), Direction::Download, Bytes::new(1)).unwrap();
        let orders = [order(0), order(1), order(2)];
        let mut merge = Merge::new(&orders, &TestSpec::default());
        let mut log = Log::new("r".to_owned(), Vec::new());
        for order in &orders {
            let plan = crate::flow_log::plan(order.flow(), order.direction(), &spec, &log);
            log.note(Body::FlowPlanned(plan));
        }
        let failed = |flow, side, text: &str| {
            let tally = Tally { error: Some(text.into()), ..Tally::default() };
            let (settings, caveats) = (SideSettings::default(), Vec::new());
            Ended { flow: FlowId(flow), side, settings, tally, caveats }
        };
        // The sender of the second flow has failed before, and a stream of the receiver of the third one.
        merge.ended(1, failed(1, Side::Sender, "no such file"));
        merge.cut(&[FlowId(0), FlowId(1)]);
        for (host, side) in [(0, Side::Receiver), (1, Side::Sender)] {
            merge.ended(host, failed(0, side, "stopped before the other end had finished"));
            merge.ended(host, failed(2, side, "connection reset"));
        }
        merge.ended(0, failed(1, Side::Receiver, "stopped before the other end had finished"));
        merge.finish(&mut log);
        let errors = |flow| {
            let record = log.record().flow(FlowId(flow)).unwrap();
            [Side::Sender, Side::Receiver].map(|side| {
                let tally = record.tally(side).unwrap();
                assert_ne!(tally.complete, tally.error.is_some());
                tally.error.clone().map(String::from)
            })
        };
        assert_eq!(errors(0), [None, None]);
        assert_eq!(errors(1), [Some("no such file".to_owned()), None]);
        assert_eq!(errors(2), [(); 2].map(|()| Some("connection reset".to_owned())));
    }

    #[test]
    fn a_sample_has_no_more_readings_than_a_catalogue_can_have() {
        let readings = |count: usize| {
            let named: serde_json::Map<String, serde_json::Value> =
                (0..count).map(|number| (format!("x{number}"), number.into())).collect();
            samples(serde_json::from_value(named.into()).unwrap())
        };
        assert_eq!(passed(Duration::ZERO, &readings(256)), 10);
        assert_eq!(passed(Duration::ZERO, &readings(257)), 0);
    }
}
