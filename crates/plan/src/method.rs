//! Methods of plans, and the tables of each.

mod block_size;
mod buffer;
mod concurrent_flows;
mod points;
mod rfc2544;
mod rfc6349;
mod window;

use linerate_model::{MethodTable, PlanRecord, RunRecord};

use crate::plan::Plan;
use crate::progress::without_superseded;

/// A method with its own terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// TCP throughput testing: RFC 6349.
    Rfc6349,
    /// Benchmarking of devices: RFC 2544.
    Rfc2544,
    /// The buffer of a bottleneck, from its round-trip times and drops.
    SwitchBuffer,
    /// Throughput against the window, with the rate that window and RTT allow.
    Window,
    /// Throughput and latency against the size of a block or a message.
    BlockSize,
    /// Flows that share a path: totals, fairness, classes, latency under load and full ports.
    ConcurrentFlows,
}

/// Names of all methods in plans.
pub(crate) const METHODS: &[&str] =
    &["rfc6349", "rfc2544", "switch-buffer", "window", "block-size", "concurrent-flows"];

impl Method {
    /// All methods, in the order of [`METHODS`].
    const ALL: [Self; 6] = [
        Self::Rfc6349,
        Self::Rfc2544,
        Self::SwitchBuffer,
        Self::Window,
        Self::BlockSize,
        Self::ConcurrentFlows,
    ];

    /// Name in a plan.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rfc6349 => "rfc6349",
            Self::Rfc2544 => "rfc2544",
            Self::SwitchBuffer => "switch-buffer",
            Self::Window => "window",
            Self::BlockSize => "block-size",
            Self::ConcurrentFlows => "concurrent-flows",
        }
    }

    /// The method with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// The tables of a plan's method; empty without a method.
///
/// `record` has the summaries of all points; `runs` finds a run of a trial by its name. Trials that measured
/// something else than the plan does now, as it was resumed with other settings, do not count.
#[must_use]
pub fn tables(
    plan: &Plan,
    record: &PlanRecord,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Vec<MethodTable> {
    let Some(method) = plan.method else { return Vec::new() };
    let record = &without_superseded(plan, record);
    match method {
        Method::Rfc6349 => rfc6349::tables(record),
        Method::Rfc2544 => rfc2544::tables(plan, record, runs),
        Method::Window => window::tables(plan, record),
        Method::BlockSize => block_size::tables(record, runs),
        Method::ConcurrentFlows => concurrent_flows::tables(plan, record, runs),
        Method::SwitchBuffer => buffer::tables(plan, record, runs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_the_name_that_plans_write() {
        assert_eq!(Method::ALL.map(Method::name), METHODS);
        assert!(METHODS.iter().all(|name| Method::named(name).is_some_and(|found| found.name() == *name)));
        assert_eq!(Method::named("rfc9999"), None);
    }
}
