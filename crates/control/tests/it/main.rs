//! Measurements with both ends in this process, and the evidence that is gathered from them.
#![expect(clippy::unwrap_used, reason = "a test that cannot be prepared fails")]

mod forwarded_runs;
mod gathered;
mod iperf3;
mod self_signed;
mod test_bed;
