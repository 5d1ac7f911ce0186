//! Latency probes: a separate flow during the load, with four timestamps, from which the offset of the clocks
//! is estimated.

mod clock_offset;
mod course;
mod digest;
mod pace;
mod prober;
mod reflect;

pub(crate) use clock_offset::Known;
pub(crate) use course::Rule;
pub(crate) use digest::offset_of;
pub(crate) use prober::{Prober, Task};
pub(crate) use reflect::reply;

use linerate_sock::{Mono, clock};

/// When a datagram arrived, on the monotonic clock, and whether that is the kernel's time.
///
/// The kernel's timestamp uses the realtime clock, which may be set at any time. Therefore only the age of the
/// timestamp is used, and only if it is below one second.
pub(crate) fn arrival(stamp_ns: Option<u64>) -> (Mono, bool) {
    const CREDIBLE_NS: u64 = 1_000_000_000;
    let (wall, now) = (clock::wall_ns(), clock::now());
    match stamp_ns.and_then(|stamp| wall.checked_sub(stamp)).filter(|age| *age < CREDIBLE_NS) {
        Some(age) => (Mono(now.0.saturating_sub(age)), true),
        None => (now, false),
    }
}
