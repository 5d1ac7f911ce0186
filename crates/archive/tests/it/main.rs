//! The archive from outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot be prepared fails")]

mod agents;
mod archive;
mod both;
mod calendar;
mod earlier_versions;
mod encryption;
mod fleet_pages;
mod folder;
mod limits;
mod names;
mod pages;
mod place;
mod plans;
mod postgres_server;
mod server;
