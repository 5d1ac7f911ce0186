//! The result in the tool's formats: on the console, as XML and as JSON.

mod json;
mod tables;
mod text;
mod xml;

use linerate_units::Span;

use super::meter::NtttcpResult;
use super::options::{NtttcpOptions, NtttcpRole};
use crate::stand_in::HostCounts;

pub(super) use json::json;
pub(super) use tables::tables;
pub(super) use text::{rate, settings, threads, totals};
pub(super) use xml::xml;

/// Figures that several formats use.
#[derive(Debug, Clone)]
pub(super) struct NtttcpFigures<'a> {
    pub(super) options: &'a NtttcpOptions,
    pub(super) outcome: &'a NtttcpResult,
    pub(super) bytes: u64,
    /// Bytes per second.
    pub(super) rate: f64,
}

/// Shares of the CPU time of all cores.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuShares {
    pub(super) user: f64,
    pub(super) system: f64,
    pub(super) idle: f64,
    pub(super) iowait: f64,
    pub(super) softirq: f64,
}

impl<'a> NtttcpFigures<'a> {
    pub(super) fn new(options: &'a NtttcpOptions, outcome: &'a NtttcpResult) -> Self {
        let bytes = outcome.bytes();
        Self { options, outcome, bytes, rate: outcome.rate(bytes) }
    }

    fn sends(&self) -> bool {
        self.options.role == NtttcpRole::Sender
    }

    /// Name of the root element of the documents.
    fn root(&self) -> &'static str {
        if self.sends() { "ntttcps" } else { "ntttcpr" }
    }

    /// The version in the documents.
    fn version(&self) -> &'static str {
        if self.options.windows.is_some() { "5.40" } else { "5.33-linux" }
    }

    /// Bytes per KB: binary on Windows, decimal in the documents of the Linux tool.
    fn kilo(&self) -> f64 {
        if self.options.windows.is_some() { 1024.0 } else { 1000.0 }
    }

    fn shares(&self) -> Option<CpuShares> {
        let (before, after) = (self.outcome.before.cpu?, self.outcome.after.cpu?);
        let spent: Vec<f64> =
            after.iter().zip(before).map(|(after, before)| after.saturating_sub(before) as f64).collect();
        let total = spent.iter().sum::<f64>().max(1.0);
        let share = |state: usize| spent.get(state).map_or(0.0, |ticks| ticks / total);
        Some(CpuShares {
            user: share(0),
            system: share(2),
            idle: share(3),
            iowait: share(4),
            softirq: share(6),
        })
    }

    /// Non-idle cycles of all cores in the measured time, divided by the bytes.
    fn cycles_per_byte(&self) -> Option<f64> {
        let (mhz, cores) = (self.outcome.after.mhz?, f64::from(self.outcome.after.cores?));
        let busy = 1.0 - self.shares()?.idle;
        let cycles = mhz * 1e6 * self.outcome.seconds * cores * busy;
        Some(if self.bytes == 0 { 0.0 } else { cycles / self.bytes as f64 })
    }

    /// CPU time of this process as a share of the measured time, in percent.
    fn process_percent(&self) -> f64 {
        percent_of(self.outcome.process, self.outcome.seconds)
    }

    fn delta(&self, of: impl Fn(&HostCounts) -> Option<u64>) -> Option<u64> {
        Some(of(&self.outcome.after)?.saturating_sub(of(&self.outcome.before)?))
    }

    /// Retransmitted segments of this host; TCP only.
    fn retransmits(&self) -> Option<u64> {
        self.delta(|host| host.retransmits).filter(|_| !self.options.udp)
    }

    /// Retransmitted segments per second: all, lost, SYN, fast, forward, slow-start, failed.
    fn retransmits_a_second(&self) -> [f64; 7] {
        let of = |kind: usize| self.delta(|host| host.retransmits_by_kind?.get(kind).copied());
        let all = [self.delta(|host| host.retransmits), of(0), of(1), of(2), of(3), of(4), of(5)];
        all.map(|count| self.outcome.rate(count.unwrap_or(0)))
    }

    /// Mean round-trip time, which a sender over TCP reports with `-V`.
    fn average_rtt(&self) -> Option<Span> {
        let reported = self.options.verbose && self.sends() && !self.options.udp;
        self.outcome.rtt.filter(|_| reported)
    }

    /// Packets sent and received by the interface.
    fn packets(&self) -> Option<(u64, u64)> {
        let sent = self.delta(|host| Some(host.packets?.0))?;
        Some((sent, self.delta(|host| Some(host.packets?.1))?))
    }

    fn interrupts(&self) -> Option<u64> {
        self.delta(|host| host.interrupts)
    }

    fn packets_per_interrupt(&self) -> Option<f64> {
        let interrupts = self.interrupts().filter(|count| *count > 0)?;
        let (sent, received) = self.packets()?;
        Some(sent.saturating_add(received) as f64 / interrupts as f64)
    }
}

fn percent_of(span: Span, seconds: f64) -> f64 {
    if seconds > 0.0 { span.as_secs_f64() / seconds * 100.0 } else { 0.0 }
}

/// The names and values of the parameters in both documents; most are constant.
fn parameters(options: &NtttcpOptions) -> Vec<(&'static str, &'static str, String)> {
    let truth = |value: bool| if value { "True" } else { "False" }.to_owned();
    let never = || truth(false);
    let zero = || "0".to_owned();
    let none = || "NA".to_owned();
    let block = |role: NtttcpRole| {
        let other = NtttcpOptions { role, ..options.clone() };
        other.block().to_string()
    };
    vec![
        ("send_socket_buff", "sendSocketBuff", block(NtttcpRole::Sender)),
        ("recv_socket_buff", "recvSocketBuff", block(NtttcpRole::Receiver)),
        ("port", "port", options.base.to_string()),
        ("sync_port", "syncPort", options.base.saturating_sub(1).to_string()),
        ("no_sync", "noSync", truth(!options.sync)),
        ("wait_timeout_milliseconds", "waitTimeoutMilliseconds", zero()),
        ("async", "async", never()),
        ("verbose", "verbose", truth(options.verbose)),
        ("wsa", "wsa", never()),
        ("use_ipv6", "useIpv6", truth(options.ipv6)),
        ("udp", "udp", truth(options.udp)),
        ("verify_data", "verifyData", never()),
        ("wait_all", "waitAll", never()),
        ("run_time", "runTime", options.seconds.to_string()),
        ("warmup_time", "warmupTime", options.omit.to_string()),
        ("cooldown_time", "cooldownTime", options.cooldown.to_string()),
        ("dash_n_timeout", "dashNTimeout", zero()),
        ("bind_sender", "bindSender", never()),
        ("sender_name", "senderName", none()),
        ("max_active_threads", "maxActiveThreads", zero()),
        ("tp", "tp", never()),
        ("no_stdio_buffer", "noStdioBuffer", never()),
        ("throughput_Bpms", "throughputBpms", zero()),
        ("cpu_burn", "cpuBurn", zero()),
        ("latency_measurement", "latencyMeasurement", never()),
        ("use_io_compl_ports", "useIOComplPorts", none()),
        ("cpu_from_idle_flag", "cpuFromIdleFlag", never()),
        ("get_estats", "getEstats", never()),
        ("qos_flag", "qosFlag", never()),
        ("jitter_measurement", "jitterMeasurement", never()),
        ("packet_spacing", "packetSpacing", zero()),
    ]
}

/// Names of the retransmission rates in both documents.
const RETRANSMITS: [&str; 7] = [
    "retrans_segments_per_sec",
    "lost_retrans_per_sec",
    "syn_retrans_per_sec",
    "fast_retrans_per_sec",
    "forward_retrans_per_sec",
    "slowStart_retrans_per_sec",
    "retrans_fail_per_sec",
];
