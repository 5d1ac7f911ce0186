//! iperf3, versions 3.1 to 3.21.

pub mod argv;
mod calendar;
pub mod errors;
pub mod numbers;
pub mod report;
pub mod settings;
