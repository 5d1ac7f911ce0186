//! How large the buffer of a bottleneck is, from the series of a long TCP flow through it.
//!
//! The round trip just before a drop is the one with the queue full, so its rise over the empty path times the rate at which
//! the queue drains is the buffer. That holds only if the drop was that queue's: the link was full, and a queue stood. Without
//! a drop the largest queue is a lower bound; with drops of another kind nothing is said of the buffer, and that is the
//! finding. Sizes by which the path would be fit stand beside it.
//!
//! Probes that went through the same queue are the better witness of a round trip: what the sender's kernel keeps is
//! smoothed over many, and a queue that is drained within milliseconds hardly shows in it.

mod burst;
mod record;
mod step;

use crate::domain::{not_negative, positive};
use crate::queueing::{buffer_for_backoff_bytes, buffer_for_flows_bytes, implied_rtt_s, queue_bytes};
use crate::stats::{Interval, order};

pub use burst::burst_buffer_bytes;
pub use record::{hosts_delay_s, line, line_share, looks, path, series};
pub use step::{LoadStep, Look, Stepped, step};

/// Least load of the link in the interval before a drop at which the drop may be that of a full queue.
const FULL_LOAD: f64 = 0.95;

/// A queue that is smaller than this share of the largest one seen was not full when a packet was lost.
const MIN_QUEUE_SHARE: f64 = 0.5;

/// One interval of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// Its length, s.
    pub span_s: f64,
    /// Goodput in it, bit/s.
    pub goodput_bps: f64,
    /// Rate at which segments arrived, those behind a gap too, as payload in bit/s; absent where the kernel does not tell.
    pub arrived_bps: Option<f64>,
    /// Congestion window at its end, bytes.
    pub cwnd_bytes: Option<f64>,
    /// Round trip as the kernel had it, s; absent in results of programs that do not tell.
    pub rtt_s: Option<f64>,
    /// Round trip of the probes that went through the same queue in it: the largest that a late wake-up or two do not explain,
    /// s; absent where there were none.
    pub probe_rtt_s: Option<f64>,
    /// Segments sent again in it.
    pub retransmits: u64,
    /// Whether it belongs to the omitted start.
    pub omitted: bool,
}

/// A line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Rate at which a queue in front of it drains, bit/s on the line.
    pub drain_bps: f64,
    /// Goodput of a flow that has it for itself, bit/s.
    pub alone_bps: f64,
}

/// What is known of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Rate at which the queue drains, other traffic included, bit/s on the line.
    pub drain_bps: f64,
    /// Goodput of a flow that has the line for itself, bit/s.
    pub alone_bps: f64,
    /// What other traffic takes of the line, bit/s on the line.
    pub others_bps: f64,
    /// Round trip without a queue, s.
    pub base_rtt_s: f64,
    /// The same for probes, s; absent where there were none.
    pub probe_base_s: Option<f64>,
}

/// One line of the table: what window and rate of an interval imply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// As it was read.
    pub reading: Reading,
    /// Round trip: as read, else by Little's law from the mean window; absent where the window jumped.
    pub rtt_s: Option<f64>,
    /// Bytes that wait in the bottleneck, by that round trip.
    pub queue_bytes: Option<f64>,
    /// The same by that of the probes.
    pub probed_bytes: Option<f64>,
    /// Share of the line that is in use, other traffic included.
    pub load: f64,
}

/// What a series says of the buffer.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// Packets were dropped at a full queue.
    Estimate {
        /// Median over the drops, bytes.
        bytes: f64,
        /// Its distribution-free interval; absent below six drops.
        interval: Option<Interval>,
        /// Number of drops that it rests on.
        drops: usize,
        /// Least load of the line before one of them.
        load: f64,
    },
    /// Nothing was dropped at a full queue: the buffer holds at least so many bytes.
    LowerBound {
        /// The largest queue that was seen.
        bytes: f64,
        /// Times that packets were lost all the same, at an idle line or without a queue.
        other_losses: usize,
    },
    /// Packets were dropped at a full queue, of which the probes do not tell the length to a tenth.
    OutOfReach {
        /// What they make of it, bytes.
        bytes: f64,
        /// What they vary by, bytes.
        noise_bytes: f64,
    },
    /// Packets were lost while the line had room or no queue stood: their loss says nothing of a buffer of this size.
    NotAFullQueue {
        /// Number of times.
        losses: usize,
        /// Largest load of the line before one of them.
        load: f64,
        /// Largest queue before one of them, bytes.
        queue_bytes: f64,
    },
}

/// A window that changes by more than this within an interval jumped: its mean says nothing.
const WINDOW_JUMP_FACTOR: f64 = 1.3;

/// The table of a series.
///
/// Units: as the fields say. Domain: positive rates, base round trip ≥ 0; else no rows. Source: Little's law.
#[must_use]
pub fn rows(series: &[Reading], path: &Path) -> Vec<Row> {
    let (Some(alone), Some(drain), Some(others)) =
        (positive(path.alone_bps), positive(path.drain_bps), not_negative(path.others_bps))
    else {
        return Vec::new();
    };
    let mut before = None;
    let row = |reading: &Reading| {
        let mean = mean_window(before, reading.cwnd_bytes);
        before = reading.cwnd_bytes;
        let rtt_s = reading.rtt_s.or_else(|| implied_rtt_s(mean?, reading.goodput_bps));
        let queue = |rtt: f64, base: f64| queue_bytes(rtt, base, drain).map(|bytes| bytes.max(0.0));
        let probed = || queue(reading.probe_rtt_s?, path.probe_base_s?);
        Row {
            reading: *reading,
            rtt_s,
            queue_bytes: rtt_s.and_then(|rtt| queue(rtt, path.base_rtt_s)),
            probed_bytes: probed(),
            load: reading.arrived_bps.unwrap_or(reading.goodput_bps) / alone + others / drain,
        }
    };
    series.iter().map(row).collect()
}

/// Mean of the windows at both ends of an interval; absent where it jumped.
fn mean_window(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    let (before, after) = (before?, after?);
    let jumped = after > before * WINDOW_JUMP_FACTOR || before > after * WINDOW_JUMP_FACTOR;
    (!jumped).then_some(f64::midpoint(before, after))
}

/// By which witness queues are told: one for a whole series. The round trip of the sender's kernel has the queue of its own
/// host in it, so it does not fill the gaps of probes.
#[derive(Debug, Clone, Copy)]
struct DelaySource {
    probes: bool,
}

impl DelaySource {
    fn of(rows: &[Row]) -> Self {
        Self { probes: rows.iter().any(|row| row.probed_bytes.is_some()) }
    }

    fn queue(self, row: &Row) -> Option<f64> {
        if self.probes { row.probed_bytes } else { row.queue_bytes }
    }

    /// The largest queue that was seen in these intervals.
    fn largest<'r>(self, rows: impl IntoIterator<Item = &'r Row>) -> Option<f64> {
        rows.into_iter().filter_map(|row| self.queue(row)).max_by(f64::total_cmp)
    }
}

/// A loss with the queue and the load just before it.
struct Loss {
    queue: f64,
    load: f64,
    omitted: bool,
}

/// What a series says of the buffer; absent when no queue can be read from it.
///
/// Source: the largest round trip before a drop minus the least, times the drain rate (RFC 8238 section 3 has the burst
/// method beside it).
#[must_use]
pub fn analyse(series: &[Reading], path: &Path) -> Option<Finding> {
    let rows = rows(series, path);
    let witness = DelaySource::of(&rows);
    let largest = witness.largest(&rows)?;
    let losses: Vec<Loss> = losses(&rows, path, witness).collect();
    let full = full(&rows, &losses, witness, largest);
    if !full.is_empty() {
        let queues: Vec<f64> = full.iter().map(|loss| loss.queue).collect();
        return Some(Finding::Estimate {
            bytes: order::median(&queues)?,
            interval: order::median_interval(&queues, 0.95),
            drops: queues.len(),
            load: full.iter().map(|loss| loss.load).min_by(f64::total_cmp)?,
        });
    }
    // A queue stood at a full line: so much at least fits.
    let stood = witness.largest(rows.iter().filter(|row| row.load >= FULL_LOAD));
    match (stood, losses.is_empty()) {
        (Some(bytes), _) => Some(Finding::LowerBound { bytes, other_losses: losses.len() }),
        (None, true) => Some(Finding::LowerBound { bytes: largest, other_losses: 0 }),
        (None, false) => Some(Finding::NotAFullQueue {
            losses: losses.len(),
            load: losses.iter().map(|loss| loss.load).max_by(f64::total_cmp)?,
            queue_bytes: losses.iter().map(|loss| loss.queue).max_by(f64::total_cmp)?,
        }),
    }
}

/// The drops of a full queue: those behind the omitted start if there are any. In slow start a window doubles within a round
/// trip, and the line of the sending host itself holds a queue, which a round trip does not tell from the other.
fn full<'l>(rows: &[Row], losses: &'l [Loss], witness: DelaySource, largest: f64) -> Vec<&'l Loss> {
    let among = |wanted: &dyn Fn(&Loss) -> bool, largest: f64| {
        let stands =
            |loss: &&Loss| loss.load >= FULL_LOAD && loss.queue > MIN_QUEUE_SHARE * largest && wanted(loss);
        losses.iter().filter(stands).collect::<Vec<_>>()
    };
    let behind = witness.largest(rows.iter().filter(|row| !row.reading.omitted));
    let steady = among(&|loss| !loss.omitted, behind.unwrap_or(largest));
    if steady.is_empty() { among(&|_| true, largest) } else { steady }
}

/// A loss is repaired within so many round trips; what is sent again later was lost anew.
const REPAIR_ROUND_TRIPS: f64 = 4.0;

/// Every interval in which a repair began. It begins a round trip after the drop, of a packet that had gone through the
/// full queue: that queue stood up to two of these before.
fn losses<'r>(rows: &'r [Row], path: &Path, witness: DelaySource) -> impl Iterator<Item = Loss> + 'r {
    let repair_s = REPAIR_ROUND_TRIPS * path.base_rtt_s;
    let is_short = move |row: &Row| row.reading.span_s < repair_s;
    let repairs = move |row: &Row| row.reading.retransmits > 0 && is_short(row);
    let longest = rows.iter().filter_map(|row| row.reading.probe_rtt_s.or(row.rtt_s)).max_by(f64::total_cmp);
    let reach_s = 2.0 * longest.unwrap_or(path.base_rtt_s);
    let of = move |at: usize| {
        let began = rows[at].reading.retransmits > 0 && (at == 0 || !repairs(&rows[at - 1]));
        began.then_some(())?;
        let from = reach(&rows[..at], reach_s);
        // Behind a queue that filled within milliseconds the acknowledgements of the full line come after the repair began.
        let to = if rows.get(at + 1).is_some_and(is_short) { at + 1 } else { at };
        let load = rows[from..=to].iter().map(|row| row.load).max_by(f64::total_cmp)?;
        // Where the window jumped and nobody told a round trip, no queue was seen.
        let queue = witness.largest(&rows[from..=at]).unwrap_or(0.0);
        Some(Loss { queue, load, omitted: rows[at].reading.omitted })
    };
    (0..rows.len()).filter_map(of)
}

/// The first of the last intervals that together last `reach_s`.
fn reach(before: &[Row], reach_s: f64) -> usize {
    let mut covered = 0.0;
    let far = before.iter().rposition(|row| {
        covered += row.reading.span_s;
        covered >= reach_s
    });
    far.unwrap_or(0)
}

/// A buffer that suits a path, by one rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// What it is for.
    pub wish: &'static str,
    /// Bytes.
    pub bytes: f64,
}

/// The buffers with which a path would be fit, largest first.
///
/// Units: bit/s, s, flows ≥ 1. Source: Villamizar and Song 1994; Appenzeller, Keslassy and McKeown 2004; one back-off of a
/// single flow that keeps the line full (Reno halves, CUBIC keeps 0.7: RFC 9438 section 4.6).
#[must_use]
pub fn fits(drain_bps: f64, rtt_s: f64, flows: f64) -> Vec<Fit> {
    let fit = |wish, bytes: Option<f64>| bytes.map(|bytes| Fit { wish, bytes });
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
