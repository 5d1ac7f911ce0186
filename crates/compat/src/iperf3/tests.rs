//! Both roles in virtual time: against each other, against recorded exchanges, and against misbehaving peers.

mod pairs;
mod raw;
mod recorded;
mod streams;
mod world;
