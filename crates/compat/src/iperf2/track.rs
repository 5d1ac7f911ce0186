//! The counts of one direction of a test at this end: its connections, and what they have moved since the start
//! and since the last interval.

use linerate_model::flow::ReadBefore;
use linerate_units::{Span, Timestamp};

use super::datagram::Generation;
use super::report::{Iperf2Addresses, Iperf2ReportLine};
use super::transit::TransitRow;
use crate::stand_in::{FlowCounts, Link, StreamCounts, TransitCounts};

/// One connection.
#[derive(Debug, Clone)]
pub(super) struct Iperf2Stream {
    pub(super) id: u32,
    pub(super) link: Link,
    pub(super) ends: Iperf2Addresses,
    /// Bytes that the stand-in moved itself: headers, what arrived before the engine used the link, the last
    /// datagram.
    pub(super) own_bytes: u64,
    /// Number of such datagrams.
    pub(super) own_datagrams: u64,
    /// Highest number among them, counted from 1.
    pub(super) own_highest: u64,
    /// With trip times over TCP: the bytes after the header that arrived before the engine used the link.
    pub(super) early: Vec<u8>,
    /// Absolute value of the number in the last datagram.
    pub(super) last_number: Option<u64>,
    /// The totals at the end of the last interval.
    shown: StreamTotals,
    /// The shortest and the longest transit time since then, nanoseconds.
    fresh: Option<(i64, i64)>,
    /// Number of transit times when the counts were last read.
    seen: Option<u64>,
}

/// What a connection has moved since the start.
#[derive(Debug, Clone, Copy, Default)]
struct StreamTotals {
    bytes: u64,
    calls: u64,
    lost: u64,
    total: u64,
    out_of_order: u64,
    retransmits: u64,
    transit: Option<TransitCounts>,
}

impl Iperf2Stream {
    pub(super) fn new(id: u32, link: Link, ends: Iperf2Addresses) -> Self {
        Self {
            id,
            link,
            ends,
            own_bytes: 0,
            own_datagrams: 0,
            own_highest: 0,
            early: Vec::new(),
            last_number: None,
            shown: StreamTotals::default(),
            fresh: None,
            seen: None,
        }
    }

    /// The datagrams that the stand-in received itself.
    pub(super) fn read_before(&self) -> ReadBefore {
        ReadBefore { datagrams: self.own_datagrams, next: self.own_highest }
    }

    /// Counts a datagram that the stand-in received itself.
    pub(super) fn add_datagram(&mut self, bytes: usize, number: i64, generation: Generation) {
        let from_one = number.unsigned_abs().saturating_add(1 - generation.first_number());
        self.own_bytes = self.own_bytes.saturating_add(bytes as u64);
        self.own_datagrams = self.own_datagrams.saturating_add(1);
        self.own_highest = self.own_highest.max(from_one);
    }
}

/// One direction of a test at this end.
#[derive(Debug)]
pub(super) struct Iperf2Meter {
    pub(super) sends: bool,
    pub(super) star: bool,
    pub(super) udp: bool,
    pub(super) streams: Vec<Iperf2Stream>,
    pub(super) started_at: Timestamp,
    /// The end of the last printed interval.
    pub(super) shown_until: Span,
    pub(super) counts: FlowCounts,
}

impl Iperf2Meter {
    /// When the first byte moved, or the start if none has.
    pub(super) fn first_at(&self) -> Timestamp {
        let own = self.streams.iter().any(|stream| stream.own_bytes > 0);
        match self.counts.first_at {
            Some(first) if !own => first,
            Some(first) => first.min(self.started_at),
            None => self.started_at,
        }
    }

    /// Total of bytes moved.
    pub(super) fn moved(&self) -> u64 {
        let own = self.streams.iter().map(|stream| stream.own_bytes);
        own.chain(self.counts.streams.iter().map(|stream| stream.bytes)).fold(0, u64::saturating_add)
    }

    /// Whether anything was moved after the end of the last printed interval.
    pub(super) fn has_moved(&self) -> bool {
        let shown = |at| self.streams.get(at).map_or(0, |stream: &Iperf2Stream| stream.shown.bytes);
        (0..self.streams.len()).any(|at| self.totals(at).bytes > shown(at))
    }

    fn totals(&self, at: usize) -> StreamTotals {
        let Some(stream) = self.streams.get(at) else { return StreamTotals::default() };
        let counts = self.counts.streams.get(at).copied().unwrap_or_default();
        let bytes = counts.bytes.saturating_add(stream.own_bytes);
        let datagrams = counts.packets.saturating_add(stream.own_datagrams);
        let (lost, total) = if self.sends {
            (0, datagrams)
        } else {
            let received = datagrams.saturating_sub(counts.duplicates);
            let seen = counts.highest.max(stream.own_highest);
            // The last number also reveals datagrams that were lost at the end.
            let total = stream.last_number.filter(|last| *last >= seen).unwrap_or(seen).max(received);
            (total - received, total)
        };
        StreamTotals {
            bytes,
            calls: counts.calls,
            lost,
            total,
            out_of_order: counts.out_of_order,
            retransmits: counts.retransmits.unwrap_or(0),
            transit: counts.transit,
        }
    }

    /// Accumulates the transit times of each reading of the counts, whatever its purpose.
    pub(super) fn note_transit(&mut self, counts: &FlowCounts) {
        for (stream, counts) in self.streams.iter_mut().zip(&counts.streams) {
            let Some(transit) = counts.transit else { continue };
            let known = stream.seen.replace(transit.count);
            if known != Some(transit.count) {
                let (least, most) = transit.fresh_range_ns;
                let before = stream.fresh.unwrap_or((i64::MAX, i64::MIN));
                stream.fresh = Some((before.0.min(least), before.1.max(most)));
            }
        }
    }

    /// The rows of the interval that ends here.
    pub(super) fn interval(&mut self, until: Span) -> Vec<Iperf2ReportLine> {
        let (from, to) = (self.shown_until.as_secs_f64(), until.as_secs_f64());
        self.shown_until = until;
        let mut rows = Vec::new();
        for at in 0..self.streams.len() {
            let totals = self.totals(at);
            let counts = self.counts.streams.get(at).copied().unwrap_or_default();
            if let Some(stream) = self.streams.get_mut(at) {
                let before = std::mem::replace(&mut stream.shown, totals);
                let range = stream.fresh.take();
                let row = self.row(at, &before, &totals, &counts, (from, to));
                let transit = totals.transit.zip(range);
                let transit =
                    transit.and_then(|(now, range)| TransitRow::between(before.transit, &now, range));
                rows.push(Iperf2ReportLine { transit, ..row });
            }
        }
        rows
    }

    /// The rows of the whole test.
    pub(super) fn whole(&self, end: Timestamp) -> Vec<Iperf2ReportLine> {
        let time = (0.0, end.since(self.first_at()).as_secs_f64());
        let none = StreamTotals::default();
        (0..self.streams.len())
            .map(|at| {
                let counts = self.counts.streams.get(at).copied().unwrap_or_default();
                let totals = self.totals(at);
                let row = self.row(at, &none, &totals, &counts, time);
                let transit = totals.transit.and_then(|now| TransitRow::between(None, &now, now.range_ns));
                Iperf2ReportLine { transit, ..row }
            })
            .collect()
    }

    fn row(
        &self,
        at: usize,
        before: &StreamTotals,
        now: &StreamTotals,
        counts: &StreamCounts,
        time: (f64, f64),
    ) -> Iperf2ReportLine {
        Iperf2ReportLine {
            id: self.streams.get(at).map(|stream| stream.id),
            star: self.star,
            udp: self.udp,
            from: time.0,
            to: time.1,
            bytes: now.bytes.saturating_sub(before.bytes),
            calls: now.calls.saturating_sub(before.calls),
            lost: now.lost.saturating_sub(before.lost),
            total: now.total.saturating_sub(before.total),
            out_of_order: now.out_of_order.saturating_sub(before.out_of_order),
            jitter: counts.jitter.as_secs_f64(),
            retransmits: now.retransmits.saturating_sub(before.retransmits),
            cwnd: counts.snd_cwnd,
            rtt: counts.rtt,
            rttvar: counts.rttvar,
            transit: None,
        }
    }

    pub(super) fn ends(&self) -> Vec<Iperf2Addresses> {
        self.streams.iter().map(|stream| stream.ends).collect()
    }
}
