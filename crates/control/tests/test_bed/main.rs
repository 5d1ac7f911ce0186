//! A test bed on one host: agents, coordinators and unrelated clients over loopback.
#![expect(clippy::unwrap_used, reason = "a test that cannot be prepared fails")]

mod groups;
mod hosts;
mod places;
mod troubles;
