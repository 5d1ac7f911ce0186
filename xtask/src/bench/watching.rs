//! Cost of observing a flow: pairs over loopback with and without samples, latency and verdict, in turn.
//!
//! With the default scheduling, runs of one program over loopback differ by a third, because the scheduler
//! decides each time whether sender and receiver share a core. Both are therefore pinned to one, with a window
//! that fits into its cache: then runs differ by a few per cent. The observing threads are not pinned, except
//! for the last figure, where everything shares that core.

use std::time::Duration;

use super::alone::loopback;
use super::bench_network::BenchNetwork;
use super::figure::{BenchFigure, BenchGoal, FigureReadings};
use super::spread::shift;
use super::tools::{BenchTool, TIMEOUT};
use super::{BenchContext, BenchOutcome, report};
use crate::process::ChildProcess;

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
enum CoreSharing {
    /// The two data threads.
    Data,
    /// All threads of both programs.
    All,
}

/// Both figures.
pub(super) fn run(bed: &BenchContext) -> Result<BenchOutcome, String> {
    let place = loopback()?;
    let figures = [
        (CoreSharing::Data, "data of both ends on one core"),
        (CoreSharing::All, "one core for all that both ends do"),
    ];
    let measured = NAMES.into_iter().zip(figures);
    let measured = measured.map(|(name, (sharing, what))| {
        let lost = lost(bed, &place, name, sharing)?;
        figure(name, what, lost)
    });
    measured.collect::<Result<_, _>>().map(BenchOutcome::Measured)
}

/// Loss of each pair, in per cent of the rate without observation.
fn lost(
    bed: &BenchContext,
    place: &BenchNetwork,
    name: &str,
    sharing: CoreSharing,
) -> Result<Vec<f64>, String> {
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

fn figure(name: &'static str, what: &str, all: Vec<f64>) -> Result<BenchFigure, String> {
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
    FigureReadings { all, note: Some(note) }.figure(name, "% of the rate", BenchGoal::Below(1.0))
}

/// Rate of one transfer.
fn bits_per_second(
    bed: &BenchContext,
    place: &BenchNetwork,
    sharing: CoreSharing,
    watched: bool,
) -> Result<f64, String> {
    let placed = |command: Vec<String>| match sharing {
        CoreSharing::All => ["taskset", "-c", CORE].map(str::to_owned).into_iter().chain(command).collect(),
        CoreSharing::Data => command,
    };
    let server = BenchTool::serve_once(bed, placed)?;
    let mut options = [&LOAD[..], &["-A", CORE, "--server-affinity", CORE]].concat();
    options.extend((!watched).then_some("--no-sampling"));
    let command = BenchTool::Linerate.client(bed, place, &server, bed.transfer.min(MAX_PAIR_TIME), &options);
    let output = ChildProcess::start(bed, &placed(command))?.finish(MAX_PAIR_TIME + TIMEOUT, |_| ())?;
    server.process.finish(TIMEOUT, |_| ())?;
    Ok(BenchTool::Linerate.report(&output)?.bits_per_second)
}
