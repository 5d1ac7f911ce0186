//! The report of one end, line by line, as nuttcp 6.1.2 and 8.2.2 write it. A client parses the server's report
//! by its words.
//!
//! MB is 1048576 bytes, KB 1024, Mbps 10^6 bit/s. For milliseconds per call, a second has 1024 ms, as in ttcp.

use std::fmt::Write as _;
use std::net::SocketAddr;

use linerate_units::Span;

use super::delays::{DelayKind, OneWay};
use super::summary::by_stream;
use super::wire::NuttcpVersion;
use crate::stand_in::ResourceUsage;

/// What one end knows when its data connections are open.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Setup {
    pub(super) transmit: bool,
    pub(super) udp: bool,
    pub(super) length: u64,
    pub(super) blocks: Option<u64>,
    pub(super) streams: u16,
    pub(super) port: u16,
    pub(super) time: Span,
    pub(super) rate_kbps: Option<u64>,
    pub(super) instantaneous: bool,
    pub(super) burst: u64,
    pub(super) tos: u8,
    pub(super) affinity: Option<u32>,
    pub(super) source_port: Option<u16>,
    /// The host as the user of a client typed it.
    pub(super) host: Option<String>,
    pub(super) interval: Span,
    pub(super) no_delay: bool,
    /// Whether this end opened the data connections.
    pub(super) connected: bool,
    pub(super) peer: Option<SocketAddr>,
    pub(super) mss: Option<u32>,
    pub(super) rtt: Option<Span>,
    pub(super) snd_buf: u64,
    pub(super) rcv_buf: u64,
}

/// The counts of one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) bytes: u64,
    pub(super) span: Span,
    pub(super) calls: u64,
    pub(super) retrans: Option<u64>,
    /// Congestion window at the end, KB.
    pub(super) cwnd: Option<u64>,
    pub(super) user: Span,
    pub(super) system: Span,
    /// Other resources used; absent if they are not counted.
    pub(super) usage: Option<ResourceUsage>,
    /// Delays of the datagrams, if they are timestamped.
    pub(super) one_way: Option<OneWay>,
    /// Jitter of the datagrams, if it is measured.
    pub(super) jitter: Option<OneWay>,
    /// Retransmissions of each stream.
    pub(super) stream_retrans: Vec<u64>,
    /// Congestion window of each stream, KB.
    pub(super) stream_cwnd: Vec<u64>,
}

/// The seconds of a span.
pub(super) fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

/// A quotient; 0 for an empty span.
pub(super) fn per(amount: f64, span: Span) -> f64 {
    if span == Span::ZERO { 0.0 } else { amount / span.as_secs_f64() }
}

pub(super) fn mbps(bytes: u64, span: Span) -> f64 {
    per(bytes as f64 * 8.0 / 1e6, span)
}

impl Counted {
    /// CPU time as a share of the real time, in whole percent.
    pub(super) fn cpu_percent(&self) -> u64 {
        per(100.0 * (self.user.as_secs_f64() + self.system.as_secs_f64()), self.span) as u64
    }
}

/// The prefix of a report's lines, with the role: `nuttcp-r: `.
pub(super) fn prefix(transmit: bool, identifier: Option<&str>) -> String {
    let role = if transmit { 't' } else { 'r' };
    identifier.map_or_else(|| format!("nuttcp-{role}: "), |name| format!("nuttcp-{role}-{name}: "))
}

fn plural(span: Span) -> &'static str {
    if span == Span::from_secs(1) { "" } else { "s" }
}

/// The lines before the test, each with its prefix and line feed.
pub(super) fn setup_lines(setup: &Setup, before: &str, parse: bool) -> String {
    let mut lines = vec![format!("v{}: socket", NuttcpVersion::REPORTED)];
    lines.extend(
        setup
            .affinity
            .map(|cpu| if parse { format!("cpu_affinity={cpu}") } else { format!("affinity = CPU {cpu}") }),
    );
    let family = match setup.peer.map(|peer| peer.ip().to_canonical().is_ipv6()) {
        Some(true) => "inet6",
        _ => "inet",
    };
    let host = setup.peer.map_or_else(String::new, |peer| peer.ip().to_canonical().to_string());
    lines.push(what(setup, &host, family, parse));
    limits(setup, parse, &mut lines);
    if !setup.udp {
        lines.push(connection(setup, &host, family, parse));
    }
    let (send, receive) = (setup.snd_buf, setup.rcv_buf);
    if parse {
        lines.push(format!("send_window_size={send} receive_window_size={receive}"));
        lines.push(format!("send_window_avail={} receive_window_avail={}", send / 2, receive / 2));
    } else {
        lines.push(format!("send window size = {send}, receive window size = {receive}"));
        lines.push(format!(
            "available send window = {}, available receive window = {}",
            send / 2,
            receive / 2
        ));
    }
    lines.iter().fold(String::new(), |text, line| text + before + line + "\n")
}

fn what(setup: &Setup, host: &str, family: &str, parse: bool) -> String {
    let mode = if setup.udp { "udp" } else { "tcp" };
    let (gap, equals) = if parse { (" ", "=") } else { (", ", "=") };
    let blocks = setup.blocks.map_or_else(String::new, |blocks| format!("nbuf{equals}{blocks}{gap}"));
    let mut line =
        format!("buflen={}{gap}{blocks}nstream={}{gap}port={}", setup.length, setup.streams, setup.port);
    if let Some(port) = setup.source_port {
        let _ = write!(line, "{gap}srcport={port}");
    }
    let named = setup.host.as_deref().unwrap_or(host);
    let _ = match (parse, setup.transmit) {
        (true, true) => write!(line, " mode={mode} host={named}"),
        (true, false) => write!(line, " mode={mode}"),
        (false, true) => write!(line, " {mode} -> {named}"),
        (false, false) => write!(line, " {mode}"),
    };
    if setup.udp {
        let _ = write!(line, " af={family}");
        if setup.transmit && named != host {
            let _ = write!(line, " ip={host}");
        }
    }
    line
}

fn limits(setup: &Setup, parse: bool, lines: &mut Vec<String>) {
    let time = seconds(setup.time);
    if setup.transmit && setup.time > Span::ZERO {
        lines.push(if parse {
            format!("time_limit={time:.2}")
        } else {
            format!("time limit = {time:.2} second{}", plural(setup.time))
        });
    }
    let tos = match (setup.tos, parse) {
        (0, _) => String::new(),
        (tos, true) => format!("tos=0x{tos:X}"),
        (tos, false) => format!("tos = 0x{tos:X}"),
    };
    match setup.rate_kbps.filter(|_| setup.transmit) {
        Some(rate) => {
            let mode = if setup.instantaneous { "instantaneous" } else { "aggregate" };
            let megabits = rate as f64 / 1000.0;
            let packets = rate.saturating_mul(1000) / (8 * setup.length.max(1));
            let mut line = if parse {
                format!("rate_limit={megabits:.3} rate_unit=Mbps rate_mode={mode}")
            } else {
                format!("rate limit = {megabits:.3} Mbps ({mode})")
            };
            if setup.burst > 1 {
                let burst = setup.burst;
                line += &if parse {
                    format!(" packet_burst={burst}")
                } else {
                    format!(", packet burst = {burst}")
                };
            }
            if setup.udp {
                line += &if parse { format!(" pps_rate={packets}") } else { format!(", {packets} pps") };
            }
            if !tos.is_empty() {
                line = line + if parse { " " } else { ", " } + &tos;
            }
            lines.push(line);
        }
        None if !tos.is_empty() => lines.push(tos),
        None => {}
    }
    if !setup.transmit && setup.interval > Span::ZERO {
        let interval = seconds(setup.interval);
        lines.push(if parse {
            format!("reporting_interval={interval:.2}")
        } else {
            format!("interval reporting every {interval:.2} second{}", plural(setup.interval))
        });
    }
    if setup.transmit && setup.no_delay && !setup.udp {
        lines.push(format!("v{}: nodelay", NuttcpVersion::REPORTED));
    }
}

fn connection(setup: &Setup, host: &str, family: &str, parse: bool) -> String {
    let verb = if setup.connected { "connect" } else { "accept" };
    let mss = setup.mss.filter(|_| setup.transmit).map(|mss| format!("mss={mss}"));
    let rtt = setup.rtt.filter(|_| setup.connected).map(|rtt| rtt.as_secs_f64() * 1e3);
    if parse {
        let mss = mss.map_or_else(String::new, |mss| format!(" {mss}"));
        let rtt = rtt.map_or_else(String::new, |rtt| format!(" rtt_ms={rtt:.3}"));
        return format!("{verb}={host}{mss}{rtt}");
    }
    let rtt = rtt.map(|rtt| format!("RTT={rtt:.3} ms"));
    let known: Vec<String> = mss.into_iter().chain(rtt).collect();
    let preposition = if setup.connected { "to" } else { "from" };
    let known = known.join(", ") + if known.is_empty() { "" } else { " " };
    format!("{verb} {preposition} {host} with {known}af={family}")
}

/// The lines after the test, without a line about lost datagrams, because only a client can compute that.
pub(super) fn count_lines(
    counted: &Counted,
    transmit: bool,
    before: &str,
    parse: bool,
    cpu: bool,
) -> Vec<String> {
    let megabytes = megabytes(counted.bytes);
    let real = seconds(counted.span);
    let kilobytes = per(counted.bytes as f64 / 1024.0, counted.span);
    let megabits = mbps(counted.bytes, counted.span);
    let mut lines = vec![if parse {
        format!(
            "megabytes={megabytes:.4} real_seconds={real:.2} rate_KBps={kilobytes:.2} rate_Mbps={megabits:.4}"
        )
    } else {
        format!("{megabytes:.4} MB in {real:.2} real seconds = {kilobytes:.2} KB/sec = {megabits:.4} Mbps")
    }];
    for (kind, values) in [(DelayKind::Jitter, counted.jitter), (DelayKind::OneWay, counted.one_way)] {
        let values = values.filter(|_| !transmit).and_then(|values| values.ms());
        lines.extend(values.map(|values| kind.report(values, parse)));
    }
    if cpu {
        let spent = Span::from_ns(counted.user.as_ns().saturating_add(counted.system.as_ns()));
        let each = per(counted.bytes as f64 / 1024.0, spent);
        let spent = seconds(spent);
        lines.push(if parse {
            format!("megabytes={megabytes:.4} cpu_seconds={spent:.2} KB_per_cpu_second={each:.2}")
        } else {
            format!("{megabytes:.4} MB in {spent:.2} CPU seconds = {each:.2} KB/cpu sec")
        });
    }
    if let Some(retrans) = counted.retrans.filter(|_| transmit) {
        lines.push(retrans_line(counted, retrans, parse));
    }
    let each = if counted.calls == 0 { 0.0 } else { real * 1024.0 / counted.calls as f64 };
    let often = per(counted.calls as f64, counted.span);
    lines.push(if parse {
        format!("io_calls={} msec_per_call={each:.2} calls_per_sec={often:.2}", counted.calls)
    } else {
        format!("{} I/O calls, msec/call = {each:.2}, calls/sec = {often:.2}", counted.calls)
    });
    lines.push(usage_line(counted, parse));
    lines.iter().map(|line| format!("{before}{line}\n")).collect()
}

/// A transmitter's line about its connections.
fn retrans_line(counted: &Counted, retrans: u64, parse: bool) -> String {
    let streams = |key: &str, values: &[u64]| {
        by_stream(values).map_or_else(String::new, |each| {
            if parse { format!(" {key}_by_stream={each}") } else { format!(" ( {each} )") }
        })
    };
    let equals = if parse { "=" } else { " = " };
    let mut line = format!("retrans{equals}{retrans}{}", streams("retrans", &counted.stream_retrans));
    if let Some(cwnd) = counted.cwnd {
        let unit = if parse { "" } else { " KB" };
        let _ = write!(line, " cwnd{equals}{cwnd}{unit}{}", streams("cwnd", &counted.stream_cwnd));
    }
    line
}

/// The line of getrusage(2); it ends after the percentage if the rest was not counted.
fn usage_line(counted: &Counted, parse: bool) -> String {
    let tenths = |span: Span| (span.as_secs_f64() * 10.0).floor() / 10.0;
    let (user, system) = (tenths(counted.user), tenths(counted.system));
    let whole = counted.span.as_ns() / 1_000_000_000;
    let elapsed = match whole {
        3600.. => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
        _ => format!("{}:{:02}", whole / 60, whole % 60),
    };
    let percent = counted.cpu_percent();
    let rest = counted.usage.map(|usage| usage.line());
    if parse {
        let rest = rest.as_deref().map_or_else(String::new, keyed);
        format!("stats=cpu user={user:.1} system={system:.1} elapsed={elapsed} cpu={percent}%{rest}")
    } else {
        let rest = rest.map_or_else(String::new, |rest| format!(" {rest}"));
        format!("{user:.1}user {system:.1}sys {elapsed}real {percent}%{rest}")
    }
}

/// The four values of a resource line with their keys, for `-fparse`.
fn keyed(line: &str) -> String {
    let mut words = line.split(' ');
    let mut next = || words.next().unwrap_or_default();
    format!(" memory={}-{} io={} swaps={}", next(), next(), next(), next())
}
