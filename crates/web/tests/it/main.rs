//! The service as its visitors meet it: over sockets, with a server and an archive of its own.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be prepared fails")]

mod access;
mod calculated;
mod client;
mod fleet;
mod labs;
mod other_programs;
mod plans;
mod refusals;
mod runs;
mod shared;
mod speed_tests;
mod tls;
