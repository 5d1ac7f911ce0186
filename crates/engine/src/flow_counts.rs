//! Counts of every stream of a flow, for stand-ins and for the log.

use linerate_sock::handle::AsFd;

use linerate_model::flow::{ConnectionCounts, FlowCounts, Noted, StreamCounts};
use linerate_model::{MAX_LISTED_STREAMS, StreamCounting, Transport};
use linerate_sock::{Mono, TcpInfo, clock, tcp_info};
use linerate_units::{Bytes, Span, Timestamp};

use crate::counters::Counts;
use crate::flow::FlowSide;
use crate::pump::StreamEnd;
use crate::transit::Transits;

/// Updates what the kernel has counted on a sender's connection, also after its flow has ended: segments are
/// retransmitted until the peer has acknowledged everything. `before` is the kernel's count before the flow.
pub fn update_sender(counts: &mut StreamCounts, socket: &impl AsFd, before: u64) {
    if let Ok(info) = tcp_info(socket) {
        put_sender(counts, &info, Some(before));
    }
}

/// What the kernel has counted on a connection since it was opened; absent if it does not tell.
#[must_use]
pub fn connection_counts(socket: &impl AsFd) -> Option<StreamCounts> {
    let mut counts = StreamCounts::default();
    put_connection(&mut counts, &tcp_info(socket).ok()?, Some(0));
    Some(counts)
}

fn put_sender(counts: &mut StreamCounts, info: &TcpInfo, before: Option<u64>) {
    counts.retransmits =
        info.total_retrans.zip(before).map(|(now, then)| u64::from(now).saturating_sub(then));
    counts.all_acknowledged =
        before.and(info.unacked.zip(info.notsent_bytes)).map(|waiting| waiting == (0, 0));
}

/// Reads the counters of every stream and TCP_INFO of its connection. `retransmitted` holds each connection's
/// count of retransmitted segments before the flow; it is empty where the kernel does not report it.
pub(crate) fn read(flow: &FlowSide, retransmitted: &[u64], epoch: Mono) -> FlowCounts {
    let at = clock::now();
    let all = Counts::of(&flow.counters);
    let streams = flow.counters.iter().enumerate().map(|(stream, counters)| {
        let mut counts = counted(&counters.read(), flow.writes());
        counts.transit = flow.transits.get(stream).and_then(Transits::read);
        counts.spacing = flow.spacings.get(stream).and_then(Transits::read);
        if let Some(info) = flow.sockets.tcp(stream).and_then(|socket| tcp_info(socket).ok()) {
            let before = retransmitted.get(stream).copied().filter(|_| flow.writes());
            put_connection(&mut counts, &info, before);
        }
        counts
    });
    let first_at = all.begun().map(|first| moment(first, epoch));
    FlowCounts {
        flow: flow.setup.flow,
        at: moment(at, epoch),
        first_at,
        last_at: (all.last_at > 0).then(|| moment(Mono(all.last_at), epoch)).or(first_at),
        streams: streams.collect(),
        trouble: flow.trouble.get().cloned(),
        ..FlowCounts::default()
    }
}

/// States of a connection in which the peer has acknowledged the end of what this end sends: FIN-WAIT-2, TIME-WAIT and
/// CLOSED, as the kernel numbers them.
const END_ACKNOWLEDGED: [u8; 3] = [5, 6, 7];

/// Whether the streams of a flow are counted one by one. Connections of their own carry the data of transactions.
fn lists_streams(flow: &FlowSide) -> bool {
    flow.setup.transactions.is_none() && (2..=MAX_LISTED_STREAMS).contains(&flow.plan.streams)
}

/// Bytes that the peer has acknowledged on each connection of a sender whose streams are counted; otherwise empty, as
/// where the kernel does not count them.
pub(crate) fn acknowledged(flow: &FlowSide) -> Vec<u64> {
    // The kernel tells of a connection of MPTCP what its first subflow does.
    if !(lists_streams(flow) && flow.writes()) || flow.setup.transport == Transport::Mptcp {
        return Vec::new();
    }
    let of = |stream| {
        let info = tcp_info(flow.sockets.tcp(stream)?).ok()?;
        // The kernel counts the end of a stream as a byte.
        let ended = info.state.is_some_and(|state| END_ACKNOWLEDGED.contains(&state));
        Some(info.bytes_acked?.saturating_sub(u64::from(ended)))
    };
    (0..flow.plan.streams).map(of).collect::<Option<_>>().unwrap_or_default()
}

/// What each stream has moved. `acknowledged_before` has what was acknowledged before the flow.
pub(crate) fn stream_bytes(
    flow: &FlowSide,
    acknowledged_before: &[u64],
) -> Option<(StreamCounting, Vec<Bytes>)> {
    if !lists_streams(flow) {
        return None;
    }
    let now = acknowledged(flow);
    if now.is_empty() || now.len() != acknowledged_before.len() {
        let counted = if flow.writes() { StreamCounting::Sent } else { StreamCounting::Received };
        let totals = flow.counters.iter().map(|counters| Bytes::new(counters.read().total));
        return Some((counted, totals.collect()));
    }
    let grown = now.iter().zip(acknowledged_before).map(|(now, before)| now.saturating_sub(*before));
    Some((StreamCounting::Acknowledged, grown.map(Bytes::new).collect()))
}

/// An instant relative to the epoch.
pub(crate) fn moment(at: Mono, epoch: Mono) -> Timestamp {
    Timestamp::from_ns(at.as_ns().saturating_sub(epoch.as_ns()))
}

/// The datagram that ended each stream.
pub(crate) fn marks(flow: &FlowSide, ends: &[StreamEnd]) -> Vec<Option<Vec<u8>>> {
    let mut marks = vec![None; flow.plan.streams];
    for end in ends {
        if let Some(mark) = marks.get_mut(end.stream) {
            mark.clone_from(&end.mark);
        }
    }
    marks
}

fn counted(counts: &Counts, writes: bool) -> StreamCounts {
    StreamCounts {
        bytes: counts.total,
        calls: counts.calls,
        packets: counts.packets,
        highest: if writes { counts.packets } else { counts.highest },
        lost: counts.lost,
        out_of_order: counts.out_of_order,
        duplicates: counts.duplicates,
        jitter: Span::from_ns(counts.jitter),
        ended: counts.ended > 0,
        noted: (counts.first_note != 0)
            .then(|| Noted { first: counts.first_note.to_ne_bytes(), last: counts.last_note.to_ne_bytes() }),
        ..StreamCounts::default()
    }
}

fn connection(info: &TcpInfo) -> Option<ConnectionCounts> {
    let time = |us: u64| Span::from_ns(us.saturating_mul(1000));
    Some(ConnectionCounts {
        bytes_sent: info.bytes_sent?,
        bytes_retransmitted: info.bytes_retrans?,
        bytes_acknowledged: info.bytes_acked?,
        bytes_received: info.bytes_received?,
        min_rtt: time(u64::from(info.min_rtt?)),
        busy: time(info.busy_time?),
        rwnd_limited: time(info.rwnd_limited?),
        sndbuf_limited: time(info.sndbuf_limited?),
    })
}

/// Copies TCP_INFO into the counts. The kernel reports a round-trip time of 0 until it has measured one.
fn put_connection(counts: &mut StreamCounts, info: &TcpInfo, retransmitted: Option<u64>) {
    let time = |us: Option<u32>| us.filter(|&us| us > 0).map(|us| Span::from_ns(u64::from(us) * 1000));
    put_sender(counts, info, retransmitted);
    counts.snd_cwnd = info.cwnd_bytes();
    counts.snd_wnd = info.snd_wnd.map(u64::from);
    counts.rtt = time(info.rtt);
    counts.rttvar = time(info.rttvar);
    counts.pmtu = info.pmtu;
    counts.reorder = info.reord_seen;
    counts.connection = connection(info);
}
