//! One module per command, with its arguments and what it does. `cli` joins them; none of them names it.

pub(crate) mod archive;
pub(crate) mod archived;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod envelope;
pub(crate) mod guardian;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod lab;
pub(crate) mod manual;
mod measuring;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stand_in;
pub(crate) mod sweep;
pub(crate) mod test;
pub(crate) mod token;
mod web;
