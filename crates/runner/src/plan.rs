//! Plans: many tests, one after the other, between several hosts.
//!
//! [`PlanRequest::prepare`] reads a plan and finds what it refers to, such as the interrupted run to continue.
//! [`PreparedPlan::run`] carries it out in a [`PlanWorld`]: on real hosts, or in an emulated network on this
//! machine. Every trial is a group of runs, each with a log of its own, and the plan has a log too. All of them go
//! to the same sinks. A [`PlanObserver`] also gets the progress.

mod claim;
mod drive;
mod error;
mod files;
mod observer;
mod prepare;
mod settings;
mod sinks;
mod trial;

pub use crate::report_source::OpenArchive;
pub use drive::PlanWorld;
pub use error::{PlanRunError, ResumeError, TooLong, WorldError};
pub(crate) use files::topology_of_plan;
pub use files::{HostPath, NoPlanFiles, PlanFiles, read_without_files, topology_paths};
pub use linerate_plan::{Plan, PlanError, PlanMistake, PlanProgress, TrialTask, bundled as bundled_plans};
pub use observer::{PlanNotice, PlanObserver, TrialBegin, TrialResult};
pub use prepare::{PlanRequest, PreparedPlan, Resume, world_of};
