//! The names of the numbers that findings and follow-ups rest on.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::ceiling::Limit;
use crate::foreign_text::ForeignText;
use crate::names::{UnknownName, name_traits};

/// Declares [`EvidenceKey`]: keys with a text each, and families of keys with what is before and after their part.
macro_rules! evidence_keys {
    (
        keys { $($(#[doc = $doc:literal])+ $Key:ident = $text:literal,)+ }
        families { $($(#[doc = $family_doc:literal])+ $Family:ident($Part:ty) = $before:literal, $after:literal;)+ }
    ) => {
        /// The name of a number that a rule looked at; it ends with its unit (`_bps`, `_bytes`, `_ns`, `_per_s`), or the
        /// number is a count or a plain ratio.
        ///
        /// Keys are ordered by their text, which is the order of findings in JSON.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum EvidenceKey {
            $($(#[doc = $doc])+ $Key,)+
            $($(#[doc = $family_doc])+ $Family($Part),)+
            /// A key that this version does not know, in a file of a newer one or from elsewhere.
            Other(UnknownName),
        }

        impl EvidenceKey {
            /// Every key that is no member of a family, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$Key),+];

            /// The key as results have it.
            #[must_use]
            pub fn name(&self) -> Cow<'_, str> {
                match self {
                    $(Self::$Key => Cow::Borrowed($text),)+
                    $(Self::$Family(part) => Cow::Owned(format!(concat!($before, "{}", $after), part)),)+
                    Self::Other(name) => Cow::Borrowed(name.as_str()),
                }
            }
        }

        impl From<ForeignText> for EvidenceKey {
            fn from(name: ForeignText) -> Self {
                match name.as_str() {
                    $($text => return Self::$Key,)+
                    _ => {}
                }
                $(if let Some(part) = <$Part as KeyPart>::read(&name, $before, $after) {
                    return Self::$Family(part);
                })+
                Self::Other(UnknownName::new(name))
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for EvidenceKey {
            fn schema_name() -> Cow<'static, str> {
                "EvidenceKey".into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let keys: Vec<schemars::Schema> = vec![
                    $(schemars::json_schema!({
                        "description": concat!($($doc),+).trim(), "type": "string", "const": $text
                    }),)+
                    $(schemars::json_schema!({
                        "description": concat!($($family_doc),+).trim(),
                        "type": "string",
                        "pattern": format!(concat!("^", $before, "{}", $after, "$"), <$Part as KeyPart>::PATTERN)
                    })),+
                ];
                schemars::json_schema!({ "anyOf": keys })
            }
        }
    };
}

/// What tells the keys of a family apart.
trait KeyPart: Sized + std::fmt::Display {
    /// What it is as a regular expression.
    #[cfg(feature = "schema")]
    const PATTERN: &str;

    fn parse(text: &str) -> Option<Self>;

    /// The part between `before` and `after`, where the key would be written the same again.
    fn read(key: &str, before: &str, after: &str) -> Option<Self> {
        let text = key.strip_prefix(before)?.strip_suffix(after)?;
        Self::parse(text).filter(|part| part.to_string() == text)
    }
}

impl KeyPart for Limit {
    #[cfg(feature = "schema")]
    const PATTERN: &str = "[a-z_]+";

    fn parse(text: &str) -> Option<Self> {
        Some(Self::from(ForeignText::from(text))).filter(|limit| !matches!(limit, Self::Other(_)))
    }
}

impl KeyPart for u64 {
    #[cfg(feature = "schema")]
    const PATTERN: &str = "[0-9]+";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

name_traits!(EvidenceKey);

impl Ord for EvidenceKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(&other.name())
    }
}

impl PartialOrd for EvidenceKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A map of evidence in a schema: numbers, and which keys they have.
#[cfg(feature = "schema")]
pub(crate) fn map_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let (keys, values) = (generator.subschema_for::<EvidenceKey>(), generator.subschema_for::<f64>());
    schemars::json_schema!({ "type": "object", "propertyNames": keys, "additionalProperties": values })
}

evidence_keys! {
    keys {
        /// Bytes that were acknowledged, what was omitted included.
        AckedBytes = "acked_bytes",
        /// Rate that the flow can have at most once the remedy is applied.
        AfterRemedyBps = "after_remedy_bps",
        /// Share of the samples in which the application limited the rate, as the kernel says.
        AppLimitedShare = "app_limited_share",
        /// By how much the median one-way delay of the way back rose under load.
        BackRiseNs = "back_rise_ns",
        /// Size of the bucket of a policer or shaper.
        BucketBytes = "bucket_bytes",
        /// Datagrams that found the receive buffer full.
        BufferDrops = "buffer_drops",
        /// Share of the time with data outstanding.
        BusyShare = "busy_share",
        /// Rate that the cause alone allows.
        CeilingBps = "ceiling_bps",
        /// Congestion window, median.
        CwndBytes = "cwnd_bytes",
        /// Relative growth of the congestion window per second.
        CwndGrowthPerS = "cwnd_growth_per_s",
        /// Congestion window at the end of the test.
        CwndLastBytes = "cwnd_last_bytes",
        /// Bytes that the receiving program read.
        DeliveredBytes = "delivered_bytes",
        /// Rate at which the disk alone read or wrote the file.
        DiskBps = "disk_bps",
        /// Goodput at the very start over that of the steady part.
        EarlyOverSteady = "early_over_steady",
        /// Segments whose congestion mark the receiver echoed.
        Echoed = "echoed",
        /// The same as a share of all segments.
        EchoedShare = "echoed_share",
        /// Intervals that the sampler should have read.
        ExpectedIntervals = "expected_intervals",
        /// Largest lateness of the sampler.
        GapMaxNs = "gap_max_ns",
        /// Payload that arrived, per second.
        GoodputBps = "goodput_bps",
        /// Time that the hosts add to the round trip, as it follows from the rate.
        HostsNs = "hosts_ns",
        /// Times that HyStart ended slow start, what was omitted included.
        HystartExits = "hystart_exits",
        /// Mean congestion window at which HyStart ended slow start.
        HystartWindowBytes = "hystart_window_bytes",
        /// Standard deviation of the rates of the intervals over their mean.
        IntervalVariation = "interval_variation",
        /// Largest rate of a connection over the smallest.
        LargestOverSmallest = "largest_over_smallest",
        /// Largest IP packet that arrived.
        LargestPacketBytes = "largest_packet_bytes",
        /// Goodput of the last interval over that of the one before.
        LastOverPrevious = "last_over_previous",
        /// Rate of the link at the wire.
        LinkBps = "link_bps",
        /// Packets that the sender's own host dropped.
        LocalDrops = "local_drops",
        /// Loss of datagrams that were offered above the rate in question.
        LossAboveRatio = "loss_above_ratio",
        /// Loss of datagrams that were offered below the rate in question.
        LossBelowRatio = "loss_below_ratio",
        /// Loss of the same transfer when it is paced.
        LossPacedRatio = "loss_paced_ratio",
        /// Lost segments or datagrams over those that were sent.
        LossRatio = "loss_ratio",
        /// Loss of the same transfer without pacing.
        LossUnpacedRatio = "loss_unpaced_ratio",
        /// Pacing rate set on the socket or the queueing discipline.
        MaxPacingBps = "max_pacing_bps",
        /// Steady time measured.
        MeasuredNs = "measured_ns",
        /// Rate of one member link of a LAG.
        MemberBps = "member_bps",
        /// Fewest member links that explain the rate of many connections.
        MembersLeast = "members_least",
        /// Most member links that explain the rate of many connections.
        MembersMost = "members_most",
        /// Member links that the connections used.
        MembersUsed = "members_used",
        /// Segment size in effect.
        MssBytes = "mss_bytes",
        /// Segment size at the start of the connection.
        MssFirstBytes = "mss_first_bytes",
        /// Probes for the path MTU by the sending host, what was omitted included.
        MtuProbes = "mtu_probes",
        /// Length that a test would need.
        NeededNs = "needed_ns",
        /// Share of the retransmissions that were not needed.
        NeedlessShare = "needless_share",
        /// Bytes written to the socket but not sent, median.
        NotSentBytes = "not_sent_bytes",
        /// Rate that the test offers.
        OfferedBps = "offered_bps",
        /// Share of the time of all of a host's cores that other programs used.
        OthersShare = "others_share",
        /// Segments that reached the receiver out of order.
        OutOfOrder = "out_of_order",
        /// By how much the median one-way delay on the way of the data rose under load.
        OutRiseNs = "out_rise_ns",
        /// Rate of the same transfer when it is paced.
        PacedBps = "paced_bps",
        /// Pacing rate of the kernel.
        PacingRateBps = "pacing_rate_bps",
        /// Longest delay of a timer of a page.
        PageLagNs = "page_lag_ns",
        /// Share of the time in which a page had nothing ready to send.
        PageStarvedShare = "page_starved_share",
        /// IP packet of a full segment.
        PacketBytes = "packet_bytes",
        /// Rate at which datagrams arrive, however many are offered.
        PassedBps = "passed_bps",
        /// What the path holds in flight.
        PathBytes = "path_bytes",
        /// Packets that a port of the emulated network dropped.
        PortDrops = "port_drops",
        /// Time that packets wait in a queue.
        QueueNs = "queue_ns",
        /// Time until the rate was steady.
        RampNs = "ramp_ns",
        /// Receive buffer in effect.
        RcvBufBytes = "rcv_buf_bytes",
        /// Rate at which the receiving program reads, as it was asked for.
        ReadBps = "read_bps",
        /// Share of the receive buffer that waited for the application, median.
        ReceiveQueueShare = "receive_queue_share",
        /// Collisions at the receiver's interface.
        ReceiverCollisions = "receiver_collisions",
        /// Damaged frames at the receiver's interface.
        ReceiverDamagedFrames = "receiver_damaged_frames",
        /// Share of the periods in which the receiver had used up its CPU quota.
        ReceiverQuotaThrottledShare = "receiver_quota_throttled_share",
        /// Largest share of a core of the receiver spent in software interrupts.
        ReceiverSoftirqShare = "receiver_softirq_share",
        /// Share of the time that a hypervisor took from the receiver.
        ReceiverStealShare = "receiver_steal_share",
        /// Share of a core that the receiver's busiest thread had.
        ReceiverThreadShare = "receiver_thread_share",
        /// Share of the time in which the receiver's busiest thread waited for a processor.
        ReceiverThreadWaitShare = "receiver_thread_wait_share",
        /// Share of the busy time in which the receive window held the flow.
        ReceiverWindowShare = "receiver_window_share",
        /// Times that the sender saw reordering.
        Reordered = "reordered",
        /// Segments that were retransmitted.
        Retransmits = "retransmits",
        /// Share of the segments from the receiver that never reached the sender.
        ReturnLostRatio = "return_lost_ratio",
        /// Segments without payload that came back, for each segment sent.
        ReturnPerSegment = "return_per_segment",
        /// Segments without payload that came back to the sender, per second.
        ReturnPps = "return_pps",
        /// Round trips per minute under load (RPM).
        RoundTripsPerMinute = "round_trips_per_minute",
        /// Round trip without load.
        RttBaseNs = "rtt_base_ns",
        /// 95th percentile of the round trip under load.
        RttLoadedP95Ns = "rtt_loaded_p95_ns",
        /// Round trip of the flow.
        RttNs = "rtt_ns",
        /// By how much the round trip rose under load.
        RttRiseNs = "rtt_rise_ns",
        /// Intervals that the sampler read.
        SeenIntervals = "seen_intervals",
        /// Share of the busy time in which the send buffer held the flow.
        SendBufferShare = "send_buffer_share",
        /// Collisions at the sender's interface.
        SenderCollisions = "sender_collisions",
        /// Damaged frames at the sender's interface.
        SenderDamagedFrames = "sender_damaged_frames",
        /// Share of the periods in which the sender had used up its CPU quota.
        SenderQuotaThrottledShare = "sender_quota_throttled_share",
        /// Largest share of a core of the sender spent in software interrupts.
        SenderSoftirqShare = "sender_softirq_share",
        /// Share of the time that a hypervisor took from the sender.
        SenderStealShare = "sender_steal_share",
        /// Share of a core that the sender's busiest thread had.
        SenderThreadShare = "sender_thread_share",
        /// Share of the time in which the sender's busiest thread waited for a processor.
        SenderThreadWaitShare = "sender_thread_wait_share",
        /// Rate of a shaper, as the shaper counts it.
        ShaperBps = "shaper_bps",
        /// Rate over the ceiling.
        Share = "share",
        /// Smallest IP packet that did not arrive.
        SmallestLostBytes = "smallest_lost_bytes",
        /// Send buffer in effect.
        SndBufBytes = "snd_buf_bytes",
        /// Packets that the host dropped before its protocol stack, per second.
        SoftnetDroppedPerS = "softnet_dropped_per_s",
        /// Times that packet processing ran out of its budget, per second.
        SoftnetSqueezedPerS = "softnet_squeezed_per_s",
        /// Share of a core that the busiest thread had.
        ThreadShare = "thread_share",
        /// Share of the time in which the busiest thread waited for a processor.
        ThreadWaitShare = "thread_wait_share",
        /// Time spent in retransmission timeouts.
        TimeoutNs = "timeout_ns",
        /// Retransmission timeouts.
        Timeouts = "timeouts",
        /// Rate of many connections over that of one.
        Times = "times",
        /// Rate of many connections together.
        TogetherBps = "together_bps",
        /// Share of the bytes that no count explains.
        UnaccountedShare = "unaccounted_share",
        /// Bytes in flight, median.
        UnackedBytes = "unacked_bytes",
        /// Receive window.
        WindowBytes = "window_bytes",
        /// Reductions of the congestion window that the sending host took back.
        WindowUndone = "window_undone",
        /// Bytes that the sending program wrote.
        WrittenBytes = "written_bytes",
        /// Times that the receiver advertised a window of zero.
        ZeroWindows = "zero_windows",
    }
    families {
        /// The ceiling of one limit.
        CeilingOf(Limit) = "", "_ceiling_bps";
        /// Goodput with reads and writes of this many bytes.
        ReadGoodputBps(u64) = "read_", "_goodput_bps";
        /// What went back at that size, on the wire.
        ReadReturnBps(u64) = "read_", "_return_bps";
        /// Packets back for each segment at that size.
        ReadReturnPerSegmentRatio(u64) = "read_", "_return_per_segment_ratio";
        /// Share of the slower interface that went back at that size.
        ReadReturnShareRatio(u64) = "read_", "_return_share_ratio";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> EvidenceKey {
        EvidenceKey::from(ForeignText::from(name))
    }

    #[test]
    fn every_key_comes_back_as_it_was_written() {
        let families = [
            EvidenceKey::CeilingOf(Limit::CpuSender),
            EvidenceKey::ReadGoodputBps(1024),
            EvidenceKey::ReadReturnBps(u64::MAX),
            EvidenceKey::ReadReturnPerSegmentRatio(0),
            EvidenceKey::ReadReturnShareRatio(65_536),
        ];
        for key in EvidenceKey::ALL.iter().chain(&families) {
            assert_eq!(&read(&key.name()), key);
            let json = serde_json::to_string(key).unwrap();
            assert_eq!(&serde_json::from_str::<EvidenceKey>(&json).unwrap(), key);
        }
        assert_eq!(EvidenceKey::CeilingOf(Limit::CpuSender).name(), "cpu_sender_ceiling_bps");
        assert_eq!(EvidenceKey::ReadReturnBps(1024).name(), "read_1024_return_bps");
    }

    #[test]
    fn what_is_not_a_key_of_this_version_stays_what_it_is() {
        for name in [
            "moon_phase_ratio",
            "moon_ceiling_bps",
            "read_007_return_bps",
            "read__return_bps",
            "_ceiling_bps",
            "",
        ] {
            assert!(matches!(read(name), EvidenceKey::Other(_)), "{name}");
            assert_eq!(read(name).name(), name);
        }
    }

    #[test]
    fn evidence_is_in_the_order_of_its_texts() {
        let mut keys: Vec<EvidenceKey> = EvidenceKey::ALL.to_vec();
        keys.extend([
            EvidenceKey::CeilingOf(Limit::Link),
            EvidenceKey::ReadReturnBps(4096),
            read("zzz"),
            read("a"),
        ]);
        keys.sort();
        let names: Vec<String> = keys.iter().map(EvidenceKey::to_string).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
