//! Interval lines and the summary line.

use std::fmt::Write as _;

use linerate_units::Span;

use super::delays::{DelayKind, OneWay};
use super::marks::{Marked, TransmitterCounts};
use super::report::{mbps, megabytes};
use super::wire::NuttcpFormat;

/// The counts of a receiver in an interval or since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ReceiverCounts {
    pub(super) bytes: u64,
    pub(super) span: Span,
    /// Datagrams sent, by the sender's count.
    pub(super) sent: u64,
    /// Lost datagrams.
    pub(super) lost: u64,
    /// Delays of the datagrams or blocks, if they are timestamped.
    pub(super) delays: Option<OneWay>,
    /// Jitter of the datagrams, if it is measured.
    pub(super) jitter: Option<OneWay>,
}

/// What was added to delays and jitter: their ranges, microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FreshRanges {
    pub(super) delays: Option<(i64, i64)>,
    pub(super) jitter: Option<(i64, i64)>,
}

impl ReceiverCounts {
    /// The difference to `earlier`.
    pub(super) fn since(self, earlier: Self, fresh: FreshRanges) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            span: self.span.saturating_sub(earlier.span),
            sent: self.sent.saturating_sub(earlier.sent),
            lost: self.lost.saturating_sub(earlier.lost),
            delays: self.delays.map(|now| now.since(earlier.delays, fresh.delays)),
            jitter: self.jitter.map(|now| now.since(earlier.jitter, fresh.jitter)),
        }
    }
}

/// What an interval line contains besides bytes and rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LineContents {
    /// Length of a datagram if losses are known.
    pub(super) lossy: Option<u64>,
    /// Bits of the jitter's values.
    pub(super) jitter: u64,
    /// Bits of the one-way delay's values.
    pub(super) one_way: u64,
    pub(super) format: NuttcpFormat,
}

/// The loss ratio in percent; with more decimals below 0.1 %.
fn percent(lost: u64, sent: u64) -> String {
    let share = if sent == 0 { 0.0 } else { 100.0 * lost as f64 / sent as f64 };
    if share > 0.0 && share < 0.1 { format!("{share:.5}") } else { format!("{share:.2}") }
}

/// An interval line without its line feed; `marked` are the counts of the transmitter's kernel if it marks its blocks.
pub(super) fn interval_line(
    interval: ReceiverCounts,
    total: ReceiverCounts,
    marked: Option<TransmitterCounts>,
    contents: LineContents,
) -> String {
    let LineContents { lossy, jitter, one_way, format } = contents;
    let parse = format.has(NuttcpFormat::PARSE);
    let marked = marked.filter(|_| !format.has(NuttcpFormat::NO_RETRANS));
    let retrans =
        |marked: Option<Marked>| marked.map_or_else(String::new, |marked| retrans_text(marked, format));
    let amount = |amount: ReceiverCounts, before: &str| amount_text(amount, before, lossy, format);
    let mut line = amount(interval, "");
    line += &DelayKind::Jitter.text(interval.jitter.and_then(|values| values.ms()), jitter, parse);
    line += &retrans(marked.map(|marked| marked.interval));
    line += &DelayKind::OneWay.text(interval.delays.and_then(|values| values.ms()), one_way, parse);
    if format.has(NuttcpFormat::RUNNING_TOTAL) {
        line += if parse { " " } else { " Tot: " };
        line += &amount(total, "total_");
        line += &retrans(marked.map(|marked| marked.total));
    }
    if let Some(length) = lossy.filter(|_| format.has(NuttcpFormat::XMIT_STATS)) {
        let sent = |amount: ReceiverCounts| megabytes(amount.sent.saturating_mul(length));
        let (now, all) = (sent(interval), sent(total));
        let sums = format.has(NuttcpFormat::RUNNING_TOTAL);
        let _ = match (parse, sums) {
            (false, false) => write!(line, " Trans: {now:10.4} MB"),
            (false, true) => write!(line, " Trans: {now:10.4} MB Tot: {all:10.4} MB"),
            (true, false) => write!(line, " tx_megabytes={now:.4}"),
            (true, true) => write!(line, " tx_megabytes={now:.4} tx_total_megabytes={all:.4}"),
        };
    }
    line
}

/// Bytes, time, rate and losses. Keys of `key=value` pairs have `before` before them.
fn amount_text(amount: ReceiverCounts, before: &str, lossy: Option<u64>, format: NuttcpFormat) -> String {
    let megabytes = megabytes(amount.bytes);
    let (seconds, rate) = (amount.span.as_secs_f64(), mbps(amount.bytes, amount.span));
    let (lost, sent) = (amount.lost, amount.sent);
    if format.has(NuttcpFormat::PARSE) {
        let text = format!(
            "{before}megabytes={megabytes:.4} {before}real_sec={seconds:.2} {before}rate_Mbps={rate:.4}"
        );
        let losses = lossy.map(|_| loss_parse(lost, sent, format));
        return text + &losses.unwrap_or_default();
    }
    let mut text = format!("{megabytes:10.4} MB / {seconds:6.2} sec = {rate:9.4} Mbps");
    if lossy.is_some() && !format.has(NuttcpFormat::NO_DROPS) {
        let _ = write!(text, " {lost:5} / {sent:5} ~drop/pkt");
    }
    if lossy.is_some() && !format.has(NuttcpFormat::NO_PERCENT_LOSS) {
        let _ = write!(text, " {:>5} ~%loss", percent(lost, sent));
    }
    text
}

/// The losses as `key=value`, each with a blank before it.
fn loss_parse(lost: u64, sent: u64, format: NuttcpFormat) -> String {
    let mut text = String::new();
    if !format.has(NuttcpFormat::NO_DROPS) {
        let _ = write!(text, " drop={lost} pkt={sent}");
    }
    if !format.has(NuttcpFormat::NO_PERCENT_LOSS) {
        let share = if sent == 0 { 0.0 } else { 100.0 * lost as f64 / sent as f64 };
        let _ = write!(text, " data_loss={share:.5}");
    }
    text
}

/// A receiving server's interval line with the counts of our own kernel, if they are known: after the rate, and not
/// in the running total.
pub(super) fn with_own_counts(line: &str, own: Option<Marked>, format: NuttcpFormat) -> String {
    let Some(own) = own.filter(|_| !format.has(NuttcpFormat::NO_RETRANS)) else { return line.to_owned() };
    let at = if format.has(NuttcpFormat::PARSE) {
        let rate = line.find("rate_Mbps=").unwrap_or(line.len());
        line[rate..].find(' ').map_or(line.len(), |end| rate + end)
    } else {
        line.find(" Mbps").map_or(line.len(), |at| at + " Mbps".len())
    };
    format!("{}{}{}", &line[..at], retrans_text(own, format), &line[at..])
}

fn retrans_text(marked: Marked, format: NuttcpFormat) -> String {
    let retrans = marked.retrans;
    let cwnd = marked.cwnd.filter(|_| !format.has(NuttcpFormat::NO_CWND));
    let host = if marked.of_host { "host-" } else { "" };
    if format.has(NuttcpFormat::PARSE) {
        let cwnd = cwnd.map_or_else(String::new, |cwnd| format!(" cwnd={cwnd}"));
        return format!(" {host}retrans={retrans}{cwnd}");
    }
    let cwnd = cwnd.map_or_else(String::new, |cwnd| format!(" {cwnd:6} KB-cwnd"));
    format!(" {retrans:5} {host}retrans{cwnd}")
}

/// The values of the summary line; unknown ones are omitted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Brief {
    pub(super) megabytes: f64,
    pub(super) seconds: f64,
    pub(super) mbps: f64,
    pub(super) tx_cpu: Option<u64>,
    pub(super) rx_cpu: Option<u64>,
    pub(super) retrans: Option<u64>,
    pub(super) host_retrans: bool,
    pub(super) cwnd: Option<u64>,
    pub(super) rtt_ms: Option<f64>,
    /// Datagrams: lost and sent.
    pub(super) drops: Option<(u64, u64)>,
    /// Data sent by a datagram transmitter, MB.
    pub(super) sent_megabytes: Option<f64>,
    /// Smallest, mean and largest jitter, milliseconds.
    pub(super) jitter_ms: Option<[f64; 3]>,
    /// Bits of the values to print.
    pub(super) jitter: u64,
    /// Smallest, mean and largest one-way delay, milliseconds.
    pub(super) one_way_ms: Option<[f64; 3]>,
    /// Bits of the values to print.
    pub(super) one_way: u64,
    /// Retransmissions of each stream, if they are to be printed.
    pub(super) stream_retrans: Vec<u64>,
    /// Congestion window of each stream, KB, if they are to be printed.
    pub(super) stream_cwnd: Vec<u64>,
}

/// The values of several streams: `3+2`. Absent for a single stream, and if all are zero.
pub(super) fn by_stream(values: &[u64]) -> Option<String> {
    let several = values.len() > 1 && values.iter().any(|value| *value > 0);
    several.then(|| values.iter().map(u64::to_string).collect::<Vec<_>>().join("+"))
}

/// The losses for a report: `0 / 77 drop/pkt 0.00% data loss`.
pub(super) fn loss_line(lost: u64, sent: u64, parse: bool) -> String {
    if parse {
        return loss_parse(lost, sent, NuttcpFormat::default()).trim_start().to_owned();
    }
    format!("{lost} / {sent} drop/pkt {}% data loss", percent(lost, sent))
}

impl Brief {
    /// The summary line without its line feed.
    pub(super) fn line(&self, format: NuttcpFormat) -> String {
        let retrans = self.retrans.filter(|_| !format.has(NuttcpFormat::NO_RETRANS));
        let shown = Self {
            retrans,
            cwnd: self.cwnd.filter(|_| retrans.is_some() && !format.has(NuttcpFormat::NO_CWND)),
            rtt_ms: self.rtt_ms.filter(|_| format.has(NuttcpFormat::WANT_RTT)),
            sent_megabytes: self
                .sent_megabytes
                .filter(|_| self.drops.is_some() && format.has(NuttcpFormat::XMIT_STATS)),
            ..self.clone()
        };
        let parse = format.has(NuttcpFormat::PARSE);
        let values = if parse { shown.parse(format) } else { shown.text(format) };
        values.into_iter().flatten().collect::<String>()
            + &DelayKind::Jitter.text(self.jitter_ms, self.jitter, parse)
            + &DelayKind::OneWay.text(self.one_way_ms, self.one_way, parse)
    }

    /// What the retransmissions are of.
    fn host(&self) -> &'static str {
        if self.host_retrans { "host-" } else { "" }
    }

    /// The values that are known, as text.
    fn text(&self, format: NuttcpFormat) -> Vec<Option<String>> {
        let host = self.host();
        let sum = |streams: &[u64]| by_stream(streams).map_or_else(String::new, |each| format!(" = {each}"));
        let (each_retrans, each_cwnd) = (sum(&self.stream_retrans), sum(&self.stream_cwnd));
        let drops = self.drops.filter(|_| !format.has(NuttcpFormat::NO_DROPS));
        let ratio = self.drops.filter(|_| !format.has(NuttcpFormat::NO_PERCENT_LOSS));
        let (megabytes, seconds, mbps) = (self.megabytes, self.seconds, self.mbps);
        vec![
            Some(format!("{megabytes:10.4} MB / {seconds:6.2} sec = {mbps:9.4} Mbps")),
            self.tx_cpu.map(|cpu| format!(" {cpu} %TX")),
            self.rx_cpu.map(|cpu| format!(" {cpu} %RX")),
            self.retrans.map(|retrans| format!(" {retrans}{each_retrans} {host}retrans")),
            self.cwnd.map(|cwnd| format!(" {cwnd}{each_cwnd} KB-cwnd")),
            drops.map(|(lost, sent)| format!(" {lost} / {sent} drop/pkt")),
            ratio.map(|(lost, sent)| format!(" {} %loss", percent(lost, sent))),
            self.sent_megabytes.map(|sent| format!(" Trans: {sent:.4} MB")),
            self.rtt_ms.map(|rtt| format!(" {rtt:.2} msRTT")),
        ]
    }

    /// The values that are known, as `key=value`.
    fn parse(&self, format: NuttcpFormat) -> Vec<Option<String>> {
        let host = self.host();
        let each = |key: &str, streams: &[u64]| {
            by_stream(streams).map_or_else(String::new, |each| format!(" {key}_by_stream={each}"))
        };
        let each_retrans = each("retrans", &self.stream_retrans);
        let each_cwnd = each("cwnd", &self.stream_cwnd);
        let (megabytes, seconds, mbps) = (self.megabytes, self.seconds, self.mbps);
        vec![
            Some(format!("megabytes={megabytes:.4} real_seconds={seconds:.2} rate_Mbps={mbps:.4}")),
            self.tx_cpu.map(|cpu| format!(" tx_cpu={cpu}")),
            self.rx_cpu.map(|cpu| format!(" rx_cpu={cpu}")),
            self.retrans.map(|retrans| format!(" {host}retrans={retrans}{each_retrans}")),
            self.cwnd.map(|cwnd| format!(" cwnd={cwnd}{each_cwnd}")),
            self.drops.map(|(lost, sent)| loss_parse(lost, sent, format)),
            self.sent_megabytes.map(|sent| format!(" tx_megabytes={sent:.4}")),
            self.rtt_ms.map(|rtt| format!(" rtt_ms={rtt:.2}")),
        ]
    }
}
