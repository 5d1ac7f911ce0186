//! Kernel counts of TCP connections, for the byte accounting of a flow.

use linerate_sock::handle::AsFd;
use std::sync::Mutex;
use std::time::Duration;

use linerate_model::{SocketCounts, Transport};
use linerate_sock::thread::locked;
use linerate_sock::{Mono, TcpInfo, clock, tcp_info};
use linerate_units::Bytes;

use crate::flow::FlowSide;
use crate::setup::Sockets;

/// How often the counts of a flow are read. The kernel counts segments in 32 bits, which overflow after 71 s at 60 million
/// segments a second.
const READING_INTERVAL: Duration = Duration::from_secs(10);
/// Longest time between two readings in which the counts overflow at most once, whatever was moved.
pub(crate) const MAX_READING_GAP: Duration = Duration::from_secs(60);
/// The same without a limit of time: a segment with data has at least one byte, and acknowledges at most one.
const MAX_UNREAD_BYTES: u64 = 1 << 31;

/// Summed counts of these connections since they were opened; absent where the kernel does not report all of
/// them (before 4.19).
///
/// Costs a system call for each connection. For MPTCP the kernel reports the first subflow only.
///
/// Source: `linux/tcp.h`, `struct tcp_info`.
#[must_use]
pub fn socket_counts<S: AsFd>(sockets: impl IntoIterator<Item = S>) -> Option<SocketCounts> {
    let mut sum = None;
    for socket in sockets {
        let one = counts_of(&tcp_info(&socket).ok()?)?;
        let before: SocketCounts = sum.unwrap_or_default();
        sum = Some(before.and(&one));
    }
    sum
}

/// The counts of a flow's connections since it began, also beyond 32 bits.
#[derive(Debug)]
pub(crate) struct FlowSocketCounts(Mutex<Option<CountProgress>>);

/// The last reading of each connection, and what all have counted up to it.
#[derive(Debug)]
struct CountProgress {
    at: Mono,
    last: Vec<SocketCounts>,
    grown: SocketCounts,
}

impl FlowSocketCounts {
    /// Begins with the counts before the flow. There are none for datagrams and for MPTCP.
    pub(crate) fn begin(flow: &FlowSide) -> Self {
        let begin = |last| CountProgress { at: clock::now(), last, grown: SocketCounts::default() };
        Self(Mutex::new(of_connections(flow).map(begin)))
    }

    /// Reads the counts again if that is due. Costs a system call for each connection then.
    pub(crate) fn follow(&self, flow: &FlowSide) {
        let (mut progress, now) = (locked(&self.0), clock::now());
        if progress.as_ref().is_some_and(|progress| now.since(progress.at) >= READING_INTERVAL) {
            *progress = progress.take().and_then(|progress| progress.next(of_connections(flow)?, now));
        }
    }

    /// The counts up to now; absent if the kernel does not report all of them, or if they may have overflowed unnoticed.
    pub(crate) fn total(&self, flow: &FlowSide) -> Option<SocketCounts> {
        let progress = locked(&self.0).take()?;
        progress.next(of_connections(flow)?, clock::now()).map(|progress| progress.grown)
    }
}

impl CountProgress {
    /// Adds what has been counted since the last reading; absent if that is unknown.
    fn next(self, counts: Vec<SocketCounts>, now: Mono) -> Option<Self> {
        let in_time = now.since(self.at) <= MAX_READING_GAP;
        let mut grown = self.grown;
        for (now, then) in counts.iter().zip(&self.last) {
            let more = grown_since(now, then);
            let moved = more.sent_bytes.get().saturating_add(more.received_bytes.get());
            if !in_time && moved > MAX_UNREAD_BYTES {
                return None;
            }
            grown = grown.and(&more);
        }
        (counts.len() == self.last.len()).then_some(Self { at: now, last: counts, grown })
    }
}

/// What a connection has counted since `then`. Its segments overflow after 32 bits.
fn grown_since(now: &SocketCounts, then: &SocketCounts) -> SocketCounts {
    let segments = |now: u64, then: u64| now.wrapping_sub(then) & u64::from(u32::MAX);
    SocketCounts {
        segments_out: segments(now.segments_out, then.segments_out),
        segments_in: segments(now.segments_in, then.segments_in),
        data_segments_out: segments(now.data_segments_out, then.data_segments_out),
        data_segments_in: segments(now.data_segments_in, then.data_segments_in),
        ..now.since(then)
    }
}

/// The counts of each connection; absent for datagrams, for MPTCP, and where the kernel does not report all of them.
fn of_connections(flow: &FlowSide) -> Option<Vec<SocketCounts>> {
    let Sockets::Tcp(streams) = &flow.sockets else { return None };
    // Connections for single transactions are not counted, and so the counts of these would be a part only.
    if flow.setup.transport == Transport::Mptcp || flow.setup.transactions.is_some() {
        return None;
    }
    streams.iter().map(|stream| counts_of(&tcp_info(stream).ok()?)).collect()
}

fn counts_of(info: &TcpInfo) -> Option<SocketCounts> {
    Some(SocketCounts {
        sent_bytes: Bytes::new(info.bytes_sent?),
        retransmitted_bytes: Bytes::new(info.bytes_retrans?),
        acked_bytes: Bytes::new(info.bytes_acked?),
        received_bytes: Bytes::new(info.bytes_received?),
        segments_out: info.segs_out?.into(),
        segments_in: info.segs_in?.into(),
        data_segments_out: info.data_segs_out?.into(),
        data_segments_in: info.data_segs_in?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A connection that has sent this many segments of 1448 bytes, and received half as many acknowledgements.
    fn after(segments: u64) -> SocketCounts {
        let counted = |segments: u64| u64::from(segments as u32);
        SocketCounts {
            sent_bytes: Bytes::new(segments * 1448),
            acked_bytes: Bytes::new(segments * 1448),
            segments_out: counted(segments),
            data_segments_out: counted(segments),
            segments_in: counted(segments / 2),
            ..SocketCounts::default()
        }
    }

    /// The same as it would be counted in 64 bits.
    fn whole(segments: u64) -> SocketCounts {
        SocketCounts {
            segments_out: segments,
            data_segments_out: segments,
            segments_in: segments / 2,
            ..after(segments)
        }
    }

    fn begun(connections: usize) -> CountProgress {
        let last = vec![SocketCounts::default(); connections];
        CountProgress { at: Mono(7), last, grown: SocketCounts::default() }
    }

    proptest! {
        #[test]
        fn segments_are_counted_beyond_32_bits(
            growths in proptest::collection::vec((0u64..1 << 32, 0u64..1 << 32), 0..20),
        ) {
            let (mut progress, mut sent) = (begun(2), [0, 0]);
            for (number, (one, other)) in (1..).zip(growths) {
                sent = [sent[0] + one, sent[1] + other];
                let now = Mono(7) + READING_INTERVAL * number;
                progress = progress.next(sent.map(after).to_vec(), now).unwrap();
            }
            prop_assert_eq!(progress.grown, whole(sent[0]).and(&whole(sent[1])));
        }
    }

    #[test]
    fn counts_that_were_not_read_for_long_are_absent_if_they_may_have_overflowed() {
        let next = |segments: u64, seconds: u64| {
            begun(1)
                .next(vec![after(segments)], Mono(7) + Duration::from_secs(seconds))
                .map(|next| next.grown)
        };
        assert_eq!(next(3_000_000_000, 60), Some(whole(3_000_000_000)));
        assert_eq!(next(3_000_000_000, 61), None);
        assert_eq!(next(1_000_000, 86_400), Some(whole(1_000_000)), "1.4 GB");
    }

    #[test]
    fn a_kernel_that_does_not_count_bytes_sent_causes_no_caveat() {
        // Offsets as in include/uapi/linux/tcp.h.
        let mut bytes = [0; 216];
        for (at, value) in [(120, 9_u64), (128, 8), (200, 7), (208, 6)] {
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        for (at, value) in [(136, 5_u32), (140, 4), (152, 3), (156, 2)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let expected = SocketCounts {
            acked_bytes: Bytes::new(9),
            received_bytes: Bytes::new(8),
            sent_bytes: Bytes::new(7),
            retransmitted_bytes: Bytes::new(6),
            segments_out: 5,
            segments_in: 4,
            data_segments_in: 3,
            data_segments_out: 2,
        };
        assert_eq!(counts_of(&TcpInfo::decode(&bytes)), Some(expected));
        assert_eq!(counts_of(&TcpInfo::decode(&bytes[..200])), None);
        assert_eq!(socket_counts(Vec::<std::net::TcpStream>::new()), None);
    }
}
