//! Cost of observing a flow: pairs over loopback with and without samples, latency and verdict, in turn.
//!
//! With the default scheduling, runs of one program over loopback differ by a third, because the scheduler
//! decides each time whether sender and receiver share a core. Both are therefore pinned to one, with a window
//! that fits into its cache: then runs differ by a few per cent. The observing threads are not pinned, except
//! for the last figure, where everything shares that core.

use std::time::Duration;

use super::alone::loopback;
use super::bench_network::BenchNetwork;
use super::figure::{Bar, Figure, Readings};
use super::spread::shift;
use super::tools::{TIMEOUT, Tool};
use super::{Outcome, TestBed, report};
use crate::process::Process;

/// Names of the figures, in the order in which they are measured.
pub(super) const NAMES: [&str; 2] = ["diagnosis-cost", "diagnosis-cost-one-core"];

/// Number of pairs in a full run, which narrows the interval to less than a per cent.
const PAIRS: usize = 24;
/// Timeout that keeps both halves of a pair close together in time.
const MAX_PAIR_TIME: Duration = Duration::from_secs(2);
/// Options of both halves. Congestion control is given explicitly because defaults differ.
const LOAD: [&str; 4] = ["-C", "cubic", "-w", "128K"];
/// The CPU for sender and receiver.
const CORE: &str = "0";

/// The threads that share the core.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sharing {
    /// The two data threads.
    Data,
    /// All threads of both programs.
    All,
}

/// Both figures.
pub(super) fn run(bed: &TestBed) -> Result<Outcome, String> {
    let place = loopback()?;
    let figures = [
        (Sharing::Data, "data of both ends on one core"),
        (Sharing::All, "one core for all that both ends do"),
    ];
    let measured = NAMES.into_iter().zip(figures);
    let measured = measured.map(|(name, (sharing, what))| {
        let lost = lost(bed, &place, name, sharing)?;
        figure(name, what, lost)
    });
    measured.collect::<Result<_, _>>().map(Outcome::Measured)
}

/// Loss of each pair, in per cent of the rate without observation.
fn lost(bed: &TestBed, place: &BenchNetwork, name: &str, sharing: Sharing) -> Result<Vec<f64>, String> {
    let pairs = if bed.quick { 1 } else { PAIRS };
    let pair = |number| {
        report::progress(&format!("{name}: pair {number} of {pairs}"));
        let half = |watched| bits_per_second(bed, place, sharing, watched);
        // Alternate the order, so that a trend affects both.
        let (with, without) = if number % 2 == 0 {
            (half(true)?, half(false)?)
        } else {
            let without = half(false)?;
            (half(true)?, without)
        };
        Ok((1.0 - with / without) * 100.0)
    };
    (1..=pairs).map(pair).collect()
}

fn figure(name: &'static str, what: &str, all: Vec<f64>) -> Result<Figure, String> {
    let found = shift(&all).ok_or("the readings are not numbers")?;
    let interval = match found.interval {
        Some((low, high)) => format!(", 95 % interval {low:.3} to {high:.3}"),
        None => ", too few pairs for an interval".to_owned(),
    };
    let note = format!(
        "{what}: Hodges-Lehmann {:.3} %{interval}; one stream over loopback, {}, with and with --no-sampling",
        found.middle,
        LOAD.join(" ")
    );
    Readings { all, note: Some(note) }.figure(name, "% of the rate", Bar::Below(1.0))
}

/// Rate of one transfer.
fn bits_per_second(
    bed: &TestBed,
    place: &BenchNetwork,
    sharing: Sharing,
    watched: bool,
) -> Result<f64, String> {
    let placed = |command: Vec<String>| match sharing {
        Sharing::All => ["taskset", "-c", CORE].map(str::to_owned).into_iter().chain(command).collect(),
        Sharing::Data => command,
    };
    let server = Tool::serve_once(bed, placed)?;
    let mut options = [&LOAD[..], &["-A", CORE, "--server-affinity", CORE]].concat();
    options.extend((!watched).then_some("--no-sampling"));
    let command = Tool::Linerate.client(bed, place, &server, bed.transfer.min(MAX_PAIR_TIME), &options);
    let output = Process::start(bed, &placed(command))?.finish(MAX_PAIR_TIME + TIMEOUT, |_| ())?;
    server.process.finish(TIMEOUT, |_| ())?;
    Ok(Tool::Linerate.report(&output)?.bits_per_second)
}
