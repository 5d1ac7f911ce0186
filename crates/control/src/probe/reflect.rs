//! The reflecting end: sends every probe back with the times it came and went.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_proto::native::{DATAGRAM_BYTES, Datagram, DatagramKind};
use linerate_sock::{Mono, clock};

/// The answer to a probe that came in at `arrived`.
pub(crate) fn reply(probe: &Datagram, arrived: Mono) -> Datagram {
    let times = [probe.times[0], arrived.0, clock::now().0];
    Datagram { kind: DatagramKind::Reply, times, ..*probe }
}

/// Reflects over a TCP connection until it ends, says something else, or is silent for a minute.
pub(crate) fn reflect_over_tcp(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let _ = stream.set_write_timeout(Some(Duration::from_secs(5)));
    let mut bytes = [0; DATAGRAM_BYTES];
    while stream.read_exact(&mut bytes).is_ok() {
        let arrived = clock::now();
        let Some(probe) = Datagram::decode(&bytes).filter(|d| d.kind == DatagramKind::Probe) else { return };
        if stream.write_all(&reply(&probe, arrived).encode()).is_err() {
            return;
        }
    }
}
