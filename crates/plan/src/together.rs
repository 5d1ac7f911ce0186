//! What no run of a trial knows by itself, because it lies in those beside it.

use linerate_model::{Direction, FlowRecord, RunRecord};
use linerate_theory::buffer::{self, Finding, Path, Reading};
use linerate_theory::stats::spread::jain;

use crate::assertion::{BUFFER, BUFFER_KIND, FAIRNESS, Measured, QUANTITIES};
use crate::plan::Plan;
use crate::takings::TrialFigures;

/// What a flow tells of the queue that it went through.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Passage {
    /// Its sender's intervals, and the path with nobody else on it; absent where the kernel told no round trips.
    queue: Option<(Vec<Reading>, Path)>,
    /// Share of the line that it took.
    share: f64,
}

impl Passage {
    /// That of a flow; absent where no line is known.
    pub(crate) fn of(run: &RunRecord, flow: &FlowRecord) -> Option<Self> {
        let share = buffer::line_share(flow)?;
        let series = buffer::series(flow);
        let queue = buffer::path(run, flow, 0.0).filter(|_| !series.is_empty()).map(|path| (series, path));
        Some(Self { queue, share })
    }
}

/// Adds to every flow of a trial what follows from all of them.
pub(crate) fn add(plan: &Plan, trial: &mut TrialFigures) {
    for direction in [Direction::Upload, Direction::Download] {
        add_fairness(plan, trial, direction);
        add_buffer(plan, trial, direction);
    }
}

fn place(name: &str) -> Option<usize> {
    QUANTITIES.iter().position(|quantity| quantity.name == name)
}

/// Flows that the plan is about; a series has no rate that others could share.
fn judged(plan: &Plan) -> Vec<usize> {
    let is = |at: &usize| !plan.flows[*at].background && plan.flows[*at].series.is_none();
    (0..plan.flows.len()).filter(is).collect()
}

fn set(trial: &mut TrialFigures, flow: usize, direction: Direction, name: &str, measured: &Measured) {
    let figures = trial.get_mut(flow).and_then(Option::as_mut);
    if let (Some(figures), Some(at)) = (figures, place(name)) {
        figures.set(direction, at, measured);
    }
}

fn add_fairness(plan: &Plan, trial: &mut TrialFigures, direction: Direction) {
    let Some(goodput) = place("goodput") else { return };
    let rate = |at: &usize| match trial.get(*at)?.as_ref()?.get(direction, goodput)? {
        Measured::Number(rate) => Some(*rate),
        _ => None,
    };
    let judged = judged(plan);
    let rates: Option<Vec<f64>> = judged.iter().map(rate).collect();
    let Some(index) = rates.filter(|rates| rates.len() > 1).and_then(|rates| jain(&rates)) else { return };
    judged.into_iter().for_each(|at| set(trial, at, direction, FAIRNESS, &Measured::Number(index)));
}

/// The buffer that each flow went through. Flows in the background are there to fill the same queue.
fn add_buffer(plan: &Plan, trial: &mut TrialFigures, direction: Direction) {
    let background = (0..plan.flows.len()).filter(|at| plan.flows[*at].background);
    let share = |at: usize| Some(trial.get(at)?.as_ref()?.passage(direction)?.share);
    let others: f64 = background.filter_map(share).sum();
    for at in judged(plan) {
        let passage = trial.get(at).and_then(|flow| flow.as_ref()?.passage(direction)?.queue.clone());
        let Some((series, mut path)) = passage else { continue };
        path.others_bps = others * path.drain_bps;
        let (bytes, kind) = match buffer::study(&series, &path) {
            Some(Finding::Estimate { bytes, .. }) => (Some(bytes), "estimate"),
            Some(Finding::LowerBound { bytes, .. }) => (Some(bytes), "lower_bound"),
            Some(Finding::NotAFullQueue { .. }) => (None, "other_loss"),
            None => continue,
        };
        if let Some(bytes) = bytes {
            set(trial, at, direction, BUFFER, &Measured::Number(bytes));
        }
        set(trial, at, direction, BUFFER_KIND, &Measured::Word(kind.to_owned()));
    }
}
