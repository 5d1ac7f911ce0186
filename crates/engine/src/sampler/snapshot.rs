//! All readings of a tick, and the difference between two of them.

use std::time::Duration;

use linerate_model::metrics::{flow as flow_metrics, host, loss};
use linerate_model::{Readings, Side};
use linerate_sock::proc::cpu;
use linerate_sock::{Mono, clock};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use super::tcp::TcpState;
use super::writes;
use crate::counters::Counts;
use crate::flow::FlowSide;
use crate::setup::Sockets;
use crate::transactions::TransactionCounts;

/// All readings of a tick.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) at: Mono,
    pub(crate) process_cpu: Duration,
    counts: Counts,
    streams: u64,
    pub(super) tcp: Option<TcpState>,
    transactions: Option<TransactionCounts>,
    /// CPU time of each pump; absent before it runs and after it has ended.
    threads: Vec<Option<Duration>>,
    /// Time that each pump waited for a CPU; also absent where the kernel does not count it.
    waits: Vec<Option<Duration>>,
}

impl Snapshot {
    pub(crate) fn read(flow: &FlowSide) -> Self {
        Self {
            at: clock::now(),
            counts: Counts::of(&flow.counters),
            process_cpu: clock::process_cpu(),
            streams: flow.plan.streams as u64,
            threads: flow.clocks.iter().map(|clock| clock.get()?.read()).collect(),
            waits: flow.clocks.iter().map(|clock| cpu::waited(clock.get()?.tid())).collect(),
            transactions: (!flow.transactions.is_empty()).then(|| TransactionCounts::of(&flow.transactions)),
            tcp: matches!(flow.sockets, Sockets::Tcp(_))
                .then(|| TcpState::read(&flow.sockets, flow.setup.side)),
        }
    }

    /// Carries the counts of the connections on from an earlier reading.
    pub(crate) fn carried_on(self, earlier: Option<&TcpState>) -> Self {
        let tcp = self.tcp.map(|tcp| match earlier {
            Some(earlier) => tcp.carried_on(earlier),
            None => tcp,
        });
        Self { tcp, ..self }
    }

    /// Moves this reading to the time of the first byte. Nothing was counted then, although a sampler that had to wait
    /// for a CPU may have read counts already, and the CPU time before it does not belong to the flow.
    pub(crate) fn at_begin(self, origin: Mono) -> Self {
        Self {
            at: origin,
            counts: Counts::default(),
            transactions: self.transactions.map(|_| TransactionCounts::default()),
            process_cpu: clock::process_cpu(),
            ..self
        }
    }

    /// Smoothed round-trip time; only the sending kernel measures one.
    pub(crate) fn srtt(&self, side: Side) -> Option<Span> {
        self.tcp.as_ref().filter(|_| writes(side))?.srtt()
    }

    /// Segments that this sender has retransmitted so far.
    pub(crate) fn retransmits(&self, side: Side) -> Option<u64> {
        self.tcp.as_ref().filter(|_| writes(side))?.retransmits()
    }

    /// Changes since `earlier`, and current values.
    pub(crate) fn since(&self, earlier: &Self, side: Side) -> Readings {
        let mut out = Readings::default();
        let span = Span::from(self.at.since(earlier.at));
        let bytes = Bytes::new(self.counts.total - earlier.counts.total);
        out.put(flow_metrics::BYTES, bytes);
        out.put_some(flow_metrics::BITRATE, Bitrate::of(bytes, span));
        out.put(flow_metrics::CALLS, self.counts.calls - earlier.counts.calls);
        let last_read = (!writes(side) && self.counts.last_at > 0).then_some(Mono(self.counts.last_at));
        out.put_some(flow_metrics::LAST_DATA, last_read.map(|last| Span::from(self.at.since(last))));
        out.put(host::PROCESS_CPU, Span::from(self.process_cpu.saturating_sub(earlier.process_cpu)));
        out.put_some(host::THREAD_CPU, largest_growth(&self.threads, &earlier.threads, span));
        out.put_some(host::THREAD_WAIT, largest_growth(&self.waits, &earlier.waits, span));
        if let (Some(now), Some(then)) = (&self.transactions, &earlier.transactions) {
            out.put(flow_metrics::TRANSACTIONS, now.completed.saturating_sub(then.completed));
            if let Some((median, high)) = now.times_since(then) {
                out.put(flow_metrics::TRANSACTION_P50, median);
                out.put(flow_metrics::TRANSACTION_P99, high);
            }
        }
        match (&self.tcp, &earlier.tcp) {
            (Some(now), Some(then)) if writes(side) => now.put_sender(then, &mut out),
            (Some(now), Some(then)) => now.put_receiver(then, &mut out),
            _ => self.put_datagrams(earlier, side, &mut out),
        }
        out
    }

    fn put_datagrams(&self, earlier: &Self, side: Side, out: &mut Readings) {
        let (now, then) = (&self.counts, &earlier.counts);
        let packets = now.packets - then.packets;
        out.put(loss::PACKETS, packets);
        if writes(side) {
            out.put(loss::SEND_ERRORS, now.send_errors - then.send_errors);
            return;
        }
        // Late datagrams reduce earlier losses; the catalogue has no negative counts.
        let lost = now.lost.saturating_sub(then.lost);
        out.put(loss::LOST, lost);
        let duplicates = now.duplicates - then.duplicates;
        // A duplicate does not replace a lost datagram.
        let known = packets.saturating_sub(duplicates).saturating_add(lost);
        out.put_some(loss::LOSS_RATIO, Ratio::new(lost as f64 / known as f64));
        out.put(loss::OUT_OF_ORDER, now.out_of_order - then.out_of_order);
        out.put(loss::DUPLICATES, duplicates);
        out.put(loss::SOCKET_DROPS, now.socket_drops - then.socket_drops);
        if now.packets > 1 {
            out.put(loss::JITTER, Span::from_ns(now.jitter / self.streams.max(1)));
        }
    }
}

/// Largest growth of a thread's time, as a share of the elapsed time.
fn largest_growth(now: &[Option<Duration>], then: &[Option<Duration>], span: Span) -> Option<Ratio> {
    let grown = now.iter().zip(then).filter_map(|(now, then)| {
        // A pump that was not running then had used no time.
        Some((*now)?.saturating_sub(then.unwrap_or_default()))
    });
    Ratio::new(grown.max()?.as_secs_f64() / span.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_does_not_replace_a_lost_datagram() {
        let snapshot = |second: u64, counts: Counts| Snapshot {
            at: Mono(second * 1_000_000_000),
            process_cpu: Duration::ZERO,
            counts,
            streams: 1,
            tcp: None,
            transactions: None,
            threads: Vec::new(),
            waits: Vec::new(),
        };
        // Of 1000 sent, 100 were lost, and the others came twice.
        let counts = Counts { packets: 1800, duplicates: 900, lost: 100, ..Counts::default() };
        let readings = snapshot(2, counts).since(&snapshot(1, Counts::default()), Side::Receiver);
        assert_eq!(readings.get(loss::LOSS_RATIO), Ratio::new(0.1));
    }
}
