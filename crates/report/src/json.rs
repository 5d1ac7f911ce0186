//! The result document: one JSON object per run, format `linerate.result/2`.
//!
//! Values that were not measured are absent. Names carry their units; counts are integers.

mod sections;
#[cfg(test)]
mod tests;

use linerate_model::metrics::port;
use linerate_model::{FlowRecord, LatencyReport, PortRecord, RunRecord, Tally};
use linerate_units::Span;

pub use self::sections::{
    ByteAccountingSection, CeilingSection, CpuSection, FlowSection, LatencySection, MssSetting,
    PacingSetting, PortSection, ProbeSection, ReceiverSection, ResultDocument, RunSection, SenderSection,
    SettingsSection, TransactionSection, UdpSection, WindowSetting,
};
use crate::figure::{FlowFigure, caveats, imported};
use crate::intervals;
use crate::ports::PortTotals;

/// Version of the result format. A change of meaning needs a new version.
pub const RESULT_SCHEMA: &str = "linerate.result/2";

/// The result document of a run.
#[must_use]
pub fn document(record: &RunRecord) -> ResultDocument {
    let start = record.start.as_ref();
    ResultDocument {
        schema: RESULT_SCHEMA,
        run: RunSection {
            id: record.run.to_string().into(),
            started_at: start.map(|s| s.started_at.clone()),
            world: start.map(|s| s.world),
            linerate: start.map(|s| s.linerate.clone()),
            outcome: record.outcome,
            reason: record.reason.clone(),
            name: record.labels.name.clone(),
            notes: record.labels.notes.clone(),
            target: start.map(|s| s.target.clone()),
            spec: start.map(|s| s.spec.clone()),
            group: record.group.clone(),
            group_start: record.group_start,
        },
        hosts: record.hosts.clone(),
        flows: record.flows.iter().map(|flow| flow_section(record, flow)).collect(),
        ports: record.ports.iter().filter_map(|ports| port_section(record, ports)).collect(),
        responsiveness: record.responsiveness.clone(),
        caveats: record.caveats.clone(),
    }
}

fn port_section(record: &RunRecord, ports: &PortRecord) -> Option<PortSection> {
    let totals = PortTotals::of(record, ports)?;
    Some(PortSection {
        port: ports.port.to_string().into(),
        flows: ports.flows.clone(),
        seconds: totals.measured.as_secs_f64(),
        rate_bps: totals.rate,
        busy: totals.busy,
        packets: totals.all.get(port::PACKETS),
        bytes: totals.all.get(port::BYTES),
        dropped: totals.all.get(port::DROPPED),
        marked: totals.all.get(port::MARKED),
        queue_max_bytes: totals.all.get(port::QUEUE_MAX),
        samples: intervals::merged_port(&ports.samples, intervals::asked(record)),
    })
}

fn flow_section(record: &RunRecord, flow: &FlowRecord) -> FlowSection {
    let figure = FlowFigure::of(flow);
    let plan = &flow.plan;
    FlowSection {
        flow: plan.flow,
        name: plan.name.to_string().into(),
        from: plan.from.to_string().into(),
        to: plan.to.to_string().into(),
        transport: plan.transport,
        direction: plan.direction,
        streams: plan.streams,
        // The counts of a whole series have no rate; its byte accounting has the bytes.
        receiver: figure.filter(|_| flow.sizes.is_empty()).map(|figure| receiver_section(figure, flow)),
        sender: flow.sender.as_ref().filter(|_| flow.sizes.is_empty()).map(sender_section),
        sizes: flow.sizes.clone(),
        curve: flow.curve,
        transactions: transaction_section(flow),
        udp: udp_section(flow),
        settings: settings_section(record, flow),
        latency: latency_section(record.idle.as_ref(), flow.loaded.as_ref()),
        cpu: cpu_section(flow),
        ceiling: flow.ceiling.as_ref().map(|ceiling| CeilingSection {
            limit: ceiling.limit.clone(),
            bitrate_bps: ceiling.bitrate_bps,
            share: figure.filter(|_| flow.sizes.is_empty()).and_then(|figure| figure.share),
            because: ceiling.because.to_string().into(),
        }),
        ceilings: flow.ceilings.clone(),
        verdict: flow.verdict.clone(),
        also: flow.also.clone(),
        follow_ups: flow.follow_ups.clone(),
        byte_accounting: accounting_section(flow),
        steady: flow.steady,
        uncertainty: flow.uncertainty.clone(),
        caveats: caveats(flow),
        samples: intervals::merged(&flow.samples, intervals::asked(record)),
    }
}

fn accounting_section(flow: &FlowRecord) -> Option<ByteAccountingSection> {
    let known = flow.byte_accounting.is_some() || !flow.steps.is_empty();
    known.then(|| ByteAccountingSection { programs: flow.byte_accounting, steps: flow.steps.clone() })
}

fn receiver_section(figure: FlowFigure, flow: &FlowRecord) -> ReceiverSection {
    let tally = flow.receiver.as_ref();
    // For other programs it is unknown which bytes are inside the window.
    let placed = tally.filter(|_| !imported(flow));
    ReceiverSection {
        bytes: figure.bytes,
        seconds: figure.elapsed.as_secs_f64(),
        bitrate_bps: figure.bitrate,
        impossible: figure.impossible,
        first_read_bytes: placed.map(|t| t.first_read_bytes),
        first_read_ns: flow.first_read.filter(|_| !imported(flow)),
        omitted_bytes: placed.map(|t| t.omitted_bytes),
        tail_bytes: placed.map(|t| t.tail_bytes),
        total_bytes: placed.map(|t| t.total_bytes),
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

fn transaction_section(flow: &FlowRecord) -> Option<TransactionSection> {
    let made = flow.sender.as_ref()?.transactions.as_ref()?;
    Some(TransactionSection {
        completed: made.completed,
        per_second: made.per_second,
        failed: made.failed,
        times: made.times,
        histogram: made.histogram.clone(),
    })
}

fn udp_section(flow: &FlowRecord) -> Option<UdpSection> {
    let udp = flow.receiver.as_ref()?.udp.as_ref()?;
    let (packets, loss_ratio) = flow.datagrams()?;
    Some(UdpSection {
        packets,
        lost: udp.lost,
        out_of_order: Some(udp.out_of_order).filter(|late| *late > 0 || !imported(flow)),
        duplicates: Some(udp.duplicates).filter(|_| !imported(flow)),
        loss_ratio,
        jitter_ns: udp.jitter,
        socket_drops: udp.socket_drops,
        loss_bursts: udp.loss_bursts.clone(),
        late_by: udp.late_by,
        send_gaps: flow.sender.as_ref().and_then(|t| t.udp.as_ref()).and_then(|u| u.send_gaps),
        send_errors: flow.sender.as_ref().and_then(|t| t.udp.as_ref()).and_then(|u| u.send_errors),
    })
}

fn settings_section(record: &RunRecord, flow: &FlowRecord) -> Option<SettingsSection> {
    let (sender, receiver) = (flow.sender_settings.as_ref(), flow.receiver_settings.as_ref());
    // Settings of both ends or of the sender are taken from the sender, or from the receiver if the sender's
    // are missing.
    let settings = sender.or(receiver)?;
    Some(SettingsSection {
        window: WindowSetting {
            asked: settings.window,
            granted_snd_bytes: sender.and_then(|s| s.snd_buf),
            granted_rcv_bytes: receiver.and_then(|s| s.rcv_buf),
        },
        mss: MssSetting { asked: settings.mss.asked, effective_bytes: settings.mss.effective },
        congestion: settings.congestion.clone(),
        tos: settings.tos.clone(),
        pacing: PacingSetting {
            asked_bps: settings.pacing_bps.asked,
            effective_bps: settings.pacing_bps.effective,
        },
        io: settings.io.clone(),
        length_bytes: settings.length,
        no_delay: record.start.as_ref().map(|start| start.spec.sends_at_once()),
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
        transport: report.transport,
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
        sender_seconds: sender.filter(|_| !imported(flow)).map(|t| t.cpu_seconds),
        receiver_seconds: receiver.filter(|_| !imported(flow)).map(|t| t.cpu_seconds),
        sender_host_busy: sender.and_then(|t| t.host_busy),
        receiver_host_busy: receiver.and_then(|t| t.host_busy),
    })
    .filter(|cpu| !imported(flow) || cpu.sender_host_busy.is_some() || cpu.receiver_host_busy.is_some())
}

/// The JSON Schema of [`ResultDocument`].
#[cfg(feature = "schema")]
#[must_use]
pub fn result_schema() -> serde_json::Value {
    // The schema describes the written document: absent fields are optional.
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<ResultDocument>()
        .to_value()
}
