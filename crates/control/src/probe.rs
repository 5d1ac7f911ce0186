//! Latency probes: a separate flow during the load, with four timestamps, from which the offset of the clocks
//! is estimated.

mod clock_offset;
mod digest;
mod intervals;
mod pace;
mod prober;
mod reflect;

pub(crate) use clock_offset::OffsetHistory;
pub(crate) use digest::{offset_of, round_trips};
pub(crate) use intervals::IntervalGrid;
pub(crate) use prober::{Prober, ProberConfig};
pub(crate) use reflect::reply;

use linerate_sock::{Mono, clock};

/// When a datagram arrived, on the monotonic clock, and whether that is the kernel's time.
pub(crate) fn arrival(stamp_ns: Option<u64>) -> (Mono, bool) {
    match stamp_ns.and_then(clock::arrival) {
        Some(at) => (at, true),
        None => (clock::now(), false),
    }
}
