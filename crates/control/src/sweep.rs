//! Series over message sizes: which sizes, which trial comes next, and the exchange of its messages at either end.

mod runner;
mod schedule;
mod sizes;

pub(crate) use runner::Runner;
pub(crate) use schedule::{NextTrial, Schedule};
