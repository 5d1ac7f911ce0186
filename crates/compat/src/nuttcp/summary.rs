//! Interval lines and the summary line.

use std::fmt::Write as _;

use linerate_units::Span;

use super::delays::OneWay;

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
    /// Delays of the datagrams, if they are timestamped.
    pub(super) delays: Option<OneWay>,
}

impl ReceiverCounts {
    /// The difference to `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            span: self.span.saturating_sub(earlier.span),
            sent: self.sent.saturating_sub(earlier.sent),
            lost: self.lost.saturating_sub(earlier.lost),
            delays: self.delays.map(|now| {
                let then = earlier.delays.unwrap_or_default();
                OneWay {
                    datagrams: now.datagrams.saturating_sub(then.datagrams),
                    sum_us: now.sum_us.saturating_sub(then.sum_us),
                    ..now
                }
            }),
        }
    }
}

/// The loss ratio in percent; with more decimals below 0.1 %.
fn percent(lost: u64, sent: u64) -> String {
    let share = if sent == 0 { 0.0 } else { 100.0 * lost as f64 / sent as f64 };
    if share > 0.0 && share < 0.1 { format!("{share:.5}") } else { format!("{share:.2}") }
}

/// An interval line without its line feed. `lossy` is the length of a datagram if losses are known.
pub(super) fn interval_line(
    interval: ReceiverCounts,
    total: ReceiverCounts,
    lossy: Option<u64>,
    format: NuttcpFormat,
) -> String {
    if format.has(NuttcpFormat::PARSE) {
        return interval_parse(interval, total, lossy, format);
    }
    let amount = |amount: ReceiverCounts| {
        let megabytes = megabytes(amount.bytes);
        let (seconds, rate) = (amount.span.as_secs_f64(), mbps(amount.bytes, amount.span));
        let mut text = format!("{megabytes:10.4} MB / {seconds:6.2} sec = {rate:9.4} Mbps");
        if lossy.is_some() && !format.has(NuttcpFormat::NO_DROPS) {
            let _ = write!(text, " {:5} / {:5} ~drop/pkt", amount.lost, amount.sent);
        }
        if lossy.is_some() && !format.has(NuttcpFormat::NO_PERCENT_LOSS) {
            let _ = write!(text, " {:>5} ~%loss", percent(amount.lost, amount.sent));
        }
        if let Some(mean) = amount.delays.and_then(|delays| delays.mean_ms()) {
            let _ = write!(text, " {mean:.4} msAvgOWD");
        }
        text
    };
    let mut line = amount(interval);
    if format.has(NuttcpFormat::RUNNING_TOTAL) {
        line = line + " Tot: " + &amount(total);
    }
    if let Some(length) = lossy.filter(|_| format.has(NuttcpFormat::XMIT_STATS)) {
        let _ = write!(line, " Trans: {:10.4} MB", megabytes(interval.sent.saturating_mul(length)));
        if format.has(NuttcpFormat::RUNNING_TOTAL) {
            let _ = write!(line, " Tot: {:10.4} MB", megabytes(total.sent.saturating_mul(length)));
        }
    }
    line
}

fn interval_parse(
    interval: ReceiverCounts,
    total: ReceiverCounts,
    lossy: Option<u64>,
    format: NuttcpFormat,
) -> String {
    let amount = |amount: ReceiverCounts, before: &str| {
        let megabytes = megabytes(amount.bytes);
        let (seconds, rate) = (amount.span.as_secs_f64(), mbps(amount.bytes, amount.span));
        let mut text = format!(
            "{before}megabytes={megabytes:.4} {before}real_sec={seconds:.2} {before}rate_Mbps={rate:.4}"
        );
        if lossy.is_some() {
            let _ = write!(text, " {}", loss_parse(amount.lost, amount.sent));
        }
        if let Some(mean) = amount.delays.and_then(|delays| delays.mean_ms()) {
            let _ = write!(text, " {before}msavgOWD={mean:.4}");
        }
        text
    };
    let mut line = amount(interval, "");
    if format.has(NuttcpFormat::RUNNING_TOTAL) {
        line = line + " " + &amount(total, "total_");
    }
    if let Some(length) = lossy.filter(|_| format.has(NuttcpFormat::XMIT_STATS)) {
        let _ = write!(line, " tx_megabytes={:.4}", megabytes(interval.sent.saturating_mul(length)));
        if format.has(NuttcpFormat::RUNNING_TOTAL) {
            let _ = write!(line, " tx_total_megabytes={:.4}", megabytes(total.sent.saturating_mul(length)));
        }
    }
    line
}

/// The losses as `key=value`.
pub(super) fn loss_parse(lost: u64, sent: u64) -> String {
    let share = if sent == 0 { 0.0 } else { 100.0 * lost as f64 / sent as f64 };
    format!("drop={lost} pkt={sent} data_loss={share:.5}")
}

/// An interval line with the counts of the transmitter's kernel in the interval and since the start, if they
/// are known.
pub(super) fn with_marks(line: &str, told: Option<TransmitterCounts>, format: NuttcpFormat) -> String {
    let Some(told) = told.filter(|_| !format.has(NuttcpFormat::NO_RETRANS)) else { return line.to_owned() };
    let sums = [" Tot: ", " total_megabytes="].into_iter().find_map(|word| line.find(word));
    let interval = retrans_text(told.interval, format);
    match sums {
        Some(at) => {
            let total = retrans_text(told.total, format);
            format!("{}{interval}{}{total}", &line[..at], &line[at..])
        }
        None => format!("{line}{interval}"),
    }
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
    pub(super) max_jitter_ms: Option<f64>,
    pub(super) avg_owd_ms: Option<f64>,
}

/// The losses for a report: `0 / 77 drop/pkt 0.00% data loss`.
pub(super) fn loss_line(lost: u64, sent: u64, parse: bool) -> String {
    if parse {
        return loss_parse(lost, sent);
    }
    format!("{lost} / {sent} drop/pkt {}% data loss", percent(lost, sent))
}

impl Brief {
    /// The summary line without its line feed.
    pub(super) fn line(&self, format: NuttcpFormat) -> String {
        let retrans = self.retrans.filter(|_| !format.has(NuttcpFormat::NO_RETRANS));
        let cwnd = self.cwnd.filter(|_| retrans.is_some() && !format.has(NuttcpFormat::NO_CWND));
        let rtt = self.rtt_ms.filter(|_| format.has(NuttcpFormat::WANT_RTT));
        if format.has(NuttcpFormat::PARSE) {
            self.parse(retrans, cwnd, rtt)
        } else {
            self.text(retrans, cwnd, rtt, format)
        }
    }

    fn text(
        &self,
        retrans: Option<u64>,
        cwnd: Option<u64>,
        rtt: Option<f64>,
        format: NuttcpFormat,
    ) -> String {
        let mut line =
            format!("{:10.4} MB / {:6.2} sec = {:9.4} Mbps", self.megabytes, self.seconds, self.mbps);
        let host = if self.host_retrans { "host-" } else { "" };
        let mut add =
            |text: Option<String>| line += &text.map_or_else(String::new, |text| format!(" {text}"));
        add(self.tx_cpu.map(|cpu| format!("{cpu} %TX")));
        add(self.rx_cpu.map(|cpu| format!("{cpu} %RX")));
        add(retrans.map(|retrans| format!("{retrans} {host}retrans")));
        add(cwnd.map(|cwnd| format!("{cwnd} KB-cwnd")));
        let drops = self.drops;
        add(drops
            .filter(|_| !format.has(NuttcpFormat::NO_DROPS))
            .map(|(lost, sent)| format!("{lost} / {sent} drop/pkt")));
        add(drops
            .filter(|_| !format.has(NuttcpFormat::NO_PERCENT_LOSS))
            .map(|(lost, sent)| format!("{} %loss", percent(lost, sent))));
        let sent = self.sent_megabytes.filter(|_| drops.is_some() && format.has(NuttcpFormat::XMIT_STATS));
        add(sent.map(|sent| format!("Trans: {sent:.4} MB")));
        add(rtt.map(|rtt| format!("{rtt:.2} msRTT")));
        add(self.max_jitter_ms.map(|jitter| format!("{jitter:.4} msMaxJitter")));
        add(self.avg_owd_ms.map(|delay| format!("{delay:.4} msAvgOWD")));
        line
    }

    fn parse(&self, retrans: Option<u64>, cwnd: Option<u64>, rtt: Option<f64>) -> String {
        let mut line = format!(
            "megabytes={:.4} real_seconds={:.2} rate_Mbps={:.4}",
            self.megabytes, self.seconds, self.mbps
        );
        let host = if self.host_retrans { "host-" } else { "" };
        let mut add =
            |text: Option<String>| line += &text.map_or_else(String::new, |text| format!(" {text}"));
        add(self.tx_cpu.map(|cpu| format!("tx_cpu={cpu}")));
        add(self.rx_cpu.map(|cpu| format!("rx_cpu={cpu}")));
        add(retrans.map(|retrans| format!("{host}retrans={retrans}")));
        add(cwnd.map(|cwnd| format!("cwnd={cwnd}")));
        add(self.drops.map(|(lost, sent)| loss_parse(lost, sent)));
        add(rtt.map(|rtt| format!("rtt_ms={rtt:.2}")));
        add(self.max_jitter_ms.map(|jitter| format!("msmaxjitter={jitter:.4}")));
        add(self.avg_owd_ms.map(|delay| format!("msavgOWD={delay:.4}")));
        line
    }
}
