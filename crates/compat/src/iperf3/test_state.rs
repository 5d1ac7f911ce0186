//! The state of a test, the same in both roles: flows, counts, intervals, the omitted part.

use linerate_model::{StreamTally, Tally, UdpTally};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use super::measure::Iperf3Meter;
use super::params::{Params, natural};
use super::plan::StreamGroup;
use super::report::{Iperf3EndResults, Iperf3Report, Iperf3StreamEnd, StreamEndCounts};
use super::results::{Iperf3Results, Omitted};
use crate::stand_in::{CpuTime, FlowCounts, FlowId, Opened};

/// A test whose streams are open.
#[derive(Debug)]
pub(super) struct Iperf3OpenTest {
    pub(super) meter: Iperf3Meter,
    pub(super) groups: Vec<StreamGroup>,
    /// The running flows.
    running: Vec<FlowId>,
    /// Congestion control algorithm of the first stream.
    congestion: Option<String>,
    interval: Span,
    omit: Span,
    next_interval: Option<Timestamp>,
    omit_end: Option<Timestamp>,
    /// When the last byte arrived, as far as known.
    last_arrival: Timestamp,
}

impl Iperf3OpenTest {
    /// `opened` has the streams in the order of opening; `interval` is the time between reports, zero for none.
    pub(super) fn new(params: &Params, groups: Vec<StreamGroup>, opened: &[Opened], interval: Span) -> Self {
        let flows: Vec<_> =
            groups.iter().flat_map(|group| group.links.iter().map(|_| (group.flow, group.sends))).collect();
        let congestion = opened.first().and_then(|opened| opened.congestion.clone());
        Self {
            meter: Iperf3Meter::new(params.udp, params.omit > 0, flows),
            groups,
            running: Vec::new(),
            congestion: (!params.udp).then(|| congestion.unwrap_or_else(|| "unknown".to_owned())),
            interval,
            omit: Span::from_secs(natural(params.omit)),
            next_interval: None,
            omit_end: None,
            last_arrival: Timestamp::START,
        }
    }

    /// Starts the timers.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.meter.begin(now);
        self.last_arrival = now;
        self.omit_end = (self.omit > Span::ZERO).then(|| now + self.omit);
        self.next_interval = (self.interval > Span::ZERO).then(|| now + self.interval);
    }

    /// Notes a started flow.
    pub(super) fn started(&mut self, flow: FlowId) {
        self.running.push(flow);
    }

    /// Notes an ended flow; false if it was not running.
    pub(super) fn ended(&mut self, flow: FlowId) -> bool {
        let known = self.running.contains(&flow);
        self.running.retain(|running| *running != flow);
        known
    }

    /// The running flows.
    pub(super) fn running(&self) -> &[FlowId] {
        &self.running
    }

    /// Whether a sender is running.
    pub(super) fn sends(&self) -> bool {
        self.groups.iter().any(|group| group.sends && self.running.contains(&group.flow))
    }

    /// The group of a flow.
    pub(super) fn group(&self, flow: FlowId) -> Option<&StreamGroup> {
        self.groups.iter().find(|group| group.flow == flow)
    }

    /// When counts are needed next.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        [self.next_interval, self.omit_end].into_iter().flatten().min()
    }

    /// Takes the counts, and returns the text of a finished interval or of the end of the omitted part. With
    /// `ending` the current interval is left to [`Iperf3OpenTest::close`].
    pub(super) fn count(
        &mut self,
        now: Timestamp,
        cpu: CpuTime,
        flows: &[FlowCounts],
        report: &mut Iperf3Report,
        ending: bool,
    ) -> String {
        self.meter.take(cpu, flows);
        let own = flows.iter().filter(|counts| self.group(counts.flow).is_some_and(|group| !group.sends));
        if let Some(last) = own.filter_map(|counts| counts.last_at).max() {
            self.last_arrival = self.last_arrival.max(last);
        }
        let mut text = String::new();
        if let Some(omit_end) = self.omit_end.filter(|omit_end| *omit_end <= now) {
            text += &self.interval(now, report);
            self.meter.end_omitted(now);
            self.omit_end = None;
            self.next_interval = (self.interval > Span::ZERO).then(|| omit_end + self.interval);
        }
        if let Some(next) = self.next_interval.filter(|next| *next <= now && !ending) {
            text += &self.interval(now, report);
            let missed = now.since(next).as_ns() / self.interval.as_ns().max(1);
            self.next_interval = Some(next + self.interval.saturating_mul(missed + 1));
        }
        text
    }

    /// Ends the last interval.
    pub(super) fn close(&mut self, now: Timestamp, report: &mut Iperf3Report) -> String {
        (self.next_interval, self.omit_end) = (None, None);
        self.interval(now, report)
    }

    /// When a receiver without data gives up.
    pub(super) fn silent_at(&self, timeout: Span) -> Option<Timestamp> {
        let receives = self.groups.iter().any(|group| !group.sends && self.running.contains(&group.flow));
        (receives && timeout > Span::ZERO).then(|| self.last_arrival + timeout)
    }

    /// The results for the peer.
    pub(super) fn results(&self, now: Timestamp) -> Iperf3Results {
        Iperf3Results { congestion: self.congestion.clone(), ..self.meter.results(now) }
    }

    /// The results of both ends, for the report.
    pub(super) fn end(&self, now: Timestamp, peer: Option<&Iperf3Results>) -> Iperf3EndResults {
        let duration = self.meter.elapsed(now);
        let remote = |id: i64, sent: bool| -> Option<StreamEndCounts> {
            let peer = peer?;
            Some(peer.stream(id)?.side(sent, peer.knows_retransmits, self.omitted(id)))
        };
        let streams = self.meter.ids().zip(self.meter.sides(now)).map(|((id, sends), (_, side))| {
            if sends {
                Iperf3StreamEnd { sent: Some(side), received: remote(id, false) }
            } else {
                Iperf3StreamEnd { sent: remote(id, true), received: Some(side) }
            }
        });
        Iperf3EndResults {
            duration,
            streams: streams.collect(),
            most_received: self.meter.most_received(),
            local_cpu: self.meter.cpu_share(),
            remote_cpu: peer.map(|peer| peer.cpu),
            local_congestion: self.congestion.clone(),
            remote_congestion: peer.and_then(|peer| peer.congestion.clone()),
        }
    }

    /// Whether the peer reports only existing streams.
    pub(super) fn knows(&self, peer: &Iperf3Results) -> bool {
        peer.streams.iter().all(|stream| self.meter.ids().any(|(id, _)| id == stream.id))
    }

    /// The peer's counts of each flow, for the archive.
    pub(super) fn peer_tallies(&self, peer: &Iperf3Results, udp: bool) -> Vec<(FlowId, Tally)> {
        let tally = |group: &StreamGroup| {
            let ids = self.meter.ids_of(group.flow);
            let sides: Vec<StreamEndCounts> = ids
                .iter()
                .filter_map(|id| peer.stream(*id))
                .map(|stream| stream.side(!group.sends, peer.knows_retransmits, self.omitted(stream.id)))
                .collect();
            (group.flow, tally(&sides, udp))
        };
        self.groups.iter().map(tally).collect()
    }

    /// The peer's omitted part, as far as this end knows it.
    fn omitted(&self, id: i64) -> Omitted {
        let packets = i64::try_from(self.meter.omitted_packets(id)).unwrap_or(i64::MAX);
        Omitted { errors: 0, packets }
    }

    fn interval(&mut self, now: Timestamp, report: &mut Iperf3Report) -> String {
        self.meter.interval(now).map_or_else(String::new, |records| report.interval(&records))
    }
}

fn tally(sides: &[StreamEndCounts], udp: bool) -> Tally {
    let bytes = Bytes::new(sides.iter().map(|side| side.bytes).fold(0, u64::saturating_add));
    let elapsed = sides.iter().map(|side| side.duration).max().unwrap_or_default();
    let retransmits: Option<u64> = sides
        .iter()
        .map(|side| side.retransmits)
        .try_fold(0, |sum: u64, each| Some(sum.saturating_add(each?)));
    let sum = |of: fn(&StreamEndCounts) -> u64| sides.iter().map(of).fold(0, u64::saturating_add);
    let datagrams = UdpTally {
        packets: sum(|side| side.packets),
        lost: sum(|side| u64::try_from(side.lost).unwrap_or(0)),
        out_of_order: sum(|side| side.out_of_order),
        jitter: sides.iter().map(|side| side.jitter).max(),
        ..UdpTally::default()
    };
    Tally {
        bytes,
        total_bytes: bytes,
        elapsed,
        bitrate: Bitrate::of(bytes, elapsed).unwrap_or_default(),
        retransmits: retransmits.filter(|_| !sides.is_empty() && !udp),
        udp: udp.then_some(datagrams),
        streams: sides
            .iter()
            .map(|side| StreamTally { bytes: Bytes::new(side.bytes), retransmits: side.retransmits })
            .collect(),
        complete: true,
        ..Tally::default()
    }
}
