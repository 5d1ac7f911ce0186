//! The progress of a running plan: one line that follows it on a terminal, one line per trial elsewhere, and frames for
//! other viewers.

use std::fmt;

use linerate_model::foreign_text::one_line;
use linerate_model::{Body, Direction, ForeignText, Outcome, PlanRecord, Side};
use linerate_plan::{Plan, PlanProgress, RunMeasurements, TrialFigures, TrialTask};
use linerate_units::{Bitrate, Bytes, Span};
use serde::Serialize;

use crate::plan_preview::long_time;

/// Width of the progress bar, characters.
const BAR_WIDTH: usize = 20;

/// The displayed rate is a mean over at least this time.
const SMOOTHING_TIME: Span = Span::from_ms(200);

/// Content of the lines, for the trial that runs.
#[derive(Debug, Clone, Default)]
pub struct PlanLive {
    progress: PlanProgress,
    elapsed: Span,
    trial: String,
    /// The flows of the plan.
    flows: Vec<FlowRate>,
    /// Those that run in the trial, by their numbers there: a point may leave out some.
    running: Vec<usize>,
}

/// What an event changes for viewers of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanUpdate {
    /// Nothing.
    Nothing,
    /// Figures that the next event changes again: they may be shown a few times a second.
    Figures,
    /// What a flow does: perhaps nothing follows for long, so it is shown at once.
    Stage,
}

/// What viewers of a running plan see, a few times a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanFrame {
    /// Completed positions in the order of trials; a search is one position.
    pub done: usize,
    /// Number of all positions; a plan that ends when it is sure enough does not need all of them.
    pub of: usize,
    /// Estimated time until the end of the plan, at most.
    pub left_seconds: f64,
    /// The point and the repeat of the trial that runs; absent before the first one and between two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<ForeignText>,
    /// The flows of the plan.
    pub flows: Vec<PlanFlowFrame>,
}

/// A flow of a running plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanFlowFrame {
    /// Its name.
    pub name: ForeignText,
    /// The receiver's rate now; absent if it does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitrate_bps: Option<f64>,
    /// Its position in the queue of a host that measures for others, from 1; absent if it does not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
}

/// A trial that has ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndedTrial {
    /// Its number among all trials that have ended, from 1.
    pub number: usize,
    /// Its position in the order of trials, from 1; the trials of a search share one.
    pub position: usize,
    /// Number of all positions.
    pub of: usize,
    /// The point and the repeat.
    pub trial: ForeignText,
    /// The results in words, or why there are none.
    pub result: ForeignText,
    /// Whether all flows were measured.
    pub measured: bool,
    /// The goodput of each flow and direction.
    pub goodputs: Vec<TrialGoodput>,
}

/// The goodput of a flow in a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialGoodput {
    /// The flow.
    pub flow: ForeignText,
    /// Direction, seen from the client.
    pub direction: Direction,
    /// What the receiver read.
    pub bitrate_bps: f64,
}

/// One line.
impl fmt::Display for EndedTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}  {}: {}", self.position, self.of, self.trial, self.result)
    }
}

/// A flow of the trial, and its rate now.
#[derive(Debug, Clone, Default)]
struct FlowRate {
    name: String,
    last: (Bytes, Span),
    rate: Option<Bitrate>,
    /// Position in the queue of a host.
    position: Option<u32>,
}

impl FlowRate {
    /// The receiver has counted `bytes` in the time since the flow began.
    fn count(&mut self, bytes: Bytes, elapsed: Span) {
        let (before, then) = self.last;
        if elapsed < then {
            // Another direction has started.
            self.last = (Bytes::new(0), Span::ZERO);
        } else if elapsed.saturating_sub(then) >= SMOOTHING_TIME {
            let more = Bytes::new(bytes.get().saturating_sub(before.get()));
            self.rate = Bitrate::of(more, elapsed.saturating_sub(then));
            self.last = (bytes, elapsed);
        }
    }
}

impl PlanLive {
    /// A trial begins; `elapsed` is the time since the plan began or was resumed, as `progress` counts it.
    pub fn begin(&mut self, task: &TrialTask, plan: &Plan, progress: PlanProgress, elapsed: Span) {
        let step = task.step.as_ref().map(|step| format!(" {}", step.value)).unwrap_or_default();
        let repeat =
            if plan.largest_repeats() > 1 { format!(" trial {}", task.repeat) } else { String::new() };
        self.trial = format!("{}{step}{repeat}", task.point.label());
        let flows = plan.flows.iter();
        self.flows = flows.map(|flow| FlowRate { name: flow.name.clone(), ..FlowRate::default() }).collect();
        let number = |name: &str| plan.flows.iter().position(|flow| flow.name == name);
        self.running = task.point.tests.iter().filter_map(|test| number(&test.flow)).collect();
        (self.progress, self.elapsed) = (progress, elapsed);
    }

    /// An event of the run with this number in the trial.
    pub fn on(&mut self, run: usize, body: &Body) -> PlanUpdate {
        let Some(flow) = self.running.get(run).and_then(|flow| self.flows.get_mut(*flow)) else {
            return PlanUpdate::Nothing;
        };
        match body {
            Body::Queued { position, .. } => flow.position = Some(*position),
            Body::Progress { bytes, elapsed, .. } => {
                flow.count(*bytes, *elapsed);
                return PlanUpdate::Figures;
            }
            // What has ended has no rate now.
            Body::FlowEnded { side: Side::Receiver, .. } => flow.rate = None,
            Body::RunEnded { .. } => (flow.rate, flow.position) = (None, None),
            // It is its turn: hosts are asked what they are, and flows are set up, after all have a place.
            Body::Host { .. } | Body::FlowPlanned(_) | Body::Latency { .. } => {
                if flow.position.take().is_none() {
                    return PlanUpdate::Nothing;
                }
            }
            _ => return PlanUpdate::Nothing,
        }
        PlanUpdate::Stage
    }

    /// The line for a terminal: a bar, the time left, the trial, and the rates of its flows now.
    #[must_use]
    pub fn line(&self, columns: usize) -> String {
        let full = BAR_WIDTH * self.progress.done / self.progress.of.max(1);
        let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR_WIDTH.saturating_sub(full)));
        let now = |flow: &FlowRate| match (flow.rate, flow.position) {
            (_, Some(position)) => {
                Some(format!("{} waits in a server's queue, position {position}", flow.name))
            }
            (rate, None) => Some(format!("{} {}", flow.name, rate?)),
        };
        let flows: Vec<String> = self.flows.iter().filter_map(now).collect();
        let left = long_time(left(self.progress, self.elapsed));
        let line =
            format!("[{bar}] {}, {left} left  {}  {}", self.count_text(), self.trial, flows.join(", "));
        one_line(&line).chars().take(columns).collect()
    }

    /// What viewers see of the trial that runs, `since` its beginning.
    #[must_use]
    pub fn frame(&self, since: Span) -> PlanFrame {
        let flow = |flow: &FlowRate| PlanFlowFrame {
            name: flow.name.as_str().into(),
            bitrate_bps: flow.rate.map(Bitrate::bps),
            position: flow.position,
        };
        PlanFrame {
            done: self.progress.done,
            of: self.progress.of,
            left_seconds: left(self.progress, self.elapsed).saturating_sub(since).as_secs_f64(),
            trial: (!self.trial.is_empty()).then(|| self.trial.as_str().into()),
            flows: self.flows.iter().map(flow).collect(),
        }
    }

    /// The trial has ended, and the plan is at `progress`. It is the last one in `record`: its results, or why it has
    /// none.
    pub fn end(
        &mut self,
        task: &TrialTask,
        figures: &TrialFigures,
        record: &PlanRecord,
        progress: PlanProgress,
    ) -> Option<EndedTrial> {
        let ended = self.ended_trial(task, figures, record);
        self.progress = progress;
        self.trial.clear();
        self.flows.iter_mut().for_each(|flow| (flow.rate, flow.position) = (None, None));
        self.running.clear();
        ended
    }

    fn ended_trial(
        &self,
        task: &TrialTask,
        figures: &TrialFigures,
        record: &PlanRecord,
    ) -> Option<EndedTrial> {
        let trial = record.trials.last()?;
        let failed: Vec<String> = trial
            .runs
            .iter()
            .filter(|run| run.outcome != Outcome::Completed)
            .map(|run| format!("{}: {}", run.flow, run.reason.as_deref().unwrap_or("not completed")))
            .collect();
        let results = self.results(figures);
        let result = match (&task.step, failed.as_slice()) {
            (_, [_, ..]) => failed.join("; "),
            (Some(_), _) if trial.step.as_ref().is_some_and(|step| step.passed) => "passed".to_owned(),
            (Some(_), _) => "did not pass".to_owned(),
            (None, _) if results.is_empty() => "done".to_owned(),
            (None, _) => results.join(", "),
        };
        let goodputs = self.flows.iter().zip(figures).flat_map(|(flow, figures)| {
            let rates = figures.iter().flat_map(RunMeasurements::goodputs);
            rates.map(|(direction, rate)| TrialGoodput {
                flow: flow.name.as_str().into(),
                direction,
                bitrate_bps: rate.bps(),
            })
        });
        Some(EndedTrial {
            number: record.trials.len(),
            position: self.progress.done + 1,
            of: self.progress.of,
            trial: self.trial.as_str().into(),
            result: result.into(),
            measured: failed.is_empty(),
            goodputs: goodputs.collect(),
        })
    }

    fn count_text(&self) -> String {
        format!("{}/{}", self.progress.done + 1, self.progress.of)
    }

    /// Results of the flows of a trial: the goodput of each flow over the trial.
    fn results(&self, figures: &TrialFigures) -> Vec<String> {
        let of_flow = |(flow, figures): (&FlowRate, &Option<RunMeasurements>)| {
            let rates: Vec<(Direction, Bitrate)> = figures.as_ref()?.goodputs().collect();
            let texts: Vec<String> = match &rates[..] {
                [(_, rate)] => vec![rate.to_string()],
                all => all.iter().map(|(direction, rate)| format!("{} {rate}", direction.name())).collect(),
            };
            (!texts.is_empty()).then(|| format!("{} {}", flow.name, texts.join(" ")))
        };
        self.flows.iter().zip(figures).filter_map(of_flow).collect()
    }
}

/// The remaining time: the estimate, scaled by the ratio of real and estimated time so far.
fn left(progress: PlanProgress, elapsed: Span) -> Span {
    if progress.completed_time == Span::ZERO {
        return progress.left;
    }
    let pace = elapsed.as_secs_f64() / progress.completed_time.as_secs_f64();
    Span::from_secs_f64(progress.left.as_secs_f64() * pace).unwrap_or(progress.left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::flow::FlowId;
    use linerate_model::{Event, FlowPlan, RunRecord, Tally, Transport};
    use linerate_units::Timestamp;

    fn rate(bps: f64) -> Bitrate {
        Bitrate::from_bps(bps).unwrap()
    }

    fn bulk() -> PlanLive {
        let flows = vec![FlowRate { name: "bulk".to_owned(), ..FlowRate::default() }];
        let progress =
            PlanProgress { done: 5, of: 20, completed_time: Span::ZERO, left: Span::from_secs(90) };
        PlanLive { flows, progress, trial: "window=64K".to_owned(), elapsed: Span::ZERO, running: vec![0] }
    }

    fn upload() -> FlowPlan {
        FlowPlan {
            flow: FlowId(0),
            name: "upload".into(),
            from: "".into(),
            to: "".into(),
            transport: Transport::Tcp,
            direction: Direction::Upload,
            streams: 1,
        }
    }

    fn counted(bytes: u64, elapsed: Span) -> Body {
        let (srtt, retransmits) = (None, None);
        Body::Progress { flow: FlowId(0), bytes: Bytes::new(bytes), elapsed, srtt, retransmits }
    }

    #[test]
    fn what_has_ended_has_no_rate_and_a_flow_is_found_though_the_point_leaves_out_another() {
        let mut live = bulk();
        live.flows.push(FlowRate { name: "probe".to_owned(), ..FlowRate::default() });
        live.running = vec![1];
        assert_eq!(live.on(0, &counted(2_500_000, Span::from_ms(200))), PlanUpdate::Figures);
        let rates =
            |live: &PlanLive| live.frame(Span::ZERO).flows.iter().map(|f| f.bitrate_bps).collect::<Vec<_>>();
        assert_eq!(rates(&live), [None, Some(100e6)]);
        let ended = Body::RunEnded { outcome: Outcome::Completed, reason: None };
        assert_eq!([live.on(0, &ended), live.on(1, &ended)], [PlanUpdate::Stage, PlanUpdate::Nothing]);
        assert_eq!(rates(&live), [None, None]);
    }

    #[test]
    fn a_flow_that_waits_for_a_busy_host_says_so_until_its_turn() {
        let mut live = bulk();
        let queued = Body::Queued { position: 2, wait: Span::from_secs(8) };
        assert_eq!(live.on(0, &queued), PlanUpdate::Stage);
        assert_eq!(live.frame(Span::ZERO).flows[0].position, Some(2));
        assert!(live.line(100).ends_with("bulk waits in a server's queue, position 2"), "{}", live.line(100));
        assert_eq!(live.on(0, &Body::FlowPlanned(upload())), PlanUpdate::Stage, "it is its turn");
        assert_eq!(live.on(0, &Body::FlowPlanned(upload())), PlanUpdate::Nothing);
        assert_eq!(live.frame(Span::ZERO).flows[0].position, None);
        live.on(0, &Body::Queued { position: 1, wait: Span::ZERO });
        live.on(0, &Body::RunEnded { outcome: Outcome::Failed, reason: None });
        assert_eq!(live.frame(Span::ZERO).flows[0].position, None, "it waits no more");
    }

    #[test]
    fn a_trial_is_described_by_its_result_and_not_by_its_last_interval() {
        let mut live = bulk();
        live.flows[0].rate = Some(rate(940e6));
        let tally = Tally { elapsed: Span::from_secs(2), bitrate: rate(555e6), ..Tally::default() };
        let bodies =
            [Body::FlowPlanned(upload()), Body::FlowEnded { flow: FlowId(0), side: Side::Receiver, tally }];
        let event = |(seq, body)| Event { run: "r".into(), host: 0, seq, at: Timestamp::START, body };
        let record = RunRecord::fold(&(0..).zip(bodies).map(event).collect::<Vec<_>>());
        assert_eq!(live.results(&vec![Some(RunMeasurements::of(&record))]), ["bulk 555.0 Mb/s"]);
        assert!(live.results(&vec![None]).is_empty());
    }

    #[test]
    fn viewers_see_what_ended_and_what_is_left() {
        let mut live = bulk();
        assert_eq!(live.frame(Span::from_secs(30)).left_seconds, 60.0);
        assert_eq!(live.frame(Span::from_secs(300)).left_seconds, 0.0, "later than reckoned");
        live.on(0, &counted(2_500_000, Span::from_ms(200)));
        let frame = live.frame(Span::ZERO);
        assert_eq!((frame.done, frame.of, frame.trial.as_deref()), (5, 20, Some("window=64K")));
        assert_eq!((frame.flows[0].name.as_str(), frame.flows[0].bitrate_bps), ("bulk", Some(100e6)));
        assert_eq!(PlanLive::default().frame(Span::ZERO).trial, None, "nothing runs yet");
    }

    #[test]
    fn the_time_left_follows_the_pace_so_far() {
        let progress = |completed_time, left| PlanProgress {
            done: 1,
            of: 2,
            completed_time: Span::from_secs(completed_time),
            left: Span::from_secs(left),
        };
        assert_eq!(left(progress(0, 90), Span::from_secs(3)), Span::from_secs(90), "nothing is known yet");
        assert_eq!(
            left(progress(30, 90), Span::from_secs(15)),
            Span::from_secs(45),
            "twice as fast as reckoned"
        );
    }

    #[test]
    fn the_line_has_the_rate_of_the_last_interval_and_fits() {
        let mut live = bulk();
        let start = "[#####---------------] 6/20, 90 s left  window=64K  ";
        assert_eq!(live.line(100), start);
        // 2.5 MB in 200 ms are 100 Mb/s; a further count after 100 ms is too early for a rate.
        live.on(0, &counted(2_500_000, Span::from_ms(200)));
        live.on(0, &counted(9_000_000, Span::from_ms(300)));
        assert_eq!(live.line(100), format!("{start}bulk 100.0 Mb/s"));
        assert_eq!(live.line(10), "[#####----");
        // The other direction begins at zero.
        live.on(0, &counted(0, Span::ZERO));
        live.on(0, &counted(5_000_000, Span::from_ms(200)));
        assert_eq!(live.line(100), format!("{start}bulk 200.0 Mb/s"));
        live.on(7, &counted(1, Span::from_secs(1)));
    }
}
