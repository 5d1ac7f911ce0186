//! Estimates the buffer of a bottleneck from the time series of a long TCP flow through it.
//!
//! Just before a drop the queue is full. So the RTT at that time minus the RTT of the empty path, times the
//! drain rate, is the buffer. That is valid only if this queue dropped the packet: the link was full, and a
//! queue stood. Without a drop, the largest queue is a lower bound. With other drops, the finding states that
//! nothing is known about the buffer. Recommended sizes for the path are listed too.
//!
//! Probes through the same queue measure the RTT better. The sender's kernel smooths its RTT over many samples,
//! in which a queue that drains within milliseconds hardly shows.

mod burst;
mod record;
mod step;

use crate::domain::{not_negative, positive};
use crate::queueing::{buffer_for_backoff_bytes, buffer_for_flows_bytes, implied_rtt_s, queue_bytes};
use crate::stats::{Interval, order};

pub use burst::burst_buffer_bytes;
pub use record::{hosts_delay_s, line, line_share, looks, path, series};
pub use step::{LoadStep, RttRange, StepInterval, Stepped, step};

/// Lowest load of the link in the interval before a drop for which the drop may come from a full queue.
const FULL_LOAD: f64 = 0.95;

/// If a queue is smaller than this share of the largest one seen, it was not full when a packet was lost.
const MIN_QUEUE_SHARE: f64 = 0.5;

/// One interval of the sender's series.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BufferInterval {
    /// Length, s.
    pub span_s: f64,
    /// Goodput, bit/s.
    pub goodput_bps: f64,
    /// Rate at which segments arrived, including those after a gap, as payload in bit/s; absent if the kernel
    /// does not report it.
    pub arrived_bps: Option<f64>,
    /// Congestion window at the end, bytes.
    pub cwnd_bytes: Option<f64>,
    /// Smoothed RTT of the kernel, s; absent in results of programs that do not report it.
    pub rtt_s: Option<f64>,
    /// RTT of the probes through the same queue, s: the largest that one or two late wake-ups do not explain;
    /// absent without probes.
    pub probe_rtt_s: Option<f64>,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Whether the interval belongs to the omitted start.
    pub omitted: bool,
}

/// Rates of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineRates {
    /// Rate at which a queue before it drains, bit/s on the line.
    pub drain_bps: f64,
    /// Goodput of a flow that has the line for itself, bit/s.
    pub alone_bps: f64,
}

/// Known properties of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferPath {
    /// Drain rate of the queue, other traffic included, bit/s on the line.
    pub drain_bps: f64,
    /// Goodput of a flow that has the line for itself, bit/s.
    pub alone_bps: f64,
    /// Rate of other traffic, bit/s on the line.
    pub others_bps: f64,
    /// RTT without a queue, s.
    pub base_rtt_s: f64,
    /// Base RTT of the probes, s; absent without probes.
    pub probe_base_s: Option<f64>,
}

/// One row of the table: what the window and rate of an interval imply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferRow {
    /// The interval.
    pub reading: BufferInterval,
    /// RTT, s: measured, or by Little's law from the mean window; absent if the window jumped.
    pub rtt_s: Option<f64>,
    /// Bytes queued at the bottleneck according to that RTT.
    pub queue_bytes: Option<f64>,
    /// Bytes queued according to the probes.
    pub probed_bytes: Option<f64>,
    /// Share of the line that is used, other traffic included.
    pub load: f64,
}

/// What a series shows about the buffer.
#[derive(Debug, Clone, PartialEq)]
pub enum BufferFinding {
    /// Packets were dropped at a full queue.
    Estimate {
        /// Median over the drops, bytes.
        bytes: f64,
        /// Its distribution-free interval; absent with fewer than six drops.
        interval: Option<Interval>,
        /// Number of drops used.
        drops: usize,
        /// Lowest load of the line before one of them.
        load: f64,
    },
    /// No packet was dropped at a full queue: the buffer holds at least this number of bytes.
    LowerBound {
        /// The largest queue seen.
        bytes: f64,
        /// Number of losses on an idle line or without a queue.
        other_losses: usize,
    },
    /// Packets were dropped at a full queue, but the probes do not give its length to within 10 %.
    OutOfReach {
        /// The estimate from the probes, bytes.
        bytes: f64,
        /// Noise of the probes, bytes.
        noise_bytes: f64,
    },
    /// Packets were lost while the line had room or no queue stood. Their loss shows nothing about a buffer of
    /// this size.
    NotAFullQueue {
        /// Number of losses.
        losses: usize,
        /// Largest load of the line before one of them.
        load: f64,
        /// Largest queue before one of them, bytes.
        queue_bytes: f64,
    },
}

/// A window that changes by more than this factor within an interval has jumped; its mean is not used.
const WINDOW_JUMP_FACTOR: f64 = 1.3;

/// Computes the table of a series.
///
/// Units: as the fields say. Domain: positive rates, base RTT ≥ 0; otherwise no rows. Source: Little's law.
#[must_use]
pub fn rows(series: &[BufferInterval], path: &BufferPath) -> Vec<BufferRow> {
    let (Some(alone), Some(drain), Some(others)) =
        (positive(path.alone_bps), positive(path.drain_bps), not_negative(path.others_bps))
    else {
        return Vec::new();
    };
    let mut before = None;
    let row = |reading: &BufferInterval| {
        let mean = mean_window(before, reading.cwnd_bytes);
        before = reading.cwnd_bytes;
        let rtt_s = reading.rtt_s.or_else(|| implied_rtt_s(mean?, reading.goodput_bps));
        let queue = |rtt: f64, base: f64| queue_bytes(rtt, base, drain).map(|bytes| bytes.max(0.0));
        let probed = || queue(reading.probe_rtt_s?, path.probe_base_s?);
        BufferRow {
            reading: *reading,
            rtt_s,
            queue_bytes: rtt_s.and_then(|rtt| queue(rtt, path.base_rtt_s)),
            probed_bytes: probed(),
            load: reading.arrived_bps.unwrap_or(reading.goodput_bps) / alone + others / drain,
        }
    };
    series.iter().map(row).collect()
}

/// Mean of the windows at both ends of an interval; absent if the window jumped.
fn mean_window(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    let (before, after) = (before?, after?);
    let jumped = after > before * WINDOW_JUMP_FACTOR || before > after * WINDOW_JUMP_FACTOR;
    (!jumped).then_some(f64::midpoint(before, after))
}

/// Source of queue lengths for a whole series: the probes or the kernel's RTT. The kernel's RTT contains the
/// sending host's own queue, so it is not used to fill gaps between probes.
#[derive(Debug, Clone, Copy)]
struct DelaySource {
    probes: bool,
}

impl DelaySource {
    fn of(rows: &[BufferRow]) -> Self {
        Self { probes: rows.iter().any(|row| row.probed_bytes.is_some()) }
    }

    fn queue(self, row: &BufferRow) -> Option<f64> {
        if self.probes { row.probed_bytes } else { row.queue_bytes }
    }

    /// The largest queue in these intervals.
    fn largest<'r>(self, rows: impl IntoIterator<Item = &'r BufferRow>) -> Option<f64> {
        rows.into_iter().filter_map(|row| self.queue(row)).max_by(f64::total_cmp)
    }
}

/// A loss, with the queue and the load just before it.
struct LossEvent {
    queue: f64,
    load: f64,
    omitted: bool,
}

/// Analyses the buffer from a series; `None` if no queue can be read from it.
///
/// Source: the largest RTT before a drop minus the smallest, times the drain rate (RFC 8238 section 3 also has
/// the burst method).
#[must_use]
pub fn analyse(series: &[BufferInterval], path: &BufferPath) -> Option<BufferFinding> {
    let rows = rows(series, path);
    let source = DelaySource::of(&rows);
    let largest = source.largest(&rows)?;
    let losses: Vec<LossEvent> = losses(&rows, path, source).collect();
    let full = full(&rows, &losses, source, largest);
    if !full.is_empty() {
        let queues: Vec<f64> = full.iter().map(|loss| loss.queue).collect();
        return Some(BufferFinding::Estimate {
            bytes: order::median(&queues)?,
            interval: order::median_interval(&queues, 0.95),
            drops: queues.len(),
            load: full.iter().map(|loss| loss.load).min_by(f64::total_cmp)?,
        });
    }
    // A queue stood on a full line: the buffer holds at least this much.
    let stood = source.largest(rows.iter().filter(|row| row.load >= FULL_LOAD));
    match (stood, losses.is_empty()) {
        (Some(bytes), _) => Some(BufferFinding::LowerBound { bytes, other_losses: losses.len() }),
        (None, true) => Some(BufferFinding::LowerBound { bytes: largest, other_losses: 0 }),
        (None, false) => Some(BufferFinding::NotAFullQueue {
            losses: losses.len(),
            load: losses.iter().map(|loss| loss.load).max_by(f64::total_cmp)?,
            queue_bytes: losses.iter().map(|loss| loss.queue).max_by(f64::total_cmp)?,
        }),
    }
}

/// Drops of a full queue, preferably after the omitted start. In slow start a window doubles within an RTT, and
/// the sending host's own line holds a queue that the RTT does not distinguish from the bottleneck's.
fn full<'l>(
    rows: &[BufferRow],
    losses: &'l [LossEvent],
    source: DelaySource,
    largest: f64,
) -> Vec<&'l LossEvent> {
    let among = |wanted: &dyn Fn(&LossEvent) -> bool, largest: f64| {
        let full = |loss: &&LossEvent| {
            loss.load >= FULL_LOAD && loss.queue > MIN_QUEUE_SHARE * largest && wanted(loss)
        };
        losses.iter().filter(full).collect::<Vec<_>>()
    };
    let measured_largest = source.largest(rows.iter().filter(|row| !row.reading.omitted));
    let steady = among(&|loss| !loss.omitted, measured_largest.unwrap_or(largest));
    if steady.is_empty() { among(&|_| true, largest) } else { steady }
}

/// A loss is repaired within this number of round trips. A later retransmission is a new loss.
const REPAIR_ROUND_TRIPS: f64 = 4.0;

/// Every interval in which a repair began. A repair begins one RTT after the drop of a packet that had passed
/// the full queue. So that queue stood up to two such RTTs earlier.
fn losses<'r>(
    rows: &'r [BufferRow],
    path: &BufferPath,
    source: DelaySource,
) -> impl Iterator<Item = LossEvent> + 'r {
    let repair_s = REPAIR_ROUND_TRIPS * path.base_rtt_s;
    let is_short = move |row: &BufferRow| row.reading.span_s < repair_s;
    let repairs = move |row: &BufferRow| row.reading.retransmits > 0 && is_short(row);
    let longest = rows.iter().filter_map(|row| row.reading.probe_rtt_s.or(row.rtt_s)).max_by(f64::total_cmp);
    let reach_s = 2.0 * longest.unwrap_or(path.base_rtt_s);
    let of = move |at: usize| {
        let began = rows[at].reading.retransmits > 0 && (at == 0 || !repairs(&rows[at - 1]));
        began.then_some(())?;
        let from = reach(&rows[..at], reach_s);
        // If the queue filled within milliseconds, the acknowledgements of the full line arrive after the
        // repair began.
        let to = if rows.get(at + 1).is_some_and(is_short) { at + 1 } else { at };
        let load = rows[from..=to].iter().map(|row| row.load).max_by(f64::total_cmp)?;
        // If the window jumped and no RTT was measured, no queue was seen.
        let queue = source.largest(&rows[from..=at]).unwrap_or(0.0);
        Some(LossEvent { queue, load, omitted: rows[at].reading.omitted })
    };
    (0..rows.len()).filter_map(of)
}

/// Index of the first of the last intervals that together last `reach_s`.
fn reach(before: &[BufferRow], reach_s: f64) -> usize {
    let mut covered = 0.0;
    let far = before.iter().rposition(|row| {
        covered += row.reading.span_s;
        covered >= reach_s
    });
    far.unwrap_or(0)
}

/// A recommended buffer by one rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The rule, as text.
    pub requirement: &'static str,
    /// Bytes.
    pub bytes: f64,
}

/// Recommended buffers for a path, largest first.
///
/// Units: bit/s, s, flows ≥ 1. Source: Villamizar and Song 1994; Appenzeller, Keslassy and McKeown 2004; one
/// back-off of a single flow that keeps the line full (Reno halves, CUBIC keeps 0.7: RFC 9438 section 4.6).
#[must_use]
pub fn fits(drain_bps: f64, rtt_s: f64, flows: f64) -> Vec<Fit> {
    let fit = |requirement, bytes: Option<f64>| bytes.map(|bytes| Fit { requirement, bytes });
    let mut fits: Vec<Fit> = [
        fit("one flow of Reno never leaves the line idle", buffer_for_backoff_bytes(drain_bps, rtt_s, 0.5)),
        fit("one flow of CUBIC never leaves the line idle", buffer_for_backoff_bytes(drain_bps, rtt_s, 0.7)),
        fit("as many flows as these, out of step", buffer_for_flows_bytes(drain_bps, rtt_s, flows)),
    ]
    .into_iter()
    .flatten()
    .collect();
    fits.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
    fits
}

#[cfg(test)]
mod tests;
