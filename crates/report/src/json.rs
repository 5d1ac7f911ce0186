//! The result document: one JSON object per run, format `linerate.result/1`.
//!
//! What was not measured is left out. Names carry their units; counts are integers.

use linerate_model::{
    Books, Caveat, Ceiling, Digest, Direction, Effective, Finding, FlowRecord, HostInfo, LatencyReport,
    Outcome, ProbeTransport, RunRecord, Sample, SideSettings, Steady, Tally, TestSpec, Transport, World,
};
use linerate_units::{Bitrate, Bytes, Ratio, Span};
use serde::Serialize;

use crate::figure::{Figure, caveats, datagrams};
use crate::intervals;

/// Version of the result format; a changed meaning is a new version.
pub const RESULT_SCHEMA: &str = "linerate.result/1";

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
        /// What weakens the whole run.
        caveats: Vec<Caveat>,
    }
}

section! {
    /// The run.
    RunSection {
        /// Its name.
        id: String,
        /// Wall-clock time of its start, RFC 3339; absent in a log whose beginning is lost.
        #[serde(skip_serializing_if = "Option::is_none")]
        started_at: Option<String>,
        /// Where it ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        world: Option<World>,
        /// Version of linerate.
        #[serde(skip_serializing_if = "Option::is_none")]
        linerate: Option<String>,
        /// How it ended; absent when it was killed.
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// Why, unless it was completed.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The server as typed.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// What was asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        spec: Option<TestSpec>,
    }
}

section! {
    /// One group of streams from host to host.
    FlowSection {
        /// Its number in the run.
        flow: u16,
        /// Its name, for people.
        name: String,
        /// The sending host.
        from: String,
        /// The receiving host.
        to: String,
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
        /// What became of the bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        books: Option<Books>,
        /// The steady part.
        #[serde(skip_serializing_if = "Option::is_none")]
        steady: Option<Steady>,
        /// What weakens the result.
        caveats: Vec<Caveat>,
        /// Intervals of both sides, merged to the interval asked for.
        samples: Vec<Sample>,
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
        /// True when the figure exceeds its ceiling by more than clocks can err, or contradicts the sender's.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        impossible: bool,
        /// Bytes of the first read, which mark the time origin and are not in the rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_read_bytes: Option<Bytes>,
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
        out_of_order: u64,
        /// Datagrams that came more than once.
        duplicates: u64,
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
        congestion: Effective<String>,
        /// Type-of-service byte of the sender.
        tos: Effective<u8>,
        /// Kernel pacing of the sender.
        pacing: PacingSetting,
        /// Way of sending without copying.
        zerocopy: Effective<String>,
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
        limit: String,
        /// The goodput it allows.
        bitrate_bps: f64,
        /// The result as a share of it; absent when there is no result.
        #[serde(skip_serializing_if = "Option::is_none")]
        share: Option<Ratio>,
        /// Where the figure comes from, for a person.
        because: String,
    }
}

/// The result document of a run.
#[must_use]
pub fn document(record: &RunRecord) -> ResultDocument {
    let start = record.start.as_ref();
    ResultDocument {
        schema: RESULT_SCHEMA,
        run: RunSection {
            id: record.run.clone(),
            started_at: start.map(|s| s.started_at.clone()),
            world: start.map(|s| s.world),
            linerate: start.map(|s| s.linerate.clone()),
            outcome: record.outcome,
            reason: record.reason.clone(),
            target: start.map(|s| s.target.clone()),
            spec: start.map(|s| s.spec.clone()),
        },
        hosts: record.hosts.clone(),
        flows: record.flows.iter().map(|flow| flow_section(record, flow)).collect(),
        caveats: record.caveats.clone(),
    }
}

fn flow_section(record: &RunRecord, flow: &FlowRecord) -> FlowSection {
    let figure = Figure::of(flow);
    let plan = &flow.plan;
    FlowSection {
        flow: plan.flow,
        name: plan.name.clone(),
        from: plan.from.clone(),
        to: plan.to.clone(),
        transport: plan.transport,
        direction: plan.direction,
        streams: plan.streams,
        receiver: figure.map(|figure| receiver_section(figure, flow.receiver.as_ref())),
        sender: flow.sender.as_ref().map(sender_section),
        udp: udp_section(flow),
        settings: settings_section(record, flow),
        latency: latency_section(record.idle.as_ref(), flow.loaded.as_ref()),
        cpu: cpu_section(flow),
        ceiling: flow.ceiling.as_ref().map(|ceiling| CeilingSection {
            limit: ceiling.limit.clone(),
            bitrate_bps: ceiling.bitrate_bps,
            share: figure.and_then(|figure| figure.share),
            because: ceiling.because.clone(),
        }),
        ladder: flow.ladder.clone(),
        verdict: flow.verdict.clone(),
        also: flow.also.clone(),
        books: flow.books,
        steady: flow.steady,
        caveats: caveats(flow),
        samples: intervals::merged(&flow.samples, intervals::asked(record)),
    }
}

fn receiver_section(figure: Figure, tally: Option<&Tally>) -> ReceiverSection {
    ReceiverSection {
        bytes: figure.bytes,
        seconds: figure.elapsed.as_secs_f64(),
        bitrate_bps: figure.bitrate,
        impossible: figure.impossible,
        first_read_bytes: tally.map(|t| t.first_read_bytes),
        omitted_bytes: tally.map(|t| t.omitted_bytes),
        tail_bytes: tally.map(|t| t.tail_bytes),
        total_bytes: tally.map(|t| t.total_bytes),
    }
}

fn sender_section(tally: &Tally) -> SenderSection {
    SenderSection {
        bytes: tally.bytes,
        seconds: tally.elapsed.as_secs_f64(),
        bitrate_bps: (tally.elapsed > Span::ZERO).then_some(tally.bitrate),
        retransmits: tally.retransmits,
        queued_bytes: tally.queued_bytes,
        packets: tally.udp.as_ref().map(|udp| udp.packets),
    }
}

fn udp_section(flow: &FlowRecord) -> Option<UdpSection> {
    let udp = flow.receiver.as_ref()?.udp.as_ref()?;
    let (packets, loss_ratio) = datagrams(flow)?;
    Some(UdpSection {
        packets,
        lost: udp.lost,
        out_of_order: udp.out_of_order,
        duplicates: udp.duplicates,
        loss_ratio,
        jitter_ns: udp.jitter,
        socket_drops: udp.socket_drops,
        send_errors: flow.sender.as_ref().and_then(|t| t.udp.as_ref()).and_then(|u| u.send_errors),
    })
}

fn settings_section(record: &RunRecord, flow: &FlowRecord) -> Option<SettingsSection> {
    let (sender, receiver) = (flow.sender_settings.as_ref(), flow.receiver_settings.as_ref());
    // What belongs to both ends or to the sender is the sender's word; the receiver stands in when that is lost.
    let told = sender.or(receiver)?;
    Some(SettingsSection {
        window: WindowSetting {
            asked: told.window,
            granted_snd_bytes: sender.and_then(|s| s.snd_buf),
            granted_rcv_bytes: receiver.and_then(|s| s.rcv_buf),
        },
        mss: MssSetting { asked: told.mss.asked, effective_bytes: told.mss.effective },
        congestion: told.congestion.clone(),
        tos: told.tos.clone(),
        pacing: PacingSetting { asked_bps: told.pacing_bps.asked, effective_bps: told.pacing_bps.effective },
        zerocopy: told.zerocopy.clone(),
        length_bytes: told.length,
        no_delay: record.start.as_ref().map(|start| start.spec.socket.no_delay),
        sender: sender.cloned(),
        receiver: receiver.cloned(),
    })
}

fn latency_section(idle: Option<&LatencyReport>, loaded: Option<&LatencyReport>) -> Option<LatencySection> {
    let section = LatencySection { idle: idle.map(probe_section), loaded: loaded.map(probe_section) };
    (section.idle.is_some() || section.loaded.is_some()).then_some(section)
}

fn probe_section(report: &LatencyReport) -> ProbeSection {
    ProbeSection {
        rtt: (report.rtt.count > 0).then_some(report.rtt),
        sent: report.sent,
        lost: report.lost,
        over: report.over,
        upload: report.upload,
        download: report.download,
        offset_ns: report.offset_ns,
        offset_error_ns: report.offset_error_ns,
        kernel_timestamps: report.kernel_timestamps,
    }
}

fn cpu_section(flow: &FlowRecord) -> Option<CpuSection> {
    let (sender, receiver) = (flow.sender.as_ref(), flow.receiver.as_ref());
    sender.or(receiver)?;
    Some(CpuSection {
        sender_seconds: sender.map(|t| t.cpu_seconds),
        receiver_seconds: receiver.map(|t| t.cpu_seconds),
        sender_host_busy: sender.and_then(|t| t.host_busy),
        receiver_host_busy: receiver.and_then(|t| t.host_busy),
    })
}

/// The JSON Schema of [`ResultDocument`].
#[cfg(feature = "schema")]
#[must_use]
pub fn result_schema() -> serde_json::Value {
    // What is described is what is written: absent fields are optional.
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<ResultDocument>()
        .to_value()
}
