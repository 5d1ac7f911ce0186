//! The reflecting end: returns every probe with its arrival and departure times.

use linerate_proto::native::{DatagramKind, ProbeDatagram};
use linerate_sock::{Mono, clock};

/// The answer to a probe that arrived at `arrived`.
pub(crate) fn reply(probe: &ProbeDatagram, arrived: Mono) -> ProbeDatagram {
    let times = [probe.times[0], arrived.0, clock::now().0];
    ProbeDatagram { kind: DatagramKind::Reply, times, ..*probe }
}
