//! Both roles in virtual time: against each other, against recorded exchanges, against peers that misbehave.

mod pairs;
mod raw;
mod recorded;
mod world;
