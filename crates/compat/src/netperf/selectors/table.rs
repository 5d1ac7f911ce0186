//! The table of the output selectors, in the order of `all`: names, headings and formats of netperf 2.7.0.
//!
//! netperf 2.7 itself no longer knows what the system and its interfaces are, and prints a word or a number in
//! their place. So do we.

use super::{Needs, Selector};
use crate::netperf::figures::{Report, per_call};
use crate::netperf::latencies::Latencies;
use crate::netperf::wire::{HostCpu, flag};

/// What netperf prints instead of properties of a system.
const DEPRECATED: &str = "Deprecated";

/// What netperf prints instead of the numbers of a PCI device: -2.
const UNKNOWN_DEVICE: &str = "0xfffffffe";

const fn row(
    name: &'static str,
    heading: &'static [&'static str],
    value: fn(&Report<'_>) -> Option<String>,
) -> Selector {
    Selector { name, heading, value, needs: Needs::Nothing }
}

const fn needing(
    needs: Needs,
    name: &'static str,
    heading: &'static [&'static str],
    value: fn(&Report<'_>) -> Option<String>,
) -> Selector {
    Selector { name, heading, value, needs }
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

fn number(value: impl Into<i128>) -> Option<String> {
    Some(value.into().to_string())
}

fn fixed(value: f64, decimals: usize) -> Option<String> {
    Some(format!("{value:.decimals$}"))
}

/// A number that the user may have left open: -1.
fn asked(value: Option<u32>) -> Option<String> {
    known(value)
}

/// A number that may be unknown: -1.
fn known(value: Option<u32>) -> Option<String> {
    number(value.map_or(-1, i64::from))
}

/// A share of CPU time; 0 if it was not measured.
fn share(cpu: Option<HostCpu>, of: fn(&HostCpu) -> f32) -> Option<String> {
    fixed(cpu.as_ref().map_or(0.0, of).into(), 2)
}

fn latency(report: &Report<'_>, of: fn(&Latencies) -> u64) -> Option<String> {
    Some(report.figures.latencies.as_ref().map_or_else(|| "-1".to_owned(), |all| of(all).to_string()))
}

fn mean_latency(report: &Report<'_>, of: fn(&Latencies) -> f64) -> Option<String> {
    fixed(report.figures.latencies.as_ref().map_or(-1.0, of), 2)
}

/// A type of service; -1 if it was left open.
fn tos(value: Option<u32>) -> Option<String> {
    Some(format!("0x{:02x}", value.unwrap_or(u32::MAX)))
}

/// All selectors.
pub(in crate::netperf) static ALL: &[Selector] = &[
    row("OUTPUT_NONE", &[" "], |_| text(" ")),
    row("SOCKET_TYPE", &["Socket", "Type"], |r| text(if r.options.udp() { "Datagram" } else { "Stream" })),
    row("PROTOCOL", &["Protocol"], |r| text(if r.options.udp() { "UDP" } else { "TCP" })),
    row("DIRECTION", &["Direction"], |r| text(r.options.direction_name())),
    row("ELAPSED_TIME", &["Elapsed", "Time", "(sec)"], |r| fixed(r.figures.elapsed, 2)),
    row("THROUGHPUT", &["Throughput"], |r| fixed(r.figures.throughput, 2)),
    row("THROUGHPUT_UNITS", &["Throughput", "Units"], |r| text(&format!("{}/s", r.options.unit.name()))),
    row("LSS_SIZE_REQ", &["Local", "Send Socket", "Size", "Requested"], |r| {
        asked(r.options.send_buffer.local)
    }),
    row("LSS_SIZE", &["Local", "Send Socket", "Size", "Initial"], |r| number(r.figures.send_buffer.initial)),
    row("LSS_SIZE_END", &["Local", "Send Socket", "Size", "Final"], |r| number(r.figures.send_buffer.last)),
    row("LSR_SIZE_REQ", &["Local", "Recv Socket", "Size", "Requested"], |r| {
        asked(r.options.receive_buffer.local)
    }),
    row("LSR_SIZE", &["Local", "Recv Socket", "Size", "Initial"], |r| {
        number(r.figures.receive_buffer.initial)
    }),
    row("LSR_SIZE_END", &["Local", "Recv Socket", "Size", "Final"], |r| {
        number(r.figures.receive_buffer.last)
    }),
    row("RSS_SIZE_REQ", &["Remote", "Send Socket", "Size", "Requested"], |r| {
        asked(r.options.send_buffer.remote)
    }),
    row("RSS_SIZE", &["Remote", "Send Socket", "Size", "Initial"], |r| {
        number(r.figures.response.send_buffer)
    }),
    row("RSS_SIZE_END", &["Remote", "Send Socket", "Size", "Final"], |r| {
        number(r.figures.results.send_buffer)
    }),
    row("RSR_SIZE_REQ", &["Remote", "Recv Socket", "Size", "Requested"], |r| {
        asked(r.options.receive_buffer.remote)
    }),
    row("RSR_SIZE", &["Remote", "Recv Socket", "Size", "Initial"], |r| {
        number(r.figures.response.receive_buffer)
    }),
    row("RSR_SIZE_END", &["Remote", "Recv Socket", "Size", "Final"], |r| {
        number(r.figures.results.receive_buffer)
    }),
    row("LOCAL_SEND_SIZE", &["Local", "Send", "Size"], |r| number(r.figures.sizes.send)),
    row("LOCAL_RECV_SIZE", &["Local", "Recv", "Size"], |r| number(r.figures.sizes.receive)),
    row("REMOTE_SEND_SIZE", &["Remote", "Send", "Size"], |r| asked(r.figures.response.send_size)),
    row("REMOTE_RECV_SIZE", &["Remote", "Recv", "Size"], |r| asked(r.figures.response.receive_size)),
    row("REQUEST_SIZE", &["Request", "Size", "Bytes"], |r| asked(r.options.request_size)),
    row("RESPONSE_SIZE", &["Response", "Size", "Bytes"], |r| asked(r.options.response_size)),
    row("LOCAL_CPU_UTIL", &["Local", "CPU", "Util", "%"], |r| fixed(r.figures.utilization.local, 2)),
    row("LOCAL_CPU_PERCENT_USER", &["Local", "CPU", "User", "%"], |r| {
        share(r.figures.cpu.local, |cpu| cpu.user)
    }),
    row("LOCAL_CPU_PERCENT_SYSTEM", &["Local", "CPU", "System", "%"], |r| {
        share(r.figures.cpu.local, |cpu| cpu.system)
    }),
    row("LOCAL_CPU_PERCENT_IOWAIT", &["Local", "CPU", "I/O", "%"], |r| {
        share(r.figures.cpu.local, |cpu| cpu.iowait)
    }),
    row("LOCAL_CPU_PERCENT_IRQ", &["Local", "CPU", "IRQ", "%"], |r| {
        share(r.figures.cpu.local, |cpu| cpu.irq)
    }),
    row("LOCAL_CPU_PERCENT_SWINTR", &["Local", "CPU", "swintr", "%"], |r| {
        share(r.figures.cpu.local, |cpu| cpu.softirq)
    }),
    row("LOCAL_CPU_METHOD", &["Local", "CPU", "Util", "Method"], |r| text(r.method(r.figures.cpu.local))),
    row("LOCAL_SD", &["Local", "Service", "Demand"], |r| fixed(r.figures.demand.local, 3)),
    row("REMOTE_CPU_UTIL", &["Remote", "CPU", "Util", "%"], |r| fixed(r.figures.utilization.remote, 2)),
    row("REMOTE_CPU_PERCENT_USER", &["Remote", "CPU", "User", "%"], |r| {
        share(r.figures.cpu.remote, |cpu| cpu.user)
    }),
    row("REMOTE_CPU_PERCENT_SYSTEM", &["Remote", "CPU", "System", "%"], |r| {
        share(r.figures.cpu.remote, |cpu| cpu.system)
    }),
    row("REMOTE_CPU_PERCENT_IOWAIT", &["Remote", "CPU", "I/O", "%"], |r| {
        share(r.figures.cpu.remote, |cpu| cpu.iowait)
    }),
    row("REMOTE_CPU_PERCENT_IRQ", &["Remote", "CPU", "IRQ", "%"], |r| {
        share(r.figures.cpu.remote, |cpu| cpu.irq)
    }),
    row("REMOTE_CPU_PERCENT_SWINTR", &["Remote", "CPU", "swintr", "%"], |r| {
        share(r.figures.cpu.remote, |cpu| cpu.softirq)
    }),
    row("REMOTE_CPU_METHOD", &["Remote", "CPU", "Util", "Method"], |r| text(r.method(r.figures.cpu.remote))),
    row("REMOTE_SD", &["Remote", "Service", "Demand"], |r| fixed(r.figures.demand.remote, 3)),
    row("SD_UNITS", &["Service", "Demand", "Units"], |r| text(r.demand_unit())),
    row("CONFIDENCE_LEVEL", &["Confidence", "Level", "Percent"], |r| number(r.options.iterations.level)),
    row("CONFIDENCE_INTERVAL", &["Confidence", "Width", "Target"], |r| fixed(r.figures.confidence.target, 6)),
    row("CONFIDENCE_ITERATION", &["Confidence", "Iterations", "Run"], |r| {
        number(r.figures.confidence.iterations)
    }),
    row("THROUGHPUT_CONFID", &["Throughput", "Confidence", "Width (%)"], |r| {
        fixed(r.figures.confidence.throughput, 3)
    }),
    row("LOCAL_CPU_CONFID", &["Local", "CPU", "Confidence", "Width (%)"], |r| {
        fixed(r.figures.confidence.cpu.local, 3)
    }),
    row("REMOTE_CPU_CONFID", &["Remote", "CPU", "Confidence", "Width (%)"], |r| {
        fixed(r.figures.confidence.cpu.remote, 3)
    }),
    row("TRANSACTION_RATE", &["Transaction", "Rate", "Tran/s"], |r| fixed(r.figures.transaction_rate, 3)),
    row("RT_LATENCY", &["Round", "Trip", "Latency", "usec/tran"], |r| fixed(r.figures.round_trip, 3)),
    row("BURST_SIZE", &["Initial", "Burst", "Requests"], |r| number(r.options.burst)),
    row("LOCAL_TRANSPORT_RETRANS", &["Local", "Transport", "Retransmissions"], |r| {
        known(r.figures.retransmits)
    }),
    row("REMOTE_TRANSPORT_RETRANS", &["Remote", "Transport", "Retransmissions"], |r| {
        known(r.figures.results.retransmits)
    }),
    row("TRANSPORT_MSS", &["Transport", "MSS", "bytes"], |r| known(r.figures.mss)),
    row("LOCAL_SEND_THROUGHPUT", &["Local", "Send", "Throughput"], |r| fixed(r.rate(r.figures.sent), 2)),
    row("LOCAL_RECV_THROUGHPUT", &["Local", "Recv", "Throughput"], |r| fixed(r.rate(r.figures.received), 2)),
    row("REMOTE_SEND_THROUGHPUT", &["Remote", "Send", "Throughput"], |r| {
        fixed(r.rate(r.figures.results.sent), 2)
    }),
    row("REMOTE_RECV_THROUGHPUT", &["Remote", "Recv", "Throughput"], |r| {
        fixed(r.rate(r.figures.results.received), 2)
    }),
    row("LOCAL_CPU_BIND", &["Local", "CPU", "Bind"], |_| text("-1")),
    row("LOCAL_CPU_COUNT", &["Local", "CPU", "Count"], |r| number(r.figures.cores)),
    row("LOCAL_CPU_PEAK_UTIL", &["Local", "Peak", "Per CPU", "Util %"], |r| text(r.peak_of_this_host().0)),
    row("LOCAL_CPU_PEAK_ID", &["Local", "Peak", "Per CPU", "ID"], |r| text(r.peak_of_this_host().1)),
    row("LOCAL_CPU_MODEL", &["Local", "CPU", "Model"], |_| text(DEPRECATED)),
    row("LOCAL_CPU_FREQUENCY", &["Local", "CPU", "Frequency", "MHz"], |_| text("0")),
    row("REMOTE_CPU_BIND", &["Remote", "CPU", "Bind"], |_| text("-1")),
    row("REMOTE_CPU_COUNT", &["Remote", "CPU", "Count"], |r| number(r.figures.results.cores)),
    row("REMOTE_CPU_PEAK_UTIL", &["Remote", "Peak", "Per CPU", "Util %"], |r| {
        fixed(r.figures.results.peak.1.into(), 2)
    }),
    row("REMOTE_CPU_PEAK_ID", &["Remote", "Peak", "Per CPU", "ID"], |r| number(r.figures.results.peak.0)),
    row("REMOTE_CPU_MODEL", &["Remote", "CPU", "Model"], |_| text(DEPRECATED)),
    row("REMOTE_CPU_FREQUENCY", &["Remote", "CPU", "Frequency", "MHz"], |_| text("0")),
    row("SOURCE_PORT", &["Source", "Port"], |r| number(r.options.data.local_port)),
    row("SOURCE_ADDR", &["Source", "Address"], |r| text(&r.source_address())),
    row("SOURCE_FAMILY", &["Source", "Family"], |r| number(r.options.data.local_family.number())),
    row("DEST_PORT", &["Destination", "Port"], |r| number(r.options.data.port)),
    row("DEST_ADDR", &["Destination", "Address"], |r| text(r.destination())),
    row("DEST_FAMILY", &["Destination", "Family"], |r| number(r.figures.family.number())),
    row("LOCAL_SEND_CALLS", &["Local", "Send", "Calls"], |r| number(r.figures.send_calls)),
    row("LOCAL_RECV_CALLS", &["Local", "Recv", "Calls"], |r| number(r.figures.receive_calls)),
    row("LOCAL_BYTES_PER_RECV", &["Local", "Bytes", "Per", "Recv"], |r| {
        fixed(per_call(r.figures.received, r.figures.receive_calls), 2)
    }),
    row("LOCAL_BYTES_PER_SEND", &["Local", "Bytes", "Per", "Send"], |r| {
        fixed(per_call(r.figures.sent, r.figures.send_calls), 2)
    }),
    row("LOCAL_BYTES_SENT", &["Local", "Bytes", "Sent"], |r| number(r.figures.sent)),
    row("LOCAL_BYTES_RECVD", &["Local", "Bytes", "Received"], |r| number(r.figures.received)),
    row("LOCAL_BYTES_XFERD", &["Local", "Bytes", "Xferred"], |r| {
        number(r.figures.sent.saturating_add(r.figures.received))
    }),
    row("LOCAL_SEND_OFFSET", &["Local", "Send", "Offset"], |_| text("0")),
    row("LOCAL_RECV_OFFSET", &["Local", "Recv", "Offset"], |_| text("0")),
    row("LOCAL_SEND_ALIGN", &["Local", "Send", "Alignment"], |_| text("8")),
    row("LOCAL_RECV_ALIGN", &["Local", "Recv", "Alignment"], |_| text("8")),
    row("LOCAL_SEND_WIDTH", &["Local", "Send", "Width"], |r| number(r.figures.sizes.send_width)),
    row("LOCAL_RECV_WIDTH", &["Local", "Recv", "Width"], |r| number(r.figures.sizes.receive_width)),
    row("LOCAL_SEND_DIRTY_COUNT", &["Local", "Send", "Dirty", "Count"], |_| text("-1")),
    row("LOCAL_RECV_DIRTY_COUNT", &["Local", "Recv", "Dirty", "Count"], |_| text("-1")),
    row("LOCAL_RECV_CLEAN_COUNT", &["Local", "Recv", "Clean", "Count"], |_| text("-1")),
    row("LOCAL_NODELAY", &["Local", "NODELAY"], |r| number(u8::from(r.options.no_delay))),
    row("LOCAL_CORK", &["Local", "Cork"], |_| text("0")),
    row("REMOTE_SEND_CALLS", &["Remote", "Send", "Calls"], |r| number(r.figures.results.send_calls)),
    row("REMOTE_RECV_CALLS", &["Remote", "Recv", "Calls"], |r| number(r.figures.results.receive_calls)),
    row("REMOTE_BYTES_PER_RECV", &["Remote", "Bytes", "Per", "Recv"], |r| {
        fixed(per_call(r.figures.results.received, r.figures.results.receive_calls.into()), 2)
    }),
    row("REMOTE_BYTES_PER_SEND", &["Remote", "Bytes", "Per", "Send"], |r| {
        fixed(per_call(r.figures.results.sent, r.figures.results.send_calls.into()), 2)
    }),
    row("REMOTE_BYTES_SENT", &["Remote", "Bytes", "Sent"], |r| number(r.figures.results.sent)),
    row("REMOTE_BYTES_RECVD", &["Remote", "Bytes", "Received"], |r| number(r.figures.results.received)),
    row("REMOTE_BYTES_XFERD", &["Remote", "Bytes", "Xferred"], |r| {
        number(r.figures.results.sent.saturating_add(r.figures.results.received))
    }),
    row("REMOTE_SEND_OFFSET", &["Remote", "Send", "Offset"], |_| text("0")),
    row("REMOTE_RECV_OFFSET", &["Remote", "Recv", "Offset"], |_| text("0")),
    row("REMOTE_SEND_ALIGN", &["Remote", "Send", "Alignment"], |_| text("8")),
    row("REMOTE_RECV_ALIGN", &["Remote", "Recv", "Alignment"], |_| text("8")),
    row("REMOTE_SEND_WIDTH", &["Remote", "Send", "Width"], |r| number(r.figures.response.send_width)),
    row("REMOTE_RECV_WIDTH", &["Remote", "Recv", "Width"], |r| number(r.figures.response.receive_width)),
    row("REMOTE_SEND_DIRTY_COUNT", &["Remote", "Send", "Dirty", "Count"], |_| text("-1")),
    row("REMOTE_RECV_DIRTY_COUNT", &["Remote", "Recv", "Dirty", "Count"], |_| text("-1")),
    row("REMOTE_RECV_CLEAN_COUNT", &["Remote", "Recv", "Clean", "Count"], |_| text("-1")),
    row("REMOTE_NODELAY", &["Remote", "NODELAY"], |r| number(r.figures.response.flags & flag::NO_DELAY)),
    row("REMOTE_CORK", &["Remote", "Cork"], |_| text("0")),
    row("LOCAL_SYSNAME", &["Local", "Sysname"], |_| text(DEPRECATED)),
    row("LOCAL_SYSTEM_MODEL", &["Local", "System", "Model"], |_| text(DEPRECATED)),
    row("LOCAL_RELEASE", &["Local", "Release"], |_| text(DEPRECATED)),
    row("LOCAL_VERSION", &["Local", "Version"], |_| text(DEPRECATED)),
    row("LOCAL_MACHINE", &["Local", "Machine"], |_| text(DEPRECATED)),
    row("REMOTE_SYSNAME", &["Remote", "Sysname"], |_| text(DEPRECATED)),
    row("REMOTE_SYSTEM_MODEL", &["Remote", "System", "Model"], |_| text(DEPRECATED)),
    row("REMOTE_RELEASE", &["Remote", "Release"], |_| text(DEPRECATED)),
    row("REMOTE_VERSION", &["Remote", "Version"], |_| text(DEPRECATED)),
    row("REMOTE_MACHINE", &["Remote", "Machine"], |_| text(DEPRECATED)),
    row("LOCAL_INTERFACE_NAME", &["Local", "Interface", "Name"], |_| text(DEPRECATED)),
    row("LOCAL_INTERFACE_VENDOR", &["Local", "Interface", "Vendor"], |_| text(UNKNOWN_DEVICE)),
    row("LOCAL_INTERFACE_DEVICE", &["Local", "Interface", "Device"], |_| text(UNKNOWN_DEVICE)),
    row("LOCAL_INTERFACE_SUBVENDOR", &["Local", "Interface", "Subvendor"], |_| text(UNKNOWN_DEVICE)),
    row("LOCAL_INTERFACE_SUBDEVICE", &["Local", "Interface", "Subdevice"], |_| text(UNKNOWN_DEVICE)),
    row("LOCAL_DRIVER_NAME", &["Local", "Driver", "Name"], |_| text(DEPRECATED)),
    row("LOCAL_DRIVER_VERSION", &["Local", "Driver", "Version"], |_| text(DEPRECATED)),
    row("LOCAL_DRIVER_FIRMWARE", &["Local", "Driver", "Firmware"], |_| text(DEPRECATED)),
    row("LOCAL_DRIVER_BUS", &["Local", "Driver", "Bus"], |_| text(DEPRECATED)),
    row("LOCAL_INTERFACE_SLOT", &["Local", "Interface", "Slot"], |_| text(DEPRECATED)),
    row("REMOTE_INTERFACE_NAME", &["Remote", "Interface", "Name"], |_| text(DEPRECATED)),
    row("REMOTE_INTERFACE_VENDOR", &["Remote", "Interface", "Vendor"], |_| text(UNKNOWN_DEVICE)),
    row("REMOTE_INTERFACE_DEVICE", &["Remote", "Interface", "Device"], |_| text(UNKNOWN_DEVICE)),
    row("REMOTE_INTERFACE_SUBVENDOR", &["Remote", "Interface", "Subvendor"], |_| text(UNKNOWN_DEVICE)),
    row("REMOTE_INTERFACE_SUBDEVICE", &["Remote", "Interface", "Subdevice"], |_| text(UNKNOWN_DEVICE)),
    row("REMOTE_DRIVER_NAME", &["Remote", "Driver", "Name"], |_| text(DEPRECATED)),
    row("REMOTE_DRIVER_VERSION", &["Remote", "Driver", "Version"], |_| text(DEPRECATED)),
    row("REMOTE_DRIVER_FIRMWARE", &["Remote", "Driver", "Firmware"], |_| text(DEPRECATED)),
    row("REMOTE_DRIVER_BUS", &["Remote", "Driver", "Bus"], |_| text(DEPRECATED)),
    row("REMOTE_INTERFACE_SLOT", &["Remote", "Interface", "Slot"], |_| text(DEPRECATED)),
    row("LOCAL_INTERVAL_USECS", &["Local", "Interval", "Usecs"], |r| {
        number(r.options.pace.map_or(0, |pace| pace.interval.as_ns() / 1000))
    }),
    row("LOCAL_INTERVAL_BURST", &["Local", "Interval", "Burst"], |r| {
        number(r.options.pace.map_or(0, |pace| pace.burst))
    }),
    row("REMOTE_INTERVAL_USECS", &["Remote", "Interval", "Usecs"], |_| text("0")),
    row("REMOTE_INTERVAL_BURST", &["Remote", "Interval", "Burst"], |_| text("0")),
    row("LOCAL_SECURITY_TYPE_ID", &["Local", "OS", "Security", "Type ID"], |_| text("0")),
    row("LOCAL_SECURITY_TYPE", &["Local", "OS", "Security", "Type"], |_| text(DEPRECATED)),
    row("LOCAL_SECURITY_ENABLED_NUM", &["Local", "OS", "Security", "Enabled Num"], |_| text("0")),
    row("LOCAL_SECURITY_ENABLED", &["Local", "OS", "Security", "Enabled"], |_| text(DEPRECATED)),
    row("LOCAL_SECURITY_SPECIFIC", &["Local", "OS", "Security", "Specific"], |_| text(DEPRECATED)),
    row("REMOTE_SECURITY_TYPE_ID", &["Remote", "OS", "Security", "Type"], |_| text("0")),
    row("REMOTE_SECURITY_TYPE", &["Remote", "OS", "Security", "Type"], |_| text(DEPRECATED)),
    row("REMOTE_SECURITY_ENABLED_NUM", &["Remote", "OS", "Security", "Enabled"], |_| text("0")),
    row("REMOTE_SECURITY_ENABLED", &["Remote", "OS", "Security", "Enabled"], |_| text(DEPRECATED)),
    row("REMOTE_SECURITY_SPECIFIC", &["Remote", "OS", "Security", "Specific"], |_| text(DEPRECATED)),
    row("RESULT_BRAND", &["Result", "Tag"], |r| r.options.brand.as_ref().map(|brand| format!("\"{brand}\""))),
    row("UUID", &["Test", "UUID"], |r| text(&r.options.uuid)),
    needing(Needs::Statistics, "MIN_LATENCY", &["Minimum", "Latency", "Microseconds"], |r| {
        latency(r, |all| all.least)
    }),
    needing(Needs::Statistics, "MAX_LATENCY", &["Maximum", "Latency", "Microseconds"], |r| {
        latency(r, |all| all.most)
    }),
    needing(Needs::Statistics, "P50_LATENCY", &["50th", "Percentile", "Latency", "Microseconds"], |r| {
        latency(r, |all| all.percentile(50))
    }),
    needing(Needs::Statistics, "P90_LATENCY", &["90th", "Percentile", "Latency", "Microseconds"], |r| {
        latency(r, |all| all.percentile(90))
    }),
    needing(Needs::Statistics, "P99_LATENCY", &["99th", "Percentile", "Latency", "Microseconds"], |r| {
        latency(r, |all| all.percentile(99))
    }),
    needing(Needs::Statistics, "MEAN_LATENCY", &["Mean", "Latency", "Microseconds"], |r| {
        mean_latency(r, Latencies::mean)
    }),
    needing(Needs::Statistics, "STDDEV_LATENCY", &["Stddev", "Latency", "Microseconds"], |r| {
        mean_latency(r, Latencies::deviation)
    }),
    row("LOCAL_SOCKET_PRIO", &["Local", "Socket", "Priority"], |_| text("-1")),
    row("REMOTE_SOCKET_PRIO", &["Remote", "Socket", "Priority"], |_| text("-1")),
    row("LOCAL_SOCKET_TOS", &["Local", "Socket", "TOS"], |r| tos(r.options.tos.local.map(u32::from))),
    row("REMOTE_SOCKET_TOS", &["Remote", "Socket", "TOS"], |r| tos(r.figures.response.tos)),
    row("LOCAL_CONG_CONTROL", &["Local", "Congestion", "Control", "Algorithm"], |r| {
        text(&r.figures.congestion)
    }),
    needing(
        Needs::RemoteCongestion,
        "REMOTE_CONG_CONTROL",
        &["Remote", "Congestion", "Control", "Algorithm"],
        |r| text(&r.figures.results.congestion),
    ),
    row("LOCAL_FILL_FILE", &["Local", "Fill", "File"], |r| {
        text(r.options.fill.as_ref().map_or("", |(name, _)| name))
    }),
    row("REMOTE_FILL_FILE", &["Remote", "Fill", "File"], |r| text(&r.options.remote_fill)),
    row("COMMAND_LINE", &["Command", "Line"], |r| text(&format!("\"{}\"", r.options.command_line))),
    row("OUTPUT_END", &["This", "Is", "The", "End"], |_| None),
];
