//! The counts of a test: totals, intervals, and the part after the omitted one.

use linerate_units::{Span, Timestamp};

use super::report::{CpuShare, StreamEndCounts, StreamInterval};
use super::results::{Iperf3Results, Omitted, StreamResult};
use super::wire::stream_id;
use crate::stand_in::{CpuTime, FlowCounts, FlowId, StreamCounts};

/// The streams of one test at this end, in the order in which they were opened.
#[derive(Debug)]
pub(super) struct Iperf3Meter {
    udp: bool,
    streams: Vec<StreamMeter>,
    /// Start of the test, or end of its omitted part.
    start: Timestamp,
    /// Start of the current interval.
    interval_start: Timestamp,
    omitting: bool,
    cpu_at_start: Option<CpuTime>,
    cpu: CpuTime,
}

#[derive(Debug)]
struct StreamMeter {
    id: i64,
    sends: bool,
    /// Its flow, and its index there.
    flow: FlowId,
    at: usize,
    now: StreamCounts,
    /// Whether later counts are ignored.
    frozen: bool,
    /// The counts at the start of the interval.
    before: StreamCounts,
    /// The counts at the end of the omitted part.
    omitted: StreamCounts,
}

impl Iperf3Meter {
    /// `flows` has the flow of each stream and whether this end sends, in the order of opening.
    pub(super) fn new(udp: bool, omits: bool, flows: impl IntoIterator<Item = (FlowId, bool)>) -> Self {
        let mut streams: Vec<StreamMeter> = Vec::new();
        for (flow, sends) in flows {
            let at = streams.iter().filter(|stream| stream.flow == flow).count();
            let zero = StreamCounts::default();
            let id = stream_id(streams.len());
            streams.push(StreamMeter {
                id,
                sends,
                flow,
                at,
                now: zero,
                frozen: false,
                before: zero,
                omitted: zero,
            });
        }
        let start = Timestamp::START;
        Self {
            udp,
            streams,
            start,
            interval_start: start,
            omitting: omits,
            cpu_at_start: None,
            cpu: CpuTime::default(),
        }
    }

    /// Starts the timers.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.start = now;
        self.interval_start = now;
    }

    /// Updates the counts of all streams.
    pub(super) fn take(&mut self, cpu: CpuTime, flows: &[FlowCounts]) {
        self.cpu_at_start.get_or_insert(cpu);
        self.cpu = cpu;
        for counts in flows {
            self.take_flow(counts);
        }
    }

    /// Updates the counts of one flow's streams.
    pub(super) fn take_flow(&mut self, counts: &FlowCounts) {
        for stream in self.streams.iter_mut().filter(|stream| stream.flow == counts.flow && !stream.frozen) {
            if let Some(now) = counts.streams.get(stream.at) {
                stream.now = *now;
            }
        }
    }

    /// From now on the counts of receiving streams do not change.
    pub(super) fn freeze(&mut self) {
        for stream in self.streams.iter_mut().filter(|stream| !stream.sends) {
            stream.frozen = true;
        }
    }

    /// Time since the start, or since the end of the omitted part.
    pub(super) fn elapsed(&self, now: Timestamp) -> Span {
        now.since(self.start)
    }

    /// The interval that ends now; absent if it has no length.
    pub(super) fn interval(&mut self, now: Timestamp) -> Option<Vec<StreamInterval>> {
        if now <= self.interval_start {
            return None;
        }
        let (start, end) = (self.interval_start.since(self.start), now.since(self.start));
        let records = self.streams.iter().map(|stream| StreamInterval {
            start,
            end,
            omitted: self.omitting,
            ..stream.since(&stream.before, self.udp)
        });
        let records = records.collect();
        for stream in &mut self.streams {
            stream.before = stream.now;
        }
        self.interval_start = now;
        Some(records)
    }

    /// Ends the omitted part and restarts the counts.
    pub(super) fn end_omitted(&mut self, now: Timestamp) {
        self.omitting = false;
        self.begin(now);
        for stream in &mut self.streams {
            stream.before = stream.now;
            stream.omitted = stream.now;
        }
        self.cpu_at_start = Some(self.cpu);
    }

    /// Bytes sent (or received) on all streams after the omitted part.
    pub(super) fn bytes(&self, sent: bool) -> u64 {
        let side = self.streams.iter().filter(|stream| stream.sends == sent);
        side.map(|stream| stream.now.bytes.saturating_sub(stream.omitted.bytes)).fold(0, u64::saturating_add)
    }

    /// Most bytes that a receiving stream has received, including the omitted part.
    pub(super) fn most_received(&self) -> u64 {
        let received = self.streams.iter().filter(|stream| !stream.sends).map(|stream| stream.now.bytes);
        received.max().unwrap_or_default()
    }

    /// Bytes of both directions, including the omitted part.
    pub(super) fn all_bytes(&self) -> u64 {
        self.streams.iter().map(|stream| stream.now.bytes).fold(0, u64::saturating_add)
    }

    /// The counts after the omitted part by stream, and whether this end sent.
    pub(super) fn sides(&self, now: Timestamp) -> Vec<(bool, StreamEndCounts)> {
        let duration = self.elapsed(now);
        let side = |stream: &StreamMeter| {
            let counts = stream.since(&stream.omitted, self.udp);
            StreamEndCounts {
                bytes: counts.bytes,
                duration,
                retransmits: counts.retransmits,
                packets: counts.packets,
                lost: counts.lost,
                out_of_order: disordered(&stream.now).saturating_sub(disordered(&stream.omitted)),
                jitter: counts.jitter,
            }
        };
        self.streams.iter().map(|stream| (stream.sends, side(stream))).collect()
    }

    /// CPU share of this process during the measurement.
    pub(super) fn cpu_share(&self) -> CpuShare {
        let start = self.cpu_at_start.unwrap_or_default();
        let elapsed = self.cpu.elapsed.saturating_sub(start.elapsed).as_secs_f64();
        let share = |now: Span, then: Span| {
            if elapsed > 0.0 { now.saturating_sub(then).as_secs_f64() / elapsed * 100.0 } else { 0.0 }
        };
        let user = share(self.cpu.user, start.user);
        let system = share(self.cpu.system, start.system);
        CpuShare { total: user + system, user, system }
    }

    /// The results to send to the peer.
    pub(super) fn results(&self, now: Timestamp) -> Iperf3Results {
        let end_time = self.elapsed(now).as_secs_f64();
        let streams = self.streams.iter().map(|stream| stream.result(self.udp, end_time));
        let sends = self.streams.iter().any(|stream| stream.sends);
        let knows = |stream: &StreamMeter| stream.now.retransmits.is_some();
        let all_know = self.streams.iter().filter(|stream| stream.sends).all(knows);
        Iperf3Results {
            cpu: self.cpu_share(),
            knows_retransmits: sends.then_some(!self.udp && all_know),
            streams: streams.collect(),
            ..Iperf3Results::default()
        }
    }

    /// Numbers of the streams, and whether this end sends.
    pub(super) fn ids(&self) -> impl Iterator<Item = (i64, bool)> {
        self.streams.iter().map(|stream| (stream.id, stream.sends))
    }

    /// Datagrams of a stream in the omitted part by this end's count, because peers before 3.14 do not report
    /// theirs.
    pub(super) fn omitted_packets(&self, id: i64) -> u64 {
        let stream = self.streams.iter().find(|stream| stream.id == id && self.udp);
        stream.map_or(0, |stream| stream.packets(&stream.omitted))
    }

    /// Numbers of the streams of a flow.
    pub(super) fn ids_of(&self, flow: FlowId) -> Vec<i64> {
        self.streams.iter().filter(|stream| stream.flow == flow).map(|stream| stream.id).collect()
    }
}

impl StreamMeter {
    /// The counts since `then`, and the present state.
    fn since(&self, then: &StreamCounts, udp: bool) -> StreamInterval {
        let now = &self.now;
        let tcp_sender = self.sends && !udp;
        StreamInterval {
            bytes: now.bytes.saturating_sub(then.bytes),
            retransmits: now
                .retransmits
                .filter(|_| tcp_sender)
                .map(|retransmits| retransmits.saturating_sub(then.retransmits.unwrap_or(0))),
            snd_cwnd: now.snd_cwnd.filter(|_| tcp_sender),
            snd_wnd: now.snd_wnd.filter(|_| tcp_sender),
            rtt: now.rtt.filter(|_| tcp_sender),
            rttvar: now.rttvar.filter(|_| tcp_sender),
            pmtu: now.pmtu.filter(|_| tcp_sender),
            reorder: now.reorder.filter(|_| tcp_sender),
            packets: if udp { self.packets(now).saturating_sub(self.packets(then)) } else { 0 },
            lost: now.lost as i64 - then.lost as i64,
            jitter: now.jitter,
            ..StreamInterval::default()
        }
    }

    fn result(&self, udp: bool, end_time: f64) -> StreamResult {
        let counts = self.since(&self.omitted, udp);
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let packets = |counts| if udp { whole(self.packets(counts)) } else { 0 };
        StreamResult {
            id: self.id,
            bytes: whole(counts.bytes),
            retransmits: counts.retransmits.map_or(-1, whole),
            jitter: if self.sends { 0.0 } else { self.now.jitter.as_secs_f64() },
            errors: whole(self.now.lost),
            packets: packets(&self.now),
            omitted: Some(Omitted { errors: whole(self.omitted.lost), packets: packets(&self.omitted) }),
            start_time: 0.0,
            end_time,
        }
    }

    /// Datagrams sent, or the highest number received.
    fn packets(&self, counts: &StreamCounts) -> u64 {
        if self.sends { counts.packets } else { counts.highest }
    }
}

/// iperf3 counts a duplicate datagram as out of order.
fn disordered(counts: &StreamCounts) -> u64 {
    counts.out_of_order.saturating_add(counts.duplicates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::START + Span::from_secs(secs)
    }

    fn cpu(secs: u64, user_ms: u64) -> CpuTime {
        CpuTime {
            elapsed: Span::from_secs(secs),
            user: Span::from_ms(user_ms),
            system: Span::ZERO,
            usage: None,
        }
    }

    fn received(bytes: u64, highest: u64, lost: u64) -> Vec<FlowCounts> {
        let stream = StreamCounts { bytes, highest, lost, duplicates: lost, ..StreamCounts::default() };
        vec![FlowCounts { flow: FlowId(4), streams: vec![stream], ..FlowCounts::default() }]
    }

    #[test]
    fn an_omitted_part_is_in_the_totals_on_the_wire_and_nowhere_else() {
        let mut meter = Iperf3Meter::new(true, true, [(FlowId(4), false)]);
        meter.take(cpu(10, 0), &[]);
        meter.begin(at(10));
        meter.take(cpu(11, 900), &received(1000, 10, 1));
        let records = meter.interval(at(11)).unwrap();
        assert!(records[0].omitted);
        assert_eq!((records[0].bytes, records[0].packets, records[0].lost), (1000, 10, 1));
        meter.end_omitted(at(11));
        meter.take(cpu(13, 1000), &received(4000, 43, 4));
        let records = meter.interval(at(13)).unwrap();
        assert!(!records[0].omitted);
        assert_eq!((records[0].start, records[0].end), (Span::ZERO, Span::from_secs(2)));
        assert_eq!((records[0].bytes, records[0].packets, records[0].lost), (3000, 33, 3));
        let stream = meter.results(at(13)).streams[0];
        assert_eq!((stream.bytes, stream.packets, stream.errors, stream.retransmits), (3000, 43, 4, -1));
        assert_eq!(stream.omitted, Some(Omitted { errors: 1, packets: 10 }));
        let (sent, side) = meter.sides(at(13))[0];
        assert_eq!((sent, side.packets, side.lost, side.out_of_order), (false, 33, 3, 3));
        assert_eq!(side.duration, Span::from_secs(2));
        // 0.1 s of CPU time in 2 s.
        assert!((meter.cpu_share().total - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_sender_that_does_not_know_its_retransmits_says_so_and_never_minus_one() {
        let sender = |retransmits| {
            let mut meter = Iperf3Meter::new(false, false, [(FlowId(4), true)]);
            let stream = StreamCounts { retransmits, ..StreamCounts::default() };
            let counts = FlowCounts { flow: FlowId(4), streams: vec![stream], ..FlowCounts::default() };
            meter.take(cpu(0, 0), &[counts]);
            meter.results(at(1))
        };
        assert_eq!(sender(Some(3)).knows_retransmits, Some(true));
        assert_eq!(sender(Some(3)).streams[0].retransmits, 3);
        assert_eq!(sender(None).knows_retransmits, Some(false));
        let receiver = Iperf3Meter::new(false, false, [(FlowId(4), false)]).results(at(1));
        assert_eq!(receiver.knows_retransmits, None);
    }
}
