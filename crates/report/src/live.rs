//! A test while it runs: the status line on a terminal, and frames for other viewers.

mod frame;
mod streams;

use std::collections::{BTreeMap, VecDeque};

use linerate_model::flow::FlowId;
use linerate_model::{Body, Direction, Event, FlowPlan, ForeignText, ProbePhase, Side, TestSpec, Transport};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use crate::layout::{TextLayout, TextRole, width};
use crate::transactions;

pub use frame::{LiveFlow, LiveFlowState, LiveFrame, LiveHistory, LiveSeries, LiveSize, LiveStateName};
pub use streams::{LiveStreams, LiveStreamsHistory, LiveStreamsMoment};

/// The state of a test, folded from events.
#[derive(Debug, Clone, Default)]
pub struct Live {
    stage: LiveState,
    total: Option<Span>,
    left: TimeLeft,
    /// Whether this is a series over message sizes.
    series: bool,
    /// Bytes of a request, in a test that makes transactions.
    request: Option<Bytes>,
    /// Median round-trip time of the probes before the load.
    idle_rtt: Option<Span>,
    flows: BTreeMap<FlowId, Moving>,
}

#[derive(Debug, Clone, Default, PartialEq)]
enum LiveState {
    #[default]
    Connecting,
    Queued(u32),
    IdleLatency,
    Flows,
    Size(String),
    Over,
}

/// How long the whole test still takes: an estimate made at a known point of it.
#[derive(Debug, Clone, Default)]
struct TimeLeft {
    /// Usual duration of one phase; absent if it depends on the network.
    phase: Option<Span>,
    /// Phases of the test, and those that have begun.
    phases: u64,
    begun: u64,
    /// When the last estimate was made, and what was left then.
    estimate: Option<(Timestamp, Span)>,
    /// Time of the latest event.
    now: Timestamp,
    /// Whether the test may end early.
    at_most: bool,
}

impl TimeLeft {
    fn of(spec: &TestSpec, now: Timestamp) -> Self {
        let phases = spec.phases().len() as u64;
        // A series is expected to take as long as it may at most.
        let at_most = spec.traffic.until.is_some() || spec.sweep.is_some();
        let estimate = spec.expected_time().map(|left| (now, left));
        Self { phase: spec.phase_time(), phases, begun: 0, estimate, now, at_most }
    }

    /// The phases that have not begun are left, and this part of the current one.
    fn estimate(&mut self, current: Span) {
        let rest = self.phases.saturating_sub(self.begun);
        self.estimate = self.phase.map(|phase| (self.now, current + phase.saturating_mul(rest)));
    }

    /// A phase begins.
    fn begin_phase(&mut self) {
        self.begun += 1;
        self.estimate(self.phase.unwrap_or_default());
    }

    /// The estimate in whole seconds.
    fn seconds(&self) -> Option<f64> {
        let (made, left) = self.estimate?;
        Some(left.saturating_sub(self.now - made).as_secs_f64().ceil())
    }

    /// The same as text.
    fn text(&self) -> Option<String> {
        let left = self.seconds()?;
        Some(format!("{}{left:.0} s left", if self.at_most { "at most " } else { "" }))
    }
}

/// One flow during the run.
#[derive(Debug, Clone)]
struct Moving {
    name: ForeignText,
    direction: Direction,
    transport: Transport,
    streams: u32,
    running: bool,
    ended: bool,
    /// The receiver's last counts, oldest first.
    counts: VecDeque<(Span, Bytes)>,
    rates: VecDeque<f64>,
    srtt: Option<Span>,
    retransmits: Option<u64>,
    counts_streams: bool,
}

/// The displayed rate is a mean over at least this time, because shorter means fluctuate too much.
const SMOOTHING_TIME: Span = Span::from_ms(900);
/// Number of rates kept for the sparkline.
const SPARKLINE_RATES: usize = 40;
/// Narrowest useful sparkline.
const MIN_SPARKLINE_WIDTH: usize = 5;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Live {
    /// A line for a test that has not started.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Processes an event.
    pub fn on(&mut self, event: &Event) {
        self.left.now = self.left.now.max(event.at);
        match &event.body {
            Body::RunStarted(start) => {
                let traffic = &start.spec.traffic;
                self.series = start.spec.sweep.is_some();
                let is_timed = start.spec.is_timed() && !self.series;
                self.total = is_timed.then(|| traffic.measured() + traffic.omit.unwrap_or_default());
                self.request = transactions::request_length(&start.spec);
                self.left = TimeLeft::of(&start.spec, event.at);
                self.stage = LiveState::IdleLatency;
            }
            Body::Queued { position, .. } => self.stage = LiveState::Queued(*position),
            Body::FlowPlanned(plan) => {
                // Both flows of a phase in both directions are planned before one of them runs. A series has the time
                // of all its sizes.
                let begins = !self.series && self.flows.values().all(|flow| flow.ended);
                if begins {
                    self.left.begin_phase();
                }
                self.flows.insert(plan.flow, Moving::new(plan));
            }
            Body::FlowOpened { flow, .. } => self.start(*flow),
            Body::Progress { flow, bytes, elapsed, srtt, retransmits } => {
                self.start(*flow);
                if let Some(moving) = self.flows.get_mut(flow) {
                    moving.count(*elapsed, *bytes);
                    moving.srtt = srtt.or(moving.srtt);
                    moving.retransmits = retransmits.or(moving.retransmits);
                }
            }
            Body::Streams { flow, .. } => {
                if let Some(moving) = self.flows.get_mut(flow) {
                    moving.counts_streams = true;
                }
            }
            Body::FlowEnded { flow, side: Side::Receiver, .. } => {
                if let Some(moving) = self.flows.get_mut(flow) {
                    (moving.running, moving.ended) = (false, true);
                }
            }
            Body::Latency { report, .. } if report.phase == ProbePhase::Idle => {
                self.stage = LiveState::Flows;
                self.idle_rtt = (report.rtt.count > 0).then(|| Span::from_ns(report.rtt.p50_ns));
                self.left.estimate(Span::ZERO);
            }
            Body::Size { point, .. } => {
                let rate = point.bitrate.map(|rate| format!("  {rate}")).unwrap_or_default();
                self.stage = LiveState::Size(format!("{}  {}{rate}", point.message_bytes, point.one_way()));
            }
            Body::RunEnded { .. } => self.stage = LiveState::Over,
            _ => {}
        }
    }

    fn start(&mut self, flow: FlowId) {
        if let Some(moving) = self.flows.get_mut(&flow) {
            moving.running = true;
            if !self.series {
                self.stage = LiveState::Flows;
            }
        }
    }

    /// The line, at most as wide as the page and without a line end; empty after the run.
    ///
    /// Colour and block characters are for terminals: without colour the line is plain ASCII, except for names
    /// in it.
    #[must_use]
    pub fn line(&self, view: &TextLayout) -> String {
        let running: Vec<&Moving> = self.flows.values().filter(|flow| flow.running).collect();
        let stage = match (&self.stage, running.is_empty() || self.series) {
            (LiveState::Over, _) => return String::new(),
            (LiveState::Connecting, _) => "connecting".to_owned(),
            (LiveState::Queued(position), _) => format!("waiting in the server's queue, position {position}"),
            (LiveState::IdleLatency, _) if self.series => "measuring message sizes".to_owned(),
            (LiveState::IdleLatency, _) => "measuring idle latency".to_owned(),
            (LiveState::Size(latest), _) => format!("measuring message sizes: {latest}"),
            (LiveState::Flows, true) => "preparing".to_owned(),
            (LiveState::Flows, false) => return self.moving_line(&running, view),
        };
        let mut pieces = vec![StyledText::plain(stage)];
        if matches!(self.stage, LiveState::IdleLatency | LiveState::Flows) && !self.series {
            pieces.extend(self.left.text().map(StyledText::plain));
        }
        fit(pieces, view)
    }

    fn moving_line(&self, running: &[&Moving], view: &TextLayout) -> String {
        let elapsed =
            running.iter().filter_map(|flow| flow.counts.back()).map(|(at, _)| *at).max().unwrap_or_default();
        let seconds = elapsed.as_secs_f64();
        let clock = match self.total {
            Some(total) => format!("{seconds:.1}/{:.0} s", total.as_secs_f64()),
            None => format!("{seconds:.1} s"),
        };
        let mut pieces = Vec::new();
        for flow in running {
            pieces.push(StyledText::plain(flow.name.to_string()));
            let rate = flow.rate().map_or("starting".to_owned(), |rate| match self.request {
                Some(request) => transactions::per_second(rate.bps() / 8.0 / request.get().max(1) as f64),
                None => rate.to_string(),
            });
            pieces.push(StyledText { ink: TextRole::Result, text: format!("{rate:>10}") });
        }
        pieces.insert(1, StyledText::plain(clock));
        if let Some(left) = self.left.text() {
            pieces.push(StyledText { ink: TextRole::Faint, text: left });
        }
        if let [flow] = running {
            pieces.extend(flow.retransmits.map(|n| StyledText::plain(format!("retr {n}"))));
            pieces.extend(flow.srtt.map(|srtt| StyledText::plain(format!("rtt {srtt}"))));
            let used: usize = pieces.iter().map(|piece| width(&piece.text) + 2).sum();
            let room = view.width.saturating_sub(used).min(SPARKLINE_RATES);
            if view.colour && room >= MIN_SPARKLINE_WIDTH {
                pieces.push(StyledText { ink: TextRole::Faint, text: flow.sparkline(room) });
            }
        }
        fit(pieces, view)
    }
}

impl Moving {
    fn new(plan: &FlowPlan) -> Self {
        Self {
            name: plan.name.clone(),
            direction: plan.direction,
            transport: plan.transport,
            streams: plan.streams,
            running: false,
            ended: false,
            counts: VecDeque::new(),
            rates: VecDeque::new(),
            srtt: None,
            retransmits: None,
            counts_streams: false,
        }
    }

    fn count(&mut self, elapsed: Span, bytes: Bytes) {
        if let Some(&(at, before)) = self.counts.back() {
            // A late or duplicate count contains nothing new.
            if elapsed <= at {
                return;
            }
            let fresh = Bytes::new(bytes.get().saturating_sub(before.get()));
            self.rates.extend(Bitrate::of(fresh, elapsed.saturating_sub(at)).map(Bitrate::bps));
        }
        self.counts.push_back((elapsed, bytes));
        while self.counts.get(1).is_some_and(|(at, _)| elapsed.saturating_sub(*at) >= SMOOTHING_TIME) {
            self.counts.pop_front();
        }
        while self.rates.len() > SPARKLINE_RATES {
            self.rates.pop_front();
        }
    }

    /// Bit rate over the last second or so.
    fn rate(&self) -> Option<Bitrate> {
        let ((from, before), (to, after)) = (self.counts.front()?, self.counts.back()?);
        let bytes = Bytes::new(after.get().saturating_sub(before.get()));
        Bitrate::of(bytes, to.saturating_sub(*from))
    }

    /// The last `columns` rates as blocks, relative to the highest of them.
    fn sparkline(&self, columns: usize) -> String {
        let shown: Vec<f64> = self.rates.iter().rev().take(columns).rev().copied().collect();
        let highest = shown.iter().copied().fold(0.0, f64::max);
        let block = |rate: &f64| {
            let step = if highest > 0.0 { (rate / highest * 7.0).round() as usize } else { 0 };
            BLOCKS.get(step).copied().unwrap_or('█')
        };
        shown.iter().map(block).collect()
    }
}

struct StyledText {
    ink: TextRole,
    text: String,
}

impl StyledText {
    const fn plain(text: String) -> Self {
        Self { ink: TextRole::Plain, text }
    }
}

/// Joins pieces with two spaces, as many as fit on the page. The first one is cut if it is too wide.
fn fit(pieces: Vec<StyledText>, view: &TextLayout) -> String {
    let mut line = String::new();
    let mut used = 0;
    for piece in pieces {
        let gap = if used == 0 { 0 } else { 2 };
        if used > 0 && used + gap + width(&piece.text) > view.width {
            break;
        }
        let text: String = piece.text.chars().take(view.width).collect();
        used += gap + width(&text);
        line.push_str(&" ".repeat(gap));
        line.push_str(&view.ink(piece.ink, &text));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use expect_test::{Expect, expect};
    use linerate_model::{Direction, Outcome, Transport};

    fn fold(bodies: Vec<(u16, Body)>) -> Live {
        let mut live = Live::new();
        for event in runs::log(bodies) {
            live.on(&event);
        }
        live
    }

    fn view(width: usize, colour: bool) -> TextLayout {
        TextLayout { width, colour, kept: None, explain: false, all_streams: false }
    }

    fn running() -> Vec<(u16, Body)> {
        let mut bodies = runs::opening(TestSpec::default());
        bodies.push(runs::probes(None, 210));
        bodies.push(runs::planned(0, Direction::Download, Transport::Tcp));
        // 1, 2, … 8 times 10 Mb/s, each for 100 ms.
        let mut bytes = 0;
        for tenth in 0..=8 {
            bytes += tenth * 125_000;
            bodies.push(runs::progress(FlowId(0), 100 + tenth * 100, bytes, tenth));
        }
        bodies
    }

    #[test]
    fn the_stages_before_and_after_the_flows_are_named() {
        let check = |bodies, expected: &Expect| expected.assert_eq(&fold(bodies).line(&view(80, false)));
        check(Vec::new(), &expect!["connecting"]);
        check(
            vec![(1, Body::Queued { position: 3, wait: Span::ZERO })],
            &expect!["waiting in the server's queue, position 3"],
        );
        let mut bodies = runs::opening(TestSpec::default());
        check(bodies.clone(), &expect!["measuring idle latency  23 s left"]);
        bodies.push(runs::probes(None, 210));
        check(bodies.clone(), &expect!["preparing  21 s left"]);
        bodies.push(runs::planned(0, Direction::Upload, Transport::Tcp));
        bodies.push(runs::settings(FlowId(0), Side::Sender));
        check(bodies.clone(), &expect!["upload  0.0/10 s    starting  21 s left"]);
        bodies.push((0, Body::RunEnded { outcome: Outcome::Completed, reason: None }));
        check(bodies, &expect![""]);
    }

    #[test]
    fn the_time_left_is_that_of_all_phases() {
        let mut live = Live::new();
        let mut bodies = runs::opening(TestSpec::default());
        let second = |seconds: u64| Timestamp::START + Span::from_secs(seconds);
        let line = |live: &mut Live, bodies: &mut Vec<(u16, Body)>, at: u64| {
            for mut event in runs::log(std::mem::take(bodies)) {
                event.at = second(at);
                live.on(&event);
            }
            live.line(&view(80, false))
        };
        // Two seconds of idle latency, and two phases of 10.4 s.
        assert_eq!(line(&mut live, &mut bodies, 0), "measuring idle latency  23 s left");
        bodies.push(runs::probes(None, 210));
        assert_eq!(line(&mut live, &mut bodies, 2), "preparing  21 s left");
        bodies.push(runs::planned(0, Direction::Download, Transport::Tcp));
        bodies.push(runs::progress(FlowId(0), 100, 1_250_000, 0));
        assert_eq!(
            line(&mut live, &mut bodies, 2),
            "download  0.1/10 s    starting  21 s left  retr 0  rtt 4 ms"
        );
        bodies.push(runs::ended(FlowId(0), Side::Receiver, runs::tally(1e8)));
        assert_eq!(line(&mut live, &mut bodies, 12), "preparing  11 s left");
        bodies.push(runs::planned(1, Direction::Upload, Transport::Tcp));
        bodies.push(runs::progress(FlowId(1), 100, 1_250_000, 0));
        let upload = line(&mut live, &mut bodies, 13);
        assert!(upload.starts_with("upload  0.1/10 s    starting  11 s left"), "{upload}");
        bodies.push(runs::progress(FlowId(1), 9100, 1_250_000, 0));
        let upload = line(&mut live, &mut bodies, 22);
        assert!(upload.starts_with("upload  9.1/10 s") && upload.contains(" 2 s left"), "{upload}");
    }

    #[test]
    fn a_test_without_a_time_has_no_time_left_and_one_that_may_end_early_says_so() {
        let mut spec = TestSpec::default();
        spec.traffic.bytes = Some(Bytes::new(1 << 30));
        assert_eq!(fold(runs::opening(spec)).line(&view(80, false)), "measuring idle latency");
        let mut spec = TestSpec::default();
        spec.traffic.until = linerate_units::Ratio::new(0.01);
        let line = fold(runs::opening(spec)).line(&view(80, false));
        // Twice at most 60.4 s, and two seconds of idle latency.
        assert_eq!(line, "measuring idle latency  at most 123 s left");
    }

    #[test]
    fn a_series_shows_the_size_that_was_measured_last() {
        let log = runs::sweep_run();
        let mut live = Live::new();
        let mut lines = Vec::new();
        for event in &log {
            live.on(event);
            lines.push(live.line(&view(80, false)));
        }
        expect!["measuring message sizes"].assert_eq(&lines[3]);
        expect!["measuring message sizes: 1 B  20.0 us  400.0 kb/s"].assert_eq(&lines[4]);
        expect![""].assert_eq(lines.last().unwrap());
    }

    #[test]
    fn rate_and_sparkline_are_those_of_the_last_second() {
        let live = fold(running());
        // (1 + 2 + … + 8) x 10 Mb/s x 100 ms over 800 ms: 45 Mb/s.
        expect!["download  0.9/10 s  45.00 Mb/s  21 s left  retr 8  rtt 4 ms"]
            .assert_eq(&live.line(&view(80, false)));
        let coloured = live.line(&view(80, true));
        assert!(coloured.contains("▂▃▄▅▅▆▇█"), "{coloured}");
        // If there is no room, the pieces at the end are dropped first.
        expect!["download  0.9/10 s  45.00 Mb/s"].assert_eq(&live.line(&view(34, false)));
        expect!["downl"].assert_eq(&live.line(&view(5, false)));
    }

    #[test]
    fn both_directions_at_once_stand_in_one_line() {
        let mut bodies = running();
        bodies.push(runs::planned(1, Direction::Upload, Transport::Tcp));
        bodies.push(runs::progress(FlowId(1), 100, 0, 0));
        bodies.push(runs::progress(FlowId(1), 200, 1_250_000, 0));
        expect!["download  0.9/10 s  45.00 Mb/s  upload  100.0 Mb/s  21 s left"]
            .assert_eq(&fold(bodies).line(&view(80, false)));
    }
}
