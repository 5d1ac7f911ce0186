//! Calls of Windows.

pub(crate) mod clock;
pub(crate) mod cost;
pub mod files;
pub(crate) mod kernel;
pub mod limits;
pub(crate) mod poll;
pub(crate) mod process;
pub(crate) mod socket;
