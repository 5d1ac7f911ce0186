//! One module per command, with its arguments and what it does. `cli` joins them; none of them names it.

pub(crate) mod archive;
pub(crate) mod archived;
#[cfg(feature = "full")]
pub(crate) mod check;
#[cfg(feature = "full")]
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
#[cfg(feature = "full")]
pub(crate) mod envelope;
#[cfg(feature = "full")]
pub(crate) mod fleet;
pub(crate) mod guardian;
pub(crate) mod health;
#[cfg(feature = "full")]
pub(crate) mod import;
#[cfg(feature = "full")]
pub(crate) mod lab;
pub(crate) mod manual;
mod measuring;
#[cfg(feature = "full")]
pub(crate) mod plan;
pub(crate) mod report;
#[cfg(feature = "full")]
pub(crate) mod responsiveness;
#[cfg(feature = "full")]
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stand_in;
pub(crate) mod sweep;
pub(crate) mod test;
#[cfg(feature = "full")]
pub(crate) mod token;
#[cfg(feature = "full")]
mod web;
#[cfg(not(feature = "full"))]
#[path = "cmd/no_web.rs"]
mod web;
