//! The theory compared with published figures and with simulated runs.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod claims;
mod claims_accounting;
mod comparisons;
mod honest_runs;
mod vectors;
