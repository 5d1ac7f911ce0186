//! Text output, column by column as iperf3 3.21 prints it.

use std::fmt::Write as _;

use super::ending::{DirectionResults, StreamResults};
use super::facts::{CpuShare, Iperf3EndResults, Iperf3TestParameters};
use super::records::Iperf3Record;
use crate::iperf3::numbers::{Iperf3Format, bitrate, general, transfer};

/// Separates the parts of a report.
pub(super) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// What the lines depend on besides their figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Iperf3TextStyle {
    /// Unit of rates.
    pub(super) format: Option<Iperf3Format>,
    /// Whether to print more detail.
    pub(super) verbose: bool,
    /// Whether this host is the client.
    pub(super) client: bool,
    /// Whether both ends send.
    pub(super) bidir: bool,
    /// Whether the transport is UDP.
    pub(super) udp: bool,
}

/// The kind of line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Iperf3LineKind {
    Interval,
    Summary,
}

impl Iperf3TextStyle {
    /// The header above the intervals.
    pub(super) fn interval_header(self, sends: bool) -> String {
        self.header(match (self.udp, self.bidir, sends) {
            (false, true, _) | (false, false, true) => "         Retr  Cwnd",
            (false, false, false) => "",
            (true, false, true) => "         Total Datagrams",
            (true, ..) => "         Jitter    Lost/Total Datagrams",
        })
    }

    /// The header above the summary; a server that only receives knows no retransmits.
    pub(super) fn summary_header(self, sends: bool) -> String {
        self.header(match self.udp {
            true => "         Jitter    Lost/Total Datagrams",
            false if self.client || self.bidir || sends => "         Retr",
            false => "",
        })
    }

    fn header(self, tail: &str) -> String {
        let role = if self.bidir { "[Role]" } else { "" };
        format!("[ ID]{role} Interval           Transfer     Bitrate{tail}\n")
    }

    /// The line of an interval, for a stream or the sum.
    pub(super) fn interval(self, record: &Iperf3Record) -> String {
        let tag = if record.omitted == Some(true) { "(omitted)" } else { "" };
        self.line(record, record.sender, Iperf3LineKind::Interval, tag)
    }

    fn line(self, record: &Iperf3Record, sends: bool, line: Iperf3LineKind, tag: &str) -> String {
        let id = record.socket.map_or_else(|| "SUM".to_owned(), |socket| format!("{socket:3}"));
        let role = match (self.bidir, sends, self.client) {
            (false, ..) => "",
            (true, true, true) => "[TX-C]",
            (true, false, true) => "[RX-C]",
            (true, true, false) => "[TX-S]",
            (true, false, false) => "[RX-S]",
        };
        let (start, end) = (record.start, record.end);
        let (bytes, rate) = (transfer(record.bytes), bitrate(record.bits_per_second, self.format));
        let tail = self.tail(record, line);
        format!("[{id}]{role} {start:6.2}-{end:<6.2} sec  {bytes}s  {rate}s/sec{tail}{tag}\n")
    }

    fn tail(self, record: &Iperf3Record, line: Iperf3LineKind) -> String {
        if let (Some(jitter), Some(lost), Some(packets), Some(percent)) =
            (record.jitter_ms, record.lost_packets, record.packets, record.lost_percent)
        {
            return format!("  {jitter:5.3} ms  {lost}/{packets} ({}%)  ", general(percent, 2));
        }
        if let Some(packets) = record.packets {
            let filler = if self.bidir { "          " } else { "" };
            return format!(" {filler} {packets}  ");
        }
        let Some(retransmits) = record.retransmits else { return " ".repeat(18) };
        match (line, record.tcp) {
            (Iperf3LineKind::Interval, Some(tcp)) => {
                format!("  {retransmits:3}   {}s       ", transfer(tcp.snd_cwnd))
            }
            (Iperf3LineKind::Summary, _) if record.socket.is_some() => {
                format!("  {retransmits:3}            ")
            }
            _ => format!("  {retransmits:3}             "),
        }
    }

    /// The lines of the summary of one direction.
    pub(super) fn summary(self, direction: &DirectionResults, end: &Iperf3EndResults) -> String {
        let mut text = String::new();
        for stream in &direction.streams {
            text += &self.both_ends(&stream.sent, &stream.received, direction, Some(stream));
        }
        if direction.streams.len() > 1 {
            text += &self.both_ends(&direction.sent, &direction.received, direction, None);
        }
        if self.verbose {
            if direction.sends {
                text += &self.cpu(end);
            }
            for (end, name) in
                [("snd", &direction.sender_congestion), ("rcv", &direction.receiver_congestion)]
            {
                if let Some(name) = name {
                    let _ = writeln!(text, "{end}_tcp_congestion {name}");
                }
            }
        }
        text
    }

    /// A client prints both sides, a server its own.
    fn both_ends(
        self,
        sent: &Iperf3Record,
        received: &Iperf3Record,
        direction: &DirectionResults,
        stream: Option<&StreamResults>,
    ) -> String {
        let mut text = String::new();
        let id = sent.socket.map_or_else(|| "SUM".to_owned(), |socket| format!("{socket:3}"));
        let unknown = |end: &str| {
            if self.verbose { format!("[{id}] ({end} statistics not available)\n") } else { String::new() }
        };
        if self.client || direction.sends {
            text += &self.line(sent, direction.sends, Iperf3LineKind::Summary, "sender");
        } else {
            text += &unknown("sender");
        }
        if let Some(late) = stream.map(|s| s.out_of_order).filter(|late| *late > 0) {
            let (start, end) = (sent.start, sent.end);
            let _ = writeln!(text, "[SUM] {start:4.1}-{end:4.1} sec  {late} datagrams received out-of-order");
        }
        if let Some(file) = stream.and_then(|stream| stream.file.as_ref()) {
            let (bytes, percent) = match direction.sends {
                true => (file.sent, file.percent_sent),
                false => (file.received, file.percent_received),
            };
            let (bytes, size, name) = (transfer(bytes), transfer(file.size), &file.filename);
            let _ = writeln!(text, "        Sent {bytes} / {size} ({percent}%) of {name}");
        }
        if self.client || !direction.sends {
            text += &self.line(received, direction.sends, Iperf3LineKind::Summary, "receiver");
        } else {
            text += &unknown("receiver");
        }
        text
    }

    fn cpu(self, end: &Iperf3EndResults) -> String {
        let line = |here: &str, there: &str| {
            let (local, remote) = (end.local_cpu, end.remote_cpu.unwrap_or_default());
            let share = |cpu: CpuShare| format!("{:.1}% ({:.1}%u/{:.1}%s)", cpu.total, cpu.user, cpu.system);
            format!("CPU Utilization: local/{here} {}, remote/{there} {}\n", share(local), share(remote))
        };
        let mut text = line("sender", "receiver");
        if self.bidir {
            text += &line("receiver", "sender");
        }
        text
    }
}

/// The line of `-V` before the test starts.
pub(super) fn starting(test: &Iperf3TestParameters) -> String {
    let protocol = if test.udp { "UDP" } else { "TCP" };
    let goal = if test.bytes > 0 {
        format!("{} bytes to send", test.bytes)
    } else if test.blocks > 0 {
        format!("{} blocks to send", test.blocks)
    } else {
        format!("{} second test", test.seconds)
    };
    format!(
        "Starting Test: protocol: {protocol}, {} streams, {} byte blocks, omitting {} seconds, {goal}, tos {}\n",
        test.streams, test.block_bytes, test.omit, test.tos
    )
}

/// Prepends a title or timestamp to each line.
#[must_use]
pub fn prefixed(text: &str, prefix: &str) -> String {
    text.split_inclusive('\n').map(|line| format!("{prefix}{line}")).collect()
}
