//! Throughput, latency, frame loss and bursts in the terms of RFC 2544.

use std::collections::BTreeMap;

use linerate_model::{
    Direction, MethodCell, MethodRow, MethodTable, Outcome, PlanPoint, PlanRecord, RunRecord, Tally, TrialEnd,
};
use linerate_theory::framing::{
    CLOCK_TOLERANCE_PPM, ETHERNET_HEADER_BYTES, FCS_BYTES, PREAMBLE_AND_GAP_BYTES, UDP_HEADER_BYTES,
};
use linerate_theory::rfc2544::{frame_loss_percent, implied_buffer_s};
use linerate_theory::stats::order::median;

use super::points::{FlowAtPoint, Points, numbers, text_column};
use crate::axis::AxisTarget;
use crate::plan::Plan;
use crate::progress::trial_of;

/// Header of IPv4 without options (RFC 791).
const IPV4_BYTES: f64 = 20.0;

/// Frames of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SizedFrames {
    /// Bytes of UDP payload in each.
    payload: f64,
}

impl SizedFrames {
    /// Bytes of a frame including its FCS, as the RFC counts.
    fn bytes(self) -> f64 {
        self.payload + UDP_HEADER_BYTES + IPV4_BYTES + ETHERNET_HEADER_BYTES + FCS_BYTES
    }

    /// Frames per second at a payload rate.
    fn per_second(self, payload_bps: f64) -> f64 {
        payload_bps / (8.0 * self.payload)
    }

    /// Line rate of a frame rate, bit/s.
    fn line_bps(self, per_second: f64) -> f64 {
        per_second * 8.0 * (self.bytes() + PREAMBLE_AND_GAP_BYTES)
    }
}

/// Throughput by frame size, then the loss at each load.
pub(super) fn tables(
    plan: &Plan,
    record: &PlanRecord,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Vec<MethodTable> {
    let (Some(points), Some(search)) = (Points::of(record), &plan.search) else { return Vec::new() };
    let searches = |name: &str| {
        search.targets.iter().any(|target| match target {
            AxisTarget::Test(knob) | AxisTarget::Flow { knob, .. } => knob == name,
            _ => false,
        })
    };
    if searches("blocks") {
        return bursts(plan, record, &points).into_iter().collect();
    }
    if !searches("rate") {
        return Vec::new();
    }
    [throughput(plan, record, &points, runs), loss(plan, record, &points, runs)]
        .into_iter()
        .flatten()
        .collect()
}

/// The frames of a point: those of its first UDP test.
fn frames_of(plan: &Plan, point: &PlanPoint) -> Option<SizedFrames> {
    let mut all = (0..plan.grid.len()).filter_map(|number| plan.point(number).ok());
    let known = all.find(|known| known.id.to_string() == point.id)?;
    let payload = known.tests.iter().find(|test| test.spec.traffic.udp)?.spec.traffic.length?;
    (payload.get() > 0).then_some(SizedFrames { payload: payload.get() as f64 })
}

/// The flow of a point for its figures: the first one that was measured.
fn flow_of<'r>(points: &Points<'r>, point: &'r PlanPoint) -> Option<FlowAtPoint<'r>> {
    let ways = points.flows_with("goodput");
    ways.into_iter().find(|way| way.point.id == point.id)
}

/// Results of the searches at a point, over its repeats.
fn found(record: &PlanRecord, point: &PlanPoint, shown: impl Fn(f64) -> f64) -> MethodCell {
    let of_point = record.found.iter().filter(|found| found.point == point.id);
    let all: Vec<f64> = of_point.filter_map(|found| found.number).map(shown).collect();
    let ends = (all.len() > 1).then(|| {
        all.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(*one), high.max(*one)))
    });
    MethodCell {
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
        ..MethodCell::number(median(&all))
    }
}

/// Sections 26.1 and 26.2.
fn throughput(
    plan: &Plan,
    record: &PlanRecord,
    points: &Points<'_>,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Option<MethodTable> {
    let rows = points.start.points.iter().filter_map(|point| {
        let frames = frames_of(plan, point)?;
        let way = flow_of(points, point);
        let most = way.and_then(|way| points.number(&way, "ceiling")).map(|bps| frames.per_second(bps));
        let asked = found(record, point, |bps| frames.per_second(bps));
        let arrived = way.and_then(|way| points.number(&way, "goodput")).map(|bps| frames.per_second(bps));
        let passed = FoundRates::of(record, point, frames, runs);
        let rate = carried(&asked, &passed, arrived);
        let share = rate.value.zip(most).and_then(|(rate, most)| percent_of_maximum(rate, most));
        let cells = vec![
            MethodCell::text(format!("{:.0}", frames.bytes())),
            asked,
            MethodCell::number(median(&passed.sent)),
            rate.clone(),
            MethodCell::number(most),
            MethodCell { at_least: rate.at_least, ..MethodCell::number(share) },
            MethodCell {
                at_least: rate.at_least,
                ..MethodCell::number(rate.value.map(|rate| frames.line_bps(rate)))
            },
            way.map_or_else(MethodCell::default, |way| points.cell(&way, "rtt_mean")),
        ];
        Some(MethodRow { point: Some(point.id.clone()), cells })
    });
    let rows: Vec<MethodRow> = rows.collect();
    let mut notes = vec![
        "The generator is software. If it sent less than requested, the throughput is a lower bound for the \
         device. Otherwise, a rate below the theoretical maximum may be the limit of the device or of a \
         host: first connect the hosts back to back, where they must send 10 % more than the claimed rate \
         of the device."
            .to_owned(),
        "Follows RFC 2544 with deviations: no frames of 64 bytes, no learning frames, and the latency is \
         the round trip of software probes under load instead of that of one tagged frame (section 26.2)."
            .to_owned(),
    ];
    let repeats = points.start.repeats;
    if repeats > 1 {
        notes.insert(0, format!("Medians of {repeats} searches, with minimum and maximum."));
    }
    (!rows.is_empty()).then(|| MethodTable {
        title: "Throughput and latency (RFC 2544 sections 26.1 and 26.2)".into(),
        about: "The received rate at the highest load without frame loss, the requested and sent rates, and \
                the theoretical maximum of the line, for each frame size including FCS."
            .into(),
        columns: vec![
            text_column("frame size"),
            numbers("requested load", "frames/s"),
            numbers("sent", "frames/s"),
            numbers("throughput", "frames/s"),
            numbers("theoretical maximum", "frames/s"),
            numbers("of maximum", "%"),
            numbers("on the line", "bit/s"),
            numbers("round trip at throughput", "ns"),
        ],
        rows,
        notes: notes.into_iter().map(Into::into).collect(),
    })
}

/// Frames per second sent and received in the trials at the loads that searches found.
#[derive(Debug, Default)]
struct FoundRates {
    sent: Vec<f64>,
    received: Vec<f64>,
}

impl FoundRates {
    fn of(
        record: &PlanRecord,
        point: &PlanPoint,
        frames: SizedFrames,
        runs: &dyn Fn(&str) -> Option<RunRecord>,
    ) -> Self {
        let found = record.found.iter().filter(|found| found.point == point.id);
        let mut passed = Self::default();
        for trial in found.filter_map(|found| trial_of(record, found)) {
            for one in counted(trial, frames, runs) {
                passed.sent.extend(one.per_second);
                passed.received.extend(one.received_per_second);
            }
        }
        passed
    }
}

/// Received rate at the load that a search found, with minimum and maximum of several searches. If the host
/// sent less than requested, the device may carry more. `arrived` is used if the trials themselves are not
/// available.
fn carried(asked: &MethodCell, passed: &FoundRates, arrived: Option<f64>) -> MethodCell {
    let Some(rate) = median(&passed.received).or(arrived) else { return MethodCell::default() };
    let sent = median(&passed.sent).unwrap_or(rate);
    let at_least = asked.value.is_some_and(|asked| sent < SENT * asked);
    let several = (passed.received.len() > 1).then_some(&passed.received);
    let end = |end: fn(f64, f64) -> f64| several.and_then(|all| all.iter().copied().reduce(end));
    MethodCell { low: end(f64::min), high: end(f64::max), at_least, ..MethodCell::number(rate) }
}

/// A rate as percent of the line's maximum. A small excess within the clock tolerance counts as 100; a larger
/// excess does not belong to this line and gives `None`.
fn percent_of_maximum(rate: f64, most: f64) -> Option<f64> {
    let share = rate / most;
    (share <= 1.0 + CLOCK_TOLERANCE_PPM * 1e-6).then(|| share.min(1.0) * 100.0)
}

/// A host that sent at least this share of the requested rate has sent it; edges of a trial cause the rest.
const SENT: f64 = 0.98;

/// Section 26.3: the loss at every load that was tried, the highest first.
fn loss(
    plan: &Plan,
    record: &PlanRecord,
    points: &Points<'_>,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Option<MethodTable> {
    let mut rows = Vec::new();
    for point in &points.start.points {
        let Some(frames) = frames_of(plan, point) else { continue };
        // Loads in whole bit/s, so that they can be sorted.
        let mut loads: BTreeMap<u64, Vec<TrialLoad>> = BTreeMap::new();
        for trial in record.trials.iter().filter(|trial| trial.point == point.id) {
            let Some(step) = &trial.step else { continue };
            loads.entry(step.number as u64).or_default().extend(counted(trial, frames, runs));
        }
        for (bps, counted) in loads.into_iter().rev() {
            let (sent, lost): (f64, f64) =
                counted.iter().fold((0.0, 0.0), |(sent, lost), one| (sent + one.sent, lost + one.lost));
            let offered = median(&counted.iter().filter_map(|one| one.per_second).collect::<Vec<f64>>());
            rows.push(MethodRow {
                point: Some(point.id.clone()),
                cells: vec![
                    MethodCell::text(format!("{:.0}", frames.bytes())),
                    MethodCell::number(frames.per_second(bps as f64)),
                    MethodCell::number(offered),
                    MethodCell::number(frame_loss_percent(sent, sent - lost)),
                ],
            });
        }
    }
    (!rows.is_empty()).then(|| MethodTable {
        title: "Frame loss rate (RFC 2544 section 26.3)".into(),
        about: "Share of the sent frames that did not arrive, by requested load.".into(),
        columns: vec![
            text_column("frame size"),
            numbers("requested load", "frames/s"),
            numbers("sent", "frames/s"),
            numbers("frame loss rate", "%"),
        ],
        rows,
        notes: vec![
            "If the line or the host cannot send the requested load, the sent load is lower. The RFC's own \
             loads fall in steps of 10 %; the other loads come from the search."
                .into(),
        ],
    })
}

/// The load of a trial.
struct TrialLoad {
    sent: f64,
    lost: f64,
    /// Frames sent per second, by the sender's own time.
    per_second: Option<f64>,
    received_per_second: Option<f64>,
}

fn counted(
    trial: &TrialEnd,
    frames: SizedFrames,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Vec<TrialLoad> {
    let completed = trial.runs.iter().filter(|run| run.outcome == Outcome::Completed);
    let flows = completed.filter_map(|run| runs(&run.run)).flat_map(|run| run.flows);
    let load = |flow: linerate_model::FlowRecord| {
        let sent = flow.datagrams()?.0 as f64;
        let receiver = flow.receiver?;
        let udp = receiver.udp.as_ref()?;
        let lost = udp.lost as f64;
        let rate = |tally: &Tally| Some(tally.bitrate.bps()).filter(|bps| *bps > 0.0);
        let per_second = |tally: &Tally| rate(tally).map(|bps| frames.per_second(bps));
        // If only the receiver's counts are known, lost frames are assumed at the same rate.
        let of_receiver = || Some(per_second(&receiver)? * sent / udp.packets.max(1) as f64);
        let offered = flow.sender.as_ref().and_then(per_second).or_else(of_receiver);
        let received_per_second = per_second(&receiver);
        (sent > 0.0).then_some(TrialLoad { sent, lost, per_second: offered, received_per_second })
    };
    flows.filter(|flow| flow.plan.direction == Direction::Upload).filter_map(load).collect()
}

/// Section 26.4: the longest burst that arrives completely.
fn bursts(plan: &Plan, record: &PlanRecord, points: &Points<'_>) -> Option<MethodTable> {
    let rows = points.start.points.iter().filter_map(|point| {
        let frames = frames_of(plan, point)?;
        let way = flow_of(points, point);
        let most = way.and_then(|way| points.number(&way, "ceiling")).map(|bps| frames.per_second(bps));
        let burst = found(record, point, |frames| frames);
        let largest = plan.search.as_ref().and_then(|search| search.high.number());
        // The whole range passed: the device may handle more.
        let burst = MethodCell { at_least: burst.value.is_some() && burst.value == largest, ..burst };
        let time = burst
            .value
            .zip(most)
            .and_then(|(burst, most)| implied_buffer_s(burst, most))
            .map(|seconds| seconds * 1e9);
        let cells = vec![
            MethodCell::text(format!("{:.0}", frames.bytes())),
            burst.clone(),
            MethodCell { at_least: burst.at_least, ..MethodCell::number(time) },
            MethodCell::number(most),
        ];
        Some(MethodRow { point: Some(point.id.clone()), cells })
    });
    let rows: Vec<MethodRow> = rows.collect();
    (!rows.is_empty()).then(|| MethodTable {
        title: "Back-to-back frames (RFC 2544 section 26.4)".into(),
        about: "The longest burst of frames without loss, with frames as close together as the host can \
                send them."
            .into(),
        columns: vec![
            text_column("frame size"),
            numbers("frames in the burst", "1"),
            numbers("time at the maximum rate", "ns"),
            numbers("theoretical maximum", "frames/s"),
        ],
        rows,
        notes: vec![
            "The generator is software: gaps between frames are larger than the minimum of the line, so a \
             burst may be longer than the buffer of the device. RFC 9004 corrects for a throughput below \
             the maximum."
                .into(),
        ],
    })
}
