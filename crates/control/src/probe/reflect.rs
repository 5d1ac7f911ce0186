//! The reflecting end: every probe goes back with the times it came and went.

use linerate_proto::native::{Datagram, DatagramKind};
use linerate_sock::{Mono, clock};

/// The answer to a probe that came in at `arrived`.
pub(crate) fn reply(probe: &Datagram, arrived: Mono) -> Datagram {
    let times = [probe.times[0], arrived.0, clock::now().0];
    Datagram { kind: DatagramKind::Reply, times, ..*probe }
}
