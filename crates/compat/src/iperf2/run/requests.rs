//! The requests of a run's client, and the flows that they need.

use linerate_model::Direction;
use linerate_units::Span;

use super::Iperf2Run;
use crate::iperf2::load::Iperf2Load;
use crate::iperf2::output_queue::{OutputQueue, amount_of};
use crate::iperf2::settings::{Iperf2Amount, Iperf2Mode};
use crate::iperf2::wire::{BURST_BYTES, TestHeader, burst_head};

/// Longest buffer that a client may request the server to send.
const MAX_BUFFER_BYTES: u32 = 1 << 20;

/// Longest time for which a public server sends.
const MAX_PUBLIC_TIME: Span = Span::from_secs(86_400);

impl Iperf2Run {
    pub(super) fn mode(&self) -> Iperf2Mode {
        match self.header {
            Some(TestHeader { extension: Some(extension), .. }) if extension.full_duplex => {
                Iperf2Mode::FullDuplex
            }
            Some(TestHeader { extension: Some(extension), .. }) if extension.reverse => Iperf2Mode::Reverse,
            Some(TestHeader { back: true, at_once: true, .. }) => Iperf2Mode::Dual,
            Some(TestHeader { back: true, .. }) => Iperf2Mode::Tradeoff,
            _ => Iperf2Mode::Plain,
        }
    }

    pub(super) fn trip_times(&self) -> bool {
        self.header.and_then(|header| header.extension).is_some_and(|extension| extension.trip_times)
    }

    /// The client's header as our own: reverse data with trip times on the client's link begin with it.
    pub(super) fn echo(&self) -> Option<TestHeader> {
        self.header?.echoed(self.udp)
    }

    /// The rate of the server on each connection, bit/s.
    pub(super) fn offered(&self, queue: &OutputQueue) -> Option<u64> {
        let extension = self.header.and_then(|header| header.extension);
        let old = self.header.map(|header| u64::from(header.window_or_rate)).filter(|_| self.udp);
        let rate = match extension {
            Some(extension) if extension.in_packets => {
                Some(extension.rate.saturating_mul(u64::from(self.length(queue)) * 8))
            }
            // Over TCP 2.1.8 sends a rate without its flag, and 0 for none.
            Some(extension) => Some(extension.rate),
            None => old,
        };
        rate.filter(|rate| *rate > 0).or(self.udp.then_some(1 << 20))
    }

    /// The amount that the client requests of each connection.
    pub(super) fn amount(&self, queue: &OutputQueue) -> Option<Iperf2Amount> {
        let amount = amount_of(self.header.as_ref()?);
        Some(match amount {
            Iperf2Amount::Time(time) if queue.settings.among_strangers => {
                Iperf2Amount::Time(time.min(MAX_PUBLIC_TIME))
            }
            amount => amount,
        })
    }

    pub(super) fn length(&self, queue: &OutputQueue) -> u32 {
        let asked = self.header.map(|header| header.length).filter(|length| *length > 0);
        let length = asked.unwrap_or_else(|| queue.settings.length_for(self.udp));
        let shortest = if self.trip_times() { BURST_BYTES as u32 } else { 1 };
        if self.udp { length.clamp(18, 65_507) } else { length.clamp(shortest, MAX_BUFFER_BYTES) }
    }

    pub(super) fn load(&self, queue: &OutputQueue, sends: bool, star: bool, shared: bool) -> Iperf2Load {
        let extension = self.header.and_then(|header| header.extension);
        let two_way = extension.is_some_and(|e| e.reverse || e.full_duplex || e.no_udp_fin);
        let amount = self.amount(queue);
        // Reverse connections carry no timestamps.
        let trip_times = self.trip_times() && self.back.is_empty();
        Iperf2Load {
            flow: self.flows[usize::from(sends)],
            run: self.number,
            udp: self.udp,
            sends,
            star,
            direction: if sends { Direction::Download } else { Direction::Upload },
            length: self.length(queue),
            head: match self.echo().filter(|_| trip_times && sends) {
                Some(header) if self.udp => header.write_udp(),
                Some(header) => burst_head(&header, self.length(queue)),
                None => Vec::new(),
            },
            amount: amount.filter(|_| sends),
            offered: self.offered(queue),
            generation: self.generation,
            answers: !two_way,
            shared,
            // As 2.1.8 does, also on the connections that the server opens itself.
            fq_rate: extension.and_then(|extension| extension.fq_rate).filter(|rate| sends && *rate > 0),
            trip_times,
            skipped: 0,
        }
    }
}
