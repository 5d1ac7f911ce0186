//! Kernel counts of TCP connections, for the byte accounting of a flow.

use linerate_sock::handle::AsFd;

use linerate_model::SocketCounts;
use linerate_sock::{TcpInfo, tcp_info};
use linerate_units::Bytes;

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
