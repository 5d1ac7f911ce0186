//! Metrics of the connections, from `TCP_INFO` and the socket queues.

use std::net::TcpStream;

use linerate_model::metrics::{queue, tcp};
use linerate_model::{Readings, Side};
use linerate_sock::sockopt::ReceiveMemory;
use linerate_sock::{TcpInfo, queues, sockopt, tcp_info};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use super::writes;
use crate::setup::Sockets;

/// Most streams that are sampled; with more, the TCP metrics are those of the first 64. Reading thousands would
/// disturb the measurement, and scaling up would invent numbers.
const MAX_SAMPLED_STREAMS: usize = 64;

/// The connections at one moment. What only the other side of a flow reports is not read: each value of each connection
/// is a call of the kernel, and some wait for the program that uses the connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct TcpState {
    infos: Vec<TcpInfo>,
    /// What the kernel counts in 32 bits, in 64 bits; empty if a connection could not be read.
    carried: Vec<CarriedCounts>,
    snd_queue: Option<u64>,
    rcv_queue: Option<u64>,
    rcv_memory: Option<u64>,
    snd_buf: Option<u64>,
    rcv_buf: Option<u64>,
}

/// Counts of a connection that overflow in the kernel: segments after minutes on a fast path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CarriedCounts {
    retransmits: Option<u64>,
    segments: Option<u64>,
    timeouts: Option<u64>,
    timeout_ms: Option<u64>,
    dsack_dups: Option<u64>,
    reordered: Option<u64>,
    delivered_ce: Option<u64>,
    delivered: Option<u64>,
    out_of_order: Option<u64>,
}

impl CarriedCounts {
    /// These counts at `then`, carried on to `now`.
    fn carried_on(&self, then: &TcpInfo, now: &TcpInfo) -> Self {
        let carry = |count: Option<u64>, field: fn(&TcpInfo) -> Option<u32>| {
            Some(count?.saturating_add(field(now)?.wrapping_sub(field(then)?).into()))
        };
        let timeouts = now.total_rto.zip(then.total_rto).map(|(now, then)| u64::from(now.wrapping_sub(then)));
        Self {
            retransmits: carry(self.retransmits, |info| info.total_retrans),
            segments: carry(self.segments, |info| info.data_segs_out),
            timeouts: self.timeouts.zip(timeouts).map(|(count, more)| count.saturating_add(more)),
            timeout_ms: carry(self.timeout_ms, |info| info.total_rto_time),
            dsack_dups: carry(self.dsack_dups, |info| info.dsack_dups),
            reordered: carry(self.reordered, |info| info.reord_seen),
            delivered_ce: carry(self.delivered_ce, |info| info.delivered_ce),
            delivered: carry(self.delivered, |info| info.delivered),
            out_of_order: carry(self.out_of_order, |info| info.rcv_ooopack),
        }
    }
}

impl From<&TcpInfo> for CarriedCounts {
    fn from(info: &TcpInfo) -> Self {
        Self {
            retransmits: info.total_retrans.map(u64::from),
            segments: info.data_segs_out.map(u64::from),
            timeouts: info.total_rto.map(u64::from),
            timeout_ms: info.total_rto_time.map(u64::from),
            dsack_dups: info.dsack_dups.map(u64::from),
            reordered: info.reord_seen.map(u64::from),
            delivered_ce: info.delivered_ce.map(u64::from),
            delivered: info.delivered.map(u64::from),
            out_of_order: info.rcv_ooopack.map(u64::from),
        }
    }
}

impl TcpState {
    pub(crate) fn read(sockets: &Sockets, side: Side) -> Self {
        let Sockets::Tcp(streams) = sockets else { return Self::default() };
        let watched = &streams[..streams.len().min(MAX_SAMPLED_STREAMS)];
        let infos: Vec<TcpInfo> = watched.iter().filter_map(|stream| tcp_info(stream).ok()).collect();
        let carried = infos.iter().map(CarriedCounts::from).collect();
        if writes(side) {
            return Self {
                infos,
                carried,
                snd_queue: watched.iter().map(|stream| queues::unacknowledged(stream).ok()).sum(),
                snd_buf: watched.iter().map(|stream| sockopt::snd_buf(stream).ok()).sum(),
                ..Self::default()
            };
        }
        let memory: Vec<_> = watched.iter().map(|stream| sockopt::receive_memory(stream).ok()).collect();
        let rcv_buf = |(stream, memory): (&TcpStream, &Option<ReceiveMemory>)| match memory {
            Some(memory) => Some(u64::from(memory.buffer)),
            None => sockopt::rcv_buf(stream).ok(),
        };
        Self {
            infos,
            carried,
            rcv_queue: watched.iter().map(|stream| queues::readable(stream).ok()).sum(),
            rcv_memory: memory.iter().map(|memory| memory.map(|memory| u64::from(memory.taken))).sum(),
            rcv_buf: watched.iter().zip(&memory).map(rcv_buf).sum(),
            ..Self::default()
        }
    }

    /// Carries the counts of an earlier reading on to this one. They have to overflow at most once in between.
    pub(crate) fn carried_on(mut self, earlier: &Self) -> Self {
        let same = self.infos.len() == earlier.infos.len() && earlier.carried.len() == earlier.infos.len();
        let connections = earlier.carried.iter().zip(&earlier.infos).zip(&self.infos).filter(|_| same);
        self.carried = connections.map(|((counts, then), now)| counts.carried_on(then, now)).collect();
        self
    }

    fn sum(&self, field: impl Fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
        if self.infos.is_empty() { None } else { self.infos.iter().map(field).sum() }
    }

    fn mean(&self, field: impl Fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
        let present: Vec<u64> = self.infos.iter().filter_map(field).collect();
        let count = present.len() as u64;
        (count > 0).then(|| present.iter().sum::<u64>() / count)
    }

    fn min(&self, field: impl Fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
        self.infos.iter().filter_map(field).min()
    }

    /// Growth of a sum; absent if the number of streams changed.
    fn grown(&self, earlier: &Self, field: impl Fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
        if self.infos.len() != earlier.infos.len() {
            return None;
        }
        Some(self.sum(&field)?.saturating_sub(earlier.sum(&field)?))
    }

    /// Growth of a count of all connections.
    fn counted(&self, earlier: &Self, count: fn(&CarriedCounts) -> Option<u64>) -> Option<u64> {
        if self.carried.is_empty() || self.carried.len() != earlier.carried.len() {
            return None;
        }
        let grown = |(now, then)| Some(count(now)?.saturating_sub(count(then)?));
        self.carried.iter().zip(&earlier.carried).map(grown).sum()
    }

    /// Smoothed round-trip time, mean over streams.
    pub(crate) fn srtt(&self) -> Option<Span> {
        self.mean(|info| us_once_known(info.rtt)).map(Span::from_ns)
    }

    /// Segments retransmitted so far.
    pub(crate) fn retransmits(&self) -> Option<u64> {
        if self.carried.is_empty() {
            None
        } else {
            self.carried.iter().map(|counts| counts.retransmits).sum()
        }
    }

    /// Writes the metrics of a sender.
    pub(crate) fn put_sender(&self, earlier: &Self, out: &mut Readings) {
        let bytes = |value: Option<u64>| value.map(Bytes::new);
        let rate = |value: Option<u64>| value.and_then(|bytes| Bitrate::from_bps(bytes as f64 * 8.0));
        let count = |count: fn(&CarriedCounts) -> Option<u64>| self.counted(earlier, count);
        let volume = |field: fn(&TcpInfo) -> Option<u64>| self.grown(earlier, field).map(Bytes::new);
        let streams = self.infos.len().max(1) as u64;
        let time = |field: fn(&TcpInfo) -> Option<u64>| {
            self.grown(earlier, field).map(|us| Span::from_ns(us.saturating_mul(1000) / streams))
        };
        out.put_some(tcp::SRTT, self.srtt());
        out.put_some(tcp::MIN_RTT, self.min(|info| us_once_known(info.min_rtt_us())).map(Span::from_ns));
        out.put_some(tcp::RTTVAR, self.mean(|info| us_once_known(info.rttvar)).map(Span::from_ns));
        out.put_some(tcp::CWND, bytes(self.sum(TcpInfo::cwnd_bytes)));
        out.put_some(tcp::SSTHRESH, self.ssthresh());
        out.put_some(tcp::SND_MSS, bytes(self.min(|info| info.snd_mss.map(u64::from))));
        out.put_some(tcp::PMTU, bytes(self.min(|info| info.pmtu.map(u64::from))));
        out.put_some(tcp::RETRANSMITS, count(|counts| counts.retransmits));
        out.put_some(tcp::SEGMENTS, count(|counts| counts.segments));
        out.put_some(tcp::BYTES_ACKED, volume(|info| info.bytes_acked));
        out.put_some(tcp::BYTES_SENT, volume(|info| info.bytes_sent));
        out.put_some(tcp::BYTES_RETRANS, volume(|info| info.bytes_retrans));
        out.put_some(tcp::BUSY, time(|info| info.busy_time));
        out.put_some(tcp::RWND_LIMITED, time(|info| info.rwnd_limited));
        out.put_some(tcp::SNDBUF_LIMITED, time(|info| info.sndbuf_limited));
        out.put_some(tcp::DELIVERY_RATE, rate(self.sum(|info| info.delivery_rate)));
        out.put_some(tcp::APP_LIMITED, self.app_limited());
        out.put_some(tcp::PACING_RATE, rate(self.sum(TcpInfo::paced_bytes_per_second)));
        out.put_some(tcp::NOTSENT, bytes(self.sum(|info| info.notsent_bytes.map(u64::from))));
        out.put_some(
            tcp::UNACKED,
            bytes(self.sum(|info| Some(u64::from(info.unacked?) * u64::from(info.snd_mss?)))),
        );
        out.put_some(tcp::SND_WND, bytes(self.sum(|info| info.snd_wnd.map(u64::from))));
        out.put_some(tcp::TIMEOUTS, count(|counts| counts.timeouts));
        out.put_some(tcp::TIMEOUT_TIME, count(|counts| counts.timeout_ms).map(Span::from_ms));
        out.put_some(tcp::DSACK_DUPS, count(|counts| counts.dsack_dups));
        out.put_some(tcp::REORDERED, count(|counts| counts.reordered));
        out.put_some(tcp::DELIVERED_CE, count(|counts| counts.delivered_ce));
        out.put_some(tcp::DELIVERED, count(|counts| counts.delivered));
        out.put_some(tcp::SND_BUF, bytes(self.snd_buf));
        out.put_some(queue::SND, bytes(self.snd_queue));
    }

    /// Writes the metrics of a receiver.
    pub(crate) fn put_receiver(&self, earlier: &Self, out: &mut Readings) {
        let sum =
            |field: fn(&TcpInfo) -> Option<u32>| self.sum(|info| field(info).map(u64::from)).map(Bytes::new);
        out.put_some(tcp::RCV_WND, sum(|info| info.rcv_wnd));
        out.put_some(tcp::RCV_SPACE, sum(|info| info.rcv_space));
        out.put_some(tcp::OUT_OF_ORDER, self.counted(earlier, |counts| counts.out_of_order));
        out.put_some(tcp::RCV_BUF, self.rcv_buf.map(Bytes::new));
        out.put_some(queue::RCV, self.rcv_queue.map(Bytes::new));
        let held = self.rcv_memory.filter(|_| self.rcv_queue == Some(0));
        out.put_some(queue::RCV_HELD, held.map(Bytes::new));
        // Half of the buffer is for payload, the other half for the kernel's bookkeeping (tcp_adv_win_scale 1).
        let share =
            self.rcv_queue.zip(self.rcv_buf).map(|(queued, buffer)| queued as f64 * 2.0 / buffer as f64);
        out.put_some(queue::RCV_SHARE, share.and_then(|share| Ratio::new(share.min(1.0))));
    }

    fn ssthresh(&self) -> Option<Bytes> {
        let of = |info: &TcpInfo| Some(u64::from(info.ssthresh()?) * u64::from(info.snd_mss?));
        self.infos.iter().filter_map(of).reduce(|sum, bytes| sum + bytes).map(Bytes::new)
    }

    fn app_limited(&self) -> Option<Ratio> {
        let limited = self.sum(|info| info.delivery_rate_app_limited().map(u64::from))?;
        Ratio::new(limited as f64 / self.infos.len() as f64)
    }
}

/// A time in µs as ns; the kernel reports 0 before the first sample.
fn us_once_known(us: Option<u32>) -> Option<u64> {
    us.filter(|&us| us > 0).map(|us| u64::from(us) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `TCP_INFO` of 280 bytes with some 32-bit fields set (offsets as in include/uapi/linux/tcp.h).
    fn info(fields: &[(usize, u32)]) -> TcpInfo {
        let mut bytes = [0; 280];
        for &(at, value) in fields {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        TcpInfo::decode(&bytes)
    }

    fn state(infos: Vec<TcpInfo>) -> TcpState {
        let carried = infos.iter().map(CarriedCounts::from).collect();
        TcpState { infos, carried, ..TcpState::default() }
    }

    fn readings(state: &TcpState, earlier: &TcpState) -> Readings {
        let mut out = Readings::default();
        state.put_sender(earlier, &mut out);
        state.put_receiver(earlier, &mut out);
        out
    }

    proptest! {
        /// Two connections: 32-bit counts overflow on one, on both, and several times in a test.
        #[test]
        fn counts_go_on_when_those_of_the_kernel_overflow(
            begin: (u32, u32), growths in proptest::collection::vec((any::<u32>(), 0u32..1000), 1..10),
        ) {
            // Retransmissions, segments and what was delivered are at offsets 100, 156 and 192.
            let at = |(one, other): (u32, u32)| state(
                [one, other].map(|count| info(&[(100, count), (156, count), (192, count)])).to_vec()
            );
            let first = at(begin);
            let (mut counts, mut last, mut sum) = (begin, first.clone(), 0);
            for (one, other) in growths {
                counts = (counts.0.wrapping_add(one), counts.1.wrapping_add(other));
                let now = at(counts).carried_on(&last);
                let grown = u64::from(one) + u64::from(other);
                sum += grown;
                for (later, earlier, expected) in [(&now, &last, grown), (&now, &first, sum)] {
                    let out = readings(later, earlier);
                    prop_assert_eq!(out.get(tcp::RETRANSMITS), Some(expected));
                    prop_assert_eq!(out.get(tcp::SEGMENTS), Some(expected));
                    prop_assert_eq!(out.get(tcp::DELIVERED), Some(expected));
                }
                last = now;
            }
            prop_assert_eq!(last.retransmits(), Some(u64::from(begin.0) + u64::from(begin.1) + sum));
        }
    }

    #[test]
    fn counts_are_absent_after_a_connection_could_not_be_read() {
        let two = state(vec![info(&[(100, 5)]), info(&[(100, 5)])]);
        let one = state(vec![info(&[(100, 9)])]).carried_on(&two);
        let again = state(vec![info(&[(100, 7)]), info(&[(100, 8)])]).carried_on(&one);
        assert_eq!(readings(&one, &two).get(tcp::RETRANSMITS), None);
        assert_eq!(readings(&again, &two).get(tcp::RETRANSMITS), None);
        assert_eq!(again.retransmits(), None);
    }

    #[test]
    fn windows_add_round_trips_are_averaged_and_counters_are_differences() {
        let earlier = state(vec![info(&[(100, 5)]), info(&[(100, 1)])]);
        let one = info(&[(16, 1000), (80, 10), (68, 20_000), (148, 9_000), (100, 7)]);
        let two = info(&[(16, 1400), (80, 10), (68, 30_000), (148, 8_000), (100, 1)]);
        let mut out = Readings::default();
        state(vec![one, two]).carried_on(&earlier).put_sender(&earlier, &mut out);
        assert_eq!(out.get(tcp::CWND), Some(Bytes::new(24_000)));
        assert_eq!(out.get(tcp::SRTT), Some(Span::from_ns(25_000_000)));
        assert_eq!(out.get(tcp::MIN_RTT), Some(Span::from_ns(8_000_000)));
        assert_eq!(out.get(tcp::SND_MSS), Some(Bytes::new(1000)));
        assert_eq!(out.get(tcp::RETRANSMITS), Some(2));
        assert_eq!(out.get(queue::SND), None, "not read, so absent");
    }

    #[test]
    fn what_the_kernel_does_not_return_is_absent() {
        let old = || state(vec![TcpInfo::decode(&[0; 104])]);
        let mut out = Readings::default();
        old().put_sender(&old(), &mut out);
        old().put_receiver(&old(), &mut out);
        assert_eq!(out.get(tcp::RETRANSMITS), Some(0));
        assert_eq!(out.get(tcp::SRTT), None, "no sample yet");
        for metric in [tcp::BYTES_ACKED.name(), tcp::BUSY.name(), tcp::RCV_WND.name(), tcp::TIMEOUTS.name()] {
            assert_eq!(out.named(metric), None, "{metric}");
        }
    }
}
