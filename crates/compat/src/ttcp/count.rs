//! What the stand-in received itself before the engine used the link, and the sum of both.

use linerate_units::Timestamp;

use super::MARK_BYTES;
use crate::stand_in::FlowCounts;

/// Bytes and datagrams that arrived before the engine used the link, or on the listener afterwards.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Early {
    pub(super) bytes: u64,
    pub(super) calls: u64,
    pub(super) marks: u32,
    pub(super) first_at: Option<Timestamp>,
    pub(super) last_at: Option<Timestamp>,
}

impl Early {
    pub(super) fn add(&mut self, now: Timestamp, bytes: usize) {
        self.bytes += bytes as u64;
        self.calls += 1;
        self.first_at.get_or_insert(now);
        self.last_at = Some(now);
    }

    /// The first mark restarts the clock, as in the tools.
    pub(super) fn add_datagram(&mut self, now: Timestamp, bytes: usize) {
        if bytes > MARK_BYTES {
            self.add(now, bytes);
            return;
        }
        self.marks += 1;
        self.add(now, 0);
        if self.marks == 1 {
            self.first_at = Some(now);
        }
    }
}

/// Bytes that a flow has moved.
pub(super) fn moved(counts: &FlowCounts) -> u64 {
    counts.total(|stream| stream.bytes)
}

/// System calls of a flow as ttcp would have made them: one per datagram.
pub(super) fn calls(counts: &FlowCounts, udp: bool) -> u64 {
    let of = counts.streams.iter().map(|stream| if udp { stream.packets } else { stream.calls });
    of.fold(0, u64::saturating_add)
}
