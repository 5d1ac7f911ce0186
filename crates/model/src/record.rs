//! A run folded from its events: the input of reports and rules.

use crate::BrowserNote;
use crate::flow::FlowId;
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};

use crate::accounting_step::AccountingStep;
use crate::caveat::Caveat;
use crate::ceiling::{Ceiling, CeilingShare};
use crate::event::{Body, Event, FlowPlan, GroupPlace, GroupStart, Outcome, RunStart};
use crate::finding::{Cause, Finding};
use crate::follow_up::FollowUp;
use crate::foreign_text::ForeignText;
use crate::host::HostInfo;
use crate::metrics::{Sample, Side};
use crate::port::{PortRecord, PortSample};
use crate::responsiveness::ResponsivenessReport;
use crate::run_labels::RunLabels;
use crate::settings::SideSettings;
use crate::size::{SizeCurve, SizePoint};
use crate::stream_progress::StreamProgress;
use crate::tally::{ByteAccounting, LatencyReport, ProbePhase, Steady, Tally};
use crate::uncertainty::Uncertainty;

/// A run folded from its events. Folding the log again gives the same record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRecord {
    /// The run.
    pub run: ForeignText,
    /// Its start; absent if the start of the log is lost.
    pub start: Option<RunStart>,
    /// Its place among runs started together.
    pub group: Option<GroupPlace>,
    /// When it began to measure, if it was started together with others.
    pub group_start: Option<GroupStart>,
    /// The name and notes that the user gave it.
    pub labels: RunLabels,
    /// The hosts, client first.
    pub hosts: Vec<HostInfo>,
    /// The flows, by number.
    pub flows: Vec<FlowRecord>,
    /// The counts of the emulated network's ports, by phase; empty on real hosts.
    pub ports: Vec<PortRecord>,
    /// Latency before the load.
    pub idle: Option<LatencyReport>,
    /// Responsiveness under load, in each combination of directions that was loaded; empty in plain tests.
    pub responsiveness: Vec<ResponsivenessReport>,
    /// The caveats for the whole run.
    pub caveats: Vec<Caveat>,
    /// How it ended; absent if it was killed.
    pub outcome: Option<Outcome>,
    /// The reason, unless it was completed.
    pub reason: Option<ForeignText>,
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
    /// Time of the receiver's first read, from the start of the run. If the server reports it, it is late by a
    /// one-way delay. Absent if the flow ended before its first progress report.
    pub first_read: Option<Timestamp>,
    /// Intervals of both sides.
    pub samples: Vec<Sample>,
    /// What each stream had moved at some moments, in order; empty for a single stream.
    pub streams: Vec<StreamProgress>,
    /// The sizes of a sweep over message sizes, smallest first; empty in a plain test.
    pub sizes: Vec<SizePoint>,
    /// Their summary.
    pub curve: Option<SizeCurve>,
    /// What the sender counted.
    pub sender: Option<Tally>,
    /// What the receiver counted: the result.
    pub receiver: Option<Tally>,
    /// Where the bytes went.
    pub byte_accounting: Option<ByteAccounting>,
    /// What a browser said of its part; absent if neither end is one.
    pub browser: Option<BrowserNote>,
    /// The byte accounting down to the wire; empty if only the programs' counts were read.
    pub steps: Vec<AccountingStep>,
    /// Latency during this flow.
    pub loaded: Option<LatencyReport>,
    /// The steady part.
    pub steady: Option<Steady>,
    /// How well the rate is known; absent if it cannot be stated.
    pub uncertainty: Option<Uncertainty>,
    /// Every known limit, smallest first.
    pub ceilings: Vec<Ceiling>,
    /// The limit to compare the result with.
    pub ceiling: Option<Ceiling>,
    /// What limited the flow.
    pub verdict: Option<Finding>,
    /// Other rules whose conditions hold.
    pub also: Vec<Finding>,
    /// Follow-ups: questions answered by further runs, in order.
    pub follow_ups: Vec<FollowUp>,
    /// The caveats for this flow's result.
    pub caveats: Vec<Caveat>,
}

impl FlowRecord {
    fn new(plan: FlowPlan) -> Self {
        Self {
            plan,
            sender_settings: None,
            receiver_settings: None,
            progress: None,
            first_read: None,
            samples: Vec::new(),
            streams: Vec::new(),
            sizes: Vec::new(),
            curve: None,
            sender: None,
            receiver: None,
            byte_accounting: None,
            browser: None,
            steps: Vec::new(),
            loaded: None,
            steady: None,
            uncertainty: None,
            ceilings: Vec::new(),
            ceiling: None,
            verdict: None,
            also: Vec::new(),
            follow_ups: Vec::new(),
            caveats: Vec::new(),
        }
    }

    fn note_progress(&mut self, at: Timestamp, bytes: Bytes, elapsed: Span) {
        self.progress = Some((bytes, elapsed));
        // The report arrives some time after the last read, so the earliest estimate is the best. Before the
        // first byte there is no start.
        let first = at.as_ns().checked_sub(elapsed.as_ns()).filter(|_| bytes > Bytes::default());
        let earlier = first.map(Timestamp::from_ns).into_iter().chain(self.first_read);
        self.first_read = earlier.min();
    }

    /// A repeated size replaces the earlier point.
    fn note_size(&mut self, point: &SizePoint) {
        match self.sizes.binary_search_by_key(&point.message_bytes, |known| known.message_bytes) {
            Ok(at) => self.sizes[at] = point.clone(),
            Err(at) => self.sizes.insert(at, point.clone()),
        }
    }

    /// The curve determines which rates are those of a buffer.
    fn note_curve(&mut self, curve: SizeCurve) {
        for point in &mut self.sizes {
            point.buffered = curve.is_buffered(point);
        }
        self.curve = Some(curve);
    }

    /// The intervals of one side, in order.
    pub fn samples_of(&self, side: Side) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.side == side)
    }

    /// The intervals of one side inside the measured part, in order.
    pub fn measured_samples_of(&self, side: Side) -> impl Iterator<Item = &Sample> {
        self.samples_of(side).filter(|sample| !sample.outside)
    }

    /// What one side counted.
    #[must_use]
    pub fn tally(&self, side: Side) -> Option<&Tally> {
        match side {
            Side::Sender => self.sender.as_ref(),
            Side::Receiver => self.receiver.as_ref(),
        }
    }

    /// Application bytes in the measured part and the time in which they arrived: from the receiver's tally, or
    /// from its last progress report if the flow ended without a tally.
    #[must_use]
    pub fn received(&self) -> Option<(Bytes, Span)> {
        self.receiver.as_ref().map(|tally| (tally.bytes, tally.elapsed)).or(self.progress)
    }

    /// Datagrams that the receiver read or knows as lost, and the loss ratio (RFC 7680). Both counts are the
    /// receiver's, so they cover the same part of the flow.
    #[must_use]
    pub fn datagrams(&self) -> Option<(u64, Option<Ratio>)> {
        let udp = self.receiver.as_ref()?.udp.as_ref()?;
        let packets = udp.packets.saturating_sub(udp.duplicates).saturating_add(udp.lost);
        Some((packets, Ratio::new(udp.lost as f64 / packets as f64)))
    }

    /// Goodput at the receiver, from the same source as [`FlowRecord::received`]; absent if no time passed
    /// between the first and the last read. For a sweep over message sizes: the highest rate of a size that was
    /// not buffered.
    #[must_use]
    pub fn bitrate(&self) -> Option<Bitrate> {
        if !self.sizes.is_empty() {
            return self
                .sizes
                .iter()
                .filter(|point| !point.buffered)
                .filter_map(|point| point.bitrate)
                .max_by(|a, b| a.bps().total_cmp(&b.bps()));
        }
        let Some(tally) = &self.receiver else {
            return self.progress.and_then(|(bytes, elapsed)| Bitrate::of(bytes, elapsed));
        };
        (tally.elapsed > Span::ZERO || tally.bitrate > Bitrate::ZERO).then_some(tally.bitrate)
    }

    /// Whether more data arrived than possible: according to the verdict or, without one, because the rate is
    /// above a link's.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        let above = || {
            let wall = self.ceiling.as_ref().filter(|ceiling| ceiling.is_wall());
            wall.zip(self.bitrate()).is_some_and(|(wall, rate)| wall.is_exceeded_by(rate))
        };
        match self.verdict.as_ref().map(|verdict| verdict.cause) {
            Some(Cause::Impossible) => true,
            // The rules account for data in buffers and for what a specified rate includes.
            Some(cause) if cause != Cause::Invalid => false,
            _ => above(),
        }
    }

    /// The bit rate as a share of the ceiling; absent if either is missing, or if the rate is above the
    /// ceiling, because then one of the two is wrong.
    #[must_use]
    pub fn ceiling_share(&self) -> Option<CeilingShare> {
        let (ceiling, rate) = (self.ceiling.as_ref()?, self.bitrate()?);
        if ceiling.is_wall() && !self.is_impossible() {
            return CeilingShare::within(rate, ceiling);
        }
        CeilingShare::of(rate, ceiling)
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
    pub fn flow(&self, flow: FlowId) -> Option<&FlowRecord> {
        self.flows.iter().find(|f| f.plan.flow == flow)
    }

    fn flow_mut(&mut self, flow: FlowId) -> Option<&mut FlowRecord> {
        self.flows.iter_mut().find(|f| f.plan.flow == flow)
    }

    /// The sending host of a flow, and the receiving host.
    #[must_use]
    pub fn ends(&self, flow: &FlowRecord) -> (Option<&HostInfo>, Option<&HostInfo>) {
        let (client, server) = (self.hosts.first(), self.hosts.get(1));
        match flow.plan.direction {
            crate::spec::Direction::Upload => (client, server),
            crate::spec::Direction::Download => (server, client),
        }
    }

    /// Applies one event. Events about flows that were never planned are ignored.
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::RunStarted(start) => {
                self.run.clone_from(&event.run);
                self.start = Some(RunStart::clone(start));
            }
            Body::Host { info } => {
                let at = usize::from(event.host.min(63));
                if self.hosts.len() <= at {
                    self.hosts.resize_with(at + 1, HostInfo::default);
                }
                self.hosts[at] = info.clone();
            }
            Body::Labelled(labels) => self.labels.clone_from(labels),
            Body::Grouped(place) => self.group = Some(place.clone()),
            Body::Started(start) => self.group_start = Some(*start),
            Body::FlowPlanned(plan) => self.flows.push(FlowRecord::new(plan.clone())),
            Body::Port { flows, port, sample } => self.apply_to_port(flows, port, sample),
            Body::Latency { flow: None, report } => self.idle = Some(report.clone()),
            Body::Responsiveness(report) => self.responsiveness.push(ResponsivenessReport::clone(report)),
            Body::Caveat { flow: None, caveat } => self.caveats.push(caveat.clone()),
            Body::RunEnded { outcome, reason } => {
                self.outcome = Some(*outcome);
                self.reason.clone_from(reason);
            }
            Body::Queued { .. } => {}
            about_a_flow => self.apply_to_flow(event.at, about_a_flow),
        }
    }

    fn apply_to_port(&mut self, flows: &[FlowId], port: &str, sample: &PortSample) {
        // Search from the end: the intervals of a port are consecutive in a log.
        let mut known = self.ports.iter_mut().rev();
        match known.find(|record| record.port == port && record.flows == flows) {
            Some(record) => record.samples.push(sample.clone()),
            None => self.ports.push(PortRecord {
                port: port.into(),
                flows: flows.to_vec(),
                samples: vec![sample.clone()],
            }),
        }
    }

    fn apply_to_flow(&mut self, at: Timestamp, body: &Body) {
        let Some(number) = flow_of(body) else { return };
        let Some(flow) = self.flow_mut(number) else { return };
        match body {
            Body::FlowOpened { side, settings, .. } => match side {
                Side::Sender => flow.sender_settings = Some(settings.clone()),
                Side::Receiver => flow.receiver_settings = Some(settings.clone()),
            },
            Body::Progress { bytes, elapsed, .. } => flow.note_progress(at, *bytes, *elapsed),
            Body::Streams { counted, bytes, .. } => {
                flow.streams.push(StreamProgress { at, counted: *counted, bytes: bytes.clone() })
            }
            Body::Sample { sample, .. } => flow.samples.push(sample.clone()),
            Body::Size { point, .. } => flow.note_size(point),
            Body::Curve { curve, .. } => flow.note_curve(*curve),
            Body::Latency { report, .. } if report.phase == ProbePhase::Loaded => {
                flow.loaded = Some(report.clone())
            }
            Body::FlowEnded { side, tally, .. } => match side {
                Side::Sender => flow.sender = Some(tally.clone()),
                Side::Receiver => flow.receiver = Some(tally.clone()),
            },
            Body::BytesAccounted { byte_accounting, .. } => flow.byte_accounting = Some(*byte_accounting),
            Body::Reconciled { steps, .. } => flow.steps.clone_from(steps),
            Body::Steady { steady, .. } => flow.steady = Some(*steady),
            Body::Uncertainty { uncertainty, .. } => flow.uncertainty = Some(uncertainty.clone()),
            Body::Ceilings { ceilings, ceiling, .. } => {
                flow.ceilings.clone_from(ceilings);
                flow.ceiling.clone_from(ceiling);
            }
            Body::Verdict { verdict, also, .. } => {
                flow.verdict = Some(verdict.clone());
                flow.also.clone_from(also);
            }
            Body::Browser { note, .. } => flow.browser = Some(note.clone()),
            Body::FollowUp { follow_up, .. } => flow.follow_ups.push(follow_up.clone()),
            Body::Caveat { caveat, .. } => flow.caveats.push(caveat.clone()),
            _ => {}
        }
    }
}

fn flow_of(body: &Body) -> Option<FlowId> {
    match body {
        Body::FlowOpened { flow, .. }
        | Body::Progress { flow, .. }
        | Body::Streams { flow, .. }
        | Body::Sample { flow, .. }
        | Body::Size { flow, .. }
        | Body::Curve { flow, .. }
        | Body::FlowEnded { flow, .. }
        | Body::BytesAccounted { flow, .. }
        | Body::Reconciled { flow, .. }
        | Body::Steady { flow, .. }
        | Body::Uncertainty { flow, .. }
        | Body::Ceilings { flow, .. }
        | Body::Browser { flow, .. }
        | Body::FollowUp { flow, .. }
        | Body::Verdict { flow, .. } => Some(*flow),
        Body::Latency { flow, .. } | Body::Caveat { flow, .. } => *flow,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Readings;
    use crate::spec::{Direction, Transport};

    fn event(seq: u64, host: u16, body: Body) -> Event {
        Event { run: "r".into(), host, seq, at: Timestamp::from_ns(seq), body }
    }

    fn plan() -> FlowPlan {
        FlowPlan {
            flow: FlowId(3),
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
                    flow: FlowId(3),
                    bytes: Bytes::new(5),
                    elapsed: Span::from_secs(1),
                    srtt: None,
                    retransmits: None,
                },
            ),
            event(3, 0, Body::FlowEnded { flow: FlowId(3), side: Side::Receiver, tally: tally.clone() }),
            event(4, 0, Body::FlowEnded { flow: FlowId(99), side: Side::Receiver, tally }),
            event(5, 0, Body::RunEnded { outcome: Outcome::Completed, reason: None }),
        ];
        let text: Vec<String> = log.iter().map(|e| serde_json::to_string(e).unwrap()).collect();
        let back: Vec<Event> = text.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(back, log);
        let record = RunRecord::fold(&back);
        assert_eq!(record.hosts.len(), 2);
        let flow = record.flow(FlowId(3)).unwrap();
        assert_eq!(flow.progress, Some((Bytes::new(5), Span::from_secs(1))));
        assert_eq!(flow.receiver.as_ref().unwrap().total_bytes.get(), 9);
        assert_eq!(record.ends(flow).0.unwrap().name, "b");
        assert_eq!(record.outcome, Some(Outcome::Completed));
    }

    #[test]
    fn the_first_read_is_the_earliest_that_any_progress_report_implies() {
        let mut flow = FlowRecord::new(plan());
        let mut note = |at_ms: u64, bytes: u64, elapsed_ms: u64| {
            let at = Timestamp::START + Span::from_ms(at_ms);
            flow.note_progress(at, Bytes::new(bytes), Span::from_ms(elapsed_ms));
            flow.first_read.map(|at| at.as_ns() / 1_000_000)
        };
        assert_eq!(note(100, 0, 0), None, "nothing has been read");
        assert_eq!(note(500, 10, 240), Some(260));
        assert_eq!(note(750, 20, 495), Some(255), "reported sooner after its last read");
        assert_eq!(note(1000, 20, 495), Some(255), "nothing came since");
        assert_eq!(note(1, 30, 500), Some(255), "longer than the run");
    }

    #[test]
    fn the_intervals_of_a_port_are_folded_by_phase_even_after_a_round_trip_through_json() {
        let body = |flows: &[FlowId], port: &str, start_ns: u64| {
            let mut readings = Readings::default();
            readings.put(crate::metrics::port::QUEUE_MAX, Bytes::new(u64::MAX));
            let (start_ns, end_ns) = (Timestamp::from_ns(start_ns), Timestamp::from_ns(start_ns + 5));
            let sample = PortSample { start_ns, end_ns, outside: start_ns == Timestamp::START, readings };
            Body::Port { flows: flows.to_vec(), port: port.into(), sample }
        };
        let bodies = [
            body(&[FlowId(0)], "a>s", 0),
            body(&[FlowId(0)], "s>b", 0),
            body(&[FlowId(0)], "a>s", 5),
            body(&[FlowId(1)], "a>s", 10),
            body(&[FlowId(1)], "a>s", 15),
        ];
        let log: Vec<Event> = (0..).zip(bodies).map(|(seq, body)| event(seq, 0, body)).collect();
        let text: Vec<String> = log.iter().map(|e| serde_json::to_string(e).unwrap()).collect();
        assert!(text[2].contains(r#""kind":"port","flows":[0],"port":"a>s""#), "{}", text[2]);
        let back: Vec<Event> = text.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(back, log);
        let ports = RunRecord::fold(&back).ports;
        let seen = |p: &PortRecord| (p.port.clone(), p.flows.clone(), p.samples.len());
        let expected = [
            ("a>s".into(), vec![FlowId(0)], 2),
            ("s>b".into(), vec![FlowId(0)], 1),
            ("a>s".into(), vec![FlowId(1)], 2),
        ];
        assert_eq!(ports.iter().map(seen).collect::<Vec<_>>(), expected);
        assert_eq!(ports[0].samples[1].span(), Span::from_ns(5));
        assert!(ports[0].samples[0].outside && !ports[0].samples[1].outside);
    }

    #[test]
    fn sizes_are_folded_in_order_even_after_a_round_trip_through_json() {
        let size = |bytes: u64, best_ns: u64, bps: f64| Body::Size {
            flow: FlowId(3),
            point: SizePoint {
                message_bytes: Bytes::new(bytes),
                trials: Some(3),
                repeats: None,
                best: Span::from_ns(best_ns),
                median: None,
                interval: None,
                bitrate: Bitrate::from_bps(bps),
                buffered: false,
            },
        };
        let bodies = [
            Body::FlowPlanned(plan()),
            size(64, 900, 2e6),
            size(1, 500, 1e6),
            size(64, 800, 3e6),
            size(128, 1200, 2e6),
        ];
        let log: Vec<Event> = (0..).zip(bodies).map(|(seq, body)| event(seq, 0, body)).collect();
        let text: Vec<String> = log.iter().map(|e| serde_json::to_string(e).unwrap()).collect();
        assert!(text[1].contains(r#""kind":"size","flow":3,"point":{"message_bytes":64,"#), "{}", text[1]);
        assert!(text[1].contains(r#""best_one_way_ns":900,"bitrate_bps":2000000.0"#), "{}", text[1]);
        let back: Vec<Event> = text.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(back, log);
        let record = RunRecord::fold(&back);
        let flow = record.flow(FlowId(3)).unwrap();
        let seen: Vec<_> = flow.sizes.iter().map(|p| (p.message_bytes.get(), p.best.as_ns())).collect();
        assert_eq!(seen, [(1, 500), (64, 800), (128, 1200)]);
        assert_eq!(flow.bitrate(), Bitrate::from_bps(3e6));
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
