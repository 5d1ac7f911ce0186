//! Throughput, latency, frame loss and bursts in the terms of RFC 2544.

use std::collections::BTreeMap;

use linerate_model::{
    Direction, MethodCell, MethodRow, MethodTable, Outcome, PlanPoint, PlanRecord, RunRecord, TrialEnd,
};
use linerate_theory::framing::{ETHERNET_HEADER_BYTES, FCS_BYTES, PREAMBLE_AND_GAP_BYTES, UDP_HEADER_BYTES};
use linerate_theory::rfc2544::frame_loss_percent;
use linerate_theory::stats::order::median;

use super::points::{Points, Way, numbers, words};
use crate::axis::Target;
use crate::plan::Plan;

/// Header of IPv4 without options (RFC 791).
const IPV4_BYTES: f64 = 20.0;

/// Frames of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Frames {
    /// Bytes of UDP payload in each.
    payload: f64,
}

impl Frames {
    /// Bytes of a frame, its check sequence among them, as the RFC counts.
    fn bytes(self) -> f64 {
        self.payload + UDP_HEADER_BYTES + IPV4_BYTES + ETHERNET_HEADER_BYTES + FCS_BYTES
    }

    /// Frames in a second at a rate of payload.
    fn per_second(self, payload_bps: f64) -> f64 {
        payload_bps / (8.0 * self.payload)
    }

    /// Bits on the line at a rate of frames.
    fn line_bps(self, per_second: f64) -> f64 {
        per_second * 8.0 * (self.bytes() + PREAMBLE_AND_GAP_BYTES)
    }
}

/// Throughput by frame size, then what was lost at which load.
pub(super) fn tables(
    plan: &Plan,
    record: &PlanRecord,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Vec<MethodTable> {
    let (Some(points), Some(search)) = (Points::of(record), &plan.search) else { return Vec::new() };
    let searches = |name: &str| {
        search.targets.iter().any(|target| match target {
            Target::Test(knob) | Target::Flow { knob, .. } => knob == name,
            _ => false,
        })
    };
    if searches("blocks") {
        return bursts(plan, record, &points).into_iter().collect();
    }
    if !searches("rate") {
        return Vec::new();
    }
    [throughput(plan, record, &points), loss(plan, record, &points, runs)].into_iter().flatten().collect()
}

/// The frames of a point: those of its first test.
fn frames_of(plan: &Plan, point: &PlanPoint) -> Option<Frames> {
    let mut all = (0..plan.grid.len()).filter_map(|number| plan.point(number).ok());
    let known = all.find(|known| known.id.to_string() == point.id)?;
    let payload = known.tests.iter().find(|test| test.spec.traffic.udp)?.spec.traffic.length?;
    (payload.get() > 0).then_some(Frames { payload: payload.get() as f64 })
}

/// The way of a point on which its figures stand: that of its first flow that was measured.
fn way_of<'r>(points: &Points<'r>, point: &'r PlanPoint) -> Option<Way<'r>> {
    let ways = points.ways_with("goodput");
    ways.into_iter().find(|way| way.point.id == point.id)
}

/// What searches found at a point, over its repeats.
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
fn throughput(plan: &Plan, record: &PlanRecord, points: &Points<'_>) -> Option<MethodTable> {
    let rows = points.start.points.iter().filter_map(|point| {
        let frames = frames_of(plan, point)?;
        let way = way_of(points, point);
        let most = way.and_then(|way| points.number(&way, "ceiling")).map(|bps| frames.per_second(bps));
        let searched = found(record, point, |bps| {
            let asked = frames.per_second(bps);
            // What was asked for beyond the line never left.
            most.map_or(asked, |most| asked.min(most))
        });
        let arrived = way.and_then(|way| points.number(&way, "goodput")).map(|bps| frames.per_second(bps));
        let rate = carried(searched, arrived);
        let share = rate.value.zip(most).map(|(rate, most)| rate / most * 100.0);
        let cells = vec![
            MethodCell::text(format!("{:.0}", frames.bytes())),
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
        "The generator is software. Where it sent less than what was asked for, what arrived stands there as the least that \
         the device carries. Elsewhere a rate below the theoretical maximum may be that of the device or of a host: try the \
         hosts back to back first; they have to send a tenth more than what is claimed of a device."
            .to_owned(),
        "After RFC 2544, with deviations: no frames of 64 bytes, no learning frames, and the latency is a round trip by \
         software beside the load, not that of one tagged frame (section 26.2)."
            .to_owned(),
    ];
    let repeats = points.start.repeats;
    if repeats > 1 {
        notes.insert(0, format!("Medians of {repeats} searches, with the least and the largest."));
    }
    (!rows.is_empty()).then(|| MethodTable {
        title: "Throughput and latency (RFC 2544 sections 26.1 and 26.2)".to_owned(),
        about: "The highest rate at which no frame was lost, beside the theoretical maximum of the line for each size of \
                frame, check sequence included."
            .to_owned(),
        columns: vec![
            words("frame size"),
            numbers("throughput", "frames/s"),
            numbers("theoretical maximum", "frames/s"),
            numbers("of maximum", "%"),
            numbers("on the line", "bit/s"),
            numbers("round trip at throughput", "ns"),
        ],
        rows,
        notes,
    })
}

/// What a search found, or where the host sent less than that, what arrived of it: the device may carry more.
fn carried(searched: MethodCell, arrived: Option<f64>) -> MethodCell {
    match searched.value.zip(arrived) {
        Some((asked, arrived)) if arrived < SENT * asked => {
            MethodCell { at_least: true, ..MethodCell::number(arrived) }
        }
        _ => searched,
    }
}

/// A host that sent this share of what was asked for has sent it: the ends of a trial blur the rest.
const SENT: f64 = 0.98;

/// Section 26.3: the loss at every load that was tried, the largest first.
fn loss(
    plan: &Plan,
    record: &PlanRecord,
    points: &Points<'_>,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Option<MethodTable> {
    let mut rows = Vec::new();
    for point in &points.start.points {
        let Some(frames) = frames_of(plan, point) else { continue };
        // Loads as whole bit/s, so that they have an order.
        let mut loads: BTreeMap<u64, Vec<Load>> = BTreeMap::new();
        for trial in record.trials.iter().filter(|trial| trial.point == point.id) {
            let Some(step) = &trial.step else { continue };
            loads.entry(step.number as u64).or_default().extend(counted(trial, runs));
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
        title: "Frame loss rate (RFC 2544 section 26.3)".to_owned(),
        about: "Frames that were sent and did not arrive, by the load that was asked for.".to_owned(),
        columns: vec![
            words("frame size"),
            numbers("load asked for", "frames/s"),
            numbers("sent", "frames/s"),
            numbers("frame loss rate", "%"),
        ],
        rows,
        notes: vec![
            "A load beyond what line or host can send is not offered: what was sent stands beside it. The section's own loads \
             are steps of a tenth downwards; the others are those of the search."
                .to_owned(),
        ],
    })
}

/// What was offered in a trial.
struct Load {
    sent: f64,
    lost: f64,
    per_second: Option<f64>,
}

fn counted(trial: &TrialEnd, runs: &dyn Fn(&str) -> Option<RunRecord>) -> Vec<Load> {
    let completed = trial.runs.iter().filter(|run| run.outcome == Outcome::Completed);
    let flows = completed.filter_map(|run| runs(&run.run)).flat_map(|run| run.flows);
    let load = |flow: linerate_model::FlowRecord| {
        let receiver = flow.receiver?;
        let udp = receiver.udp?;
        let (lost, sent) = (udp.lost as f64, (udp.packets + udp.lost) as f64);
        let seconds = receiver.elapsed.as_secs_f64();
        (sent > 0.0).then(|| Load { sent, lost, per_second: (seconds > 0.0).then(|| sent / seconds) })
    };
    flows.filter(|flow| flow.plan.direction == Direction::Upload).filter_map(load).collect()
}

/// Section 26.4: the longest burst that comes through whole.
fn bursts(plan: &Plan, record: &PlanRecord, points: &Points<'_>) -> Option<MethodTable> {
    let rows = points.start.points.iter().filter_map(|point| {
        let frames = frames_of(plan, point)?;
        let way = way_of(points, point);
        let most = way.and_then(|way| points.number(&way, "ceiling")).map(|bps| frames.per_second(bps));
        let burst = found(record, point, |frames| frames);
        let largest = plan.search.as_ref().and_then(|search| search.high.number());
        // The whole range passed: the device may take more.
        let burst = MethodCell { at_least: burst.value.is_some() && burst.value == largest, ..burst };
        let time = burst.value.zip(most).map(|(burst, most)| burst / most * 1e9);
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
        title: "Back-to-back frames (RFC 2544 section 26.4)".to_owned(),
        about: "The longest burst of frames, as close as the host sends them, of which none is lost.".to_owned(),
        columns: vec![
            words("frame size"),
            numbers("frames in the burst", "1"),
            numbers("time at the maximum rate", "ns"),
            numbers("theoretical maximum", "frames/s"),
        ],
        rows,
        notes: vec![
            "The generator is software: gaps between frames are not the smallest ones that the line allows, so a burst may be \
             longer than what the device holds. RFC 9004 corrects by the throughput, where this is below the maximum."
                .to_owned(),
        ],
    })
}
