//! Why a plan is not carried out.

use linerate_archive::ArchiveError;
use linerate_control::HostError;
use linerate_model::World;
use linerate_plan::{Estimate, Plan, PlanError, PointError};
use linerate_units::Span;

use crate::lab::LabRunError;
use crate::{FileError, RunnerError};

/// Why a plan cannot be started, or ended before its log began. Later errors are in the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanRunError {
    /// There is no such plan.
    #[error(transparent)]
    File(#[from] FileError),
    /// The plan has mistakes.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A point cannot be executed.
    #[error(transparent)]
    Point(#[from] PointError),
    /// It would take too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Neither a plan nor a run of one is given.
    #[error("name a plan")]
    NoPlan,
    /// There is no such run to resume.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// Another process carries out the same run.
    #[error("run {} is in progress in another process; wait until it ends, or stop it", short(run))]
    InProgress {
        /// Id of the run.
        run: String,
    },
    /// The plan cannot be carried out where it should be.
    #[error(transparent)]
    World(#[from] WorldError),
    /// An assertion refers to another run, which is not found.
    #[error("run(\"{name}\") of an assertion: {error}")]
    OtherRun {
        /// The run as the assertion names it.
        name: String,
        /// Why.
        error: ArchiveError,
    },
    /// An assertion refers to a run that is not one of a plan.
    #[error("run(\"{0}\") of an assertion is not a run of a plan")]
    OtherRunNotPlan(String),
    /// The plan has settings for a host that takes part in no flow.
    #[error("the plan has settings for host {0}, which no flow uses")]
    UnusedHost(String),
    /// Hosts cannot be reached, or cannot do what the plan needs.
    #[error("{}", lines(.0))]
    Hosts(Vec<HostError>),
    /// Earlier runs are needed, and no archive is given.
    #[error("earlier runs are needed, and there is no archive")]
    NoArchive,
    /// The archive cannot be read.
    #[error(transparent)]
    Archive(ArchiveError),
    /// The emulated network cannot be created or used.
    #[error(transparent)]
    Lab(#[from] LabRunError),
    /// The run cannot be named.
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

impl PlanRunError {
    /// Whether the request, the plan or a host has to be corrected; otherwise something failed on this machine.
    #[must_use]
    pub fn needs_correction(&self) -> bool {
        match self {
            Self::Archive(_) | Self::Runner(_) => false,
            Self::Lab(error) => matches!(error, LabRunError::NotFound(_)),
            _ => true,
        }
    }
}

/// A plan that would take longer than allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plan {plan} would take {}, but at most {limit} is allowed", estimate.time)]
pub struct TooLong {
    /// Name of the plan.
    pub plan: String,
    /// How long it would take.
    pub estimate: Estimate,
    /// The limit.
    pub limit: Span,
    /// Whether the limit is that of the plan, and not that of the caller.
    pub by_plan: bool,
}

impl TooLong {
    /// Compares an estimate with the limit of the caller, otherwise that of the plan.
    ///
    /// # Errors
    /// The plan would take longer.
    pub fn check(plan: &Plan, estimate: &Estimate, limit: Option<Span>) -> Result<(), Self> {
        let by_plan = limit.is_none();
        match limit.or(plan.max_time) {
            Some(limit) if estimate.time > limit => {
                Err(Self { plan: plan.name.clone(), estimate: *estimate, limit, by_plan })
            }
            _ => Ok(()),
        }
    }
}

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The archive has no such run.
    #[error(transparent)]
    NotFound(ArchiveError),
    /// The run is not one of a plan.
    #[error("run {0} is not a run of a plan; linerate history lists the plans")]
    NotPlan(String),
    /// The log of the run lacks the plan.
    #[error("run {0} is not a run of a plan, so it cannot be resumed")]
    NoFiles(String),
    /// All runs of the plan are complete.
    #[error("the archive has no unfinished run of the plan {0}; remove --resume to start one")]
    NoneUnfinished(String),
}

/// Why a plan cannot be carried out in a world.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The interrupted run took place elsewhere.
    #[error("the run was started with --world {} and can only be resumed with it", .0.name())]
    Began(World),
    /// The plan has no emulated network.
    #[error("the plan has no lab; name one with --topology")]
    NoLab,
    /// The emulated network lacks a host.
    #[error("the topology has no host '{0}', which a flow needs")]
    NotInLab(String),
    /// A host has no address.
    #[error(
        "host {0} has no address; give --set host.{0}.address=…, or run the plan in the lab with --world {lab}",
        lab = World::Lab.name()
    )]
    NoAddress(String),
    /// An axis changes the network, which real hosts do not allow.
    #[error("axis '{0}' changes the emulated network; use --world lab, or remove the axis")]
    LabAxis(String),
    /// The plan was prepared for another world than the one that is given.
    #[error("the plan was prepared for the world {}", .0.name())]
    Prepared(World),
}

fn short(run: &str) -> String {
    run.chars().take(8).collect()
}

fn lines(troubles: &[HostError]) -> String {
    if troubles.is_empty() {
        return "no host is connected".to_owned();
    }
    troubles.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
