//! The quantities of assertions, and how to get them from a record.

use linerate_model::metrics::{host, tcp};
use linerate_model::{Cause, Confidence, FlowRecord, RunRecord, Tally, TransactionTally, metrics};
use linerate_theory::rfc6349;
use linerate_units::{Bitrate, Bytes, Span};
use serde_json::Value;

use super::flight;
use crate::knobs::enum_values;

/// Dimension of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// A count or a ratio.
    Plain,
    /// bit/s.
    Rate,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Memory,
    /// A word, which has no size.
    Word,
}

impl Dimension {
    /// The unit of its numbers in results; `None` for words.
    #[must_use]
    pub const fn unit(self) -> Option<&'static str> {
        match self {
            Self::Plain => Some("1"),
            Self::Rate => Some("bit/s"),
            Self::Time => Some("ns"),
            Self::Memory => Some("bytes"),
            Self::Word => None,
        }
    }

    /// Name in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "a plain number",
            Self::Rate => "a rate",
            Self::Time => "a time",
            Self::Memory => "an amount of memory",
            Self::Word => "a word",
        }
    }

    /// A number of this dimension as text.
    pub(super) fn show(self, number: f64) -> String {
        let sign = if number < 0.0 { "-" } else { "" };
        let size = number.abs();
        match self {
            Self::Rate => Bitrate::from_bps(size).map(|rate| format!("{sign}{rate}")),
            Self::Time => (size < u64::MAX as f64).then(|| format!("{sign}{}", Span::from_ns(size as u64))),
            Self::Memory => (size < u64::MAX as f64).then(|| format!("{sign}{}", Bytes::new(size as u64))),
            Self::Plain | Self::Word => None,
        }
        .unwrap_or_else(|| if size >= 1e-3 || size == 0.0 { short(number) } else { format!("{number:.3e}") })
    }
}

/// At most four decimals.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// Value of a quantity.
#[derive(Debug, Clone, PartialEq)]
pub enum QuantityValue {
    /// In the unit of its dimension.
    Number(f64),
    /// A word.
    Word(String),
    /// The different words of several trials.
    Words(Vec<String>),
}

impl QuantityValue {
    /// The words of the value; empty for a number.
    pub(crate) fn words(&self) -> &[String] {
        match self {
            Self::Number(_) => &[],
            Self::Word(word) => std::slice::from_ref(word),
            Self::Words(words) => words,
        }
    }
}

/// A quantity that assertions may use.
#[derive(Debug)]
pub struct AssertionQuantity {
    /// Name.
    pub name: &'static str,
    /// Dimension.
    pub dimension: Dimension,
    /// Meaning.
    pub help: &'static str,
    /// Gets the value from the record of a run; `None` if it was not measured.
    pub of: fn(&RunRecord, &FlowRecord) -> Option<QuantityValue>,
}

const fn quantity(
    name: &'static str,
    dimension: Dimension,
    help: &'static str,
    of: fn(&RunRecord, &FlowRecord) -> Option<QuantityValue>,
) -> AssertionQuantity {
    AssertionQuantity { name, dimension, help, of }
}

/// The transactions of a flow.
fn made(flow: &FlowRecord) -> Option<&TransactionTally> {
    flow.sender.as_ref()?.transactions.as_deref()
}

/// Quantities of a whole trial, not of one run.
pub(crate) const FAIRNESS: &str = "fairness";
pub(crate) const TOTAL: &str = "total";
pub(crate) const BUFFER: &str = "buffer";
pub(crate) const BUFFER_KIND: &str = "buffer_kind";
pub(crate) const BUFFER_LOAD: &str = "buffer_load";

/// Kinds of results for a buffer.
const BUFFER_KINDS: [&str; 4] = ["estimate", "lower_bound", "out_of_reach", "other_loss"];

/// All quantities.
pub const QUANTITIES: &[AssertionQuantity] = &[
    quantity("goodput", Dimension::Rate, "Bits per second that the receiver read.", |_, flow| {
        number(flow.bitrate()?.bps())
    }),
    quantity("steady", Dimension::Rate, "Goodput after the ramp at the beginning.", |_, flow| {
        number(flow.steady.as_ref()?.bitrate.bps())
    }),
    quantity("ceiling", Dimension::Rate, "The ceiling that goodput is compared with.", |_, flow| {
        number(flow.ceiling.as_ref()?.bitrate_bps)
    }),
    quantity(
        "share",
        Dimension::Plain,
        "Goodput divided by the ceiling, at most 1; absent if goodput is above the ceiling.",
        |_, flow| number(flow.ceiling_share()?.get()),
    ),
    quantity(
        FAIRNESS,
        Dimension::Plain,
        "Jain's fairness index over the goodputs of the flows measured at the same time in one direction: 1 \
         if all are equal.",
        // A single run does not have it: it follows from the whole trial.
        |_, _| None,
    ),
    quantity(
        TOTAL,
        Dimension::Rate,
        "Sum of the goodputs of the flows measured at the same time in one direction.",
        // As above.
        |_, _| None,
    ),
    quantity(
        "line",
        Dimension::Rate,
        "Payload rate of the line: of the sending interface, or as given by `link`.",
        |_, flow| number(flight::line_bps(flow)?),
    ),
    quantity(
        "segment",
        Dimension::Memory,
        "Payload of a full-size segment, as the sending kernel used it (TCP).",
        |_, flow| number(segment_bytes(flow)?),
    ),
    quantity(
        "path_mtu",
        Dimension::Memory,
        "MTU of the path as the sending kernel knows it (TCP).",
        |_, flow| number(f64::from(flow.sender_settings.as_ref()?.pmtu?)),
    ),
    quantity("segment_asked", Dimension::Memory, "Requested payload of a segment (`mss`).", |_, flow| {
        number(f64::from(flow.sender_settings.as_ref()?.mss.asked?))
    }),
    quantity(
        "delivered",
        Dimension::Memory,
        "Bytes that the receiver read during the measured part.",
        |_, flow| number(flow.receiver.as_ref()?.bytes.get() as f64),
    ),
    quantity(
        "unaccounted",
        Dimension::Memory,
        "Bytes that the byte accounting leaves unexplained.",
        |_, flow| number(flow.byte_accounting.as_ref()?.unaccounted_bytes.get() as f64),
    ),
    quantity("loss", Dimension::Plain, "Lost datagrams divided by sent datagrams (UDP).", |_, flow| {
        number(flow.datagrams()?.1?.get())
    }),
    quantity(
        "jitter",
        Dimension::Time,
        "Interarrival jitter of datagrams (RFC 3550 section 6.4.1).",
        |_, flow| number(flow.receiver.as_ref()?.udp.as_ref()?.jitter?.as_ns() as f64),
    ),
    quantity(
        "snd_buf",
        Dimension::Memory,
        "Send buffer of a stream as the kernel granted it (TCP).",
        |_, flow| number(flow.sender_settings.as_ref()?.snd_buf?.get() as f64),
    ),
    quantity("rcv_buf", Dimension::Memory, "Receive buffer of a stream as granted (TCP).", |_, flow| {
        number(flow.receiver_settings.as_ref()?.rcv_buf?.get() as f64)
    }),
    quantity(
        "rwnd",
        Dimension::Memory,
        "RWND: the receive windows advertised on all streams together, median of the intervals (TCP).",
        |_, flow| number(flight::announced_bytes(flow)?),
    ),
    quantity(
        "in_flight",
        Dimension::Memory,
        "Bytes sent and not yet acknowledged, all streams together, mean (TCP).",
        |_, flow| number(flight::in_flight_bytes(flow)?),
    ),
    quantity(
        "window_rate",
        Dimension::Rate,
        "`in_flight` divided by `rtt_baseline`, at most the ceiling (RFC 6349 section 3.3.1).",
        |run, flow| number(flight::rate_bps(run, flow)?),
    ),
    quantity(
        "bdp",
        Dimension::Memory,
        "Bandwidth-delay product: the payload rate of the line times `rtt_baseline` (RFC 6349 section \
         3.3.1).",
        |run, flow| number(flight::needed_bytes(run, flow)?),
    ),
    quantity(
        "rtt_baseline",
        Dimension::Time,
        "Round-trip time without a queue: the median before the load, or without probes the smallest value \
         of the flow's kernel (TCP).",
        |run, flow| number(flight::base_rtt_ns(run, flow)?),
    ),
    quantity("retransmits", Dimension::Plain, "Retransmitted segments (TCP).", |_, flow| {
        number(flow.sender.as_ref()?.retransmits? as f64)
    }),
    quantity("rtt_idle", Dimension::Time, "Median round-trip time before the load.", |run, _| {
        number(run.idle.as_ref()?.rtt.p50_ns as f64)
    }),
    quantity("rtt", Dimension::Time, "Median round-trip time under load.", |_, flow| {
        number(flow.loaded.as_ref()?.rtt.p50_ns as f64)
    }),
    quantity("rtt_mean", Dimension::Time, "Mean round-trip time under load.", |_, flow| {
        number(flow.loaded.as_ref().filter(|loaded| loaded.rtt.count > 0)?.rtt.mean_ns as f64)
    }),
    quantity("rtt_p95", Dimension::Time, "95th percentile of the round-trip time under load.", |_, flow| {
        number(flow.loaded.as_ref()?.rtt.p95_ns as f64)
    }),
    quantity("rtt_p99", Dimension::Time, "99th percentile of the round-trip time under load.", |_, flow| {
        number(flow.loaded.as_ref()?.rtt.p99_ns as f64)
    }),
    quantity("rtt_max", Dimension::Time, "Largest round-trip time under load.", |_, flow| {
        number(flow.loaded.as_ref()?.rtt.max_ns as f64)
    }),
    quantity(
        "transactions",
        Dimension::Plain,
        "Transactions per second, with --workload rr or crr.",
        |_, flow| number(made(flow)?.per_second),
    ),
    quantity("transactions_failed", Dimension::Plain, "Requests that were never answered.", |_, flow| {
        number(made(flow)?.failed as f64)
    }),
    quantity("transaction_p50", Dimension::Time, "Median time of a transaction.", |_, flow| {
        number(made(flow)?.times?.p50_ns as f64)
    }),
    quantity(
        "transaction_p99",
        Dimension::Time,
        "99th percentile of the time of a transaction.",
        |_, flow| number(made(flow)?.times?.p99_ns as f64),
    ),
    quantity(
        "transaction_p999",
        Dimension::Time,
        "99.9th percentile of the time of a transaction.",
        |_, flow| number(made(flow)?.times?.p999_ns as f64),
    ),
    quantity(
        "transaction_p9999",
        Dimension::Time,
        "99.99th percentile of the time of a transaction.",
        |_, flow| number(made(flow)?.times?.p9999_ns as f64),
    ),
    quantity("transaction_max", Dimension::Time, "Longest transaction.", |_, flow| {
        number(made(flow)?.times?.max_ns as f64)
    }),
    quantity(
        "buffer_delay",
        Dimension::Plain,
        "Mean round-trip time under load minus the smallest before it, divided by the latter (RFC 6349 section 4.3).",
        |run, flow| {
            let base = run.idle.as_ref()?.rtt.min_ns as f64;
            let loaded = flow.loaded.as_ref()?.rtt.mean_ns as f64;
            rfc6349::buffer_delay(loaded, base).map(QuantityValue::Number)
        },
    ),
    quantity("cpu_sender", Dimension::Plain, "Busy share of the sending host's CPU time.", |_, flow| {
        number(flow.sender.as_ref()?.host_busy?.get())
    }),
    quantity("cpu_receiver", Dimension::Plain, "The same at the receiving host.", |_, flow| {
        number(flow.receiver.as_ref()?.host_busy?.get())
    }),
    quantity(
        "softirq_sender",
        Dimension::Plain,
        "Share of time in software interrupts on the sending host's core that spent the most in them.",
        |_, flow| number(softirq(flow, metrics::Side::Sender)?),
    ),
    quantity("softirq_receiver", Dimension::Plain, "The same at the receiving host.", |_, flow| {
        number(softirq(flow, metrics::Side::Receiver)?)
    }),
    quantity(
        "interrupts_sender",
        Dimension::Plain,
        "Interrupts per second at the sending host.",
        |_, flow| number(interrupts(flow, metrics::Side::Sender)?),
    ),
    quantity("interrupts_receiver", Dimension::Plain, "The same at the receiving host.", |_, flow| {
        number(interrupts(flow, metrics::Side::Receiver)?)
    }),
    quantity(
        "start_error",
        Dimension::Time,
        "How much later than planned the measurement started, by the clock of its own host.",
        |run, _| number(run.group_start?.start_error.as_ns() as f64),
    ),
    quantity(
        "clock_error",
        Dimension::Time,
        "Largest error of that clock relative to the coordinator's.",
        |run, _| number(run.group_start?.clock_error?.as_ns() as f64),
    ),
    quantity(
        "cpu_per_gb_sender",
        Dimension::Plain,
        "CPU seconds of the sending program per 10^9 bytes.",
        |_, flow| per_gb(flow.sender.as_ref()?),
    ),
    quantity("cpu_per_gb_receiver", Dimension::Plain, "The same at the receiving host.", |_, flow| {
        per_gb(flow.receiver.as_ref()?)
    }),
    quantity(
        "transfer_time_ratio",
        Dimension::Plain,
        "Ceiling divided by goodput, which is the actual transfer time divided by the ideal one (RFC 6349 \
         section 4.1).",
        |_, flow| {
            let rate = flow.bitrate()?.bps();
            (rate > 0.0).then_some(QuantityValue::Number(flow.ceiling.as_ref()?.bitrate_bps / rate))
        },
    ),
    quantity(
        "tcp_efficiency",
        Dimension::Plain,
        "Share of the sent bytes that are not retransmissions (RFC 6349 section 4.2).",
        |_, flow| {
            let sum = |metric: metrics::Metric<Bytes>| {
                let samples = flow.samples_of(metrics::Side::Sender);
                // Any numbers may come from a peer, so they are not added as whole ones.
                let read: Vec<f64> =
                    samples.filter_map(|one| Some(one.readings.get(metric)?.get() as f64)).collect();
                (!read.is_empty()).then(|| read.iter().sum::<f64>())
            };
            let (sent, again) = (sum(tcp::BYTES_SENT)?, sum(tcp::BYTES_RETRANS)?);
            rfc6349::efficiency(sent, again).map(QuantityValue::Number)
        },
    ),
    quantity(
        BUFFER,
        Dimension::Memory,
        "Buffer of the bottleneck in bytes on the line. TCP: the RTT increase just before a drop on the \
         full line, times the line rate. UDP: the same at the plateau of a load step, or the bytes that a \
         burst without loss left in the queue. Cross traffic counts as traffic through the same queue.",
        // A single run does not have it: it follows from the whole trial.
        |_, _| None,
    ),
    quantity(
        BUFFER_KIND,
        Dimension::Word,
        "How the buffer is known: an estimate, a lower bound (no drop on the full line), out of reach (the \
         probes vary by more than a tenth of it), or not known because packets were lost in another way.",
        |_, _| None,
    ),
    quantity(
        "message_latency",
        Dimension::Time,
        "One-way time of a message of the smallest size of a series.",
        |_, flow| number(flow.curve.as_ref()?.smallest_one_way.as_ns() as f64),
    ),
    quantity(
        "message_rate",
        Dimension::Rate,
        "Highest payload rate among the sizes of a series.",
        |_, flow| number(flow.curve.as_ref()?.peak.bps()),
    ),
    quantity(
        "half_size",
        Dimension::Memory,
        "Message size that reaches half of the asymptotic rate: n½ of the line fitted to a series (Hockney).",
        |_, flow| number(flow.curve.as_ref()?.fit.as_ref()?.half_performance_bytes.get() as f64),
    ),
    quantity(
        "saturation_size",
        Dimension::Memory,
        "Message size from which on all sizes of a series reach 90 % of the highest rate.",
        |_, flow| number(flow.curve.as_ref()?.saturation_bytes?.get() as f64),
    ),
    quantity(
        BUFFER_LOAD,
        Dimension::Plain,
        "Smallest load of the line before the drops from which the buffer was read; the largest load if \
         packets were lost in another way.",
        |_, _| None,
    ),
    quantity("caveats", Dimension::Plain, "Number of caveats of the result.", |run, flow| {
        number((run.caveats.len() + flow.caveats.len()) as f64)
    }),
    quantity("verdict", Dimension::Word, "What limited the flow.", |_, flow| {
        Some(QuantityValue::Word(flow.verdict.as_ref()?.cause.name().to_owned()))
    }),
    quantity("confidence", Dimension::Word, "How well the evidence supports the verdict.", |_, flow| {
        let confidence = serde_json::to_value(flow.verdict.as_ref()?.confidence).ok()?;
        confidence.as_str().map(|word| QuantityValue::Word(word.to_owned()))
    }),
];

/// Payload of a full segment as the sending kernel used it, bytes.
pub(super) fn segment_bytes(flow: &FlowRecord) -> Option<f64> {
    // The sampled value is preferred: the value read from the socket may be the requested one.
    let sampled = flow.sender.as_ref().and_then(|tally| tally.readings.get(tcp::SND_MSS));
    let effective = || flow.sender_settings.as_ref()?.mss.effective.map(f64::from);
    sampled.map(|bytes| bytes.get() as f64).or_else(effective)
}

/// Mean over the measured intervals.
fn softirq(flow: &FlowRecord, side: metrics::Side) -> Option<f64> {
    let samples = flow.measured_samples_of(side);
    let shares: Vec<f64> = samples.filter_map(|one| Some(one.readings.get(host::SOFTIRQ)?.get())).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// Interrupts per second in the measured intervals that have a count.
fn interrupts(flow: &FlowRecord, side: metrics::Side) -> Option<f64> {
    let samples = flow.measured_samples_of(side);
    let of = |one: &linerate_model::Sample| {
        Some((one.readings.get(host::INTERRUPTS)? as f64, one.span().as_secs_f64()))
    };
    let (count, seconds) =
        samples.filter_map(of).fold((0.0, 0.0), |(n, s), (count, span)| (n + count, s + span));
    (seconds > 0.0).then(|| count / seconds)
}

fn per_gb(tally: &Tally) -> Option<QuantityValue> {
    let bytes = tally.total_bytes.get() as f64;
    (bytes > 0.0 && tally.cpu_seconds > 0.0).then_some(QuantityValue::Number(tally.cpu_seconds / bytes * 1e9))
}

#[expect(clippy::unnecessary_wraps, reason = "the table's functions return an option")]
fn number(number: f64) -> Option<QuantityValue> {
    Some(QuantityValue::Number(number))
}

impl AssertionQuantity {
    /// The possible words.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        match self.name {
            "verdict" => enum_values(&Value::from(schemars::schema_for!(Cause))),
            BUFFER_KIND => BUFFER_KINDS.map(str::to_owned).to_vec(),
            "confidence" => enum_values(&Value::from(schemars::schema_for!(Confidence))),
            _ => Vec::new(),
        }
    }
}
