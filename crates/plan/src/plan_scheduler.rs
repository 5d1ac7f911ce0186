//! Execution of a plan as a state machine without clock and network: the next trial, and the results.
//!
//! The caller calls [`PlanScheduler::next_task`], runs the trial, and passes the result to
//! [`PlanScheduler::done`], which returns the events for the plan's log. A scheduler that is resumed from such
//! a log continues where it ends.

use std::collections::BTreeMap;

use linerate_model::{
    Body, Outcome, PlanJudgement, PlanRecord, PointSummary, SearchEnd, SearchStep, TrialEnd, TrialRun,
};
use linerate_units::Span;

use crate::assertion::{self, judge, judge_at};
use crate::kind::SettingValue;
use crate::order::Trial;
use crate::plan::Plan;
use crate::point::{Point, PointError, PointId};
use crate::progress::{CompletedTrials, CurrentContent, is_complete};
use crate::search::{Bisection, NextValue};
use crate::trial_results::{RunMeasurements, Summed, TrialFigures, TrialResults};

/// A trial to run.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialTask {
    /// The resolved point.
    pub point: Point,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// The step of a search; absent outside of searches.
    pub step: Option<NextValue>,
}

/// Progress of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanProgress {
    /// Completed positions in the order of trials; a search is one position.
    pub done: usize,
    /// Number of all positions; with `until` not all are needed.
    pub of: usize,
    /// Estimated duration of the completed positions that were run.
    pub completed_time: Span,
    /// Largest estimated duration of the others.
    pub left: Span,
}

/// The state machine.
#[derive(Debug)]
pub struct PlanScheduler<'p> {
    plan: &'p Plan,
    order: Vec<Trial>,
    /// Duration of a position for each point; for a search, of all its trials.
    times: Vec<Span>,
    /// Position in the order.
    at: usize,
    completed_time: Span,
    left: Span,
    progress: CompletedTrials,
    /// Steps of searches, in the order of time.
    steps: BTreeMap<(PointId, u32), Vec<TrialEnd>>,
    /// Steps that passed in searches that have not ended, in the order of time.
    passed: BTreeMap<(PointId, u32), Vec<PassedStep>>,
    results: TrialResults,
    /// Results of searches that a resumed log lacks.
    corrections: Vec<Body>,
}

/// A step of a search that passed, and what it measured.
#[derive(Debug)]
struct PassedStep {
    /// The point with the value of the step.
    point: Point,
    number: f64,
    figures: TrialFigures,
}

impl<'p> PlanScheduler<'p> {
    /// Starts from the beginning.
    ///
    /// # Errors
    /// A point that cannot be executed.
    pub fn new(plan: &'p Plan) -> Result<Self, PointError> {
        let steps = plan.search.as_ref().map_or(1, |search| u64::from(search.trials()));
        let time = |number| Ok(plan.trial_time(&plan.point(number)?).saturating_mul(steps));
        let times: Vec<Span> = (0..plan.grid.len()).map(time).collect::<Result<_, _>>()?;
        let order = plan.trials();
        let all = order.iter().filter_map(|trial| times.get(trial.point)).map(|time| time.as_ns());
        let left = Span::from_ns(all.fold(0, u64::saturating_add));
        Ok(Self {
            plan,
            order,
            times,
            at: 0,
            completed_time: Span::ZERO,
            left,
            progress: CompletedTrials::new(plan),
            steps: BTreeMap::new(),
            passed: BTreeMap::new(),
            results: TrialResults::default(),
            corrections: Vec::new(),
        })
    }

    /// Resumes from the end of a log. `figures` returns the measurements of a trial's runs, in the order of the
    /// plan's flows. They decide which steps of a search passed: the plan may have another condition now.
    ///
    /// # Errors
    /// As [`PlanScheduler::new`].
    pub fn resume(
        plan: &'p Plan,
        record: &PlanRecord,
        figures: &mut dyn FnMut(&TrialEnd) -> TrialFigures,
    ) -> Result<Self, PointError> {
        let mut scheduler = Self::new(plan)?;
        scheduler.progress = CompletedTrials::of(record);
        let content = CurrentContent::of(plan);
        for trial in &record.trials {
            let Some(point) = content.point_of(trial) else { continue };
            let repeat = trial.repeat.saturating_add(1);
            if let Some(step) = &trial.step {
                if is_complete(trial) {
                    let figures = figures(trial);
                    let passed = match has_figures(plan, &point, &figures) {
                        true => scheduler.trial_passes(&point, repeat, figures.clone()),
                        // Without them, only the verdict on the same condition is known.
                        false if has_condition_of(plan, record) => step.passed,
                        false => continue,
                    };
                    let step = SearchStep { passed, ..step.clone() };
                    scheduler.note_step(&point, TrialEnd { step: Some(step), ..trial.clone() }, figures);
                }
            } else if !scheduler.is_better_known(&point, repeat, trial) {
                scheduler.results.take(plan, &point, repeat, figures(trial));
            }
        }
        for trial in scheduler.order.clone() {
            let ended = scheduler.end_of_search(trial)?.filter(|ended| !record.found.contains(ended));
            scheduler.corrections.extend(ended.map(Body::SearchEnded));
        }
        Ok(scheduler)
    }

    /// Results of searches that the resumed log lacks, for that log: with another condition, the trials there may give
    /// another result. Returns them once.
    pub fn corrections(&mut self) -> Vec<Body> {
        std::mem::take(&mut self.corrections)
    }

    /// Adds a completed step of a search.
    fn note_step(&mut self, point: &Point, trial: TrialEnd, figures: TrialFigures) {
        let search = (point.id, trial.repeat.saturating_add(1));
        if let Some(step) = trial.step.as_ref().filter(|step| step.passed) {
            let passed = PassedStep { number: step.number, point: point.clone(), figures };
            self.passed.entry(search).or_default().push(passed);
        }
        self.steps.entry(search).or_default().push(trial);
    }

    /// Whether a completed trial is known that takes precedence over this incomplete one, whichever was later.
    fn is_better_known(&self, point: &Point, repeat: u32, trial: &TrialEnd) -> bool {
        !is_complete(trial) && self.progress.is_done(point, repeat)
    }

    /// The next trial; `None` if all are done.
    ///
    /// # Errors
    /// A point that cannot be executed.
    pub fn next_task(&mut self) -> Result<Option<TrialTask>, PointError> {
        while let Some(trial) = self.order.get(self.at).copied() {
            let task = match self.plan.search {
                Some(_) => self.next_step(trial)?,
                None => self.next_repeat(trial)?,
            };
            if task.is_some() {
                return Ok(task);
            }
            self.advance(false);
        }
        Ok(None)
    }

    /// The trial after the next one, if it does not depend on results; `None` at the end or if it does.
    #[must_use]
    pub fn following(&self) -> Option<TrialTask> {
        if self.plan.search.is_some() || self.plan.until.is_some() {
            return None;
        }
        let mut rest = self.order.get(self.at + 1..)?.iter();
        rest.find_map(|trial| self.next_repeat(*trial).ok().flatten())
    }

    fn next_repeat(&self, trial: Trial) -> Result<Option<TrialTask>, PointError> {
        let point = self.plan.point(trial.point)?;
        if self.progress.is_done(&point, trial.repeat) {
            return Ok(None);
        }
        let enough = self.plan.until.is_some_and(|share| {
            trial.repeat > self.plan.least_repeats() && self.results.is_narrow(self.plan, &point, share.get())
        });
        Ok((!enough).then_some(TrialTask { point, repeat: trial.repeat, step: None }))
    }

    fn next_step(&self, trial: Trial) -> Result<Option<TrialTask>, PointError> {
        let Some(step) = self.bisection(trial)?.and_then(|bisection| bisection.step()) else {
            return Ok(None);
        };
        let point = self.plan.point_of_step(trial.point, &step.value, step.confirm)?;
        Ok(Some(TrialTask { point, repeat: trial.repeat, step: Some(step) }))
    }

    /// The search at a point so far, replayed from the steps of the log.
    fn bisection(&self, trial: Trial) -> Result<Option<Bisection<'p>>, PointError> {
        let Some(search) = &self.plan.search else { return Ok(None) };
        let id = self.plan.point(trial.point)?.id;
        let known = self.steps.get(&(id, trial.repeat)).map_or(&[][..], Vec::as_slice);
        let mut bisection = search.begin();
        while let Some(step) = bisection.step() {
            let is = |one: &&TrialEnd| {
                one.step.as_ref().is_some_and(|known| {
                    Some(known.number) == step.value.number() && known.confirms == step.confirm
                })
            };
            let Some(known) = known.iter().rev().find(is).and_then(|one| one.step.as_ref()) else { break };
            bisection.passed(known.passed);
        }
        Ok(Some(bisection))
    }

    /// The result of the search at a point; `None` while it goes on. What the point measured is what the trial at the
    /// value found has measured, and nothing if none passed: a trial that passed by chance is no result.
    fn end_of_search(&mut self, trial: Trial) -> Result<Option<SearchEnd>, PointError> {
        let Some(bisection) = self.bisection(trial)?.filter(|bisection| bisection.step().is_none()) else {
            return Ok(None);
        };
        let id = self.plan.point(trial.point)?.id;
        let found = bisection.found();
        let number = found.as_ref().and_then(SettingValue::number);
        let passed = self.passed.remove(&(id, trial.repeat)).unwrap_or_default();
        // The longer trial that confirms a value comes last.
        if let Some(step) = passed.into_iter().rfind(|step| Some(step.number) == number) {
            self.results.take(self.plan, &step.point, trial.repeat, step.figures);
        }
        Ok(Some(SearchEnd {
            point: id.to_string().into(),
            repeat: trial.repeat.saturating_sub(1),
            found: found.as_ref().map(ToString::to_string).map(Into::into),
            number,
        }))
    }

    /// Processes the end of a trial: its runs and what they measured, in the order of the plan's flows. Returns
    /// the events for the plan's log.
    pub fn done(&mut self, task: &TrialTask, runs: Vec<TrialRun>, figures: TrialFigures) -> Vec<Body> {
        let mut end = TrialEnd {
            point: task.point.id.to_string().into(),
            repeat: task.repeat.saturating_sub(1),
            content: format!("{:016x}", task.point.content).into(),
            step: None,
            runs,
        };
        let complete = is_complete(&end);
        let Some(step) = &task.step else {
            self.results.take(self.plan, &task.point, task.repeat, figures);
            if complete {
                let runs = end.runs.iter().map(|run| run.run.to_string()).collect();
                self.progress.note(&task.point, task.repeat, runs);
            }
            self.advance(true);
            return vec![Body::TrialEnded(end)];
        };
        let passed = complete && self.trial_passes(&task.point, task.repeat, figures.clone());
        end.step = Some(SearchStep {
            label: step.value.to_string().into(),
            number: step.value.number().unwrap_or_default(),
            confirms: step.confirm,
            passed,
        });
        let mut bodies = vec![Body::TrialEnded(end.clone())];
        if !complete {
            // Without the result of this step, the next one is unknown.
            self.advance(true);
            return bodies;
        }
        self.note_step(&task.point, end, figures);
        let trial = Trial { point: task.point.number, repeat: task.repeat };
        if let Ok(Some(ended)) = self.end_of_search(trial) {
            bodies.push(Body::SearchEnded(ended));
            self.advance(true);
        }
        bodies
    }

    /// Whether this trial alone meets the condition of the search.
    fn trial_passes(&self, point: &Point, repeat: u32, figures: TrialFigures) -> bool {
        let Some(search) = &self.plan.search else { return false };
        let mut results = TrialResults::default();
        results.take(self.plan, point, repeat, figures);
        let (summaries, none) = (results.sum(self.plan, point), BTreeMap::new());
        let outcomes = judge_at(self.plan, &search.pass, point, &Summed::new(&summaries, &none));
        !outcomes.is_empty() && outcomes.iter().all(assertion::AssertionOutcome::holds)
    }

    /// Moves to the next position in the order.
    fn advance(&mut self, carried_out: bool) {
        let time = self.order.get(self.at).and_then(|trial| self.times.get(trial.point)).copied();
        let time = time.unwrap_or_default();
        self.left = self.left.saturating_sub(time);
        if carried_out {
            self.completed_time = self.completed_time + time;
        }
        self.at += 1;
    }

    /// The progress so far.
    #[must_use]
    pub fn progress(&self) -> PlanProgress {
        let done = self.at.min(self.order.len());
        PlanProgress { done, of: self.order.len(), completed_time: self.completed_time, left: self.left }
    }

    /// Whether a part of the plan is missing: trials that failed or were not started.
    #[must_use]
    pub fn is_missing_any(&self) -> bool {
        let mut order = self.order.iter();
        order.any(|trial| {
            let Ok(point) = self.plan.point(trial.point) else { return true };
            match self.plan.search {
                Some(_) => match self.bisection(*trial) {
                    Ok(Some(bisection)) => bisection.step().is_some(),
                    _ => true,
                },
                None => {
                    let needed = trial.repeat <= self.plan.least_repeats() || self.plan.until.is_none();
                    needed && !self.progress.is_done(&point, trial.repeat)
                }
            }
        })
    }

    /// Summaries of every point, in the order of the plan.
    ///
    /// # Errors
    /// A point that cannot be executed.
    pub fn sum(&self) -> Result<Vec<PointSummary>, PointError> {
        let mut all = Vec::new();
        for number in 0..self.plan.grid.len() {
            all.extend(self.results.sum(self.plan, &self.plan.point(number)?));
        }
        Ok(all)
    }
}

/// Whether the measurements of all flows of a trial at this point are there.
fn has_figures(plan: &Plan, point: &Point, figures: &[Option<RunMeasurements>]) -> bool {
    point.tests.iter().all(|test| {
        let at = plan.flows.iter().position(|flow| flow.name == test.flow);
        at.and_then(|at| figures.get(at)).is_some_and(Option::is_some)
    })
}

/// Whether the plan searches by the same condition as when the log was written last.
fn has_condition_of(plan: &Plan, record: &PlanRecord) -> bool {
    let before = record.start.as_ref().and_then(|start| start.search.as_ref());
    plan.search.as_ref().is_some_and(|search| before.is_some_and(|before| *before == *search.text))
}

/// Results of the plan's assertions for its log. `others` are the plans that they refer to, by name.
#[must_use]
pub fn judgements(
    plan: &Plan,
    summaries: &[PointSummary],
    others: &BTreeMap<String, PlanRecord>,
) -> Vec<PlanJudgement> {
    let judgement_of = |judgement: crate::AssertionResult| PlanJudgement {
        assertion: judgement.assertion.into(),
        point: judgement.point.to_string().into(),
        flow: judgement.flow.into(),
        direction: judgement.direction,
        holds: judgement.outcome.holds(),
        found: match judgement.outcome {
            assertion::AssertionOutcome::Holds => None,
            assertion::AssertionOutcome::Fails(found) => Some(found.into()),
            assertion::AssertionOutcome::NotMeasured(what) => Some(format!("not measured: {what}").into()),
        },
    };
    judge(plan, &Summed::new(summaries, others)).into_iter().map(judgement_of).collect()
}

/// Whether a run of a trial is valid.
#[must_use]
pub fn counts(run: &TrialRun) -> bool {
    run.outcome == Outcome::Completed
}
