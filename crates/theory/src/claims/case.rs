//! One test that is checked, and the reasons collected for its figures.

use std::collections::BTreeMap;

use linerate_model::import::{Claim, ClaimScope, ForeignTest, Quantity};
use linerate_model::metrics::Side;
use linerate_model::{Ceiling, CeilingShare, Direction};
use linerate_units::Bitrate;

use super::byte_accounting::MESSAGE_DIGITS;
use super::context::{Context, FullPacket};
use super::judgement::{Check, FigureRemark, Judged, Judgement, Reason, Verdict};
use super::range::FigureRange;
use crate::framing;

/// Default socket buffers: 4 MiB at the sender, 6 MiB at the receiver, bytes. Source: Linux `tcp_wmem`,
/// `tcp_rmem`.
const DEFAULT_BUFFERS_BYTES: f64 = 10_485_760.0;
/// Default socket buffers for a file, whose kernel is unknown: 4 MiB and the 32 MiB of Linux 6.18, bytes.
/// Source: Linux `tcp_wmem`, `tcp_rmem`.
const MAX_DEFAULT_BUFFERS_BYTES: f64 = 37_748_736.0;
/// Upper bound for the buffers of all connections of a test together, bytes.
const MAX_BUFFERS_BYTES: f64 = 67_108_864.0;
/// The first read of a receiver, whose bytes arrived before its clock started, bytes.
const FIRST_READ_BYTES: f64 = 131_072.0;
/// Largest relative error of a rate if clocks are right: 200 ppm.
pub(super) const CLOCKS: f64 = framing::CLOCK_TOLERANCE_PPM * 1e-6;

/// Stream, direction and side of consecutive lines.
pub(super) type LineSequence = (Option<u32>, Option<Direction>, Option<bool>);

/// The row of a line.
pub(super) fn row(claim: &Claim) -> LineSequence {
    (claim.stream, claim.direction, claim.side.map(|side| side == Side::Sender))
}

/// One test that is checked.
pub(super) struct CheckedTest<'a> {
    pub(super) claims: &'a [Claim],
    pub(super) context: Context,
    pub(super) frames: Vec<FullPacket>,
    /// Whether data went both ways at once, so that a line without a direction may be about either.
    pub(super) both_ways: bool,
    /// Number of connections stated by the file or the user.
    pub(super) stated_streams: u32,
    lines: Vec<CheckedLine>,
}

/// Results collected for a line.
#[derive(Default)]
struct CheckedLine {
    remarks: Vec<FigureRemark>,
    ceilings: Vec<Ceiling>,
}

/// The rate of a line: printed, or computed from its bytes and time.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineRate {
    /// The figure to blame if the rate is wrong.
    pub(super) quantity: Quantity,
    /// Middle of the range, bit/s.
    pub(super) bps: f64,
    pub(super) range: FigureRange,
    /// The range that remains with rounding alone.
    pub(super) rounded: FigureRange,
}

/// Result of comparing a rate with a ceiling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CeilingComparison {
    /// Not above it.
    Within,
    /// Above it by a number of bytes that buffers can hold.
    InBuffers(f64),
    /// Above it over a time that the line does not state.
    Untimed,
    /// Above it by more than buffers hold, bytes; `None` without a time.
    Beyond(Option<f64>),
}

impl<'a> CheckedTest<'a> {
    pub(super) fn new(test: &'a ForeignTest, context: &Context) -> Self {
        let stated_streams = context.streams.unwrap_or(test.spec.traffic.streams);
        let context = context.with_test(test);
        let frames = context.frames();
        let lines = test.claims.iter().map(|_| CheckedLine::default()).collect();
        let goes = |way| test.claims.iter().any(|claim| claim.direction == Some(way));
        let both_ways = test.spec.traffic.bidir || (goes(Direction::Upload) && goes(Direction::Download));
        Self { claims: &test.claims, context, frames, both_ways, stated_streams, lines }
    }

    pub(super) fn remark(&mut self, claim: usize, quantity: Quantity, reason: Reason) {
        let Some(line) = self.lines.get_mut(claim) else { return };
        // One comparison gives one reason per figure: the worst.
        let known =
            line.remarks.iter_mut().find(|(about, known)| (*about, known.check) == (quantity, reason.check));
        match known {
            Some((_, known)) if known.verdict >= reason.verdict => {}
            Some((_, known)) => *known = reason,
            None => line.remarks.push((quantity, reason)),
        }
    }

    pub(super) fn add_ceiling(&mut self, claim: usize, ceiling: Option<Ceiling>) {
        if let Some(line) = self.lines.get_mut(claim) {
            line.ceilings.extend(ceiling);
        }
    }

    /// The time that a line covers, s: as printed, as calls and their rate give more exactly, or from start to
    /// end.
    pub(super) fn seconds(&self, claim: &Claim) -> Option<FigureRange> {
        let printed = FigureRange::in_claim(claim, Quantity::Seconds);
        let calls = FigureRange::in_claim(claim, Quantity::Calls);
        let of_calls = calls
            .zip(FigureRange::in_claim(claim, Quantity::CallRate))
            .and_then(|(calls, rate)| calls.over(rate));
        if let Some(printed) = printed {
            return Some(of_calls.map_or(printed, |exact| printed.narrowed(exact)));
        }
        if claim.scope == ClaimScope::Size {
            return FigureRange::in_claim(claim, Quantity::OneWay);
        }
        let (start, end) = (claim.start?.as_secs_f64(), claim.end?.as_secs_f64());
        let length = (end >= start).then_some(end - start)?;
        // Both ends are rounded to an unknown digit; iperf3 prints hundredths.
        Some(FigureRange { low: (length - 0.01).max(0.0), high: length + 0.01 })
    }

    /// The rate of a line.
    pub(super) fn rate(&self, claim: &Claim) -> Option<LineRate> {
        if let Some(figure) = claim.figure(Quantity::Bitrate) {
            let share = 1.0 / self.directions(claim);
            let range = FigureRange::of(figure)?.scaled(share);
            let half = figure.step / 2.0;
            let rounded = FigureRange { low: figure.value - half, high: figure.value + half }.scaled(share);
            return Some(LineRate { quantity: Quantity::Bitrate, bps: figure.value * share, range, rounded });
        }
        let bytes = FigureRange::in_claim(claim, Quantity::Bytes)?;
        let range = bytes.scaled(8.0).over(self.seconds(claim)?)?;
        let bps = claim.figure(Quantity::Bytes)?.value * 8.0 / self.likely_seconds(claim)?;
        Some(LineRate { quantity: Quantity::Bytes, bps, range, rounded: range })
    }

    /// Number of directions that a rate adds up. It is two in iperf 2's sum of a bidirectional test, and for a
    /// bidirectional message.
    fn directions(&self, claim: &Claim) -> f64 {
        let sum = self.both_ways && claim.direction.is_none() && claim.stream.is_none();
        if sum || adds_both_ways(claim) == Some(true) { 2.0 } else { 1.0 }
    }

    /// The most likely duration of a line, s.
    pub(super) fn likely_seconds(&self, claim: &Claim) -> Option<f64> {
        let range = self.seconds(claim)?;
        let printed = claim.figure(Quantity::Seconds).map(|figure| figure.value);
        // A printed value inside the known range is the best estimate; otherwise the middle of the range.
        Some(printed.filter(|value| (range.low..=range.high).contains(value)).unwrap_or(range.middle()))
            .filter(|seconds| *seconds > 0.0)
    }

    /// Compares the rate of a line with a ceiling. `queue_bytes` is the accumulated excess of an interval and
    /// those before it.
    pub(super) fn standing(
        &self,
        claim: &Claim,
        rate: &LineRate,
        ceiling_bps: f64,
        queue_bytes: f64,
    ) -> CeilingComparison {
        let most = ceiling_bps * (1.0 + CLOCKS);
        if rate.range.low <= most {
            return CeilingComparison::Within;
        }
        let seconds = self.seconds(claim).map(|range| range.high);
        let too_much = seconds.map(|seconds| (rate.range.low - most) * seconds / 8.0);
        // A duration with few digits can make the excess look larger than the total.
        let all = FigureRange::in_claim(claim, Quantity::Bytes).map_or(f64::INFINITY, |bytes| bytes.high);
        let too_much = too_much.map(|bytes| bytes.min(all).max(queue_bytes));
        match too_much {
            Some(bytes) if bytes <= self.buffered_bytes(claim) => CeilingComparison::InBuffers(bytes),
            None if self.context.from_file && claim.scope == ClaimScope::Interval => {
                CeilingComparison::Untimed
            }
            other => CeilingComparison::Beyond(other),
        }
    }

    /// Bytes that buffers may have added to the count of a line.
    pub(super) fn buffered_bytes(&self, claim: &Claim) -> f64 {
        let streams = self.context.streams_of(claim.stream);
        let file = self.context.from_file;
        let default = if file { MAX_DEFAULT_BUFFERS_BYTES } else { DEFAULT_BUFFERS_BYTES };
        let buffers = self.context.buffers_bytes.unwrap_or(default) * streams;
        match (claim.side, claim.scope) {
            (None, _) if file => buffers.min(MAX_BUFFERS_BYTES),
            (Some(Side::Sender), _) | (_, ClaimScope::Interval) => buffers.min(MAX_BUFFERS_BYTES),
            (Some(Side::Receiver), _) => (FIRST_READ_BYTES * streams).min(MAX_BUFFERS_BYTES),
            (None, _) => 0.0,
        }
    }

    /// For each interval line: the excess bytes over a ceiling of it and its predecessors that later intervals
    /// did not compensate.
    pub(super) fn queues_bytes(&self, ceiling_bps: f64) -> Vec<f64> {
        let mut rows: BTreeMap<LineSequence, f64> = BTreeMap::new();
        let mut queues = Vec::with_capacity(self.claims.len());
        for claim in self.claims {
            let counted = (claim.scope == ClaimScope::Interval).then(|| self.interval(claim)).flatten();
            let Some((bytes, seconds)) = counted else {
                queues.push(0.0);
                continue;
            };
            let most = ceiling_bps * (1.0 + CLOCKS) * seconds.high / 8.0;
            let queue = rows.entry(row(claim)).or_default();
            *queue = (*queue + bytes.low - most).max(0.0);
            queues.push(*queue);
        }
        queues
    }

    fn interval(&self, claim: &Claim) -> Option<(FigureRange, FigureRange)> {
        let seconds = self.seconds(claim)?;
        let bytes = match FigureRange::in_claim(claim, Quantity::Bytes) {
            Some(bytes) => bytes,
            None => FigureRange::in_claim(claim, Quantity::Bitrate)?.times(seconds).scaled(0.125),
        };
        Some((bytes, seconds))
    }

    /// All results, by line and figure.
    pub(super) fn judged(mut self) -> Vec<Judged> {
        let lines = std::mem::take(&mut self.lines);
        let judged = |(claim, line): (&Claim, CheckedLine)| {
            let figures = claim.figures.iter().map(|figure| self.judgement(claim, &line, figure.quantity));
            Judged { judgements: figures.collect() }
        };
        self.claims.iter().zip(lines).map(judged).collect()
    }

    fn judgement(&self, claim: &Claim, line: &CheckedLine, quantity: Quantity) -> Judgement {
        let about = line.remarks.iter().filter(|(about, _)| *about == quantity);
        let mut reasons: Vec<Reason> = about.map(|(_, reason)| reason.clone()).collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.verdict));
        let verdict = reasons.first().map_or(Verdict::Possible, |reason| reason.verdict);
        let rate = self.rate(claim).filter(|rate| rate.quantity == quantity);
        let ceiling = rate.and_then(|rate| nearest(&line.ceilings, &rate));
        let share = ceiling.as_ref().zip(rate).and_then(|(ceiling, rate)| {
            // If the digits allow it, the rate counts as that of the ceiling.
            let least = rate.bps.min(rate.rounded.low.max(ceiling.bitrate_bps));
            CeilingShare::of(Bitrate::from_bps(least)?, ceiling)
        });
        Judgement { quantity, verdict, ceiling, share, reasons }
    }
}

/// Whether a rate adds up both directions: twice what its message and time give, as NetPIPE prints it.
fn adds_both_ways(claim: &Claim) -> Option<bool> {
    let size = FigureRange::in_claim(claim, Quantity::MessageSize)?;
    let one = size.scaled(8.0).over(FigureRange::in_claim(claim, Quantity::OneWay)?)?;
    let rate = FigureRange::in_claim(claim, Quantity::Bitrate)?;
    let meets = |factor: f64| rate.meets(one.scaled(factor).widened(MESSAGE_DIGITS));
    Some(!meets(1.0) && meets(2.0))
}

/// For each limit, the lowest ceiling that a rate does not exceed, or the highest. Of those, the lowest.
fn nearest(ceilings: &[Ceiling], rate: &LineRate) -> Option<Ceiling> {
    let mut all: Vec<&Ceiling> = ceilings.iter().collect();
    all.sort_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps));
    let holds = |ceiling: &Ceiling| rate.range.low <= ceiling.bitrate_bps * (1.0 + CLOCKS);
    let better = |ceiling: &Ceiling| {
        let others = all.iter().filter(|other| other.limit == ceiling.limit);
        if holds(ceiling) {
            others.clone().all(|other| !holds(other) || other.bitrate_bps >= ceiling.bitrate_bps)
        } else {
            others.clone().all(|other| !holds(other) && other.bitrate_bps <= ceiling.bitrate_bps)
        }
    };
    all.iter().find(|ceiling| better(ceiling)).map(|ceiling| (*ceiling).clone())
}

/// Values that no program can have measured on any path.
pub(super) fn domain(case: &mut CheckedTest<'_>) {
    for (index, claim) in case.claims.iter().enumerate() {
        for figure in &claim.figures {
            let text = if !figure.value.is_finite() {
                "It is not a finite number.".to_owned()
            } else if figure.value < 0.0 {
                "It is negative, which is not possible for this quantity.".to_owned()
            } else if figure.quantity == Quantity::LossRatio && figure.value - figure.step > 1.0 {
                "The loss exceeds 100 %.".to_owned()
            } else {
                continue;
            };
            case.remark(index, figure.quantity, Reason::new(Check::Domain, Verdict::Impossible, text));
        }
    }
}
