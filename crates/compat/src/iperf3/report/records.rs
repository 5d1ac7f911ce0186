//! Records of streams and sums: JSON prints them field by field, text as a line.

use linerate_units::Span;
use serde::Serialize;

use super::document::IntervalObject;
use super::facts::{Iperf3Stream, StreamEndCounts, StreamInterval};

/// One record. Its optional fields differ between TCP and UDP and between sender and receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Iperf3Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) socket: Option<i32>,
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) bits_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retransmits: Option<u64>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) tcp: Option<TcpNow>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) extremes: Option<TcpExtremes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) jitter_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_packets: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) out_of_order: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) omitted: Option<bool>,
    pub(super) sender: bool,
}

/// The state of a TCP sender at the end of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct TcpNow {
    pub(super) snd_cwnd: u64,
    snd_wnd: u64,
    /// Microseconds, like all times here.
    rtt: u64,
    rttvar: u64,
    pmtu: u32,
    reorder: u32,
}

/// Extreme values of a TCP sender; zeros if this host does not send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct TcpExtremes {
    reorder: u32,
    max_snd_cwnd: u64,
    max_snd_wnd: u64,
    max_rtt: u64,
    min_rtt: u64,
    mean_rtt: u64,
}

/// Collects the extreme values of a stream over all its intervals, including omitted ones.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extremes {
    so_far: TcpExtremes,
    rtt_sum: u64,
    rtt_count: u64,
}

impl Extremes {
    pub(super) fn add(&mut self, interval: &StreamInterval) {
        let so_far = &mut self.so_far;
        so_far.reorder = so_far.reorder.max(interval.reorder.unwrap_or_default());
        so_far.max_snd_cwnd = so_far.max_snd_cwnd.max(interval.snd_cwnd.unwrap_or_default());
        so_far.max_snd_wnd = so_far.max_snd_wnd.max(interval.snd_wnd.unwrap_or_default());
        let Some(rtt) = interval.rtt.map(microseconds) else { return };
        so_far.max_rtt = so_far.max_rtt.max(rtt);
        if rtt > 0 && (so_far.min_rtt == 0 || rtt < so_far.min_rtt) {
            so_far.min_rtt = rtt;
        }
        self.rtt_sum = self.rtt_sum.saturating_add(rtt);
        self.rtt_count += 1;
    }

    pub(super) fn get(&self) -> TcpExtremes {
        TcpExtremes { mean_rtt: self.rtt_sum.checked_div(self.rtt_count).unwrap_or_default(), ..self.so_far }
    }
}

/// The records of one interval; absent without streams.
pub(super) fn interval(
    streams: &[Iperf3Stream],
    intervals: &[StreamInterval],
    udp: bool,
    groups: &[bool],
) -> Option<IntervalObject> {
    let records: Vec<_> = streams.iter().zip(intervals).map(|(s, i)| of_interval(s, i, udp)).collect();
    let mut sums = groups.iter().map(|&sends| {
        let of_group: Vec<_> = records.iter().copied().filter(|record| record.sender == sends).collect();
        sum(&of_group, records.first()?)
    });
    let sum = sums.next().flatten()?;
    let sum_bidir_reverse = sums.next().flatten();
    drop(sums);
    Some(IntervalObject { streams: records, sum, sum_bidir_reverse })
}

fn of_interval(stream: &Iperf3Stream, interval: &StreamInterval, udp: bool) -> Iperf3Record {
    let received = udp && !stream.sends;
    let tcp = TcpNow {
        snd_cwnd: interval.snd_cwnd.unwrap_or_default(),
        snd_wnd: interval.snd_wnd.unwrap_or_default(),
        rtt: interval.rtt.map(microseconds).unwrap_or_default(),
        rttvar: interval.rttvar.map(microseconds).unwrap_or_default(),
        pmtu: interval.pmtu.unwrap_or_default(),
        reorder: interval.reorder.unwrap_or_default(),
    };
    let retransmits = interval.retransmits.filter(|_| !udp && stream.sends);
    Iperf3Record {
        socket: Some(stream.socket),
        start: interval.start.as_secs_f64(),
        end: interval.end.as_secs_f64(),
        retransmits,
        tcp: retransmits.map(|_| tcp),
        jitter_ms: received.then(|| milliseconds(interval.jitter)),
        lost_packets: received.then_some(interval.lost),
        packets: udp.then_some(interval.packets),
        lost_percent: received.then(|| percent(interval.lost, interval.packets)),
        omitted: Some(interval.omitted),
        sender: stream.sends,
        ..rated(interval.bytes, interval.end.saturating_sub(interval.start))
    }
}

/// The sum of records of one direction, with the time of `time`; absent without records. Jitter is the mean.
pub(super) fn sum(records: &[Iperf3Record], time: &Iperf3Record) -> Option<Iperf3Record> {
    let first = records.first()?;
    let bytes = records.iter().map(|record| record.bytes).fold(0, u64::saturating_add);
    let lost = total(records, |record| record.lost_packets, i64::saturating_add);
    let packets = total(records, |record| record.packets, u64::saturating_add);
    let jitters = total(records, |record| record.jitter_ms, |a, b| a + b);
    Some(Iperf3Record {
        socket: None,
        start: time.start,
        end: time.end,
        seconds: time.seconds,
        bytes,
        bits_per_second: per_second(bytes, time.seconds),
        retransmits: total(records, |record| record.retransmits, u64::saturating_add),
        tcp: None,
        extremes: None,
        jitter_ms: jitters.map(|sum| sum / records.len() as f64),
        lost_packets: lost,
        packets,
        lost_percent: lost.map(|lost| percent(lost, packets.unwrap_or_default())),
        out_of_order: None,
        ..*first
    })
}

fn total<T>(
    records: &[Iperf3Record],
    field: impl Fn(&Iperf3Record) -> Option<T>,
    add: impl Fn(T, T) -> T,
) -> Option<T> {
    records.iter().filter_map(field).reduce(add)
}

/// The counts of one end over the whole test; unknown ones are zeros.
pub(super) fn side(side: Option<StreamEndCounts>, otherwise: Span, udp: bool, sends: bool) -> Iperf3Record {
    let counted = side.unwrap_or(StreamEndCounts { duration: otherwise, ..StreamEndCounts::default() });
    Iperf3Record {
        end: counted.duration.as_secs_f64(),
        retransmits: counted.retransmits.filter(|_| !udp),
        jitter_ms: udp.then(|| milliseconds(counted.jitter)),
        lost_packets: udp.then_some(counted.lost),
        packets: udp.then_some(counted.packets),
        lost_percent: udp.then(|| percent(counted.lost, counted.packets)),
        sender: sends,
        ..rated(counted.bytes, counted.duration)
    }
}

fn rated(bytes: u64, duration: Span) -> Iperf3Record {
    let seconds = duration.as_secs_f64();
    Iperf3Record { seconds, bytes, bits_per_second: per_second(bytes, seconds), ..Iperf3Record::default() }
}

fn per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

pub(super) fn percent(part: i64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn microseconds(span: Span) -> u64 {
    span.as_ns() / 1000
}

fn milliseconds(span: Span) -> f64 {
    span.as_ns() as f64 / 1e6
}
