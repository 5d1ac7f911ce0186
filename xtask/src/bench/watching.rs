//! What watching a flow costs: pairs over loopback with and without samples, latency and verdict, in turn.
//!
//! Left to the scheduler, runs of one program differ by a third over loopback, because it decides anew each time whether
//! sender and receiver share a core. So both are put on one, with a window that its cache holds: then runs differ by a few
//! per cent. Watching is left where it likes; in the last figure it has no other core to go to.

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

/// Pairs of a whole look: so many bring the interval below a per cent.
const PAIRS: usize = 24;
/// Both halves of a pair should meet the same minute.
const MAX_PAIR_TIME: Duration = Duration::from_secs(2);
/// The load of either half. Congestion control is named because systems differ in theirs.
const LOAD: [&str; 4] = ["-C", "cubic", "-w", "128K"];
/// Where sender and receiver run.
const CORE: &str = "0";

/// What shares the core.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sharing {
    /// The two threads that carry the data.
    Data,
    /// Both programs whole.
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

/// What each pair lost, in per cent of the rate without.
fn lost(bed: &TestBed, place: &BenchNetwork, name: &str, sharing: Sharing) -> Result<Vec<f64>, String> {
    let pairs = if bed.quick { 1 } else { PAIRS };
    let pair = |number| {
        report::progress(&format!("{name}: pair {number} of {pairs}"));
        let half = |watched| bits_per_second(bed, place, sharing, watched);
        // Each order as often as the other, so that whatever grows meets both.
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
        "{what}: Hodges-Lehmann {:.3} %{interval}; one stream over loopback, {}, with and with --unwatched",
        found.middle,
        LOAD.join(" ")
    );
    Readings { all, note: Some(note) }.figure(name, "% of the rate", Bar::Below(1.0))
}

/// What one transfer gave.
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
    options.extend((!watched).then_some("--unwatched"));
    let command = Tool::Linerate.client(bed, place, &server, bed.transfer.min(MAX_PAIR_TIME), &options);
    let output = Process::start(bed, &placed(command))?.finish(MAX_PAIR_TIME + TIMEOUT, |_| ())?;
    server.process.finish(TIMEOUT, |_| ())?;
    Ok(Tool::Linerate.report(&output)?.bits_per_second)
}
