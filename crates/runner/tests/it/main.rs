//! Plans that a library carries out: on hosts, and in a lab.
#![expect(clippy::unwrap_used, reason = "a test that cannot be prepared fails")]

mod plan;
mod plan_in_lab;
