//! The parts of the result document. Field names are public: they carry their units and keep their meaning.

use linerate_model::{
    BookStep, ByteAccounting, Caveat, Ceiling, CeilingShare, Digest, Direction, Effective, Finding, FollowUp,
    ForeignText, GroupPlace, GroupStart, HostInfo, Outcome, PortSample, ProbeTransport, Sample, SideSettings,
    SizeCurve, SizePoint, Steady, TestSpec, Transport, Uncertainty, World,
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
        /// What weakens the whole run.
        caveats: Vec<Caveat>,
    }
}

section! {
    /// The run.
    RunSection {
        /// Its name.
        id: ForeignText,
        /// Wall-clock time of its start, RFC 3339; absent in a log whose beginning is lost.
        #[serde(skip_serializing_if = "Option::is_none")]
        started_at: Option<ForeignText>,
        /// Where it ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        world: Option<World>,
        /// Version of linerate.
        #[serde(skip_serializing_if = "Option::is_none")]
        linerate: Option<ForeignText>,
        /// How it ended; absent when it was killed.
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// Why, unless it was completed.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<ForeignText>,
        /// The server as typed.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<ForeignText>,
        /// What was asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        spec: Option<TestSpec>,
        /// Its place among runs that were started together.
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<GroupPlace>,
        /// When it began to measure, as one of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        group_start: Option<GroupStart>,
    }
}

section! {
    /// One group of streams from host to host.
    FlowSection {
        /// Its number in the run.
        flow: u16,
        /// Its name, for people.
        name: ForeignText,
        /// The sending host.
        from: ForeignText,
        /// The receiving host.
        to: ForeignText,
        /// What carried the data.
        transport: Transport,
        /// Which way, seen from the client.
        direction: Direction,
        /// Number of streams.
        streams: u32,
        /// The result.
        #[serde(skip_serializing_if = "Option::is_none")]
        receiver: Option<ReceiverSection>,
        /// What the sender counted: a diagnostic.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<SenderSection>,
        /// The sizes of a series over message sizes, smallest first; absent in a plain test.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        sizes: Vec<SizePoint>,
        /// What they amount to.
        #[serde(skip_serializing_if = "Option::is_none")]
        curve: Option<SizeCurve>,
        /// Datagrams, for UDP.
        #[serde(skip_serializing_if = "Option::is_none")]
        udp: Option<UdpSection>,
        /// Settings as asked, granted and effective.
        #[serde(skip_serializing_if = "Option::is_none")]
        settings: Option<SettingsSection>,
        /// What the probes saw.
        #[serde(skip_serializing_if = "Option::is_none")]
        latency: Option<LatencySection>,
        /// What the hosts spent.
        #[serde(skip_serializing_if = "Option::is_none")]
        cpu: Option<CpuSection>,
        /// The limit to compare the result with.
        #[serde(skip_serializing_if = "Option::is_none")]
        ceiling: Option<CeilingSection>,
        /// Every known limit, smallest first.
        ladder: Vec<Ceiling>,
        /// What held the flow back.
        #[serde(skip_serializing_if = "Option::is_none")]
        verdict: Option<Finding>,
        /// Other rules whose conditions hold.
        also: Vec<Finding>,
        /// Questions that further runs answered; the verdict is the one after them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        inquiries: Vec<FollowUp>,
        /// What became of the bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        books: Option<BooksSection>,
        /// The steady part.
        #[serde(skip_serializing_if = "Option::is_none")]
        steady: Option<Steady>,
        /// How well the receiver's rate is known, and why not better; absent where it cannot be stated.
        #[serde(skip_serializing_if = "Option::is_none")]
        uncertainty: Option<Uncertainty>,
        /// What weakens the result.
        caveats: Vec<Caveat>,
        /// Intervals of both sides, merged to the interval asked for.
        samples: Vec<Sample>,
    }
}

section! {
    /// What became of the bytes: between the programs, and on the way between them.
    BooksSection {
        /// Between the programs; absent for datagrams.
        #[serde(flatten)]
        programs: Option<ByteAccounting>,
        /// What was counted on the way to the wire and back, and what explains it; absent where nothing was read there.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        steps: Vec<BookStep>,
    }
}

section! {
    /// What one port of an emulated network did while the flows of one phase ran.
    ///
    /// Counts are of the whole phase; `rate_bps` and `busy` are of its measured part.
    PortSection {
        /// Its name: the node that it belongs to and the node that it sends to.
        port: ForeignText,
        /// Numbers of the flows that ran meanwhile.
        flows: Vec<u16>,
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
        /// Frames sent, without preamble and gap.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<Bytes>,
        /// Packets thrown away.
        #[serde(skip_serializing_if = "Option::is_none")]
        dropped: Option<u64>,
        /// Packets marked as having met congestion.
        #[serde(skip_serializing_if = "Option::is_none")]
        marked: Option<u64>,
        /// Most that waited at any moment.
        #[serde(skip_serializing_if = "Option::is_none")]
        queue_max_bytes: Option<Bytes>,
        /// Its intervals, merged to the interval asked for; time counts from the start of the run.
        samples: Vec<PortSample>,
    }
}

section! {
    /// What arrived: `bitrate_bps = (bytes - first_read_bytes) * 8 / seconds`.
    ReceiverSection {
        /// Application bytes inside the measured window.
        bytes: Bytes,
        /// From the first to the last read inside the window.
        seconds: f64,
        /// Goodput; absent when no time passed between the first and the last read.
        #[serde(skip_serializing_if = "Option::is_none")]
        bitrate_bps: Option<Bitrate>,
        /// True when the figure exceeds what the link carries by more than clocks can err, or contradicts the sender's.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        impossible: bool,
        /// Bytes of the first read, which mark the time origin and are not in the rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_read_bytes: Option<Bytes>,
        /// Time of that read, from the start of the run; a server's word of it is late by a one-way delay. The samples
        /// of the receiver count from it.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_read_ns: Option<Timestamp>,
        /// Bytes of the omitted part.
        #[serde(skip_serializing_if = "Option::is_none")]
        omitted_bytes: Option<Bytes>,
        /// Bytes after the window.
        #[serde(skip_serializing_if = "Option::is_none")]
        tail_bytes: Option<Bytes>,
        /// Every byte of the flow.
        #[serde(skip_serializing_if = "Option::is_none")]
        total_bytes: Option<Bytes>,
    }
}

section! {
    /// What the sender gave to its kernel.
    SenderSection {
        /// Application bytes inside the window.
        bytes: Bytes,
        /// Time in which it wrote.
        seconds: f64,
        /// Rate at which it wrote; absent when no time passed.
        #[serde(skip_serializing_if = "Option::is_none")]
        bitrate_bps: Option<Bitrate>,
        /// Segments sent again.
        #[serde(skip_serializing_if = "Option::is_none")]
        retransmits: Option<u64>,
        /// Bytes still in its queue at the end.
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
        /// Datagrams whose fate is known: read at least once, or lost.
        packets: u64,
        /// Datagrams that were sent and never read.
        lost: u64,
        /// Datagrams that came after a later one.
        #[serde(skip_serializing_if = "Option::is_none")]
        out_of_order: Option<u64>,
        /// Datagrams that came more than once.
        #[serde(skip_serializing_if = "Option::is_none")]
        duplicates: Option<u64>,
        /// `lost / packets` (RFC 7680).
        #[serde(skip_serializing_if = "Option::is_none")]
        loss_ratio: Option<Ratio>,
        /// Interarrival jitter (RFC 3550 §6.4.1).
        #[serde(skip_serializing_if = "Option::is_none")]
        jitter_ns: Option<Span>,
        /// Of the lost ones, those that the receiving kernel dropped at the socket.
        #[serde(skip_serializing_if = "Option::is_none")]
        socket_drops: Option<u64>,
        /// Datagrams that the sending kernel refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        send_errors: Option<u64>,
    }
}

section! {
    /// Settings: asked is `null` where it was left to the kernel; what cannot be read back is absent.
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
        /// Way of sending without copying.
        zerocopy: Effective<ForeignText>,
        /// Bytes handed to the kernel at once, or payload of one datagram.
        length_bytes: Bytes,
        /// Whether small segments were sent at once (TCP_NODELAY); absent when the specification is lost.
        #[serde(skip_serializing_if = "Option::is_none")]
        no_delay: Option<bool>,
        /// Everything the sending side read back.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<SideSettings>,
        /// Everything the receiving side read back.
        #[serde(skip_serializing_if = "Option::is_none")]
        receiver: Option<SideSettings>,
    }
}

section! {
    /// Socket buffers.
    WindowSetting {
        /// Bytes asked for at both ends.
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
        /// Bytes asked for.
        asked: Option<u32>,
        /// Payload of a full segment of the sender.
        #[serde(skip_serializing_if = "Option::is_none")]
        effective_bytes: Option<u32>,
    }
}

section! {
    /// Kernel pacing (SO_MAX_PACING_RATE).
    PacingSetting {
        /// Rate asked for.
        asked_bps: Option<Bitrate>,
        /// Rate in effect.
        #[serde(skip_serializing_if = "Option::is_none")]
        effective_bps: Option<Bitrate>,
    }
}

section! {
    /// What the probes saw.
    LatencySection {
        /// Before the load.
        #[serde(skip_serializing_if = "Option::is_none")]
        idle: Option<ProbeSection>,
        /// Beside this flow.
        #[serde(skip_serializing_if = "Option::is_none")]
        loaded: Option<ProbeSection>,
    }
}

section! {
    /// Round-trip times of one phase; the quantiles are absent when no answer came.
    ProbeSection {
        /// Quantiles of the round-trip time.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        rtt: Option<Digest>,
        /// Probes sent.
        sent: u64,
        /// Probes whose answer never came.
        lost: u64,
        /// What carried the probes.
        over: ProbeTransport,
        /// One-way delay from the client to the server.
        #[serde(skip_serializing_if = "Option::is_none")]
        upload: Option<Digest>,
        /// One-way delay from the server to the client.
        #[serde(skip_serializing_if = "Option::is_none")]
        download: Option<Digest>,
        /// Server clock minus client clock, estimated.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset_ns: Option<i64>,
        /// Largest error of that estimate, and so of the one-way delays.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset_error_ns: Option<u64>,
        /// Whether the kernels stamped the arrivals.
        kernel_timestamps: bool,
    }
}

section! {
    /// What the hosts spent.
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
    /// The limit to compare the result with.
    CeilingSection {
        /// Which limit.
        limit: ForeignText,
        /// The goodput it allows.
        bitrate_bps: f64,
        /// The result as a share of it, at most 1; absent when there is no result, and where it is above.
        #[serde(skip_serializing_if = "Option::is_none")]
        share: Option<CeilingShare>,
        /// Where the figure comes from, for a person.
        because: ForeignText,
    }
}
