//! A run folded from its events: what reports and rules read.

use linerate_units::{Bitrate, Bytes, Span};

use crate::caveat::Caveat;
use crate::event::{Body, Event, FlowPlan, Outcome, RunStart};
use crate::finding::{Ceiling, Finding};
use crate::host::HostInfo;
use crate::metrics::{Sample, Side};
use crate::settings::SideSettings;
use crate::tally::{Books, LatencyReport, ProbePhase, Steady, Tally};

/// A run folded from its events. Folding a log again gives the same record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRecord {
    /// The run.
    pub run: String,
    /// How it began; absent in a log whose beginning is lost.
    pub start: Option<RunStart>,
    /// The hosts, client first.
    pub hosts: Vec<HostInfo>,
    /// The flows, by number.
    pub flows: Vec<FlowRecord>,
    /// Latency before the load.
    pub idle: Option<LatencyReport>,
    /// What weakens the whole run.
    pub caveats: Vec<Caveat>,
    /// How it ended; absent when it was killed.
    pub outcome: Option<Outcome>,
    /// Why, unless it was completed.
    pub reason: Option<String>,
}

/// A flow folded from its events.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRecord {
    /// As planned.
    pub plan: FlowPlan,
    /// Settings of the sending side.
    pub sender_settings: Option<SideSettings>,
    /// Settings of the receiving side.
    pub receiver_settings: Option<SideSettings>,
    /// Last count of the receiver while the flow ran: bytes and time since its first read.
    pub progress: Option<(Bytes, Span)>,
    /// Intervals of both sides.
    pub samples: Vec<Sample>,
    /// What the sender counted.
    pub sender: Option<Tally>,
    /// What the receiver counted: the result.
    pub receiver: Option<Tally>,
    /// What became of the bytes.
    pub books: Option<Books>,
    /// Latency beside this flow.
    pub loaded: Option<LatencyReport>,
    /// The steady part.
    pub steady: Option<Steady>,
    /// Every known limit, smallest first.
    pub ladder: Vec<Ceiling>,
    /// The limit to compare the result with.
    pub ceiling: Option<Ceiling>,
    /// What held the flow back.
    pub verdict: Option<Finding>,
    /// Other rules whose conditions hold.
    pub also: Vec<Finding>,
    /// What weakens this flow's result.
    pub caveats: Vec<Caveat>,
}

impl FlowRecord {
    fn new(plan: FlowPlan) -> Self {
        Self {
            plan,
            sender_settings: None,
            receiver_settings: None,
            progress: None,
            samples: Vec::new(),
            sender: None,
            receiver: None,
            books: None,
            loaded: None,
            steady: None,
            ladder: Vec::new(),
            ceiling: None,
            verdict: None,
            also: Vec::new(),
            caveats: Vec::new(),
        }
    }

    /// The intervals of one side, in order.
    pub fn samples_of(&self, side: Side) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.side == side)
    }

    /// What one side counted.
    #[must_use]
    pub fn tally(&self, side: Side) -> Option<&Tally> {
        match side {
            Side::Sender => self.sender.as_ref(),
            Side::Receiver => self.receiver.as_ref(),
        }
    }

    /// Application bytes inside the measured part and the time in which they arrived: the receiver's tally, or its last
    /// progress when the flow did not live to see one.
    #[must_use]
    pub fn received(&self) -> Option<(Bytes, Span)> {
        self.receiver.as_ref().map(|tally| (tally.bytes, tally.elapsed)).or(self.progress)
    }

    /// Goodput at the receiver, from the same source as [`FlowRecord::received`]; absent when no time passed between
    /// the first and the last read.
    #[must_use]
    pub fn bitrate(&self) -> Option<Bitrate> {
        let Some(tally) = &self.receiver else {
            return self.progress.and_then(|(bytes, elapsed)| Bitrate::of(bytes, elapsed));
        };
        (tally.elapsed > Span::ZERO || tally.bitrate > Bitrate::ZERO).then_some(tally.bitrate)
    }

    /// What one side's sockets were set to.
    #[must_use]
    pub fn settings(&self, side: Side) -> Option<&SideSettings> {
        match side {
            Side::Sender => self.sender_settings.as_ref(),
            Side::Receiver => self.receiver_settings.as_ref(),
        }
    }
}

impl RunRecord {
    /// Folds a whole log.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut record = Self::default();
        for event in events {
            record.apply(event);
        }
        record
    }

    /// The flow numbered `flow`.
    #[must_use]
    pub fn flow(&self, flow: u16) -> Option<&FlowRecord> {
        self.flows.iter().find(|f| f.plan.flow == flow)
    }

    fn flow_mut(&mut self, flow: u16) -> Option<&mut FlowRecord> {
        self.flows.iter_mut().find(|f| f.plan.flow == flow)
    }

    /// The host that sends a flow, and the one that receives it.
    #[must_use]
    pub fn ends(&self, flow: &FlowRecord) -> (Option<&HostInfo>, Option<&HostInfo>) {
        let (client, server) = (self.hosts.first(), self.hosts.get(1));
        match flow.plan.direction {
            crate::spec::Direction::Upload => (client, server),
            crate::spec::Direction::Download => (server, client),
        }
    }

    /// Takes one event in. Events about flows that were never planned are passed over.
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::RunStarted(start) => {
                self.run.clone_from(&event.run);
                self.start = Some(start.clone());
            }
            Body::Host { info } => {
                let at = usize::from(event.host.min(63));
                if self.hosts.len() <= at {
                    self.hosts.resize_with(at + 1, HostInfo::default);
                }
                self.hosts[at] = info.clone();
            }
            Body::FlowPlanned(plan) => self.flows.push(FlowRecord::new(plan.clone())),
            Body::Latency { flow: None, report } => self.idle = Some(report.clone()),
            Body::Caveat { flow: None, caveat } => self.caveats.push(caveat.clone()),
            Body::RunEnded { outcome, reason } => {
                self.outcome = Some(*outcome);
                self.reason.clone_from(reason);
            }
            Body::Queued { .. } => {}
            about_a_flow => self.apply_to_flow(about_a_flow),
        }
    }

    fn apply_to_flow(&mut self, body: &Body) {
        let Some(number) = flow_of(body) else { return };
        let Some(flow) = self.flow_mut(number) else { return };
        match body {
            Body::FlowOpened { side, settings, .. } => match side {
                Side::Sender => flow.sender_settings = Some(settings.clone()),
                Side::Receiver => flow.receiver_settings = Some(settings.clone()),
            },
            Body::Progress { bytes, elapsed, .. } => flow.progress = Some((*bytes, *elapsed)),
            Body::Sample { sample, .. } => flow.samples.push(sample.clone()),
            Body::Latency { report, .. } if report.phase == ProbePhase::Loaded => {
                flow.loaded = Some(report.clone())
            }
            Body::FlowEnded { side, tally, .. } => match side {
                Side::Sender => flow.sender = Some(tally.clone()),
                Side::Receiver => flow.receiver = Some(tally.clone()),
            },
            Body::BooksClosed { books, .. } => flow.books = Some(*books),
            Body::Steady { steady, .. } => flow.steady = Some(*steady),
            Body::Ceilings { ladder, ceiling, .. } => {
                flow.ladder.clone_from(ladder);
                flow.ceiling.clone_from(ceiling);
            }
            Body::Verdict { verdict, also, .. } => {
                flow.verdict = Some(verdict.clone());
                flow.also.clone_from(also);
            }
            Body::Caveat { caveat, .. } => flow.caveats.push(caveat.clone()),
            _ => {}
        }
    }
}

fn flow_of(body: &Body) -> Option<u16> {
    match body {
        Body::FlowOpened { flow, .. }
        | Body::Progress { flow, .. }
        | Body::Sample { flow, .. }
        | Body::FlowEnded { flow, .. }
        | Body::BooksClosed { flow, .. }
        | Body::Steady { flow, .. }
        | Body::Ceilings { flow, .. }
        | Body::Verdict { flow, .. } => Some(*flow),
        Body::Latency { flow, .. } | Body::Caveat { flow, .. } => *flow,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Direction, Transport};
    use linerate_units::Timestamp;

    fn event(seq: u64, host: u16, body: Body) -> Event {
        Event { run: "r".into(), host, seq, at: Timestamp::from_ns(seq), body }
    }

    fn plan() -> FlowPlan {
        FlowPlan {
            flow: 3,
            name: "download".into(),
            from: "b".into(),
            to: "a".into(),
            transport: Transport::Tcp,
            direction: Direction::Download,
            streams: 1,
        }
    }

    #[test]
    fn a_log_folds_into_its_record_even_after_a_round_trip_through_json() {
        let tally = Tally { total_bytes: Bytes::new(9), ..Tally::default() };
        let log = [
            event(0, 1, Body::Host { info: HostInfo { name: "b".into(), ..HostInfo::default() } }),
            event(1, 0, Body::FlowPlanned(plan())),
            event(
                2,
                0,
                Body::Progress {
                    flow: 3,
                    bytes: Bytes::new(5),
                    elapsed: Span::from_secs(1),
                    srtt: None,
                    retransmits: None,
                },
            ),
            event(3, 0, Body::FlowEnded { flow: 3, side: Side::Receiver, tally: tally.clone() }),
            event(4, 0, Body::FlowEnded { flow: 99, side: Side::Receiver, tally }),
            event(5, 0, Body::RunEnded { outcome: Outcome::Completed, reason: None }),
        ];
        let text: Vec<String> = log.iter().map(|e| serde_json::to_string(e).unwrap()).collect();
        let back: Vec<Event> = text.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(back, log);
        let record = RunRecord::fold(&back);
        assert_eq!(record.hosts.len(), 2);
        let flow = record.flow(3).unwrap();
        assert_eq!(flow.progress, Some((Bytes::new(5), Span::from_secs(1))));
        assert_eq!(flow.receiver.as_ref().unwrap().total_bytes.get(), 9);
        assert_eq!(record.ends(flow).0.unwrap().name, "b");
        assert_eq!(record.outcome, Some(Outcome::Completed));
    }

    #[test]
    fn the_result_is_the_receivers_tally_else_its_last_progress() {
        let mut flow = FlowRecord::new(plan());
        assert_eq!((flow.received(), flow.bitrate()), (None, None));
        flow.progress = Some((Bytes::new(1000), Span::from_ms(1)));
        assert_eq!(flow.received(), flow.progress);
        // 8000 bits in a millisecond.
        assert_eq!(flow.bitrate(), Bitrate::from_bps(8e6));
        flow.receiver = Some(Tally {
            bytes: Bytes::new(5000),
            elapsed: Span::from_ms(10),
            bitrate: Bitrate::from_bps(3e6).unwrap(),
            ..Tally::default()
        });
        assert_eq!(flow.received(), Some((Bytes::new(5000), Span::from_ms(10))));
        assert_eq!(flow.bitrate(), Bitrate::from_bps(3e6));
        flow.receiver = Some(Tally { bytes: Bytes::new(1), ..Tally::default() });
        assert_eq!(flow.bitrate(), None, "a single read has no rate");
    }
}
