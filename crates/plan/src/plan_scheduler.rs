//! A plan carried out, as a machine without clock and network: which trial comes next, and what becomes of it.
//!
//! Whoever drives it asks [`PlanScheduler::next_task`], carries the trial out, and tells [`Conductor::done`]; that answers with the
//! events for the plan's log. A machine that is made of such a log goes on where it ends.

use std::collections::BTreeMap;

use linerate_model::{
    Body, Outcome, PlanJudgement, PlanRecord, PointSummary, SearchEnd, SearchStep, TrialEnd, TrialRun,
};
use linerate_units::Span;

use crate::assertion::{self, judge, judge_at};
use crate::order::Trial;
use crate::plan::Plan;
use crate::point::{Point, PointError, PointId};
use crate::progress::{Progress, content_of, is_complete};
use crate::search::{Bisection, NextValue};
use crate::trial_results::{Summed, TrialFigures, TrialResults};

/// A trial to carry out.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The point, resolved.
    pub point: Point,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// The step of a search.
    pub step: Option<NextValue>,
}

/// How far a plan is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanProgress {
    /// Places in the order of trials that are behind, a search being one place.
    pub done: usize,
    /// All of them; with `until` not all are needed.
    pub of: usize,
    /// What the estimate gives those that were carried out.
    pub behind: Span,
    /// What it gives the others, at most.
    pub left: Span,
}

/// The machine.
#[derive(Debug)]
pub struct PlanScheduler<'p> {
    plan: &'p Plan,
    order: Vec<Trial>,
    /// How long a trial of each point takes, a search counting with all its trials.
    times: Vec<Span>,
    /// Place in the order.
    at: usize,
    behind: Span,
    left: Span,
    progress: Progress,
    /// Steps of searches, in the order of time.
    steps: BTreeMap<(PointId, u32), Vec<TrialEnd>>,
    results: TrialResults,
}

impl<'p> PlanScheduler<'p> {
    /// From the beginning.
    ///
    /// # Errors
    /// A point that no host could carry out.
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
            behind: Span::ZERO,
            left,
            progress: Progress::new(plan),
            steps: BTreeMap::new(),
            results: TrialResults::default(),
        })
    }

    /// From where a log ends. `figures` says what the runs of a trial measured, in the order of the plan's flows.
    ///
    /// # Errors
    /// As [`PlanScheduler::new`].
    pub fn resume(
        plan: &'p Plan,
        record: &PlanRecord,
        figures: &mut dyn FnMut(&TrialEnd) -> TrialFigures,
    ) -> Result<Self, PointError> {
        let mut scheduler = Self::new(plan)?;
        scheduler.progress = Progress::of(record);
        let ids: BTreeMap<PointId, usize> = (0..plan.grid.len())
            .map(|number| Ok((plan.point(number)?.id, number)))
            .collect::<Result<_, _>>()?;
        for trial in &record.trials {
            let Ok(id) = trial.point.parse::<PointId>() else { continue };
            let Some(number) = ids.get(&id) else { continue };
            let repeat = trial.repeat.saturating_add(1);
            let point = match &trial.step {
                Some(step) => scheduler.point_of_step(*number, step.number)?,
                None => Some(plan.point(*number)?),
            };
            let Some(point) = point.filter(|point| content_of(trial) == Some(point.content)) else {
                continue;
            };
            if let Some(step) = &trial.step {
                if is_complete(trial) {
                    scheduler.steps.entry((id, repeat)).or_default().push(trial.clone());
                    if step.passed {
                        scheduler.results.take(plan, &point, repeat, figures(trial));
                    }
                }
            } else if !scheduler.is_better_known(&point, repeat, trial) {
                scheduler.results.take(plan, &point, repeat, figures(trial));
            }
        }
        Ok(scheduler)
    }

    /// A trial that came to an end holds over one that did not, whichever was later.
    fn is_better_known(&self, point: &Point, repeat: u32, trial: &TrialEnd) -> bool {
        !is_complete(trial) && self.progress.is_done(point, repeat)
    }

    fn point_of_step(&self, number: usize, value: f64) -> Result<Option<Point>, PointError> {
        let setting = self.plan.search.as_ref().and_then(|search| search.high.with_number(value));
        setting.map(|setting| self.plan.point_with(number, Some(&setting))).transpose()
    }

    /// The next trial; absent when all is done.
    ///
    /// # Errors
    /// A point that no host could carry out.
    pub fn next_task(&mut self) -> Result<Option<Task>, PointError> {
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

    /// The trial that follows the next one whatever that brings; absent at the end, and where results decide.
    #[must_use]
    pub fn following(&self) -> Option<Task> {
        if self.plan.search.is_some() || self.plan.until.is_some() {
            return None;
        }
        let mut rest = self.order.get(self.at + 1..)?.iter();
        rest.find_map(|trial| self.next_repeat(*trial).ok().flatten())
    }

    fn next_repeat(&self, trial: Trial) -> Result<Option<Task>, PointError> {
        let point = self.plan.point(trial.point)?;
        if self.progress.is_done(&point, trial.repeat) {
            return Ok(None);
        }
        let enough = self.plan.until.is_some_and(|share| {
            trial.repeat > self.plan.least_repeats() && self.results.is_narrow(self.plan, &point, share.get())
        });
        Ok((!enough).then_some(Task { point, repeat: trial.repeat, step: None }))
    }

    fn next_step(&self, trial: Trial) -> Result<Option<Task>, PointError> {
        let Some(step) = self.bisection(trial)?.and_then(|bisection| bisection.step()) else {
            return Ok(None);
        };
        let mut point = self.plan.point_with(trial.point, Some(&step.value))?;
        let confirm = self.plan.search.as_ref().and_then(|search| search.confirm).filter(|_| step.confirm);
        if let Some(length) = confirm {
            for test in point.tests.iter_mut().filter(|test| !test.background) {
                test.spec.traffic.duration = Some(length);
            }
        }
        Ok(Some(Task { point, repeat: trial.repeat, step: Some(step) }))
    }

    /// The search at a point as far as it is known: the steps of the log, once more.
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

    /// Takes in how a trial ended: its runs and what they measured, in the order of the plan's flows. Gives back what the
    /// plan's log shall say.
    pub fn done(&mut self, task: &Task, runs: Vec<TrialRun>, figures: TrialFigures) -> Vec<Body> {
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
        let passed = complete && self.trial_passes(task, figures.clone());
        end.step = Some(SearchStep {
            label: step.value.to_string().into(),
            number: step.value.number().unwrap_or_default(),
            confirms: step.confirm,
            passed,
        });
        let mut bodies = vec![Body::TrialEnded(end.clone())];
        if !complete {
            // Without this step nobody knows the next one.
            self.advance(true);
            return bodies;
        }
        if passed {
            self.results.take(self.plan, &task.point, task.repeat, figures);
        }
        self.steps.entry((task.point.id, task.repeat)).or_default().push(end);
        let trial = Trial { point: task.point.number, repeat: task.repeat };
        if let Ok(Some(bisection)) = self.bisection(trial)
            && bisection.step().is_none()
        {
            let found = bisection.found();
            bodies.push(Body::SearchEnded(SearchEnd {
                point: task.point.id.to_string().into(),
                repeat: task.repeat.saturating_sub(1),
                found: found.as_ref().map(ToString::to_string).map(Into::into),
                number: found.as_ref().and_then(crate::kind::SettingValue::number),
            }));
            self.advance(true);
        }
        bodies
    }

    /// Whether what a search asks for holds of this trial alone.
    fn trial_passes(&self, task: &Task, figures: TrialFigures) -> bool {
        let Some(search) = &self.plan.search else { return false };
        let mut results = TrialResults::default();
        results.take(self.plan, &task.point, task.repeat, figures);
        let (summaries, none) = (results.sum(self.plan, &task.point), BTreeMap::new());
        let outcomes = judge_at(self.plan, &search.pass, &task.point, &Summed::new(&summaries, &none));
        !outcomes.is_empty() && outcomes.iter().all(assertion::Outcome::holds)
    }

    /// The place in the order is behind.
    fn advance(&mut self, carried_out: bool) {
        let time = self.order.get(self.at).and_then(|trial| self.times.get(trial.point)).copied();
        let time = time.unwrap_or_default();
        self.left = self.left.saturating_sub(time);
        if carried_out {
            self.behind = self.behind + time;
        }
        self.at += 1;
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> PlanProgress {
        let done = self.at.min(self.order.len());
        PlanProgress { done, of: self.order.len(), behind: self.behind, left: self.left }
    }

    /// True if something of the plan is still missing: trials that failed, or were never begun.
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

    /// What every point amounts to, in the order of the plan.
    ///
    /// # Errors
    /// A point that no host could carry out.
    pub fn sum(&self) -> Result<Vec<PointSummary>, PointError> {
        let mut all = Vec::new();
        for number in 0..self.plan.grid.len() {
            all.extend(self.results.sum(self.plan, &self.plan.point(number)?));
        }
        Ok(all)
    }
}

/// What becomes of the plan's assertions, for its log. `others` are the plans that they name, by those names.
#[must_use]
pub fn judgements(
    plan: &Plan,
    summaries: &[PointSummary],
    others: &BTreeMap<String, PlanRecord>,
) -> Vec<PlanJudgement> {
    let told = |judgement: crate::Judgement| PlanJudgement {
        assertion: judgement.assertion.into(),
        point: judgement.point.to_string().into(),
        flow: judgement.flow.into(),
        direction: judgement.direction,
        holds: judgement.outcome.holds(),
        found: match judgement.outcome {
            assertion::Outcome::Holds => None,
            assertion::Outcome::Fails(found) => Some(found.into()),
            assertion::Outcome::NotMeasured(what) => Some(format!("not measured: {what}").into()),
        },
    };
    judge(plan, &Summed::new(summaries, others)).into_iter().map(told).collect()
}

/// Whether a run of a trial may be counted.
#[must_use]
pub fn counts(run: &TrialRun) -> bool {
    run.outcome == Outcome::Completed
}
