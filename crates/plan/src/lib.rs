//! Plans: what to measure between which hosts, in which combinations, how often and in which order.
//!
//! [`read`] turns a TOML file into a checked [`Plan`], or returns all its mistakes. A plan is a grid of points.
//! [`Plan::point`] resolves one to the settings of every flow, host and the lab, [`Plan::trials`] orders the
//! repeats, [`Plan::schedule`] determines when the flows of a trial run, and [`Plan::estimate`] the total
//! duration. [`judge`] checks assertions against results. [`PlanScheduler`] executes a plan: it determines the
//! next trial, the results of searches and points, and what is already done after an interruption. The knobs
//! that can be swept come from the schema of `linerate_model::TestSpec`, so a new knob needs no change here.
//! [`bundled`] plans are part of the program.
//!
//! This crate runs nothing: files, results and time are passed in.

mod assertion;
mod axis;
mod bundled;
mod compare;
mod cross_flow;
mod error;
pub mod file_keys;
mod include;
mod keys;
mod kind;
mod knobs;
mod method;
mod order;
mod plan;
mod plan_header;
mod plan_scheduler;
mod point;
mod progress;
mod range;
mod read;
mod reference;
mod schedule;
mod schema;
mod search;
mod sweep;
mod trial_results;

pub use assertion::{
    Assertion, AssertionOutcome, AssertionQuantity, AssertionResult, ComparisonOperator, Dimension,
    Measurements, QUANTITIES, QuantityScope, QuantityValue, Relation, judge, judge_at,
};
pub use axis::{Axis, AxisTarget, AxisValue, PointSelection};
pub use bundled::bundled;
pub use compare::{
    AxisError, Candidate, Compared, ComparisonRow, ComparisonTable, Difference, LeftOutRuns, QuantityError,
    Subject, compare_with_base, quantities, values_of_axis,
};
pub use error::{PlanError, PlanMistake, Source};
pub use include::{Surroundings, SurroundingsError};
pub use kind::SettingValue;
pub use linerate_config::{Bundled, hint};
pub use linerate_theory::compare::Pairing;
pub use method::{Method, tables};
pub use order::{MAX_TRIALS, Trial};
pub use plan::{Flow, Host, Plan, PlanLab, TrialOrder};
pub use plan_header::PlanHeaderFacts;
pub use plan_scheduler::{PlanProgress, PlanScheduler, TrialTask, counts, judgements};
pub use point::{Point, PointError, PointFlow, PointId};
pub use progress::{CompletedTrial, CompletedTrials};
pub use read::read;
pub use reference::reference;
pub use schedule::{Estimate, FlowTiming};
pub use schema::schema;
pub use search::{Bisection, NextValue, Search};
pub use sweep::{Grid, MAX_POINTS};
pub use trial_results::{RunMeasurements, Summed, TrialFigures, TrialResults};

#[cfg(test)]
mod tests;
