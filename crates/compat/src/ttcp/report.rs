//! The output of ttcp, line by line.

use std::net::SocketAddr;

use linerate_units::Span;

use super::settings::{RateUnit, TtcpSettings, TtcpVariant};
use crate::c_format::general;
use crate::stand_in::ResourceUsage;

/// The result of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TtcpResult {
    /// Payload bytes.
    pub(super) bytes: u64,
    /// Number of system calls.
    pub(super) calls: u64,
    /// Elapsed time.
    pub(super) elapsed: Span,
    /// CPU time in user mode.
    pub(super) user: Span,
    /// CPU time in the kernel.
    pub(super) system: Span,
    /// Other resources that this process used; absent if they were not counted.
    pub(super) usage: Option<ResourceUsage>,
}

/// `ttcp-t` or `ttcp-r`.
pub(super) const fn prefix(settings: &TtcpSettings) -> &'static str {
    if settings.transmit { "ttcp-t" } else { "ttcp-r" }
}

/// The first lines, printed before the test.
pub(super) fn header(settings: &TtcpSettings) -> String {
    let (length, count, port) = (settings.length, settings.count, settings.port);
    let who = prefix(settings);
    match settings.line {
        TtcpVariant::Brl => format!("{who}: nbuf={count}, buflen={length}, port={port}\n"),
        TtcpVariant::Pcattcp => {
            let transport = if settings.udp { "UDP" } else { "TCP" };
            let role = if settings.transmit { "Transmit" } else { "Receive" };
            format!("PCAUSA Test TCP Utility V2.01.01.08 (spoken by linerate)\n{transport} {role} Test\n")
        }
        TtcpVariant::Sgi | TtcpVariant::Ohio => {
            let buffer = settings.buffer.map_or_else(String::new, |bytes| format!(", sockbufsize={bytes}"));
            let transport = if settings.udp { "  udp" } else { "  tcp" };
            let rest = match &settings.host {
                Some(host) if settings.connects() => format!("{transport}  -> {host}"),
                _ if settings.line == TtcpVariant::Ohio => transport.to_owned(),
                _ => String::new(),
            };
            let (align, offset) = (settings.align, settings.offset);
            format!(
                "{who}: buflen={length}, nbuf={count}, align={align}/{offset}, port={port}{buffer}{rest}\n"
            )
        }
    }
}

/// The line of a completed step; absent if the variant does not print it.
pub(super) fn note(settings: &TtcpSettings, what: &str) -> Option<String> {
    let printed = match settings.line {
        TtcpVariant::Brl => what != "listen",
        TtcpVariant::Sgi => true,
        TtcpVariant::Ohio => settings.verbose && what != "listen",
        TtcpVariant::Pcattcp => false,
    };
    printed.then(|| format!("{}: {what}\n", prefix(settings)))
}

/// The line for an accepted connection or a first datagram.
pub(super) fn accepted(settings: &TtcpSettings, peer: SocketAddr) -> Option<String> {
    match settings.line {
        TtcpVariant::Brl => note(settings, "accept"),
        TtcpVariant::Pcattcp if settings.udp => Some(format!("  recvfrom    : UDP <- {peer}\n")),
        TtcpVariant::Pcattcp => Some(format!("\n  Accept      : TCP <- {peer}\n{}", pcattcp_setup(settings))),
        TtcpVariant::Sgi | TtcpVariant::Ohio => {
            Some(format!("{}: accept from {}\n", prefix(settings), peer.ip()))
        }
    }
}

/// Only PCATTCP prints a line while it waits for a transmitter.
pub(super) fn listening(settings: &TtcpSettings, local: SocketAddr) -> Option<String> {
    if settings.line != TtcpVariant::Pcattcp {
        return (!settings.udp).then(|| note(settings, "listen")).flatten();
    }
    let port = settings.port;
    Some(if settings.udp {
        format!("  Protocol   : UDP\n  Port       : {port}\n{}", pcattcp_setup(settings))
    } else {
        let stars = "*".repeat(14);
        format!("  Local Host  : {}\n{stars}\n  Listening...: On port {port}\n", local.ip())
    })
}

/// PCATTCP prints its destination before it begins; the others print that they are connected.
pub(super) fn connected(settings: &TtcpSettings, peer: SocketAddr) -> Option<String> {
    if settings.line != TtcpVariant::Pcattcp {
        return (!settings.udp).then(|| note(settings, "connect")).flatten();
    }
    let transport = if settings.udp { "UDP" } else { "TCP" };
    let setup = pcattcp_setup(settings);
    let connect = if settings.udp { String::new() } else { format!("  Connect     : Connected to {peer}\n") };
    let mode = if settings.stdio {
        "Read from STDIN".to_owned()
    } else if settings.forever {
        "Send Pattern; Number of Buffers: Unlimited".to_owned()
    } else {
        format!("Send Pattern; Number of Buffers: {}", settings.count)
    };
    Some(format!("  Transmit    : {transport} -> {peer}\n{setup}{connect}  Send Mode   : {mode}\n"))
}

fn pcattcp_setup(settings: &TtcpSettings) -> String {
    let (length, align, offset) = (settings.length, settings.align, settings.offset);
    let mut text = format!("  Buffer Size : {length}; Alignment: {align}/{offset}\n");
    if settings.transmit {
        let (word, digit) = if settings.no_delay { ("ENABLED", 1) } else { ("DISABLED", 0) };
        if !settings.udp {
            text.push_str(&format!("  TCP_NODELAY : {word} ({digit})\n"));
        }
        if let Some(gap) = settings.write_gap {
            text.push_str(&format!("  Write Delay : {} milliseconds\n", gap.as_ns() / 1_000_000));
        }
    }
    if let Some(bytes) = settings.buffer {
        let name = if settings.transmit { "SO_SNDBUF" } else { "SO_RCVBUF" };
        text.push_str(&format!("  {name}   : {bytes}\n"));
    }
    if settings.both {
        text.push_str("  Threading   : Multithreaded\n");
    }
    if !settings.transmit {
        let mode =
            if settings.stdio { "Writing Received Data To STDOUT" } else { "Sinking (discarding) Data" };
        text.push_str(&format!("  Receive Mode: {mode}\n"));
    }
    text
}

/// The line of a failed step, in the form of perror(3) and of the tool.
pub(super) fn failed(settings: &TtcpSettings, step: &str, errno: i32, text: &str) -> String {
    if settings.line == TtcpVariant::Pcattcp {
        return format!("*** Winsock Error: {step} Failed; Error: {errno} (0x{errno:08X}): {text}\n");
    }
    let number = if errno == 0 { String::new() } else { format!("errno={errno}\n") };
    format!("{}: {step}: {text}\n{number}", prefix(settings))
}

/// The result.
pub(super) fn result(settings: &TtcpSettings, outcome: &TtcpResult, peer: Option<SocketAddr>) -> String {
    match settings.line {
        TtcpVariant::Brl => brl(settings, outcome),
        TtcpVariant::Pcattcp => pcattcp(settings, outcome, peer),
        TtcpVariant::Sgi | TtcpVariant::Ohio => sgi(settings, outcome),
    }
}

/// The same rate in correctly named units. A sender knows only what it wrote to its socket.
pub(super) fn honest(settings: &TtcpSettings, outcome: &TtcpResult) -> String {
    let megabits = outcome.bytes as f64 * 8.0 / seconds(outcome.elapsed) / 1e6;
    let (label, power, thing) = match (settings.line, settings.unit) {
        (TtcpVariant::Brl, _) => ("Kbits", 10, "bit"),
        (_, RateUnit::Kilobytes) => ("KB", 10, "bytes"),
        (_, RateUnit::Megabytes) => ("MB", 20, "bytes"),
        (_, RateUnit::Gigabytes) => ("GB", 30, "bytes"),
        (_, RateUnit::Kilobits) => ("Kbit", 10, "bit"),
        (_, RateUnit::Megabits) => ("Mbit", 20, "bit"),
        (_, RateUnit::Gigabits) => ("Gbit", 30, "bit"),
    };
    let what = if settings.transmit { "wrote to its socket" } else { "received" };
    format!("linerate: {what} {megabits:.2} Mb/s (10^6 bit/s); ttcp's {label} is 2^{power} {thing}\n")
}

fn sgi(settings: &TtcpSettings, outcome: &TtcpResult) -> String {
    let who = prefix(settings);
    let (bytes, calls) = (outcome.bytes, outcome.calls);
    let elapsed = seconds(outcome.elapsed);
    let mut text = format!(
        "{who}: {bytes} bytes in {elapsed:.2} real seconds = {}/sec +++\n",
        rate(settings.unit, bytes, elapsed)
    );
    if settings.verbose {
        let cpu = seconds(outcome.user + outcome.system);
        let speed = rate(settings.unit, bytes, cpu);
        text.push_str(&format!("{who}: {bytes} bytes in {cpu:.2} CPU seconds = {speed}/cpu sec\n"));
    }
    text.push_str(&format!(
        "{who}: {calls} I/O calls, msec/call = {:.2}, calls/sec = {:.2}\n",
        per_call(elapsed, calls),
        calls as f64 / elapsed
    ));
    text.push_str(&format!("{who}: {}\n", usage(outcome)));
    text
}

fn brl(settings: &TtcpSettings, outcome: &TtcpResult) -> String {
    let who = prefix(settings);
    let kilobytes = outcome.bytes as f64 / 1024.0;
    let (cpu, real) = (seconds(outcome.user + outcome.system), seconds(outcome.elapsed));
    let nine = |value: f64| format!("{:>9}", general(value, 6));
    format!(
        "{who}: {}\n{who}: {} bytes processed\n\
         {who}: {} CPU sec  = {} KB/cpu sec,  {} Kbits/cpu sec\n\
         {who}: {} real sec = {} KB/real sec, {} Kbits/sec\n",
        usage(outcome),
        outcome.bytes,
        nine(cpu),
        nine(kilobytes / cpu),
        nine(kilobytes * 8.0 / cpu),
        nine(real),
        nine(kilobytes / real),
        nine(kilobytes * 8.0 / real)
    )
}

fn pcattcp(settings: &TtcpSettings, outcome: &TtcpResult, peer: Option<SocketAddr>) -> String {
    if settings.udp && !settings.transmit && outcome.bytes == 0 {
        return String::new();
    }
    let transport = if settings.udp { "UDP" } else { "TCP" };
    let arrow = if settings.transmit { "->" } else { "<-" };
    let peer = peer.map_or_else(String::new, |peer| format!("  Statistics  : {transport} {arrow} {peer}\n"));
    let (bytes, calls, elapsed) = (outcome.bytes, outcome.calls, seconds(outcome.elapsed));
    format!(
        "{peer}{bytes} bytes in {elapsed:.2} real seconds = {}/sec +++\n\
         numCalls: {calls}; msec/call: {:.2}; calls/sec: {:.2}\n",
        rate(settings.unit, bytes, elapsed),
        per_call(elapsed, calls),
        calls as f64 / elapsed
    )
}

/// Seconds; a test without a duration counts as one millisecond.
fn seconds(span: Span) -> f64 {
    if span == Span::ZERO { 0.001 } else { span.as_secs_f64() }
}

/// The tools compute with 1024 ms per second.
fn per_call(elapsed: f64, calls: u64) -> f64 {
    if calls == 0 { 0.0 } else { 1024.0 * elapsed / calls as f64 }
}

/// Formats a rate with its unit; the prefixes of bits and bytes are both binary.
pub(super) fn rate(unit: RateUnit, bytes: u64, seconds: f64) -> String {
    let (power, bits, label) = match unit {
        RateUnit::Kilobytes => (10, 1.0, "KB"),
        RateUnit::Megabytes => (20, 1.0, "MB"),
        RateUnit::Gigabytes => (30, 1.0, "GB"),
        RateUnit::Kilobits => (10, 8.0, "Kbit"),
        RateUnit::Megabits => (20, 8.0, "Mbit"),
        RateUnit::Gigabits => (30, 8.0, "Gbit"),
    };
    let value = bytes as f64 * bits / seconds / f64::from(1_u32 << power);
    format!("{value:.2} {label}")
}

/// The resource usage of the process; it ends after the percentage, as on System V, if the rest was not
/// counted.
fn usage(outcome: &TtcpResult) -> String {
    let tenths = |span: Span| format!("{}.{}", span.as_ns() / 1_000_000_000, span.as_ns() / 100_000_000 % 10);
    let ticks = |span: Span| span.as_ns() / 10_000_000;
    let busy = ticks(outcome.user) + ticks(outcome.system);
    let percent = (busy * 100).checked_div(ticks(outcome.elapsed)).unwrap_or(0);
    let whole = outcome.elapsed.as_ns() / 1_000_000_000;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    let real =
        if hours > 0 { format!("{hours}:{minutes:02}:{rest:02}") } else { format!("{minutes}:{rest:02}") };
    let rest = outcome.usage.map_or_else(String::new, |usage| format!(" {}", usage.line()));
    format!("{}user {}sys {real}real {percent}%{rest}", tenths(outcome.user), tenths(outcome.system))
}

/// A progress bar that overwrites itself.
pub(super) fn bar(done: u64, whole: u64) -> String {
    const CELLS: u64 = 65;
    let filled = done.saturating_mul(CELLS).checked_div(whole).unwrap_or(0).min(CELLS) as usize;
    format!("|{}{}| \r", "#".repeat(filled), "-".repeat(CELLS as usize - filled))
}

/// A running rate that overwrites itself.
pub(super) fn running(bytes: u64, seconds: f64, turn: usize) -> String {
    let hand = ['/', '|', '\\', '-'][turn % 4];
    format!("\r{}/s {hand}  ", rate(RateUnit::Megabits, bytes, seconds))
}
