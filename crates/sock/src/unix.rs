//! System calls that are the same on every Unix.

pub(crate) mod call;
pub(crate) mod clock;
pub(crate) mod cost;
pub mod files;
pub(crate) mod kernel;
pub mod limits;
