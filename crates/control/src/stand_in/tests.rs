//! Scripted stand-ins of no real tool, driven over loopback.

mod flows;
mod links;
pub(crate) mod script;
