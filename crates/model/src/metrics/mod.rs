//! The metric catalogue: one entry per measured quantity, in the form of RFC 1242 §2.
//!
//! An entry is a typed constant and a row of [`CATALOGUE`]. All other code is generic over (metric, value), so
//! a new metric only needs an entry here and a probe in the engine. Names never change: a changed meaning gets
//! a new name.

mod catalogue;
pub mod flow;
pub mod host;
pub mod loss;
pub mod port;
pub mod queue;
mod readings;
pub mod tcp;

pub use catalogue::{Better, Metric, MetricEntry, MetricKind, MetricType, find};
pub use readings::{MetricValue, Readings, Sample, Side};

use catalogue::metrics;

/// Every metric, in display order.
pub static CATALOGUE: &[&[MetricEntry]] =
    &[flow::ENTRIES, tcp::ENTRIES, queue::ENTRIES, loss::ENTRIES, host::ENTRIES, port::ENTRIES];
