//! The parts of the result document. Field names are public: they carry their units and keep their meaning.

use std::collections::BTreeMap;

use linerate_model::flow::FlowId;
use linerate_model::{
    AccountingStep, ByteAccounting, Caveat, Ceiling, CeilingShare, DelayBucket, Digest, Direction, Effective,
    Finding, FollowUp, ForeignText, GroupPlace, GroupStart, HostInfo, Limit, LossBursts, Outcome, PortSample,
    ProbeTransport, ResponsivenessReport, Sample, SideSettings, SizeCurve, SizePoint, Steady, TestSpec,
    TransactionTimes, Transport, Uncertainty, World,
};
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};
use serde::Serialize;

macro_rules! section {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)+ }
    };
}

section! {
    /// A run as a JSON document.
    ResultDocument {
        /// Version of this format.
        schema: &'static str,
        /// The run.
        run: RunSection,
        /// The hosts, client first.
        hosts: Vec<HostInfo>,
        /// The flows, in the order in which they were planned.
        flows: Vec<FlowSection>,
        /// The ports of an emulated network, one entry for each phase and port; absent on real hosts.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        ports: Vec<PortSection>,
        /// Responsiveness under load, in each combination of directions that was loaded; absent in other tests.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        responsiveness: Vec<ResponsivenessReport>,
        /// Caveats of the whole run.
        caveats: Vec<Caveat>,
    }
}

section! {
    /// The run.
    RunSection {
        /// Name of the run.
        id: ForeignText,
        /// Wall-clock time of its start, RFC 3339; absent if the start of the log is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        started_at: Option<ForeignText>,
        /// Where it ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        world: Option<World>,
        /// Version of linerate.
        #[serde(skip_serializing_if = "Option::is_none")]
        linerate: Option<ForeignText>,
        /// How the run ended; absent if it was killed.
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// Reason, unless it was completed.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<ForeignText>,
        /// Name that the user gave it.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<ForeignText>,
        /// Notes of the user, by their keys.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        notes: BTreeMap<ForeignText, ForeignText>,
        /// The server as typed.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<ForeignText>,
        /// The specification.
        #[serde(skip_serializing_if = "Option::is_none")]
        spec: Option<TestSpec>,
        /// Its place among runs that were started together.
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<GroupPlace>,
        /// Time at which it started to measure as one of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        group_start: Option<GroupStart>,
    }
}

section! {
    /// One group of streams from host to host.
    FlowSection {
        /// Its number in the run.
        flow: FlowId,
        /// Its name for users.
        name: ForeignText,
        /// The sending host.
        from: ForeignText,
        /// The receiving host.
        to: ForeignText,
        /// Transport protocol.
        transport: Transport,
        /// Direction, seen from the client.
        direction: Direction,
        /// Number of streams.
        streams: u32,
        /// The result.
        #[serde(skip_serializing_if = "Option::is_none")]
        receiver: Option<ReceiverSection>,
        /// The sender's counts, for diagnosis.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<SenderSection>,
        /// The sizes of a series over message sizes, smallest first; absent in a plain test.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        sizes: Vec<SizePoint>,
        /// Summary of the series.
        #[serde(skip_serializing_if = "Option::is_none")]
        curve: Option<SizeCurve>,
        /// Requests and responses, in a test that makes transactions.
        #[serde(skip_serializing_if = "Option::is_none")]
        transactions: Option<TransactionSection>,
        /// Counts of datagrams, for UDP.
        #[serde(skip_serializing_if = "Option::is_none")]
        udp: Option<UdpSection>,
        /// Settings as requested, granted and effective.
        #[serde(skip_serializing_if = "Option::is_none")]
        settings: Option<SettingsSection>,
        /// Latency measured by the probes.
        #[serde(skip_serializing_if = "Option::is_none")]
        latency: Option<LatencySection>,
        /// CPU time of the hosts.
        #[serde(skip_serializing_if = "Option::is_none")]
        cpu: Option<CpuSection>,
        /// The ceiling that the result is compared with.
        #[serde(skip_serializing_if = "Option::is_none")]
        ceiling: Option<CeilingSection>,
        /// Every known ceiling, lowest first.
        ceilings: Vec<Ceiling>,
        /// The limit of the flow.
        #[serde(skip_serializing_if = "Option::is_none")]
        verdict: Option<Finding>,
        /// Findings of other rules whose conditions hold.
        also: Vec<Finding>,
        /// Questions that follow-up runs answered. The verdict takes the answers into account.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        follow_ups: Vec<FollowUp>,
        /// Byte accounting.
        #[serde(skip_serializing_if = "Option::is_none")]
        byte_accounting: Option<ByteAccountingSection>,
        /// The steady part.
        #[serde(skip_serializing_if = "Option::is_none")]
        steady: Option<Steady>,
        /// Uncertainty of the receiver's rate with its contributions; absent if it cannot be estimated.
        #[serde(skip_serializing_if = "Option::is_none")]
        uncertainty: Option<Uncertainty>,
        /// Caveats of the result.
        caveats: Vec<Caveat>,
        /// Intervals of both sides, merged to the requested interval.
        samples: Vec<Sample>,
    }
}

section! {
    /// Requests and responses in the measured part, as the end that made the requests counted them.
    TransactionSection {
        /// Transactions that were completed.
        completed: u64,
        /// The same per second.
        per_second: f64,
        /// Requests that were never answered.
        failed: u64,
        /// How long the transactions took; absent if none was completed.
        #[serde(skip_serializing_if = "Option::is_none")]
        times: Option<TransactionTimes>,
        /// The distribution of these times: the buckets that are not empty, ascending.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        histogram: Vec<DelayBucket>,
    }
}

section! {
    /// Byte accounting between the programs, and along the path between them.
    ByteAccountingSection {
        /// Between the programs; absent for UDP.
        #[serde(flatten)]
        programs: Option<ByteAccounting>,
        /// Counts on the path to the wire and back, with the range that explains them; absent if no counter was
        /// read there.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        steps: Vec<AccountingStep>,
    }
}

section! {
    /// Counts of one port of an emulated network during one phase.
    ///
    /// Counts cover the whole phase; `rate_bps` and `busy` cover its measured part.
    PortSection {
        /// Its name: the node that it belongs to and the node that it sends to.
        port: ForeignText,
        /// Numbers of the flows that ran in the phase.
        flows: Vec<FlowId>,
        /// Length of the measured part.
        seconds: f64,
        /// Mean rate on the wire, with preamble and gap between frames.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate_bps: Option<Bitrate>,
        /// Share of the time in which the line was sending.
        #[serde(skip_serializing_if = "Option::is_none")]
        busy: Option<Ratio>,
        /// Packets sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        packets: Option<u64>,
        /// Bytes of the frames sent, without preamble and gap.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<Bytes>,
        /// Packets dropped.
        #[serde(skip_serializing_if = "Option::is_none")]
        dropped: Option<u64>,
        /// Packets with a congestion mark (ECN CE).
        #[serde(skip_serializing_if = "Option::is_none")]
        marked: Option<u64>,
        /// Largest number of bytes queued at any moment.
        #[serde(skip_serializing_if = "Option::is_none")]
        queue_max_bytes: Option<Bytes>,
        /// Its intervals, merged to the requested interval; time counts from the start of the run.
        samples: Vec<PortSample>,
    }
}

section! {
    /// The receiver's counts: `bitrate_bps = (bytes - first_read_bytes) * 8 / seconds`.
    ReceiverSection {
        /// Application bytes inside the measured window.
        bytes: Bytes,
        /// Time from the first to the last read inside the window.
        seconds: f64,
        /// Goodput; absent if no time passed between the first and the last read.
        #[serde(skip_serializing_if = "Option::is_none")]
        bitrate_bps: Option<Bitrate>,
        /// True if the rate exceeds the link's by more than clock errors explain, or contradicts the sender's
        /// count.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        impossible: bool,
        /// Bytes of the first read, which defines the time origin and is not in the rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_read_bytes: Option<Bytes>,
        /// Time of that read since the start of the run; if a server reports it, late by a one-way delay. The
        /// samples of the receiver count from it.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_read_ns: Option<Timestamp>,
        /// Bytes of the omitted part.
        #[serde(skip_serializing_if = "Option::is_none")]
        omitted_bytes: Option<Bytes>,
        /// Bytes after the window.
        #[serde(skip_serializing_if = "Option::is_none")]
        tail_bytes: Option<Bytes>,
        /// All bytes of the flow.
        #[serde(skip_serializing_if = "Option::is_none")]
        total_bytes: Option<Bytes>,
    }
}

section! {
    /// The sender's counts of bytes written to the socket.
    SenderSection {
        /// Application bytes inside the window.
        bytes: Bytes,
        /// Time during which it wrote.
        seconds: f64,
        /// Rate at which it wrote; absent if no time passed.
        #[serde(skip_serializing_if = "Option::is_none")]
        bitrate_bps: Option<Bitrate>,
        /// Retransmitted segments.
        #[serde(skip_serializing_if = "Option::is_none")]
        retransmits: Option<u64>,
        /// Bytes still in its send queue at the end.
        #[serde(skip_serializing_if = "Option::is_none")]
        queued_bytes: Option<Bytes>,
        /// Datagrams sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        packets: Option<u64>,
    }
}

section! {
    /// Datagrams, as the receiver counted them.
    UdpSection {
        /// Datagrams that were read at least once or lost.
        packets: u64,
        /// Datagrams that were sent and never read.
        lost: u64,
        /// Datagrams that arrived after a later one.
        #[serde(skip_serializing_if = "Option::is_none")]
        out_of_order: Option<u64>,
        /// Datagrams that arrived more than once.
        #[serde(skip_serializing_if = "Option::is_none")]
        duplicates: Option<u64>,
        /// `lost / packets` (RFC 7680).
        #[serde(skip_serializing_if = "Option::is_none")]
        loss_ratio: Option<Ratio>,
        /// Interarrival jitter (RFC 3550 §6.4.1).
        #[serde(skip_serializing_if = "Option::is_none")]
        jitter_ns: Option<Span>,
        /// Lost datagrams that the receiving kernel dropped at the socket.
        #[serde(skip_serializing_if = "Option::is_none")]
        socket_drops: Option<u64>,
        /// Datagrams that the sending kernel rejected.
        #[serde(skip_serializing_if = "Option::is_none")]
        send_errors: Option<u64>,
        /// Losses in a row, up to the last datagram that arrived; absent without any.
        #[serde(skip_serializing_if = "Option::is_none")]
        loss_bursts: Option<LossBursts>,
        /// Datagrams by which a late one was behind the latest, at most; absent if none was late.
        #[serde(skip_serializing_if = "Option::is_none")]
        late_by: Option<u64>,
        /// Times between the moments at which datagrams of a stream with a rate leave, one or several together; absent
        /// without a rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        send_gaps: Option<Digest>,
    }
}

section! {
    /// Settings. A requested value is `null` if it was left to the kernel; a value that cannot be read back is
    /// absent.
    SettingsSection {
        /// Socket buffers.
        window: WindowSetting,
        /// Segment size.
        mss: MssSetting,
        /// Congestion control of the sender.
        congestion: Effective<ForeignText>,
        /// Type-of-service byte of the sender.
        tos: Effective<u8>,
        /// Kernel pacing of the sender.
        pacing: PacingSetting,
        /// How the sender passed bytes to the kernel: `copy`, `splice`, `sendfile` or `zerocopy`; requested may also be
        /// `auto` or `copy-free`.
        io: Effective<ForeignText>,
        /// Bytes per write, or payload of one datagram.
        length_bytes: Bytes,
        /// Whether small segments were sent immediately (TCP_NODELAY); absent if the specification is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        no_delay: Option<bool>,
        /// All values read back at the sender.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<SideSettings>,
        /// All values read back at the receiver.
        #[serde(skip_serializing_if = "Option::is_none")]
        receiver: Option<SideSettings>,
    }
}

section! {
    /// Socket buffers.
    WindowSetting {
        /// Requested bytes at both ends.
        asked: Option<Bytes>,
        /// Send buffer of the sender as granted.
        #[serde(skip_serializing_if = "Option::is_none")]
        granted_snd_bytes: Option<Bytes>,
        /// Receive buffer of the receiver as granted.
        #[serde(skip_serializing_if = "Option::is_none")]
        granted_rcv_bytes: Option<Bytes>,
    }
}

section! {
    /// Segment size.
    MssSetting {
        /// Requested bytes.
        asked: Option<u32>,
        /// Payload of a full segment of the sender.
        #[serde(skip_serializing_if = "Option::is_none")]
        effective_bytes: Option<u32>,
    }
}

section! {
    /// Kernel pacing (SO_MAX_PACING_RATE).
    PacingSetting {
        /// Requested rate.
        asked_bps: Option<Bitrate>,
        /// Effective rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        effective_bps: Option<Bitrate>,
    }
}

section! {
    /// Latency measured by the probes.
    LatencySection {
        /// Before the load.
        #[serde(skip_serializing_if = "Option::is_none")]
        idle: Option<ProbeSection>,
        /// Under the load of this flow.
        #[serde(skip_serializing_if = "Option::is_none")]
        loaded: Option<ProbeSection>,
    }
}

section! {
    /// Round-trip times of one phase; the quantiles are absent without replies.
    ProbeSection {
        /// Quantiles of the round-trip time.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        rtt: Option<Digest>,
        /// Probes sent.
        sent: u64,
        /// Probes without a reply.
        lost: u64,
        /// Transport of the probes.
        transport: ProbeTransport,
        /// One-way delay from the client to the server.
        #[serde(skip_serializing_if = "Option::is_none")]
        upload: Option<Digest>,
        /// One-way delay from the server to the client.
        #[serde(skip_serializing_if = "Option::is_none")]
        download: Option<Digest>,
        /// Server clock minus client clock, estimated.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset_ns: Option<i64>,
        /// Largest error of that estimate, and therefore of the one-way delays.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset_error_ns: Option<u64>,
        /// Whether the kernels timestamped the arrivals.
        kernel_timestamps: bool,
    }
}

section! {
    /// CPU time of the hosts.
    CpuSection {
        /// CPU time of the sending process inside the window.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender_seconds: Option<f64>,
        /// CPU time of the receiving process inside the window.
        #[serde(skip_serializing_if = "Option::is_none")]
        receiver_seconds: Option<f64>,
        /// Busy share of the sending host, all cores.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender_host_busy: Option<Ratio>,
        /// Busy share of the receiving host, all cores.
        #[serde(skip_serializing_if = "Option::is_none")]
        receiver_host_busy: Option<Ratio>,
    }
}

section! {
    /// The ceiling that the result is compared with.
    CeilingSection {
        /// Name of the limit.
        limit: Limit,
        /// Goodput that it allows, bit/s.
        bitrate_bps: f64,
        /// The result as a share of it, at most 1; absent without a result, and above the ceiling.
        #[serde(skip_serializing_if = "Option::is_none")]
        share: Option<CeilingShare>,
        /// Explanation of the ceiling.
        because: ForeignText,
    }
}
