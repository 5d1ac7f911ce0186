//! Random histories: whatever happens to coordinators, two tests never use the same thing on the wire at the same time.

use crate::simulated_fleet::SimulatedFleet;

/// Histories of `make test`. `LINERATE_HISTORIES` gives another number, and `LINERATE_HISTORIES_SEED` the first seed.
const SAMPLE: u64 = 12;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn nothing_is_booked_twice_whatever_happens_to_coordinators() {
    let count = number("LINERATE_HISTORIES").unwrap_or(SAMPLE);
    let first = number("LINERATE_HISTORIES_SEED").unwrap_or(1);
    let folder = tempfile::tempdir().unwrap();
    for seed in first..first + count {
        // The seed is in the message of a failure: LINERATE_HISTORIES=1 LINERATE_HISTORIES_SEED=seed repeats it.
        SimulatedFleet::new(seed, folder.path()).run();
    }
}
