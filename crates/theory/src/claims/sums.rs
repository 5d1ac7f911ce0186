//! Whether the lines of a test agree: streams with their sum, intervals with the total, both ends with each
//! other.

use std::collections::BTreeMap;

use linerate_model::import::{Claim, ClaimScope, Quantity};
use linerate_model::metrics::Side;
use linerate_units::Span;

use super::case::{CheckedTest, LineSequence, row};
use super::judgement::{Check, Reason, Verdict};
use super::range::FigureRange;
use crate::format;

/// Quantities that add up over streams and over intervals.
const ADDITIVE: [Quantity; 4] = [Quantity::Bytes, Quantity::Packets, Quantity::Lost, Quantity::Retransmits];
/// Relative difference allowed between sums and totals, for bytes between two reads of a counter.
const SUM_TOLERANCE: f64 = 0.001;
/// Relative difference allowed for datagrams.
const DATAGRAM_SUM_TOLERANCE: f64 = 0.01;
/// Share of the total that may arrive after the last interval was printed.
const MAX_DRAINED_SHARE: f64 = 0.1;
/// Ratio of received to sent datagrams above which duplicates do not explain it.
const MAX_ARRIVAL_FACTOR: f64 = 2.0;
/// Bytes that both ends may attribute to different parts if each omits the start by its own clock.
const OMIT_SLACK_BYTES: f64 = 10_485_760.0;
/// Lines whose times differ by less than this are about the same time, s.
const SAME_TIME_S: f64 = 0.1;

/// Checks lines against each other.
pub(super) fn check(case: &mut CheckedTest<'_>) {
    streams(case);
    intervals(case);
    both_ends(case);
}

/// Lines that add up: same part of the test, same direction, same side.
type SummedLines = (bool, LineSequence, bool, Option<i64>);

fn group(claim: &Claim, shift_s: f64) -> SummedLines {
    let interval = claim.scope == ClaimScope::Interval;
    let (_, direction, sender) = row(claim);
    // Totals of streams start together, and end when each stream is done.
    let begin = claim.start.map(|start| ((start.as_secs_f64() + shift_s) / SAME_TIME_S).floor() as i64);
    (interval, (None, direction, sender), claim.omitted, begin.filter(|_| interval))
}

/// Checks each sum of streams against the streams.
fn streams(case: &mut CheckedTest<'_>) {
    let claims = case.claims;
    let mut groups: BTreeMap<SummedLines, Vec<&Claim>> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| claim.stream.is_some() && claim.scope != ClaimScope::Size) {
        groups.entry(group(claim, 0.0)).or_default().push(claim);
    }
    let certain = |claim: &Claim| claim.stream.is_none() && (claim.direction.is_some() || !case.both_ways);
    let sums: Vec<(usize, &Claim)> = claims.iter().enumerate().filter(|(_, claim)| certain(claim)).collect();
    for (index, sum) in sums {
        // Half a step either way, so that a line at the edge of a step is found.
        let near = [0.0, SAME_TIME_S / 2.0, -SAME_TIME_S / 2.0].map(|shift| group(sum, shift));
        let Some(parts) = near.iter().find_map(|key| groups.get(key)) else { continue };
        let together: Vec<&Claim> = parts.iter().copied().filter(|part| ends_together(part, sum)).collect();
        add_up(case, index, sum, &together, together.len() == parts.len());
    }
}

fn ends_together(part: &Claim, sum: &Claim) -> bool {
    match (part.end, sum.end) {
        (Some(a), Some(b)) => (a.as_secs_f64() - b.as_secs_f64()).abs() <= SAME_TIME_S,
        _ => true,
    }
}

/// `all`: no other stream has a line about this time.
fn add_up(case: &mut CheckedTest<'_>, index: usize, sum: &Claim, parts: &[&Claim], all: bool) {
    let mut numbers: Vec<Option<u32>> = parts.iter().map(|part| part.stream).collect();
    numbers.sort_unstable();
    // If a stream number occurs twice, it is unclear which lines belong together.
    if numbers.is_empty() || numbers.windows(2).any(|pair| pair[0] == pair[1]) {
        return;
    }
    let asked = usize::try_from(case.context.streams.unwrap_or(1)).unwrap_or(usize::MAX);
    let complete = all && (parts.len() == asked || (sum.direction.is_some() && parts.len() * 2 == asked));
    // A part of a file shows fewer streams than there were, unless their number is stated.
    let stated = !case.context.from_file || case.stated_streams > 1;
    for quantity in ADDITIVE {
        let Some(printed) = FigureRange::in_claim(sum, quantity) else { continue };
        let Some(added) = total(parts, quantity) else { continue };
        let loose = loose(quantity);
        let too_much = added.low > printed.high * (1.0 + loose);
        // iperf3 counts sent packets for each stream, but received packets for their sum.
        let sent = quantity == Quantity::Packets && case.context.udp && sum.side == Some(Side::Receiver);
        if too_much && sent {
            continue;
        }
        if !too_much && (!complete || printed.meets(added.widened(loose))) {
            continue;
        }
        let text = format!(
            "The {} streams add up to {}, but the printed sum is {}.",
            parts.len(),
            amount(quantity, added.middle()),
            amount(quantity, printed.middle())
        );
        let verdict = if too_much || stated { Verdict::Impossible } else { Verdict::Doubtful };
        let reason = Reason::new(Check::SumOfStreams, verdict, text)
            .with("added", Some(added.middle()))
            .with("sum", Some(printed.middle()));
        case.remark(index, quantity, reason);
    }
}

/// In iperf3, datagrams that arrive last are in one count and not in the other.
fn loose(quantity: Quantity) -> f64 {
    if matches!(quantity, Quantity::Packets | Quantity::Lost) {
        DATAGRAM_SUM_TOLERANCE
    } else {
        SUM_TOLERANCE
    }
}

fn total(parts: &[&Claim], quantity: Quantity) -> Option<FigureRange> {
    let nothing = FigureRange { low: 0.0, high: 0.0 };
    parts.iter().try_fold(nothing, |sum, part| Some(sum.plus(FigureRange::in_claim(part, quantity)?)))
}

/// Sums over the intervals of a row.
struct Added {
    count: usize,
    begin_s: Option<f64>,
    end_s: Option<f64>,
    in_a_row: bool,
    sums: [Option<FigureRange>; ADDITIVE.len()],
}

impl Added {
    fn of(parts: &[&Claim]) -> Self {
        let follows = |pair: &[&Claim]| match (pair[0].end, pair[1].start) {
            (Some(end), Some(start)) => (start.as_secs_f64() - end.as_secs_f64()).abs() < SAME_TIME_S,
            _ => false,
        };
        Self {
            count: parts.len(),
            begin_s: parts.first().and_then(|first| first.start).map(Span::as_secs_f64),
            end_s: parts.last().and_then(|last| last.end).map(Span::as_secs_f64),
            in_a_row: parts.windows(2).all(follows),
            sums: ADDITIVE.map(|quantity| total(parts, quantity)),
        }
    }

    fn covers(&self, whole: &Claim) -> bool {
        let near =
            |a: Option<f64>, b: Option<f64>| a.zip(b).is_some_and(|(a, b)| (a - b).abs() < SAME_TIME_S);
        near(self.begin_s, whole.start.map(Span::as_secs_f64))
            && near(self.end_s, whole.end.map(Span::as_secs_f64))
    }
}

/// Checks each total against its intervals.
fn intervals(case: &mut CheckedTest<'_>) {
    let claims = case.claims;
    let mut rows: BTreeMap<LineSequence, Vec<&Claim>> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| claim.scope == ClaimScope::Interval && !claim.omitted) {
        rows.entry(row(claim)).or_default().push(claim);
    }
    let rows: BTreeMap<LineSequence, Added> =
        rows.iter().map(|(key, parts)| (*key, Added::of(parts))).collect();
    for (index, whole) in claims.iter().enumerate().filter(|(_, claim)| claim.scope == ClaimScope::Total) {
        let Some(parts) = rows.get(&row(whole)).filter(|parts| parts.in_a_row) else { continue };
        for (quantity, added) in ADDITIVE.into_iter().zip(parts.sums) {
            let Some((added, printed)) = added.zip(FigureRange::in_claim(whole, quantity)) else { continue };
            let verdict = if added.low > printed.high * (1.0 + loose(quantity)) {
                Verdict::Impossible
            } else if parts.covers(whole) && printed.low > added.high * (1.0 + MAX_DRAINED_SHARE) {
                Verdict::Doubtful
            } else {
                continue;
            };
            let text = format!(
                "The {} intervals add up to {}, but the printed total is {}.",
                parts.count,
                amount(quantity, added.middle()),
                amount(quantity, printed.middle())
            );
            let reason = Reason::new(Check::SumOfIntervals, verdict, text)
                .with("added", Some(added.middle()))
                .with("whole", Some(printed.middle()));
            case.remark(index, quantity, reason);
        }
    }
}

/// Checks each receiver against its sender.
fn both_ends(case: &mut CheckedTest<'_>) {
    let claims = case.claims;
    let totals =
        || claims.iter().enumerate().filter(|(_, claim)| claim.scope == ClaimScope::Total && !claim.omitted);
    let mut senders = BTreeMap::new();
    for (_, claim) in totals().filter(|(_, claim)| claim.side == Some(Side::Sender)) {
        senders.entry((claim.stream, claim.direction)).or_insert(claim);
    }
    let omits = claims.iter().any(|claim| claim.omitted);
    for (index, receiver) in totals().filter(|(_, claim)| claim.side == Some(Side::Receiver)) {
        let Some(sender) = senders.get(&(receiver.stream, receiver.direction)) else { continue };
        let both = FigureRange::in_claim(sender, Quantity::Bytes)
            .zip(FigureRange::in_claim(receiver, Quantity::Bytes));
        // An end that prints only zeros for the other end got no results from it.
        let Some((sent, got)) = both.filter(|(sent, got)| sent.high > 0.0 && got.low > sent.high) else {
            continue;
        };
        // Datagrams may be duplicated, and both ends may omit different parts.
        let doubled = case.context.udp && got.low <= sent.high * MAX_ARRIVAL_FACTOR;
        let excused = doubled || (omits && got.low <= sent.high + OMIT_SLACK_BYTES);
        let verdict = if excused { Verdict::Doubtful } else { Verdict::Impossible };
        let text = format!(
            "The receiver got {}, but the sender sent {}.",
            format::size(got.middle()),
            format::size(sent.middle())
        );
        let reason = Reason::new(Check::ReceivedOverSent, verdict, text)
            .with("received_bytes", Some(got.middle()))
            .with("sent_bytes", Some(sent.middle()))
            .with("excess_bytes", Some(got.low - sent.high));
        case.remark(index, Quantity::Bytes, reason);
    }
}

fn amount(quantity: Quantity, value: f64) -> String {
    if quantity == Quantity::Bytes { format::size(value) } else { format!("{value:.0}") }
}
