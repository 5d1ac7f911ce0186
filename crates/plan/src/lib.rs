//! Plans: what shall be measured between which hosts, in which combinations, how often and in which order.
//!
//! [`read`] makes a checked [`Plan`] of a TOML file, or says everything that is wrong with it. A plan is a grid of points:
//! [`Plan::point`] resolves one to what every flow, host and the lab are told, [`Plan::trials`] puts repeats in order,
//! [`Plan::schedule`] says when the flows of a trial run and [`Plan::estimate`] how long all of it takes. [`judge`] holds
//! assertions against results. [`PlanScheduler`] is a plan that is carried out: which trial comes next, what searches and points
//! come to, and what is done already after an interruption. The knobs that can be swept are found in the schema of
//! `linerate_model::TestSpec`, so a new one needs nothing here. [`bundled`] plans come with the program.
//!
//! Nothing here runs anything: files, results and time are handed in.

mod assertion;
mod axis;
mod bundled;
mod compare;
mod cross_flow;
mod error;
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
    Assertion, Claim, Comparison, Dimension, Judgement, Measured, Outcome, QUANTITIES, Quantity, Results,
    Scope, judge, judge_at,
};
pub use axis::{Axis, AxisValue, Part, Target};
pub use bundled::bundled;
pub use compare::{
    AxisError, Candidate, Difference, Row, Subject, Table, compare_with_base, quantities, values_of_axis,
};
pub use error::{PlanError, PlanMistake, Source};
pub use include::Surroundings;
pub use kind::SettingValue;
pub use linerate_config::Bundled;
pub use linerate_theory::compare::Pairing;
pub use method::{Method, tables};
pub use order::{MAX_TRIALS, Trial};
pub use plan::{Flow, Host, Lab, Order, Plan};
pub use plan_header::Opening;
pub use plan_scheduler::{PlanProgress, PlanScheduler, Task, counts, judgements};
pub use point::{Point, PointError, PointId, Test};
pub use progress::{Done, Progress};
pub use read::read;
pub use reference::reference;
pub use schedule::{Estimate, FlowTiming, length};
pub use schema::schema;
pub use search::{Bisection, NextValue, Search};
pub use sweep::{Grid, MAX_POINTS};
pub use trial_results::{Figures, Summed, TrialFigures, TrialResults};

#[cfg(test)]
mod tests;
