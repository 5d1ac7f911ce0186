//! Sweeps over message sizes: the sizes, the choice of the next trial, and the exchange of messages at either
//! end.

mod runner;
mod schedule;
mod sizes;

pub(crate) use runner::Runner;
pub(crate) use schedule::{NextTrial, SweepSchedule};
