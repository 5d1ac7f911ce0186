//! What a caller learns of a running plan besides its events.

use linerate_control::{HostError, RunEvent};
use linerate_lab::{LabName, LabResourceError};
use linerate_model::{Caveat, PlanRecord};
use linerate_plan::{Plan, PlanProgress, TrialFigures, TrialTask};
use linerate_units::Span;

/// Follows a plan, on the thread that carries it out. Sinks get every event; an observer also gets what is in no
/// log: the progress, and problems that concern this machine or a host and not a result.
///
/// `()` is an observer that ignores everything.
pub trait PlanObserver {
    /// A trial begins.
    fn trial_begins(&mut self, _trial: &TrialBegin<'_>) {}

    /// An event of one of its runs.
    fn run_event(&mut self, _event: &RunEvent<'_>) {}

    /// A trial has ended, and its results are in the log.
    fn trial_ends(&mut self, _trial: &TrialResult<'_>) {}

    /// The emulated network of the plan is up under this name, or is about to be removed.
    fn lab(&mut self, _name: Option<&str>) {}

    /// Something that a user should know.
    fn notice(&mut self, _notice: &PlanNotice) {}
}

impl PlanObserver for () {}

/// A trial that begins.
#[derive(Debug, Clone, Copy)]
pub struct TrialBegin<'a> {
    /// The trial.
    pub task: &'a TrialTask,
    /// Its plan.
    pub plan: &'a Plan,
    /// What is done and what is left.
    pub progress: PlanProgress,
    /// Time since the plan began or was resumed. `progress` has the trials of the same time.
    pub elapsed: Span,
}

/// A trial that has ended.
#[derive(Debug, Clone, Copy)]
pub struct TrialResult<'a> {
    /// The trial.
    pub task: &'a TrialTask,
    /// The measurements of each flow of the plan.
    pub figures: &'a TrialFigures,
    /// The record of the plan so far, of which this trial is the last one.
    pub record: &'a PlanRecord,
    /// What is done now and what is left.
    pub progress: PlanProgress,
}

/// Something that a user should know while a plan runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanNotice {
    /// The results are doubtful, which is also in the log.
    #[error("{}", .0.text)]
    Caveat(Caveat),
    /// A host still has a setting that the plan changed.
    #[error("{0}")]
    SettingLeft(HostError),
    /// What was removed of an earlier lab that was killed, or could not be.
    #[error("{0}")]
    KilledLab(String),
    /// The emulated network could not be removed.
    #[error("the lab {lab} is still up: {error}")]
    LabLeft {
        /// Its name.
        lab: LabName,
        /// Why.
        error: LabResourceError,
    },
    /// The emulated network stays, as requested.
    #[error("the lab {0} stays up")]
    LabKept(LabName),
}
