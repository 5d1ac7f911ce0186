//! The memory that a server grants to runs. The need of each run is known before it begins and reserved until
//! it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_engine::{EngineError, memory_needed};
use linerate_model::flow::FlowId;
use linerate_model::{CheckedSpec, Direction};
use linerate_proto::FlowOrder;
use linerate_sock::proc;
use linerate_units::Bytes;

use crate::setup::flow_setup;

/// Divisor of the memory available to this process that gives the default budget.
const DEFAULT_MEMORY_DIVISOR: u64 = 4;

/// Smallest default budget, enough for the tests of a small host.
const MIN_DEFAULT_BYTES: u64 = 128 << 20;

/// Memory of a run in addition to its flows: its dialogue with all unread and unsent bytes, and its threads.
const RUN_BYTES: u64 = 4 << 20;

/// The memory that all runs together may reserve.
#[derive(Debug)]
pub(crate) struct Budget {
    whole: AtomicU64,
    reserved: AtomicU64,
}

/// A reservation, released when this is dropped.
#[derive(Debug)]
pub(crate) struct Loan {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    /// A budget of `whole`; by default a quarter of the memory available to this process.
    pub(crate) fn new(whole: Option<Bytes>) -> Arc<Self> {
        Arc::new(Self { whole: AtomicU64::new(budget_bytes(whole)), reserved: AtomicU64::new(0) })
    }

    /// Changes the budget. What was reserved stays so.
    pub(crate) fn resize(&self, whole: Option<Bytes>) {
        self.whole.store(budget_bytes(whole), Ordering::Relaxed);
    }

    fn whole(&self) -> u64 {
        self.whole.load(Ordering::Relaxed)
    }

    /// Refuses a request that exceeds the whole budget.
    pub(crate) fn check(&self, needed: Bytes) -> Result<(), String> {
        if needed.get() <= self.whole() {
            return Ok(());
        }
        Err(format!(
            "the run needs {} of memory on the server, which grants {} (--limit-memory): use fewer streams \
             (-P), a shorter -l or a longer -i",
            rounded(needed.get()),
            rounded(self.whole())
        ))
    }

    /// Reserves memory, unless the request exceeds the budget or what other runs have left of it.
    pub(crate) fn reserve(self: &Arc<Self>, needed: Bytes) -> Result<Loan, String> {
        self.check(needed)?;
        let bytes = needed.get();
        let with = |reserved: u64| reserved.checked_add(bytes).filter(|reserved| *reserved <= self.whole());
        match self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with) {
            Ok(_) => Ok(Loan { budget: Arc::clone(self), bytes }),
            Err(reserved) => Err(format!(
                "the run needs {} of memory on the server, but other runs use {} of the {} that it grants \
                 (--limit-memory): try again later, or use fewer streams (-P) or a shorter -l",
                rounded(bytes),
                rounded(reserved),
                rounded(self.whole())
            )),
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.budget.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The bytes of a budget; by default a quarter of the memory available to this process.
fn budget_bytes(whole: Option<Bytes>) -> u64 {
    let chosen = || {
        proc::host::memory_allowed_bytes()
            .map_or(MIN_DEFAULT_BYTES, |all| (all / DEFAULT_MEMORY_DIVISOR).max(MIN_DEFAULT_BYTES))
    };
    whole.map_or_else(chosen, Bytes::get)
}

/// Rounds up to whole MiB for messages.
fn rounded(bytes: u64) -> Bytes {
    Bytes::new(bytes.div_ceil(1 << 20).saturating_mul(1 << 20))
}

/// The largest amount of memory that a run needs at one end.
///
/// # Errors
/// A flow exceeds the bounds of the engine.
pub(crate) fn needed(spec: &CheckedSpec, client: bool) -> Result<Bytes, EngineError> {
    if let Some(sweep) = &spec.sweep {
        // One message being sent and one being received.
        return Ok(Bytes::new(RUN_BYTES.saturating_add(sweep.longest_message().get().saturating_mul(2))));
    }
    let flow = |direction: &Direction| {
        let length = spec.longest_block();
        // Blocks as long as the specification allows are accepted.
        let Ok(order) = FlowOrder::new(spec, FlowId(0), *direction, length) else { return Ok(0) };
        let setup = flow_setup(spec, &order, client, &[0; 16]);
        memory_needed(&setup, spec.traffic.streams as usize).map(Bytes::get)
    };
    let mut most = 0;
    for phase in spec.phases() {
        let mut phase_bytes: u64 = 0;
        for direction in &phase {
            phase_bytes = phase_bytes.saturating_add(flow(direction)?);
        }
        most = most.max(phase_bytes);
    }
    Ok(Bytes::new(most.saturating_add(RUN_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Sweep, TestSpec};

    const MIB: u64 = 1 << 20;

    fn spec(change: impl FnOnce(&mut TestSpec)) -> CheckedSpec {
        let mut spec = TestSpec::default();
        change(&mut spec);
        spec.checked().unwrap()
    }

    #[test]
    fn what_is_reserved_comes_back_and_nobody_gets_what_others_have() {
        let budget = Budget::new(Some(Bytes::new(100 * MIB)));
        let first = budget.reserve(Bytes::new(60 * MIB)).unwrap();
        let why = budget.reserve(Bytes::new(41 * MIB)).unwrap_err();
        assert!(why.contains("needs 41 MiB") && why.contains("use 60 MiB of the 100 MiB"), "{why}");
        let second = budget.reserve(Bytes::new(40 * MIB)).unwrap();
        drop((first, second));
        assert!(budget.reserve(Bytes::new(100 * MIB)).is_ok());
        for absurd in [100 * MIB + 1, u64::MAX] {
            let why = budget.reserve(Bytes::new(absurd)).unwrap_err();
            assert!(why.contains("grants 100 MiB") && why.contains("-P"), "{why}");
        }
    }

    #[test]
    fn a_run_needs_the_buffers_of_its_busiest_phase() {
        let of = |change: fn(&mut TestSpec)| needed(&spec(change), false).unwrap().get() / MIB;
        let large = |spec: &mut TestSpec| {
            (spec.traffic.streams, spec.traffic.length) = (2, Some(Bytes::new(64 * MIB)));
        };
        // Two senders with blocks of 64 MiB; a receiver reads 4 MiB at a time.
        assert!((128..=140).contains(&of(large)));
        assert!((8..=20).contains(&of(|spec| {
            (spec.traffic.streams, spec.traffic.length) = (2, Some(Bytes::new(64 * MIB)));
            spec.traffic.upload = true;
        })));
        assert!(of(|_| {}) < 16, "an ordinary test");
        let series =
            |spec: &mut TestSpec| spec.sweep = Some(Sweep { to: Bytes::new(64 * MIB), ..Sweep::default() });
        assert!((128..=140).contains(&of(series)));
    }
}
