//! The output of iperf 2.

mod connections;

pub(super) use connections::{ConnectionDetails, Iperf2Addresses};

use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::csv;
use super::datagram::ServerReport;
use super::numbers::{bytes, rate};
use super::settings::Iperf2Settings;
use super::transit::{TransitRow, buffers, datagrams};
use crate::c_format::general;
use crate::stand_in::Opened;

const LINE: &str = "------------------------------------------------------------\n";

/// The kind of a report line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iperf2LineKind {
    /// A TCP sender or receiver, or a datagram sender.
    Plain,
    /// A datagram receiver.
    Datagrams,
    /// A TCP sender, with -e.
    TcpSender,
    /// A TCP receiver, with -e.
    TcpReceiver,
    /// A TCP receiver with trip times.
    TcpReceiverTimes,
    /// A datagram sender, with -e.
    UdpSender,
    /// A datagram receiver, with -e.
    UdpReceiver,
}

/// One line of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Iperf2ReportLine {
    /// Number of the connection; absent for the sum.
    pub(super) id: Option<u32>,
    /// Whether the data flow in the reverse direction.
    pub(super) star: bool,
    /// Whether the transport is UDP.
    pub(super) udp: bool,
    /// Begin and end, seconds.
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) bytes: u64,
    /// Number of calls that moved the bytes.
    pub(super) calls: u64,
    /// Datagrams: lost, total and out of order, and the jitter in seconds.
    pub(super) lost: u64,
    pub(super) total: u64,
    pub(super) out_of_order: u64,
    pub(super) jitter: f64,
    pub(super) retransmits: u64,
    pub(super) cwnd: Option<u64>,
    pub(super) rtt: Option<Span>,
    pub(super) rttvar: Option<Span>,
    /// Transit times of the received data.
    pub(super) transit: Option<TransitRow>,
}

/// The printer of one tool. It remembers which column heads it printed last.
#[derive(Debug)]
pub(super) struct Iperf2Report {
    settings: Iperf2Settings,
    heads: Option<Iperf2LineKind>,
    /// Whether the heads before the sums of datagram receivers were printed.
    sum_heads: bool,
}

impl Iperf2Report {
    pub(super) const fn new(settings: Iperf2Settings) -> Self {
        Self { settings, heads: None, sum_heads: false }
    }

    fn hides(&self, letter: char) -> bool {
        self.settings.csv || self.settings.exclude.contains(letter)
    }

    /// The banner of a server that listens, or of a client that waits for reverse connections.
    pub(super) fn listening(&self, udp: bool, port: u16, granted: u64) -> String {
        if self.hides('S') {
            return String::new();
        }
        let transport = if udp { "UDP" } else { "TCP" };
        let enhanced = self.settings.enhanced && self.settings.server;
        let pid = if enhanced { format!(" with pid {}", self.settings.pid) } else { String::new() };
        let length = f64::from(self.settings.length_for(udp));
        let buffer = if enhanced {
            let bin = bytes(length / 8.0, Default::default());
            format!("Read buffer size: {} (Dist bin width={bin})\n", bytes(length, Default::default()))
        } else {
            String::new()
        };
        let server = self.settings.server;
        // The kernel's default for a socket without a connection (RFC 9293 §3.7.1).
        let mss = if server && self.settings.print_mss && !udp { "MSS size 536 bytes\n" } else { "" };
        let tos = self.settings.tos.filter(|_| server);
        let tos = tos.map(|tos| format!("TOS will be set to 0x{tos:x}\n")).unwrap_or_default();
        let single = if server && self.settings.single {
            "Server set to single client traffic mode (serialize traffic tests)\n"
        } else {
            ""
        };
        format!(
            "{LINE}Server listening on {transport} port {port}{pid}\n{buffer}{mss}{tos}{single}{}{LINE}",
            self.window(udp, granted)
        )
    }

    /// The banner of a client that connects; without the buffer and the segment size if there is no connection.
    /// `pace` is the length of its datagrams in bytes and their rate in bits per second.
    pub(super) fn connecting(
        &self,
        host: &str,
        pace: Option<(u32, u64)>,
        port: u16,
        opened: Option<&Opened>,
    ) -> String {
        if self.hides('S') {
            return String::new();
        }
        let (settings, udp) = (&self.settings, pace.is_some());
        let enhanced = settings.enhanced && !settings.server;
        let transport = if udp { "UDP" } else { "TCP" };
        let flows = settings.parallel.unwrap_or(1);
        let pid =
            if enhanced { format!(" with pid {} ({flows} flows)", settings.pid) } else { String::new() };
        let host = if settings.hide_ips { "(**hidden**)" } else { host };
        let mut text = format!("{LINE}Client connecting to {host}, {transport} port {port}{pid}\n");
        if enhanced && !udp {
            text.push_str(&format!("Write buffer size: {} Byte\n", settings.length_for(false)));
        }
        if let Some(mss) = settings.mss.filter(|_| !udp) {
            text.push_str(&format!("MSS req size {mss} bytes (per TCP_MAXSEG)\n"));
        } else if let Some(mss) = opened.and_then(|opened| opened.mss).filter(|_| settings.print_mss) {
            // 2.1.8 asks before it connects, and always prints the kernel's default of 536.
            text.push_str(&format!("MSS size {mss} bytes\n"));
        }
        if let Some(paced) = settings.fq_rate.filter(|_| !settings.server) {
            let paced = rate(paced as f64 / 8.0, Default::default());
            text.push_str(&format!("fair-queue socket pacing set to {paced}/s\n"));
        }
        if let Some(name) = settings.congestion.as_ref().filter(|_| !udp) {
            text.push_str(&format!("TCP congestion control set to {name}\n"));
        }
        if settings.connect_only.is_some() {
            return text + "TCP three-way-handshake (3WHS) only\n" + LINE;
        }
        if enhanced {
            let nagle = if settings.no_delay { "off" } else { "on" };
            let delay = if settings.no_delay { " and nodelay" } else { "" };
            text.push_str(&format!("TOS set to 0x{:x}{delay} (Nagle {nagle})\n", settings.tos.unwrap_or(0)));
        }
        if let Some((length, pace)) = pace {
            let gap = f64::from(length) * 8e6 / pace as f64;
            text.push_str(&format!(
                "Sending {length} byte datagrams, IPG target: {gap:.2} us (kalman adjust)\n"
            ));
        }
        if let Some(opened) = opened {
            text.push_str(&self.window(udp, opened.snd_buf));
        }
        text.push_str(LINE);
        text
    }

    fn window(&self, udp: bool, granted: u64) -> String {
        let what = if udp { "UDP buffer" } else { "TCP window" };
        let granted_text = bytes(granted as f64, self.settings.format);
        let note = match self.settings.window {
            None => " (default)".to_owned(),
            Some(asked) if asked == granted => String::new(),
            Some(asked) => {
                format!(" (WARNING: requested {})", bytes(asked as f64, self.settings.format))
            }
        };
        format!("{what} size: {granted_text}{note}\n")
    }

    /// The line of an open connection. `notes` is the text after the addresses.
    pub(super) fn connected(
        &mut self,
        id: u32,
        star: bool,
        local: SocketAddr,
        remote: SocketAddr,
        notes: &str,
    ) -> String {
        if self.hides('C') || self.settings.sum_only {
            return String::new();
        }
        (self.heads, self.sum_heads) = (None, false);
        format!(
            "{} local {} port {} connected with {} port {}{notes}\n",
            label(Some(id), star),
            self.settings.shown_ip(local.ip()),
            local.port(),
            self.settings.shown_ip(remote.ip()),
            remote.port()
        )
    }

    /// Column heads, if the last ones were of another kind.
    fn heads(&mut self, kind: Iperf2LineKind) -> &'static str {
        if self.heads == Some(kind) {
            return "";
        }
        self.heads = Some(kind);
        match kind {
            Iperf2LineKind::Plain => "[ ID] Interval       Transfer     Bandwidth\n",
            Iperf2LineKind::Datagrams => {
                "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n"
            }
            Iperf2LineKind::TcpSender => {
                "[ ID] Interval            Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)        NetPwr\n"
            }
            Iperf2LineKind::TcpReceiver => "[ ID] Interval            Transfer    Bandwidth       Reads\n",
            Iperf2LineKind::TcpReceiverTimes => {
                "[ ID] Interval            Transfer    Bandwidth    Burst Latency avg/min/max/stdev (cnt/size) \
                 inP NetPwr  Reads\n"
            }
            Iperf2LineKind::UdpSender => {
                "[ ID] Interval            Transfer     Bandwidth      Write/Err  PPS\n"
            }
            Iperf2LineKind::UdpReceiver => {
                "[ ID] Interval            Transfer     Bandwidth        Jitter   Lost/Total  \
                 Latency avg/min/max/stdev PPS  Rx/inP  NetPwr\n"
            }
        }
    }

    /// The kind of lines for a direction. A server prints more for a client that requests trip times.
    pub(super) const fn kind(&self, udp: bool, sends: bool, trip_times: bool) -> Iperf2LineKind {
        let enhanced = self.settings.enhanced || trip_times && self.settings.server;
        match (enhanced, udp, sends) {
            (false, true, false) => Iperf2LineKind::Datagrams,
            (false, ..) => Iperf2LineKind::Plain,
            (true, false, false) if trip_times => Iperf2LineKind::TcpReceiverTimes,
            (true, false, true) => Iperf2LineKind::TcpSender,
            (true, false, false) => Iperf2LineKind::TcpReceiver,
            (true, true, true) => Iperf2LineKind::UdpSender,
            (true, true, false) => Iperf2LineKind::UdpReceiver,
        }
    }

    /// The lines of an interval or of the whole test, with their sum.
    pub(super) fn rows(
        &mut self,
        now: Timestamp,
        kind: Iperf2LineKind,
        rows: &[Iperf2ReportLine],
        ends: &[Iperf2Addresses],
    ) -> String {
        if self.settings.exclude.contains('D') {
            return String::new();
        }
        if self.settings.sum_only && !self.settings.csv {
            return self.only_sum(kind, rows);
        }
        let sum = (rows.len() > 1).then(|| sum(rows));
        let sum_only = self.settings.sum_only && sum.is_some();
        if self.settings.csv {
            let single = rows.iter().zip(ends).filter(|_| !sum_only);
            let whole = sum.iter().zip(ends);
            return single
                .chain(whole)
                .map(|(row, ends)| csv::line(&self.settings, now, kind, row, ends))
                .collect();
        }
        let mut text = String::new();
        for row in rows {
            text.push_str(self.heads(kind));
            text.push_str(&self.row(kind, row));
        }
        if let Some(sum) = sum {
            let first = !std::mem::replace(&mut self.sum_heads, true);
            // As in 2.1.8, although its columns have other names.
            text.push_str(match kind {
                Iperf2LineKind::Datagrams if first => "[ ID] Interval       Transfer     Bandwidth\n",
                Iperf2LineKind::UdpReceiver if first => {
                    "[ ID] Interval            Transfer     Bandwidth      Write/Err  PPS\n"
                }
                _ => "",
            });
            text.push_str(&self.sum_row(kind, &sum));
        }
        text
    }

    /// With --sum-only, the sum of any number of connections, with their number.
    fn only_sum(&mut self, kind: Iperf2LineKind, rows: &[Iperf2ReportLine]) -> String {
        let sum = sum(rows);
        let datagrams = matches!(kind, Iperf2LineKind::Datagrams | Iperf2LineKind::UdpReceiver);
        let heads = match kind {
            _ if self.heads == Some(kind) => "",
            _ if datagrams => "[SUM-cnt] Interval     Transfer     Bandwidth       Lost/Total    PPS\n",
            Iperf2LineKind::TcpSender => {
                "[SUM-cnt] Interval            Transfer    Bandwidth       Write/Err  Rtry\n"
            }
            Iperf2LineKind::UdpSender => {
                "[SUM-cnt] Interval            Transfer     Bandwidth      Write/Err  PPS\n"
            }
            _ => "[SUM-cnt] Interval       Transfer     Bandwidth\n",
        };
        self.heads = Some(kind);
        let label = format!("[SUM-{}]", rows.len());
        let row = self.sum_row(if datagrams { Iperf2LineKind::UdpReceiver } else { kind }, &sum);
        format!("{heads}{}", row.replacen("[SUM]", &label, 1))
    }

    fn front(&self, row: &Iperf2ReportLine) -> String {
        let per_second = per_second(row.bytes, row);
        let format = self.settings.format;
        format!(
            "{} {:.4}-{:.4} sec  {}s  {}s/sec",
            label(row.id, row.star),
            row.from,
            row.to,
            bytes(row.bytes as f64, format),
            rate(per_second, format)
        )
    }

    fn row(&self, kind: Iperf2LineKind, row: &Iperf2ReportLine) -> String {
        let front = self.front(row);
        let late = if row.out_of_order > 0
            && matches!(kind, Iperf2LineKind::Datagrams | Iperf2LineKind::UdpReceiver)
        {
            format!(
                "{} {:.4}-{:.4} sec  {} datagrams received out-of-order\n",
                label(row.id, row.star),
                row.from,
                row.to,
                row.out_of_order
            )
        } else {
            String::new()
        };
        let rest = match kind {
            Iperf2LineKind::Plain => String::new(),
            Iperf2LineKind::Datagrams => format!("  {}", losses(row)),
            Iperf2LineKind::TcpSender => tcp_sender(row),
            Iperf2LineKind::TcpReceiver => format!("  {}", row.calls),
            Iperf2LineKind::UdpSender => format!("  {}/0 {:>8.0} pps", row.calls, per_second(row.total, row)),
            Iperf2LineKind::TcpReceiverTimes => {
                format!("  {}  {}", buffers(row.transit.as_ref(), per_second(row.bytes, row)), row.calls)
            }
            Iperf2LineKind::UdpReceiver => {
                let received = row.total.saturating_sub(row.lost);
                let (pace, rate) = (per_second(received, row), per_second(row.bytes, row));
                format!("  {} {}", losses(row), datagrams(row.transit.as_ref(), received, pace, rate))
            }
        };
        format!("{front}{rest}\n{late}")
    }

    fn sum_row(&self, kind: Iperf2LineKind, row: &Iperf2ReportLine) -> String {
        let front = self.front(row);
        match kind {
            Iperf2LineKind::Datagrams => {
                format!("{front}   {}/{} ({}%)\n", row.lost, row.total, percent(row))
            }
            Iperf2LineKind::UdpReceiver => {
                let pace = per_second(row.total.saturating_sub(row.lost), row);
                format!("{front}  {}/{} {pace:>8.0} pps\n", row.lost, row.total)
            }
            Iperf2LineKind::TcpSender => format!("{front}  {}/0 {:>10}\n", row.calls, row.retransmits),
            Iperf2LineKind::UdpSender => {
                format!("{front}  {}/0 {:>8.0} pps\n", row.calls, per_second(row.total, row))
            }
            _ => format!("{front}\n"),
        }
    }

    /// The number of datagrams sent on one connection, or on `of` connections. The tool counts the last
    /// datagram twice.
    pub(super) fn sent(&self, id: Option<u32>, of: usize, datagrams: u64) -> String {
        let each = self.settings.sum_only && id.is_some();
        if self.settings.csv || self.settings.exclude.contains('D') || each {
            return String::new();
        }
        let label = id.map_or_else(|| format!("[SUM-{of}]"), |id| format!("[{id:>3}]"));
        format!("{label} Sent {datagrams} datagrams\n")
    }

    /// The lines of a server report.
    pub(super) fn server_report(&mut self, id: u32, report: &ServerReport) -> String {
        if self.hides('V') {
            return String::new();
        }
        let seconds = |(seconds, micros): (u32, u32)| f64::from(seconds) + f64::from(micros) / 1e6;
        let row = Iperf2ReportLine {
            id: Some(id),
            to: seconds(report.duration),
            bytes: report.bytes,
            lost: report.lost,
            total: report.datagrams,
            out_of_order: report.out_of_order,
            jitter: seconds(report.jitter),
            transit: report.transit.as_ref().map(TransitRow::from_report),
            ..Iperf2ReportLine::default()
        };
        let kind =
            if row.transit.is_some() { Iperf2LineKind::UdpReceiver } else { Iperf2LineKind::Datagrams };
        format!("[{id:>3}] Server Report:\n{}{}", self.heads(kind), self.row(kind, &row))
    }
}

fn label(id: Option<u32>, star: bool) -> String {
    match (id, star) {
        (None, _) => "[SUM]".to_owned(),
        (Some(id), false) => format!("[{id:>3}]"),
        (Some(id), true) => format!("[{:>3}]", format!("*{id}")),
    }
}

/// The sum of rows over the longest time.
fn sum(rows: &[Iperf2ReportLine]) -> Iperf2ReportLine {
    let mut sum = Iperf2ReportLine { from: f64::INFINITY, ..Iperf2ReportLine::default() };
    for row in rows {
        sum.udp |= row.udp;
        sum.from = sum.from.min(row.from);
        sum.to = sum.to.max(row.to);
        sum.bytes = sum.bytes.saturating_add(row.bytes);
        sum.calls = sum.calls.saturating_add(row.calls);
        sum.lost = sum.lost.saturating_add(row.lost);
        sum.total = sum.total.saturating_add(row.total);
        sum.out_of_order = sum.out_of_order.saturating_add(row.out_of_order);
        sum.retransmits = sum.retransmits.saturating_add(row.retransmits);
        sum.jitter = sum.jitter.max(row.jitter);
    }
    sum
}

pub(super) fn per_second(count: u64, row: &Iperf2ReportLine) -> f64 {
    let time = row.to - row.from;
    if time > 0.0 { count as f64 / time } else { 0.0 }
}

fn percent(row: &Iperf2ReportLine) -> String {
    if row.total == 0 { "0".to_owned() } else { general(100.0 * row.lost as f64 / row.total as f64, 2) }
}

fn losses(row: &Iperf2ReportLine) -> String {
    format!("{:6.3} ms {}/{} ({}%)", row.jitter * 1e3, row.lost, row.total, percent(row))
}

fn tcp_sender(row: &Iperf2ReportLine) -> String {
    let counts = format!("  {}/0 {:>10}", row.calls, row.retransmits);
    let (Some(cwnd), Some(rtt)) = (row.cwnd, row.rtt) else { return counts };
    let micros = |span: Span| span.as_ns() / 1000;
    let power = if rtt > Span::ZERO { per_second(row.bytes, row) / rtt.as_secs_f64() * 1e-6 } else { 0.0 };
    let var = micros(row.rttvar.unwrap_or(Span::ZERO));
    format!("{counts} {:>8}K/{}({var}) us  {power:.0}", cwnd / 1024, micros(rtt))
}
