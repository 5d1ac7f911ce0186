//! iperf3, versions 3.1 to 3.21.

mod calendar;
pub mod errors;
pub mod numbers;
pub mod report;
pub mod settings;
