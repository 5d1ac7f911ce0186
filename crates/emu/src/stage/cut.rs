//! Splitting batches: the arrival times of their packets, and splits where packets are treated differently.

use std::mem;

use linerate_units::{Span, Timestamp};

use crate::packet_batch::PacketBatch;

/// Arrival times of the packets of a batch, evenly distributed over its spread.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacketArrivals {
    first: Timestamp,
    spread: Span,
    gaps: u64,
}

impl PacketArrivals {
    /// Of a batch that has arrived as a whole at `last`.
    pub(super) fn of(batch: &impl PacketBatch, last: Timestamp) -> Self {
        let spread = batch.spread();
        let first = Timestamp::from_ns(last.as_ns().saturating_sub(spread.as_ns()));
        Self { first, spread, gaps: u64::from(batch.packets()).saturating_sub(1) }
    }

    /// Arrival of packet `index`, counted from 0.
    pub(super) fn at(&self, index: u32) -> Timestamp {
        self.first + self.offset(index)
    }

    fn offset(&self, index: u32) -> Span {
        match self.gaps {
            0 => Span::ZERO,
            gaps => Span::from_ns(self.spread.saturating_mul(u64::from(index)).as_ns() / gaps),
        }
    }
}

/// Splits a batch after its first `packets` packets (at least 1, and fewer than it has) and returns the others.
/// Each part keeps the spacing of its packets.
pub(crate) fn split<T: PacketBatch>(batch: &mut T, packets: u32) -> T {
    let arrivals = PacketArrivals::of(batch, Timestamp::START);
    let mut rest = batch.split_off(packets);
    batch.set_spread(arrivals.offset(packets - 1));
    rest.set_spread(arrivals.spread.saturating_sub(arrivals.offset(packets)));
    rest
}

/// Splits a batch into runs of packets with the same fate and passes them on in order.
///
/// `next` receives the index of the first undecided packet and the number of packets from it on; it returns for
/// how many of them, at least 1, it decides, and their fate. It also sees the part of the batch that is not
/// split off yet. A batch with a single fate is not split.
pub(super) fn runs<T: PacketBatch, Fate: Copy + PartialEq>(
    batch: T,
    mut next: impl FnMut(&T, u32, u32) -> (u32, Fate),
    mut each: impl FnMut(T, Fate),
) {
    let packets = batch.packets();
    let mut rest = batch;
    let (mut decided, mut fate) = next(&rest, 0, packets);
    let mut begin = 0;
    while decided < packets {
        let (more, other) = next(&rest, decided, packets - decided);
        if other != fate {
            let after = split(&mut rest, decided - begin);
            each(mem::replace(&mut rest, after), fate);
            (begin, fate) = (decided, other);
        }
        decided += more;
    }
    each(rest, fate);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::laws::Numbered;

    #[test]
    fn packets_arrive_evenly_and_keep_their_times_when_cut() {
        let mut batch = Numbered::new(0, 5, 1514).spread_over(Span::from_ns(400));
        let at = Timestamp::from_ns(1000);
        let arrivals = PacketArrivals::of(&batch, at);
        assert_eq!([0, 1, 4].map(|index| arrivals.at(index).as_ns()), [600, 700, 1000]);

        let rest = split(&mut batch, 2);
        assert_eq!((batch.spread(), rest.spread()), (Span::from_ns(100), Span::from_ns(200)));
        assert_eq!(PacketArrivals::of(&rest, at).at(0).as_ns(), 800);
    }

    #[test]
    fn runs_are_cut_only_where_the_fate_changes() {
        let fates = [true, true, false, false, true];
        let mut runs_seen = Vec::new();
        let batch = Numbered::new(10, 5, 100);
        runs(batch, |_, at, _| (1, fates[at as usize]), |piece, fate| runs_seen.push((piece.ids(), fate)));
        assert_eq!(runs_seen, [(10..12, true), (12..14, false), (14..15, true)]);
    }
}
