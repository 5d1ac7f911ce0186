//! Results that follow from several runs of a trial together.

use linerate_model::{Direction, FlowRecord, RunRecord, Transport, Workload};
use linerate_theory::buffer::{
    self, BufferFinding, BufferInterval, BufferPath, LineRates, LoadStep, StepInterval,
};
use linerate_theory::stats::Interval;
use linerate_theory::stats::spread::jain;

use crate::assertion::{BUFFER, BUFFER_KIND, BUFFER_LOAD, FAIRNESS, QUANTITIES, QuantityValue, TOTAL};
use crate::plan::Plan;
use crate::point::{Point, PointFlow};
use crate::trial_results::TrialFigures;

/// What a flow shows about the queue that it passed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueueObservation {
    /// Observation of the queue; absent without RTTs.
    seen: Option<BufferObservation>,
    line: LineRates,
    /// The path without other traffic; absent without RTTs.
    path: Option<BufferPath>,
    /// Share of the line that it used.
    share: f64,
    /// Share of the line that it offered.
    offered: f64,
}

/// Observation by one of the methods for buffers.
#[derive(Debug, Clone, PartialEq)]
enum BufferObservation {
    /// A: a long flow that fills the queue until packets are dropped.
    Flow(Vec<BufferInterval>),
    /// B: a burst of this number of bytes, none of which was lost.
    Burst(f64),
    /// C: a steady load above the line's rate, the RTT of its probes without a queue, s, and the delay that the
    /// hosts add, s.
    Step(Vec<StepInterval>, f64, f64),
}

/// Result for the buffer that a flow passed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BufferResult {
    /// The method: A, B or C, with its name.
    pub(crate) method: &'static str,
    /// One of the words of [`BUFFER_KIND`].
    pub(crate) kind: &'static str,
    pub(crate) bytes: Option<f64>,
    pub(crate) interval: Option<Interval>,
    /// Load of the line at the drop.
    pub(crate) load: Option<f64>,
    /// Gain of delay divided by the gain expected from the load.
    pub(crate) slope: Option<f64>,
}

impl QueueObservation {
    /// The observation of a flow; `None` if its line is unknown.
    pub(crate) fn of(run: &RunRecord, flow: &FlowRecord) -> Option<Self> {
        let share = buffer::line_share(flow)?;
        let line = buffer::line(run, flow)?;
        let sent = flow.sender.as_ref().map(|sender| sender.bitrate.bps() / line.alone_bps);
        let offered = sent.filter(|share| share.is_finite()).unwrap_or(share);
        let burst = run.start.as_ref().and_then(|start| start.spec.traffic.bytes);
        let seen = if flow.plan.transport != Transport::Udp {
            Some(buffer::series(flow)).filter(|series| !series.is_empty()).map(BufferObservation::Flow)
        } else if burst.is_some() {
            let udp = flow.receiver.as_ref().and_then(|receiver| receiver.udp.as_ref());
            let sent = flow.sender.as_ref().map(|sender| sender.total_bytes.get() as f64);
            udp.filter(|udp| udp.lost == 0).and(sent).map(BufferObservation::Burst)
        } else {
            let base = run.idle.as_ref().map(|idle| idle.rtt.p50_ns as f64 / 1e9);
            base.map(|base| {
                BufferObservation::Step(buffer::looks(flow), base, buffer::hosts_delay_s(run, flow))
            })
        };
        Some(Self { seen, line, path: buffer::path(run, flow, 0.0), share, offered })
    }

    /// The line that it passed.
    pub(crate) const fn line(&self) -> &LineRates {
        &self.line
    }

    /// The path without other traffic.
    pub(crate) const fn path(&self) -> Option<&BufferPath> {
        self.path.as_ref()
    }

    /// Share of the line that it used.
    pub(crate) const fn share(&self) -> f64 {
        self.share
    }

    /// Result for the buffer, given these other flows.
    pub(crate) fn known(&self, others: &[&Self]) -> Option<BufferResult> {
        let drain = self.line.drain_bps;
        let taken: f64 = others.iter().map(|other| other.share).sum();
        let offered: f64 = others.iter().map(|other| other.offered).sum();
        match self.seen.as_ref()? {
            BufferObservation::Flow(series) => {
                let path = BufferPath { others_bps: taken * drain, ..self.path? };
                Some(BufferResult::of("A: round trip at drops", &buffer::analyse(series, &path)?))
            }
            BufferObservation::Burst(bytes) => {
                let own = self.offered.min(1.0);
                // Converted to bytes on the line, like the results of the other methods.
                let bytes = bytes * drain / self.line.alone_bps;
                let held = buffer::burst_buffer_bytes(bytes, own * drain, (own + offered) * drain, drain)?;
                let finding = BufferFinding::LowerBound { bytes: held, other_losses: 0 };
                Some(BufferResult::of("B: longest burst", &finding))
            }
            BufferObservation::Step(looks, base, hosts) => {
                let step = LoadStep {
                    offered_bps: (self.offered + offered) * drain,
                    drain_bps: drain,
                    base_rtt_s: *base,
                    hosts_s: *hosts,
                };
                let stepped = buffer::step(looks, &step)?;
                let slope = stepped.slope.map(|slope| slope / stepped.expected_slope);
                let known = BufferResult::of("C: step of load", &stepped.finding);
                Some(BufferResult { slope: slope.filter(|slope| slope.is_finite()), ..known })
            }
        }
    }
}

impl BufferResult {
    fn of(method: &'static str, finding: &BufferFinding) -> Self {
        let none = Self { method, kind: "other_loss", bytes: None, interval: None, load: None, slope: None };
        match finding {
            BufferFinding::Estimate { bytes, interval, load, .. } => {
                Self { kind: "estimate", bytes: Some(*bytes), interval: *interval, load: Some(*load), ..none }
            }
            BufferFinding::LowerBound { bytes, .. } => {
                Self { kind: "lower_bound", bytes: Some(*bytes), ..none }
            }
            BufferFinding::OutOfReach { .. } => Self { kind: "out_of_reach", ..none },
            BufferFinding::NotAFullQueue { load, .. } => Self { load: Some(*load), ..none },
        }
    }
}

/// Adds to every flow of a trial the results that follow from all flows.
pub(crate) fn add(plan: &Plan, point: &Point, trial: &mut TrialFigures) {
    for direction in [Direction::Upload, Direction::Download] {
        add_sums(plan, point, trial, direction);
        add_buffer(plan, trial, direction);
    }
}

fn place(name: &str) -> Option<usize> {
    QUANTITIES.iter().position(|quantity| quantity.name == name)
}

/// Indices of the foreground flows. Series are left out, because they have no rate that others could share.
fn judged(plan: &Plan) -> Vec<usize> {
    let is = |at: &usize| !plan.flows[*at].cross_traffic && plan.flows[*at].series.is_none();
    (0..plan.flows.len()).filter(is).collect()
}

fn set(trial: &mut TrialFigures, flow: usize, direction: Direction, name: &str, measured: &QuantityValue) {
    let figures = trial.get_mut(flow).and_then(Option::as_mut);
    if let (Some(figures), Some(at)) = (figures, place(name)) {
        figures.set(direction, at, measured);
    }
}

/// Adds the sum of the goodputs and their fairness. Transactions are left out as well: their rate is what they
/// were asked for, or follows from the round-trip time.
fn add_sums(plan: &Plan, point: &Point, trial: &mut TrialFigures, direction: Direction) {
    let Some(goodput) = place("goodput") else { return };
    let shares = |at: &usize| {
        let test = plan.flows.get(*at).and_then(|flow| point.test_of(&flow.name));
        test.is_some_and(|PointFlow { spec, .. }| {
            spec.transactions.workload == Workload::Stream
                && spec.phases().into_iter().flatten().any(|phase| phase == direction)
        })
    };
    let judged = judged(plan);
    // The sum of the only flow of a plan says nothing new.
    if judged.len() < 2 {
        return;
    }
    let judged: Vec<usize> = judged.into_iter().filter(shares).collect();
    let times = plan.measured_times(point);
    let time = |at: usize| times.get(plan.flows.get(at)?.name.as_str());
    let overlap =
        |one: usize, other: usize| time(one).zip(time(other)).is_some_and(|(one, other)| one.overlaps(other));
    let rate = |at: &usize| match trial.get(*at)?.as_ref()?.get(direction, goodput)? {
        QuantityValue::Number(rate) => Some(*rate),
        _ => None,
    };
    let mut found = Vec::new();
    for one in &judged {
        let together = judged.iter().filter(|other| *other == one || overlap(*one, **other));
        // Without the rate of one flow, neither the sum nor the fairness is known.
        let rates: Option<Vec<f64>> = together.map(rate).collect();
        let Some(rates) = rates else { continue };
        found.push((*one, TOTAL, rates.iter().sum()));
        let index = if rates.len() > 1 { jain(&rates) } else { None };
        found.extend(index.map(|index| (*one, FAIRNESS, index)));
    }
    for (at, name, number) in found {
        set(trial, at, direction, name, &QuantityValue::Number(number));
    }
}

/// Adds the buffer that each flow passed. Background flows fill the same queue.
fn add_buffer(plan: &Plan, trial: &mut TrialFigures, direction: Direction) {
    let queue = |at: usize| trial.get(at)?.as_ref()?.queue_observation(direction);
    let others: Vec<&QueueObservation> =
        (0..plan.flows.len()).filter(|at| plan.flows[*at].cross_traffic).filter_map(queue).collect();
    let found: Vec<(usize, BufferResult)> =
        judged(plan).into_iter().filter_map(|at| Some((at, queue(at)?.known(&others)?))).collect();
    for (at, known) in found {
        if let Some(bytes) = known.bytes {
            set(trial, at, direction, BUFFER, &QuantityValue::Number(bytes));
        }
        if let Some(load) = known.load {
            set(trial, at, direction, BUFFER_LOAD, &QuantityValue::Number(load));
        }
        set(trial, at, direction, BUFFER_KIND, &QuantityValue::Word(known.kind.to_owned()));
    }
}
