//! Stand-ins of no tool at all, driven over loopback.

mod flows;
mod links;
pub(crate) mod script;
