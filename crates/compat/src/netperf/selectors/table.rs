//! The table of the output selectors, in the order of `all`: names, headings and formats of netperf 2.7.0.
//!
//! netperf 2.7 itself no longer knows what the system and its interfaces are, and prints a word or a number in
//! their place. So do we.

use super::{Selector, SelectorNeeds};
use crate::netperf::figures::{NetperfReport, per_call};
use crate::netperf::latencies::Latencies;
use crate::netperf::wire::{HostCpu, flag};

/// What netperf prints instead of properties of a system.
const DEPRECATED: &str = "Deprecated";

/// What netperf prints instead of the numbers of a PCI device: -2.
const UNKNOWN_DEVICE: &str = "0xfffffffe";

/// Rows of the table: a name, the lines of a heading, what the selector needs if that is something special, and
/// its value in a report.
macro_rules! selectors {
    ($($name:literal [$($line:literal),+] $(needs $needs:ident)? |$report:pat_param| $value:expr;)+) => {
        &[$(Selector {
            name: $name,
            heading: &[$($line),+],
            value: |$report| $value,
            needs: [$(SelectorNeeds::$needs,)? SelectorNeeds::Nothing][0],
        }),+]
    };
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

fn latency(report: &NetperfReport<'_>, of: fn(&Latencies) -> u64) -> Option<String> {
    Some(report.figures.latencies.as_ref().map_or_else(|| "-1".to_owned(), |all| of(all).to_string()))
}

fn mean_latency(report: &NetperfReport<'_>, of: fn(&Latencies) -> f64) -> Option<String> {
    fixed(report.figures.latencies.as_ref().map_or(-1.0, of), 2)
}

/// A type of service; -1 if it was left open.
fn tos(value: Option<u32>) -> Option<String> {
    Some(format!("0x{:02x}", value.unwrap_or(u32::MAX)))
}

/// All selectors.
pub(in crate::netperf) static ALL: &[Selector] = selectors! {
    "OUTPUT_NONE" [" "] |_| text(" ");
    "SOCKET_TYPE" ["Socket", "Type"] |r| text(if r.options.udp() { "Datagram" } else { "Stream" });
    "PROTOCOL" ["Protocol"] |r| text(if r.options.udp() { "UDP" } else { "TCP" });
    "DIRECTION" ["Direction"] |r| text(r.options.direction_name());
    "ELAPSED_TIME" ["Elapsed", "Time", "(sec)"] |r| fixed(r.figures.elapsed, 2);
    "THROUGHPUT" ["Throughput"] |r| fixed(r.figures.throughput, 2);
    "THROUGHPUT_UNITS" ["Throughput", "Units"] |r| text(&format!("{}/s", r.options.unit.name()));
    "LSS_SIZE_REQ" ["Local", "Send Socket", "Size", "Requested"] |r| asked(r.options.send_buffer.local);
    "LSS_SIZE" ["Local", "Send Socket", "Size", "Initial"] |r| number(r.figures.send_buffer.initial);
    "LSS_SIZE_END" ["Local", "Send Socket", "Size", "Final"] |r| number(r.figures.send_buffer.last);
    "LSR_SIZE_REQ" ["Local", "Recv Socket", "Size", "Requested"] |r| asked(r.options.receive_buffer.local);
    "LSR_SIZE" ["Local", "Recv Socket", "Size", "Initial"] |r| number(r.figures.receive_buffer.initial);
    "LSR_SIZE_END" ["Local", "Recv Socket", "Size", "Final"] |r| number(r.figures.receive_buffer.last);
    "RSS_SIZE_REQ" ["Remote", "Send Socket", "Size", "Requested"] |r| asked(r.options.send_buffer.remote);
    "RSS_SIZE" ["Remote", "Send Socket", "Size", "Initial"] |r| number(r.figures.response.send_buffer);
    "RSS_SIZE_END" ["Remote", "Send Socket", "Size", "Final"] |r| number(r.figures.results.send_buffer);
    "RSR_SIZE_REQ" ["Remote", "Recv Socket", "Size", "Requested"] |r| asked(r.options.receive_buffer.remote);
    "RSR_SIZE" ["Remote", "Recv Socket", "Size", "Initial"] |r| number(r.figures.response.receive_buffer);
    "RSR_SIZE_END" ["Remote", "Recv Socket", "Size", "Final"] |r| number(r.figures.results.receive_buffer);
    "LOCAL_SEND_SIZE" ["Local", "Send", "Size"] |r| number(r.figures.sizes.send);
    "LOCAL_RECV_SIZE" ["Local", "Recv", "Size"] |r| number(r.figures.sizes.receive);
    "REMOTE_SEND_SIZE" ["Remote", "Send", "Size"] |r| asked(r.figures.response.send_size);
    "REMOTE_RECV_SIZE" ["Remote", "Recv", "Size"] |r| asked(r.figures.response.receive_size);
    "REQUEST_SIZE" ["Request", "Size", "Bytes"] |r| asked(r.options.request_size);
    "RESPONSE_SIZE" ["Response", "Size", "Bytes"] |r| asked(r.options.response_size);
    "LOCAL_CPU_UTIL" ["Local", "CPU", "Util", "%"] |r| fixed(r.figures.utilization.local, 2);
    "LOCAL_CPU_PERCENT_USER" ["Local", "CPU", "User", "%"] |r| share(r.figures.cpu.local, |cpu| cpu.user);
    "LOCAL_CPU_PERCENT_SYSTEM" ["Local", "CPU", "System", "%"]
        |r| share(r.figures.cpu.local, |cpu| cpu.system);
    "LOCAL_CPU_PERCENT_IOWAIT" ["Local", "CPU", "I/O", "%"] |r| share(r.figures.cpu.local, |cpu| cpu.iowait);
    "LOCAL_CPU_PERCENT_IRQ" ["Local", "CPU", "IRQ", "%"] |r| share(r.figures.cpu.local, |cpu| cpu.irq);
    "LOCAL_CPU_PERCENT_SWINTR" ["Local", "CPU", "swintr", "%"]
        |r| share(r.figures.cpu.local, |cpu| cpu.softirq);
    "LOCAL_CPU_METHOD" ["Local", "CPU", "Util", "Method"] |r| text(r.method(r.figures.cpu.local));
    "LOCAL_SD" ["Local", "Service", "Demand"] |r| fixed(r.figures.demand.local, 3);
    "REMOTE_CPU_UTIL" ["Remote", "CPU", "Util", "%"] |r| fixed(r.figures.utilization.remote, 2);
    "REMOTE_CPU_PERCENT_USER" ["Remote", "CPU", "User", "%"] |r| share(r.figures.cpu.remote, |cpu| cpu.user);
    "REMOTE_CPU_PERCENT_SYSTEM" ["Remote", "CPU", "System", "%"]
        |r| share(r.figures.cpu.remote, |cpu| cpu.system);
    "REMOTE_CPU_PERCENT_IOWAIT" ["Remote", "CPU", "I/O", "%"]
        |r| share(r.figures.cpu.remote, |cpu| cpu.iowait);
    "REMOTE_CPU_PERCENT_IRQ" ["Remote", "CPU", "IRQ", "%"] |r| share(r.figures.cpu.remote, |cpu| cpu.irq);
    "REMOTE_CPU_PERCENT_SWINTR" ["Remote", "CPU", "swintr", "%"]
        |r| share(r.figures.cpu.remote, |cpu| cpu.softirq);
    "REMOTE_CPU_METHOD" ["Remote", "CPU", "Util", "Method"] |r| text(r.method(r.figures.cpu.remote));
    "REMOTE_SD" ["Remote", "Service", "Demand"] |r| fixed(r.figures.demand.remote, 3);
    "SD_UNITS" ["Service", "Demand", "Units"] |r| text(r.demand_unit());
    "CONFIDENCE_LEVEL" ["Confidence", "Level", "Percent"] |r| number(r.options.iterations.level);
    "CONFIDENCE_INTERVAL" ["Confidence", "Width", "Target"] |r| fixed(r.figures.confidence.target, 6);
    "CONFIDENCE_ITERATION" ["Confidence", "Iterations", "Run"] |r| number(r.figures.confidence.iterations);
    "THROUGHPUT_CONFID" ["Throughput", "Confidence", "Width (%)"]
        |r| fixed(r.figures.confidence.throughput, 3);
    "LOCAL_CPU_CONFID" ["Local", "CPU", "Confidence", "Width (%)"]
        |r| fixed(r.figures.confidence.cpu.local, 3);
    "REMOTE_CPU_CONFID" ["Remote", "CPU", "Confidence", "Width (%)"]
        |r| fixed(r.figures.confidence.cpu.remote, 3);
    "TRANSACTION_RATE" ["Transaction", "Rate", "Tran/s"] |r| fixed(r.figures.transaction_rate, 3);
    "RT_LATENCY" ["Round", "Trip", "Latency", "usec/tran"] |r| fixed(r.figures.round_trip, 3);
    "BURST_SIZE" ["Initial", "Burst", "Requests"] |r| number(r.options.burst);
    "LOCAL_TRANSPORT_RETRANS" ["Local", "Transport", "Retransmissions"] |r| known(r.figures.retransmits);
    "REMOTE_TRANSPORT_RETRANS" ["Remote", "Transport", "Retransmissions"]
        |r| known(r.figures.results.retransmits);
    "TRANSPORT_MSS" ["Transport", "MSS", "bytes"] |r| known(r.figures.mss);
    "LOCAL_SEND_THROUGHPUT" ["Local", "Send", "Throughput"] |r| fixed(r.rate(r.figures.sent), 2);
    "LOCAL_RECV_THROUGHPUT" ["Local", "Recv", "Throughput"] |r| fixed(r.rate(r.figures.received), 2);
    "REMOTE_SEND_THROUGHPUT" ["Remote", "Send", "Throughput"] |r| fixed(r.rate(r.figures.results.sent), 2);
    "REMOTE_RECV_THROUGHPUT" ["Remote", "Recv", "Throughput"]
        |r| fixed(r.rate(r.figures.results.received), 2);
    "LOCAL_CPU_BIND" ["Local", "CPU", "Bind"] |_| text("-1");
    "LOCAL_CPU_COUNT" ["Local", "CPU", "Count"] |r| number(r.figures.cores);
    "LOCAL_CPU_PEAK_UTIL" ["Local", "Peak", "Per CPU", "Util %"] |r| text(r.peak_of_this_host().0);
    "LOCAL_CPU_PEAK_ID" ["Local", "Peak", "Per CPU", "ID"] |r| text(r.peak_of_this_host().1);
    "LOCAL_CPU_MODEL" ["Local", "CPU", "Model"] |_| text(DEPRECATED);
    "LOCAL_CPU_FREQUENCY" ["Local", "CPU", "Frequency", "MHz"] |_| text("0");
    "REMOTE_CPU_BIND" ["Remote", "CPU", "Bind"] |_| text("-1");
    "REMOTE_CPU_COUNT" ["Remote", "CPU", "Count"] |r| number(r.figures.results.cores);
    "REMOTE_CPU_PEAK_UTIL" ["Remote", "Peak", "Per CPU", "Util %"]
        |r| fixed(r.figures.results.peak.1.into(), 2);
    "REMOTE_CPU_PEAK_ID" ["Remote", "Peak", "Per CPU", "ID"] |r| number(r.figures.results.peak.0);
    "REMOTE_CPU_MODEL" ["Remote", "CPU", "Model"] |_| text(DEPRECATED);
    "REMOTE_CPU_FREQUENCY" ["Remote", "CPU", "Frequency", "MHz"] |_| text("0");
    "SOURCE_PORT" ["Source", "Port"] |r| number(r.options.data.local_port);
    "SOURCE_ADDR" ["Source", "Address"] |r| text(&r.source_address());
    "SOURCE_FAMILY" ["Source", "Family"] |r| number(r.options.data.local_family.number());
    "DEST_PORT" ["Destination", "Port"] |r| number(r.options.data.port);
    "DEST_ADDR" ["Destination", "Address"] |r| text(r.destination());
    "DEST_FAMILY" ["Destination", "Family"] |r| number(r.figures.family.number());
    "LOCAL_SEND_CALLS" ["Local", "Send", "Calls"] |r| number(r.figures.send_calls);
    "LOCAL_RECV_CALLS" ["Local", "Recv", "Calls"] |r| number(r.figures.receive_calls);
    "LOCAL_BYTES_PER_RECV" ["Local", "Bytes", "Per", "Recv"]
        |r| fixed(per_call(r.figures.received, r.figures.receive_calls), 2);
    "LOCAL_BYTES_PER_SEND" ["Local", "Bytes", "Per", "Send"]
        |r| fixed(per_call(r.figures.sent, r.figures.send_calls), 2);
    "LOCAL_BYTES_SENT" ["Local", "Bytes", "Sent"] |r| number(r.figures.sent);
    "LOCAL_BYTES_RECVD" ["Local", "Bytes", "Received"] |r| number(r.figures.received);
    "LOCAL_BYTES_XFERD" ["Local", "Bytes", "Xferred"]
        |r| number(r.figures.sent.saturating_add(r.figures.received));
    "LOCAL_SEND_OFFSET" ["Local", "Send", "Offset"] |_| text("0");
    "LOCAL_RECV_OFFSET" ["Local", "Recv", "Offset"] |_| text("0");
    "LOCAL_SEND_ALIGN" ["Local", "Send", "Alignment"] |_| text("8");
    "LOCAL_RECV_ALIGN" ["Local", "Recv", "Alignment"] |_| text("8");
    "LOCAL_SEND_WIDTH" ["Local", "Send", "Width"] |r| number(r.figures.sizes.send_width);
    "LOCAL_RECV_WIDTH" ["Local", "Recv", "Width"] |r| number(r.figures.sizes.receive_width);
    "LOCAL_SEND_DIRTY_COUNT" ["Local", "Send", "Dirty", "Count"] |_| text("-1");
    "LOCAL_RECV_DIRTY_COUNT" ["Local", "Recv", "Dirty", "Count"] |_| text("-1");
    "LOCAL_RECV_CLEAN_COUNT" ["Local", "Recv", "Clean", "Count"] |_| text("-1");
    "LOCAL_NODELAY" ["Local", "NODELAY"] |r| number(u8::from(r.options.no_delay));
    "LOCAL_CORK" ["Local", "Cork"] |_| text("0");
    "REMOTE_SEND_CALLS" ["Remote", "Send", "Calls"] |r| number(r.figures.results.send_calls);
    "REMOTE_RECV_CALLS" ["Remote", "Recv", "Calls"] |r| number(r.figures.results.receive_calls);
    "REMOTE_BYTES_PER_RECV" ["Remote", "Bytes", "Per", "Recv"]
        |r| fixed(per_call(r.figures.results.received, r.figures.results.receive_calls.into()), 2);
    "REMOTE_BYTES_PER_SEND" ["Remote", "Bytes", "Per", "Send"]
        |r| fixed(per_call(r.figures.results.sent, r.figures.results.send_calls.into()), 2);
    "REMOTE_BYTES_SENT" ["Remote", "Bytes", "Sent"] |r| number(r.figures.results.sent);
    "REMOTE_BYTES_RECVD" ["Remote", "Bytes", "Received"] |r| number(r.figures.results.received);
    "REMOTE_BYTES_XFERD" ["Remote", "Bytes", "Xferred"]
        |r| number(r.figures.results.sent.saturating_add(r.figures.results.received));
    "REMOTE_SEND_OFFSET" ["Remote", "Send", "Offset"] |_| text("0");
    "REMOTE_RECV_OFFSET" ["Remote", "Recv", "Offset"] |_| text("0");
    "REMOTE_SEND_ALIGN" ["Remote", "Send", "Alignment"] |_| text("8");
    "REMOTE_RECV_ALIGN" ["Remote", "Recv", "Alignment"] |_| text("8");
    "REMOTE_SEND_WIDTH" ["Remote", "Send", "Width"] |r| number(r.figures.response.send_width);
    "REMOTE_RECV_WIDTH" ["Remote", "Recv", "Width"] |r| number(r.figures.response.receive_width);
    "REMOTE_SEND_DIRTY_COUNT" ["Remote", "Send", "Dirty", "Count"] |_| text("-1");
    "REMOTE_RECV_DIRTY_COUNT" ["Remote", "Recv", "Dirty", "Count"] |_| text("-1");
    "REMOTE_RECV_CLEAN_COUNT" ["Remote", "Recv", "Clean", "Count"] |_| text("-1");
    "REMOTE_NODELAY" ["Remote", "NODELAY"] |r| number(r.figures.response.flags & flag::NO_DELAY);
    "REMOTE_CORK" ["Remote", "Cork"] |_| text("0");
    "LOCAL_SYSNAME" ["Local", "Sysname"] |_| text(DEPRECATED);
    "LOCAL_SYSTEM_MODEL" ["Local", "System", "Model"] |_| text(DEPRECATED);
    "LOCAL_RELEASE" ["Local", "Release"] |_| text(DEPRECATED);
    "LOCAL_VERSION" ["Local", "Version"] |_| text(DEPRECATED);
    "LOCAL_MACHINE" ["Local", "Machine"] |_| text(DEPRECATED);
    "REMOTE_SYSNAME" ["Remote", "Sysname"] |_| text(DEPRECATED);
    "REMOTE_SYSTEM_MODEL" ["Remote", "System", "Model"] |_| text(DEPRECATED);
    "REMOTE_RELEASE" ["Remote", "Release"] |_| text(DEPRECATED);
    "REMOTE_VERSION" ["Remote", "Version"] |_| text(DEPRECATED);
    "REMOTE_MACHINE" ["Remote", "Machine"] |_| text(DEPRECATED);
    "LOCAL_INTERFACE_NAME" ["Local", "Interface", "Name"] |_| text(DEPRECATED);
    "LOCAL_INTERFACE_VENDOR" ["Local", "Interface", "Vendor"] |_| text(UNKNOWN_DEVICE);
    "LOCAL_INTERFACE_DEVICE" ["Local", "Interface", "Device"] |_| text(UNKNOWN_DEVICE);
    "LOCAL_INTERFACE_SUBVENDOR" ["Local", "Interface", "Subvendor"] |_| text(UNKNOWN_DEVICE);
    "LOCAL_INTERFACE_SUBDEVICE" ["Local", "Interface", "Subdevice"] |_| text(UNKNOWN_DEVICE);
    "LOCAL_DRIVER_NAME" ["Local", "Driver", "Name"] |_| text(DEPRECATED);
    "LOCAL_DRIVER_VERSION" ["Local", "Driver", "Version"] |_| text(DEPRECATED);
    "LOCAL_DRIVER_FIRMWARE" ["Local", "Driver", "Firmware"] |_| text(DEPRECATED);
    "LOCAL_DRIVER_BUS" ["Local", "Driver", "Bus"] |_| text(DEPRECATED);
    "LOCAL_INTERFACE_SLOT" ["Local", "Interface", "Slot"] |_| text(DEPRECATED);
    "REMOTE_INTERFACE_NAME" ["Remote", "Interface", "Name"] |_| text(DEPRECATED);
    "REMOTE_INTERFACE_VENDOR" ["Remote", "Interface", "Vendor"] |_| text(UNKNOWN_DEVICE);
    "REMOTE_INTERFACE_DEVICE" ["Remote", "Interface", "Device"] |_| text(UNKNOWN_DEVICE);
    "REMOTE_INTERFACE_SUBVENDOR" ["Remote", "Interface", "Subvendor"] |_| text(UNKNOWN_DEVICE);
    "REMOTE_INTERFACE_SUBDEVICE" ["Remote", "Interface", "Subdevice"] |_| text(UNKNOWN_DEVICE);
    "REMOTE_DRIVER_NAME" ["Remote", "Driver", "Name"] |_| text(DEPRECATED);
    "REMOTE_DRIVER_VERSION" ["Remote", "Driver", "Version"] |_| text(DEPRECATED);
    "REMOTE_DRIVER_FIRMWARE" ["Remote", "Driver", "Firmware"] |_| text(DEPRECATED);
    "REMOTE_DRIVER_BUS" ["Remote", "Driver", "Bus"] |_| text(DEPRECATED);
    "REMOTE_INTERFACE_SLOT" ["Remote", "Interface", "Slot"] |_| text(DEPRECATED);
    "LOCAL_INTERVAL_USECS" ["Local", "Interval", "Usecs"]
        |r| number(r.options.pace.map_or(0, |pace| pace.interval.as_ns() / 1000));
    "LOCAL_INTERVAL_BURST" ["Local", "Interval", "Burst"]
        |r| number(r.options.pace.map_or(0, |pace| pace.burst));
    "REMOTE_INTERVAL_USECS" ["Remote", "Interval", "Usecs"] |_| text("0");
    "REMOTE_INTERVAL_BURST" ["Remote", "Interval", "Burst"] |_| text("0");
    "LOCAL_SECURITY_TYPE_ID" ["Local", "OS", "Security", "Type ID"] |_| text("0");
    "LOCAL_SECURITY_TYPE" ["Local", "OS", "Security", "Type"] |_| text(DEPRECATED);
    "LOCAL_SECURITY_ENABLED_NUM" ["Local", "OS", "Security", "Enabled Num"] |_| text("0");
    "LOCAL_SECURITY_ENABLED" ["Local", "OS", "Security", "Enabled"] |_| text(DEPRECATED);
    "LOCAL_SECURITY_SPECIFIC" ["Local", "OS", "Security", "Specific"] |_| text(DEPRECATED);
    "REMOTE_SECURITY_TYPE_ID" ["Remote", "OS", "Security", "Type"] |_| text("0");
    "REMOTE_SECURITY_TYPE" ["Remote", "OS", "Security", "Type"] |_| text(DEPRECATED);
    "REMOTE_SECURITY_ENABLED_NUM" ["Remote", "OS", "Security", "Enabled"] |_| text("0");
    "REMOTE_SECURITY_ENABLED" ["Remote", "OS", "Security", "Enabled"] |_| text(DEPRECATED);
    "REMOTE_SECURITY_SPECIFIC" ["Remote", "OS", "Security", "Specific"] |_| text(DEPRECATED);
    "RESULT_BRAND" ["Result", "Tag"] |r| r.options.brand.as_ref().map(|brand| format!("\"{brand}\""));
    "UUID" ["Test", "UUID"] |r| text(&r.options.uuid);
    "MIN_LATENCY" ["Minimum", "Latency", "Microseconds"] needs Statistics |r| latency(r, |all| all.least);
    "MAX_LATENCY" ["Maximum", "Latency", "Microseconds"] needs Statistics |r| latency(r, |all| all.most);
    "P50_LATENCY" ["50th", "Percentile", "Latency", "Microseconds"] needs Statistics
        |r| latency(r, |all| all.percentile(50));
    "P90_LATENCY" ["90th", "Percentile", "Latency", "Microseconds"] needs Statistics
        |r| latency(r, |all| all.percentile(90));
    "P99_LATENCY" ["99th", "Percentile", "Latency", "Microseconds"] needs Statistics
        |r| latency(r, |all| all.percentile(99));
    "MEAN_LATENCY" ["Mean", "Latency", "Microseconds"] needs Statistics |r| mean_latency(r, Latencies::mean);
    "STDDEV_LATENCY" ["Stddev", "Latency", "Microseconds"] needs Statistics
        |r| mean_latency(r, Latencies::deviation);
    "LOCAL_SOCKET_PRIO" ["Local", "Socket", "Priority"] |_| text("-1");
    "REMOTE_SOCKET_PRIO" ["Remote", "Socket", "Priority"] |_| text("-1");
    "LOCAL_SOCKET_TOS" ["Local", "Socket", "TOS"] |r| tos(r.options.tos.local.map(u32::from));
    "REMOTE_SOCKET_TOS" ["Remote", "Socket", "TOS"] |r| tos(r.figures.response.tos);
    "LOCAL_CONG_CONTROL" ["Local", "Congestion", "Control", "Algorithm"] |r| text(&r.figures.congestion);
    "REMOTE_CONG_CONTROL" ["Remote", "Congestion", "Control", "Algorithm"] needs RemoteCongestion
        |r| text(&r.figures.results.congestion);
    "LOCAL_FILL_FILE" ["Local", "Fill", "File"]
        |r| text(r.options.fill.as_ref().map_or("", |(name, _)| name));
    "REMOTE_FILL_FILE" ["Remote", "Fill", "File"] |r| text(&r.options.remote_fill);
    "COMMAND_LINE" ["Command", "Line"] |r| text(&format!("\"{}\"", r.options.command_line));
    "OUTPUT_END" ["This", "Is", "The", "End"] |_| None;
};
