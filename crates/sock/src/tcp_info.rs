//! The kernel's state of a TCP connection: `struct tcp_info`, decoded by its returned length.
//!
//! The structure only grows at its end (104 bytes in Linux 2.6, 280 since 6.18), so every field beyond the
//! returned length is `None`: the kernel does not report it, which is not the same as 0.

pub use crate::system::tcp_info::tcp_info;

fn number<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

macro_rules! tcp_info_fields {
    ($( $(#[$doc:meta])* $name:ident: $type:ident @ $offset:literal, )*) => {
        /// One reading of `TCP_INFO`. Field names are the kernel's without the `tcpi_` prefix, units as
        /// documented.
        ///
        /// # Source
        /// `include/uapi/linux/tcp.h`, Linux 6.18.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct TcpInfo {
            /// Bytes of the structure that the kernel filled in.
            pub length: usize,
            $( $(#[$doc])* pub $name: Option<$type>, )*
        }

        impl TcpInfo {
            /// Decodes what the kernel returned; `bytes` is the part that it filled in.
            #[must_use]
            pub fn decode(bytes: &[u8]) -> Self {
                Self {
                    length: bytes.len(),
                    $( $name: number(bytes, $offset).map($type::from_ne_bytes), )*
                }
            }
        }

        #[cfg(test)]
        const FIELDS: &[(&str, usize, usize, fn(&TcpInfo) -> Option<u64>)] =
            &[$( (stringify!($name), $offset, size_of::<$type>(), |info| info.$name.map(u64::from)), )*];
    };
}

tcp_info_fields! {
    /// Connection state as a number.
    state: u8 @ 0,
    /// State of the congestion machine as a number.
    ca_state: u8 @ 1,
    /// Retransmission timeouts in a row without an acknowledgement.
    retransmits: u8 @ 2,
    /// Unanswered window probes or keep-alives.
    probes: u8 @ 3,
    /// Doublings of the retransmission timer now in force.
    backoff: u8 @ 4,
    /// Negotiated options as bits; see [`TcpInfo::options`].
    option_bits: u8 @ 5,
    /// Both window scales: low four bits sent by the peer, high four bits sent by us.
    wscale_bits: u8 @ 6,
    /// Bit 0: the last delivery rate was limited by the application.
    flag_bits: u8 @ 7,
    /// Retransmission timeout, µs.
    rto: u32 @ 8,
    /// Delayed-acknowledgement timeout, µs.
    ato: u32 @ 12,
    /// Segment size for sending, bytes of payload.
    snd_mss: u32 @ 16,
    /// Estimate of the segment size that the peer uses, bytes.
    rcv_mss: u32 @ 20,
    /// Segments in flight (for a listener: connections waiting to be accepted).
    unacked: u32 @ 24,
    /// Segments selectively acknowledged (for a listener: the backlog).
    sacked: u32 @ 28,
    /// Segments in flight that are thought lost.
    lost: u32 @ 32,
    /// Retransmitted segments in flight.
    retrans: u32 @ 36,
    /// Forward acknowledgement count; always 0 since Linux 4.15.
    fackets: u32 @ 40,
    /// Time since data was last sent, ms.
    last_data_sent: u32 @ 44,
    /// Not kept by the kernel; always 0.
    last_ack_sent: u32 @ 48,
    /// Time since data was last received, ms.
    last_data_recv: u32 @ 52,
    /// Time since an acknowledgement was last received, ms.
    last_ack_recv: u32 @ 56,
    /// Path MTU, bytes.
    pmtu: u32 @ 60,
    /// Largest window the receiver side is willing to grow to at present, bytes.
    rcv_ssthresh: u32 @ 64,
    /// Smoothed round-trip time, µs.
    rtt: u32 @ 68,
    /// Mean deviation of the round-trip time, µs.
    rttvar: u32 @ 72,
    /// Slow-start threshold, segments; see [`TcpInfo::ssthresh`].
    snd_ssthresh: u32 @ 76,
    /// Congestion window, segments.
    snd_cwnd: u32 @ 80,
    /// Segment size advertised to the peer, bytes.
    advmss: u32 @ 84,
    /// Reordering degree assumed by loss detection, segments.
    reordering: u32 @ 88,
    /// Round-trip time as the receiver side estimates it, µs (0 until it has an estimate).
    rcv_rtt: u32 @ 92,
    /// Receive-buffer space that autotuning aims at, bytes.
    rcv_space: u32 @ 96,
    /// Segments retransmitted since the start.
    total_retrans: u32 @ 100,
    /// Pacing rate in force, bytes/s; all ones when not paced.
    pacing_rate: u64 @ 104,
    /// Upper bound of the pacing rate, bytes/s; all ones when unbounded.
    max_pacing_rate: u64 @ 112,
    /// Payload bytes acknowledged by the peer since the start (RFC 4898).
    bytes_acked: u64 @ 120,
    /// Payload bytes received in order since the start (RFC 4898).
    bytes_received: u64 @ 128,
    /// Segments sent since the start, with and without payload.
    segs_out: u32 @ 136,
    /// Segments received since the start, with and without payload.
    segs_in: u32 @ 140,
    /// Bytes in the send buffer that were not sent yet.
    notsent_bytes: u32 @ 144,
    /// Smallest round-trip time in the kernel's window (300 s by default), µs; all ones before the first sample.
    min_rtt: u32 @ 148,
    /// Segments with payload received.
    data_segs_in: u32 @ 152,
    /// Segments with payload sent.
    data_segs_out: u32 @ 156,
    /// Most recent delivery rate, bytes/s.
    delivery_rate: u64 @ 160,
    /// Time with something to send or in flight, µs.
    busy_time: u64 @ 168,
    /// Part of `busy_time` in which the peer's window was the limit, µs.
    rwnd_limited: u64 @ 176,
    /// Part of `busy_time` in which our send buffer was the limit, µs.
    sndbuf_limited: u64 @ 184,
    /// Segments delivered, including those delivered out of order.
    delivered: u32 @ 192,
    /// Delivered segments that the peer reported as marked "congestion experienced".
    delivered_ce: u32 @ 196,
    /// Payload bytes sent, retransmissions included.
    bytes_sent: u64 @ 200,
    /// Payload bytes retransmitted.
    bytes_retrans: u64 @ 208,
    /// Duplicate selective acknowledgements received: retransmissions that were not needed.
    dsack_dups: u32 @ 216,
    /// Reordering events seen by the sender.
    reord_seen: u32 @ 220,
    /// Segments received out of order.
    rcv_ooopack: u32 @ 224,
    /// Window advertised by the peer, scaled, bytes.
    snd_wnd: u32 @ 228,
    /// Window advertised to the peer, scaled, bytes.
    rcv_wnd: u32 @ 232,
    /// Changes of the flow hash after timeouts or by protective load balancing.
    rehash: u32 @ 236,
    /// Retransmission timeouts, of the handshake too.
    total_rto: u16 @ 240,
    /// Recoveries from a retransmission timeout that ended.
    total_rto_recoveries: u16 @ 242,
    /// Time spent in recovery from retransmission timeouts, ms.
    total_rto_time: u32 @ 244,
    /// Segments received with the "congestion experienced" mark (accurate ECN).
    received_ce: u32 @ 248,
    /// Bytes delivered with the ECT(1) mark, by the peer's count.
    delivered_e1_bytes: u32 @ 252,
    /// Bytes delivered with the ECT(0) mark, by the peer's count.
    delivered_e0_bytes: u32 @ 256,
    /// Bytes delivered with the CE mark, by the peer's count.
    delivered_ce_bytes: u32 @ 260,
    /// Bytes received with the ECT(1) mark.
    received_e1_bytes: u32 @ 264,
    /// Bytes received with the ECT(0) mark.
    received_e0_bytes: u32 @ 268,
    /// Bytes received with the CE mark.
    received_ce_bytes: u32 @ 272,
    /// Accurate-ECN negotiation details, undivided: Linux 6.18 keeps two 16-bit fields here, later kernels bit fields.
    accecn_bits: u32 @ 276,
}

/// Options that both ends agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpOptions {
    /// Timestamps (RFC 7323), 12 bytes of every segment.
    pub timestamps: bool,
    /// Selective acknowledgement (RFC 2018).
    pub sack: bool,
    /// Window scaling (RFC 7323).
    pub wscale: bool,
    /// Explicit congestion notification (RFC 3168) was negotiated.
    pub ecn: bool,
    /// At least one segment arrived with an ECN-capable mark.
    pub ecn_seen: bool,
    /// The peer took data that travelled with the SYN (RFC 7413).
    pub fast_open: bool,
    /// The SYN carried data that the peer acknowledged (RFC 7413).
    pub syn_data: bool,
}

impl TcpInfo {
    /// The options negotiated in the handshake.
    #[must_use]
    pub fn options(&self) -> Option<TcpOptions> {
        self.option_bits.map(|bits| TcpOptions {
            timestamps: bits & 1 != 0,
            sack: bits & 2 != 0,
            wscale: bits & 4 != 0,
            ecn: bits & 8 != 0,
            ecn_seen: bits & 16 != 0,
            fast_open: bits & 32 != 0,
            syn_data: bits & 32 != 0,
        })
    }

    /// Shift of the windows that the peer advertises; also 0 if scaling was not negotiated.
    #[must_use]
    pub fn snd_wscale(&self) -> Option<u8> {
        // Bit fields fill the byte from its low end on little-endian machines and from its high end on the others.
        self.wscale_bits.map(|bits| if cfg!(target_endian = "little") { bits & 15 } else { bits >> 4 })
    }

    /// Shift of the windows that we advertise.
    #[must_use]
    pub fn rcv_wscale(&self) -> Option<u8> {
        self.wscale_bits.map(|bits| if cfg!(target_endian = "little") { bits >> 4 } else { bits & 15 })
    }

    /// Whether the last delivery rate was limited by the application.
    #[must_use]
    pub fn delivery_rate_app_limited(&self) -> Option<bool> {
        self.delivery_rate?;
        self.flag_bits
            .map(|bits| if cfg!(target_endian = "little") { bits & 1 != 0 } else { bits & 0x80 != 0 })
    }

    /// Slow-start threshold in segments; `None` while it is infinite, i.e. in the first slow start.
    #[must_use]
    pub fn ssthresh(&self) -> Option<u32> {
        const TCP_INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
        self.snd_ssthresh.filter(|&segments| segments < TCP_INFINITE_SSTHRESH)
    }

    /// Smallest round-trip time in µs; `None` before the first sample.
    #[must_use]
    pub fn min_rtt_us(&self) -> Option<u32> {
        self.min_rtt.filter(|&us| us != u32::MAX)
    }

    /// Pacing rate in bytes/s; `None` if the connection is not paced.
    #[must_use]
    pub fn paced_bytes_per_second(&self) -> Option<u64> {
        self.pacing_rate.filter(|&rate| rate != u64::MAX)
    }

    /// Congestion window in bytes.
    #[must_use]
    pub fn cwnd_bytes(&self) -> Option<u64> {
        Some(u64::from(self.snd_cwnd?) * u64::from(self.snd_mss?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_fields_tile_the_280_bytes_of_linux_6_18_without_gap_or_overlap() {
        let mut end = 0;
        for &(name, offset, size, _) in FIELDS {
            assert_eq!(offset, end, "{name}");
            end = offset + size;
        }
        assert_eq!(end, 280);
    }

    #[test]
    fn offsets_agree_with_the_c_declaration_known_to_libc() {
        for (name, theirs) in [
            ("rto", offset_of!(libc::tcp_info, tcpi_rto)),
            ("pmtu", offset_of!(libc::tcp_info, tcpi_pmtu)),
            ("rtt", offset_of!(libc::tcp_info, tcpi_rtt)),
            ("snd_cwnd", offset_of!(libc::tcp_info, tcpi_snd_cwnd)),
            ("rcv_space", offset_of!(libc::tcp_info, tcpi_rcv_space)),
            ("total_retrans", offset_of!(libc::tcp_info, tcpi_total_retrans)),
        ] {
            let ours = FIELDS.iter().find(|field| field.0 == name).unwrap().1;
            assert_eq!(ours, theirs, "{name}");
        }
    }

    #[test]
    fn every_field_reads_its_own_bytes() {
        let bytes: Vec<u8> = (0..280u32).map(|i| (i % 251) as u8).collect();
        let info = TcpInfo::decode(&bytes);
        for &(name, offset, size, read) in FIELDS {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(&bytes[offset..offset + size]);
            assert_eq!(read(&info), Some(u64::from_le_bytes(wide)), "{name}");
        }
    }

    #[test]
    fn a_field_beyond_the_returned_length_is_absent_and_never_zero() {
        let bytes = [0; 300];
        for length in 0..=bytes.len() {
            let info = TcpInfo::decode(&bytes[..length]);
            assert_eq!(info.length, length);
            for &(name, offset, size, read) in FIELDS {
                let expected = (offset + size <= length).then_some(0);
                assert_eq!(read(&info), expected, "{name} at length {length}");
            }
        }
    }

    #[test]
    fn derived_values() {
        let mut bytes = [0u8; 280];
        bytes[1] = 3;
        bytes[5] = 0b0000_0111;
        bytes[6] = 0x97;
        bytes[7] = 1;
        bytes[16..20].copy_from_slice(&1448u32.to_ne_bytes());
        bytes[76..80].copy_from_slice(&0x7fff_ffffu32.to_ne_bytes());
        bytes[80..84].copy_from_slice(&10u32.to_ne_bytes());
        bytes[104..112].copy_from_slice(&u64::MAX.to_ne_bytes());
        let info = TcpInfo::decode(&bytes);
        let options = info.options().unwrap();
        assert!(options.timestamps && options.sack && options.wscale && !options.ecn);
        assert_eq!((info.snd_wscale(), info.rcv_wscale()), (Some(7), Some(9)));
        assert_eq!(info.delivery_rate_app_limited(), Some(true));
        assert_eq!(info.ssthresh(), None);
        assert_eq!(info.cwnd_bytes(), Some(14480));
        assert_eq!(info.paced_bytes_per_second(), None);
        assert_eq!(TcpInfo::decode(&bytes[..160]).delivery_rate_app_limited(), None);
    }
}
