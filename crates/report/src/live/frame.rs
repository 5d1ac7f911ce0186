//! What viewers of a running test see, a few times a second, and the series that it makes.

use std::collections::BTreeMap;

use linerate_model::flow::FlowId;
use linerate_model::{Body, Direction, Event, ForeignText, Transport};
use linerate_units::{Bitrate, Span, Timestamp};
use serde::Serialize;

use super::{Live, LiveState, Moving};

/// The state of a running test.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveFrame {
    /// What happens now.
    pub state: LiveStateName,
    /// Position in the server's queue; 1 is next. Only while the test waits there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Estimated time until the end of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_seconds: Option<f64>,
    /// Whether the test may end before that.
    pub at_most: bool,
    /// Time since the start of the run.
    pub at_seconds: f64,
    /// Median round-trip time of the probes before the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_rtt_ns: Option<u64>,
    /// Whether this is a series over message sizes, whose flow has no rate of its own.
    pub by_size: bool,
    /// The flows that were planned so far.
    pub flows: Vec<LiveFlow>,
}

/// What a test does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LiveStateName {
    /// The server has not replied yet.
    Connecting,
    /// It waits in the server's queue.
    Queued,
    /// Latency is measured before the load.
    IdleLatency,
    /// Flows are prepared, or run.
    Measuring,
    /// It is over.
    Ended,
}

/// One flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveFlow {
    /// Its number in the run.
    pub flow: FlowId,
    /// Its name.
    pub name: ForeignText,
    /// The direction of its data.
    pub direction: Direction,
    /// What carries it.
    pub transport: Transport,
    /// Number of streams.
    pub streams: u32,
    /// Whether it runs.
    pub state: LiveFlowState,
    /// How long the receiver has read.
    pub elapsed_seconds: f64,
    /// How long it will, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_seconds: Option<f64>,
    /// The receiver's rate over the last 0.9 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitrate_bps: Option<f64>,
    /// The sender's smoothed round-trip time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srtt_ns: Option<u64>,
    /// Segments retransmitted so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Whether its streams are counted one by one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_streams: bool,
}

/// Whether a flow runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LiveFlowState {
    /// Not yet.
    Planned,
    /// It does.
    Running,
    /// The receiver has everything.
    Ended,
}

impl Live {
    /// The state after the latest event.
    #[must_use]
    pub fn frame(&self) -> LiveFrame {
        let (state, position) = match &self.stage {
            LiveState::Connecting => (LiveStateName::Connecting, None),
            LiveState::Queued(position) => (LiveStateName::Queued, Some(*position)),
            LiveState::IdleLatency => (LiveStateName::IdleLatency, None),
            LiveState::Flows | LiveState::Size(_) => (LiveStateName::Measuring, None),
            LiveState::Over => (LiveStateName::Ended, None),
        };
        let of_seconds = self.total.map(Span::as_secs_f64);
        LiveFrame {
            state,
            position,
            left_seconds: if state == LiveStateName::Ended { None } else { self.left.seconds() },
            at_most: self.left.at_most,
            at_seconds: (self.left.now - Timestamp::START).as_secs_f64(),
            idle_rtt_ns: self.idle_rtt.map(Span::as_ns),
            by_size: self.series,
            flows: self.flows.iter().map(|(flow, moving)| moving.frame(*flow, of_seconds)).collect(),
        }
    }
}

impl Moving {
    fn frame(&self, flow: FlowId, of_seconds: Option<f64>) -> LiveFlow {
        let elapsed = self.counts.back().map(|(elapsed, _)| *elapsed).unwrap_or_default();
        let state = match (self.ended, self.running) {
            (true, _) => LiveFlowState::Ended,
            (false, true) => LiveFlowState::Running,
            (false, false) => LiveFlowState::Planned,
        };
        LiveFlow {
            flow,
            name: self.name.clone(),
            direction: self.direction,
            transport: self.transport,
            streams: self.streams,
            state,
            elapsed_seconds: elapsed.as_secs_f64(),
            of_seconds,
            bitrate_bps: self.rate().map(Bitrate::bps),
            srtt_ns: self.srtt.map(Span::as_ns),
            retransmits: self.retransmits,
            counts_streams: self.counts_streams,
        }
    }
}

/// What the frames of one flow have shown, for a viewer who comes later.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveSeries {
    /// The flow.
    pub flow: FlowId,
    /// Times since the start of the run.
    pub at_seconds: Vec<f64>,
    /// Rates at these times.
    pub bitrate_bps: Vec<Option<f64>>,
    /// Smoothed round-trip times.
    pub srtt_ns: Vec<Option<u64>>,
    /// Segments retransmitted so far.
    pub retransmits: Vec<Option<u64>>,
    /// One of this number of frames becomes a point, and the frames since the last one.
    #[serde(skip)]
    stride: u32,
    #[serde(skip)]
    skipped: u32,
}

/// Points after which every second one is dropped: a test of a day stays as small as one of an hour.
const MAX_POINTS: usize = 4096;

/// A message size that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveSize {
    /// Bytes of a message.
    pub message_bytes: u64,
    /// Median time of one message, or the best if only that is known.
    pub one_way_ns: u64,
    /// Payload divided by that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitrate_bps: Option<f64>,
}

/// The series of all flows of a run, and the sizes of a series over message sizes.
#[derive(Debug, Clone, Default)]
pub struct LiveHistory {
    flows: BTreeMap<FlowId, LiveSeries>,
    sizes: BTreeMap<u64, LiveSize>,
}

impl LiveHistory {
    /// Adds a measured size, or what the frame after an event of progress has of its flow.
    pub fn add(&mut self, event: &Event, frame: &LiveFrame) {
        let of = match &event.body {
            Body::Progress { flow, .. } => *flow,
            Body::Size { point, .. } => {
                let message_bytes = point.message_bytes.get();
                let (one_way_ns, bitrate_bps) = (point.one_way().as_ns(), point.bitrate.map(Bitrate::bps));
                self.sizes.insert(message_bytes, LiveSize { message_bytes, one_way_ns, bitrate_bps });
                return;
            }
            _ => return,
        };
        let running =
            frame.flows.iter().filter(|flow| flow.flow == of && flow.state == LiveFlowState::Running);
        for flow in running.filter(|flow| flow.bitrate_bps.is_some()) {
            let series = self
                .flows
                .entry(flow.flow)
                .or_insert_with(|| LiveSeries { flow: flow.flow, ..LiveSeries::default() });
            if series.at_seconds.last().is_some_and(|last| *last >= frame.at_seconds) {
                continue;
            }
            series.push(frame.at_seconds, flow);
        }
    }

    /// The series, by the numbers of their flows.
    pub fn series(&self) -> impl Iterator<Item = &LiveSeries> {
        self.flows.values()
    }

    /// The measured sizes, the smallest first; of a size that was measured again, the later figures.
    pub fn sizes(&self) -> impl Iterator<Item = LiveSize> {
        self.sizes.values().copied()
    }
}

impl LiveSeries {
    fn push(&mut self, at_seconds: f64, flow: &LiveFlow) {
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        if self.at_seconds.len() >= MAX_POINTS {
            self.stride = self.stride.max(1) * 2;
            halve(&mut self.at_seconds);
            halve(&mut self.bitrate_bps);
            halve(&mut self.srtt_ns);
            halve(&mut self.retransmits);
        }
        self.at_seconds.push(at_seconds);
        self.bitrate_bps.push(flow.bitrate_bps);
        self.srtt_ns.push(flow.srtt_ns);
        self.retransmits.push(flow.retransmits);
    }
}

/// Drops every second value, beginning with the first.
fn halve<T>(values: &mut Vec<T>) {
    let mut number = 0;
    values.retain(|_| {
        number += 1;
        number % 2 == 0
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use linerate_model::{Outcome, Side, TestSpec};

    fn frame_after(bodies: &[(u16, Body)]) -> LiveFrame {
        let mut live = Live::new();
        for event in runs::log(bodies.to_vec()) {
            live.on(&event);
        }
        live.frame()
    }

    #[test]
    fn a_series_over_message_sizes_has_its_sizes_and_the_time_of_all_of_them() {
        let (mut live, mut history) = (Live::new(), LiveHistory::default());
        let mut left = Vec::new();
        let log = runs::sweep_run();
        for event in &log {
            live.on(event);
            let frame = live.frame();
            history.add(event, &frame);
            left.extend(frame.left_seconds.filter(|_| frame.by_size && frame.at_most));
            assert!(frame.flows.iter().all(|flow| flow.of_seconds.is_none()), "{frame:?}");
        }
        assert!(left.len() > 2 && left.is_sorted_by(|earlier, later| earlier >= later), "{left:?}");
        let sizes: Vec<u64> = history.sizes().map(|size| size.message_bytes).collect();
        let measured = log.iter().filter(|event| matches!(event.body, Body::Size { .. })).count();
        assert!(sizes.len() > 1 && sizes.len() == measured && sizes.is_sorted(), "{sizes:?}");
    }

    #[test]
    fn a_frame_has_the_state_and_what_is_known_of_each_flow() {
        let mut bodies = Vec::new();
        assert_eq!(frame_after(&bodies).state, LiveStateName::Connecting);
        bodies.push((1, Body::Queued { position: 3, wait: Span::ZERO }));
        let queued = frame_after(&bodies);
        assert_eq!((queued.state, queued.position), (LiveStateName::Queued, Some(3)));
        bodies.extend(runs::opening(TestSpec::default()));
        let idle = frame_after(&bodies);
        assert_eq!((idle.state, idle.position, idle.idle_rtt_ns), (LiveStateName::IdleLatency, None, None));
        bodies.push(runs::probes(None, 210));
        bodies.push(runs::planned(0, Direction::Download, Transport::Tcp));
        let planned = frame_after(&bodies);
        assert_eq!(planned.state, LiveStateName::Measuring);
        assert!(planned.idle_rtt_ns.is_some() && planned.left_seconds.is_some());
        assert_eq!(
            (planned.flows[0].state, planned.flows[0].bitrate_bps),
            (LiveFlowState::Planned, None),
            "what was not measured is absent"
        );
        bodies.push(runs::progress(FlowId(0), 100, 0, 7));
        bodies.push(runs::progress(FlowId(0), 600, 625_000, 9));
        let running = frame_after(&bodies);
        let flow = &running.flows[0];
        assert_eq!((flow.state, flow.bitrate_bps), (LiveFlowState::Running, Some(10e6)));
        assert_eq!((flow.elapsed_seconds, flow.of_seconds, flow.retransmits), (0.6, Some(10.0), Some(9)));
        bodies.push(runs::ended(FlowId(0), Side::Receiver, runs::tally(1e8)));
        assert_eq!(frame_after(&bodies).flows[0].state, LiveFlowState::Ended);
        bodies.push((0, Body::RunEnded { outcome: Outcome::Completed, reason: None }));
        let ended = frame_after(&bodies);
        assert_eq!((ended.state, ended.left_seconds), (LiveStateName::Ended, None));
    }

    /// An event of progress, after which the frames are.
    fn progress(flow: u16) -> Event {
        runs::log(vec![runs::progress(FlowId(flow), 100, 0, 0)]).remove(0)
    }

    fn frame_at(at_seconds: f64, bitrate_bps: f64) -> LiveFrame {
        let mut bodies = runs::opening(TestSpec::default());
        bodies.push(runs::planned(0, Direction::Upload, Transport::Tcp));
        bodies.push(runs::progress(FlowId(0), 100, 0, 0));
        let mut frame = frame_after(&bodies);
        frame.at_seconds = at_seconds;
        frame.flows[0].bitrate_bps = Some(bitrate_bps);
        frame
    }

    #[test]
    fn a_long_test_keeps_its_course_with_fewer_points() {
        let mut history = LiveHistory::default();
        let frames = MAX_POINTS * 9;
        for number in 0..frames {
            history.add(&progress(0), &frame_at(number as f64, number as f64));
        }
        let series: Vec<&LiveSeries> = history.series().collect();
        let [series] = series.as_slice() else { panic!("{series:?}") };
        let points = series.at_seconds.len();
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&points), "{points}");
        let gaps = series.at_seconds.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().all(|gap| gap > 0.0 && gap <= 32.0), "{:?}", gaps.reduce(f64::max));
        assert!(series.at_seconds[0] < 32.0);
        let rates: Vec<f64> = series.bitrate_bps.iter().map(|rate| rate.unwrap()).collect();
        assert_eq!(rates, series.at_seconds, "each value stays with its time");
        assert!(series.at_seconds.last().is_some_and(|last| *last > frames as f64 - 32.0));
    }

    #[test]
    fn a_frame_without_news_adds_no_point() {
        let mut history = LiveHistory::default();
        history.add(&progress(0), &frame_at(1.0, 5.0));
        history.add(&progress(0), &frame_at(1.0, 6.0));
        history.add(&progress(1), &frame_at(2.0, 6.0));
        assert_eq!(history.series().next().unwrap().at_seconds, [1.0]);
    }
}
