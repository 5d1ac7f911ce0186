//! Figures of linerate alone: response time, idle resources, costs of a stream.

use std::time::Duration;

use super::bench_network::{BenchLocation, BenchNetwork};
use super::figure::{BenchGoal, FigureReadings};
use super::tools::{BenchTool, client_timeout, wall_seconds};
use super::{BenchContext, BenchOutcome, first_byte, report, sampling};
use crate::process::{ChildProcess, ProcessMemory};

/// One figure.
pub(super) struct UnpairedFigure {
    pub(super) name: &'static str,
    unit: &'static str,
    goal: BenchGoal,
    measure: fn(&BenchContext) -> Result<FigureReadings, String>,
}

/// In order of execution.
pub(super) const SINGLE_RUNS: &[UnpairedFigure] = &[
    UnpairedFigure { name: "help-time", unit: "ms", goal: BenchGoal::Below(20.0), measure: help_time },
    UnpairedFigure {
        name: "short-test-time",
        unit: "s",
        goal: BenchGoal::Below(1.5),
        measure: short_test_time,
    },
    UnpairedFigure {
        name: "start-to-data",
        unit: "ms",
        goal: BenchGoal::Below(20.0),
        measure: first_byte::start_to_data,
    },
    UnpairedFigure { name: "rest-memory", unit: "MiB", goal: BenchGoal::Below(15.0), measure: rest_memory },
    UnpairedFigure { name: "rest-cpu", unit: "ms", goal: BenchGoal::Nothing, measure: rest_cpu },
    UnpairedFigure {
        name: "stream-memory-1000",
        unit: "KiB",
        goal: BenchGoal::Below(64.0),
        measure: |b| stream_memory(b, 1_000),
    },
    UnpairedFigure {
        name: "stream-memory-10000",
        unit: "KiB",
        goal: BenchGoal::Below(64.0),
        measure: |b| stream_memory(b, 10_000),
    },
    UnpairedFigure {
        name: "diagnosis-cpu",
        unit: "% of all cores",
        goal: BenchGoal::Below(1.0),
        measure: sampling::cpu_outside_pumps,
    },
    UnpairedFigure {
        name: "sampling-cost-128",
        unit: "% of a core",
        goal: BenchGoal::Below(2.0),
        measure: sampling::samplers,
    },
];

impl UnpairedFigure {
    /// Measures the figure.
    pub(super) fn run(&self, bed: &BenchContext) -> Result<BenchOutcome, String> {
        report::progress(self.name);
        let readings = (self.measure)(bed)?;
        Ok(BenchOutcome::Measured(vec![readings.figure(self.name, self.unit, self.goal)?]))
    }
}

pub(super) fn loopback() -> Result<BenchNetwork, String> {
    BenchNetwork::make(BenchLocation::Loopback)?.ok_or_else(|| "there is no loopback".to_owned())
}

/// Run time of `linerate --help`.
fn help_time(bed: &BenchContext) -> Result<FigureReadings, String> {
    let command = [bed.linerate.display().to_string(), "--help".to_owned()];
    let times = if bed.pairs > 1 { 20 } else { 5 };
    let seconds = (0..times).map(|_| wall_seconds(bed, &command)).collect::<Result<Vec<f64>, _>>()?;
    Ok(FigureReadings {
        all: seconds.iter().map(|s| s * 1e3).collect(),
        note: Some(format!("{times} starts")),
    })
}

/// Run time of `linerate test -t 1 --upload`.
fn short_test_time(bed: &BenchContext) -> Result<FigureReadings, String> {
    let place = loopback()?;
    let mut all = Vec::new();
    for _ in 0..bed.pairs {
        let server = BenchTool::Linerate.serve(bed, &place)?;
        let command = BenchTool::Linerate.client(bed, &place, &server, Duration::from_secs(1), &[]);
        all.push(wall_seconds(bed, &command)?);
    }
    Ok(FigureReadings { all, note: Some("test -t 1 --upload".to_owned()) })
}

/// Memory of an idle server after the idle time.
fn rest_memory(bed: &BenchContext) -> Result<FigureReadings, String> {
    let server = BenchTool::Linerate.serve(bed, &loopback()?)?;
    bed.wait(bed.rest)?;
    let memory = server.process.memory().ok_or("the server has ended")?;
    Ok(FigureReadings { all: vec![memory.resident as f64 / 1048576.0], note: None })
}

/// CPU time of an idle server during the idle time.
fn rest_cpu(bed: &BenchContext) -> Result<FigureReadings, String> {
    let server = BenchTool::Linerate.serve(bed, &loopback()?)?;
    let spent = || server.process.cpu_time().ok_or("the server has ended");
    let before = spent()?;
    bed.wait(bed.rest)?;
    let ms = spent()?.saturating_sub(before).as_secs_f64() * 1e3;
    let note = format!("in {} s, to the clock tick", bed.rest.as_secs());
    Ok(FigureReadings { all: vec![ms], note: Some(note) })
}

/// Memory that each stream adds to server and client together, without socket buffers, which belong to the
/// kernel.
///
/// The baseline is the server before the client connects, and the client's first reading, before its streams
/// are open.
fn stream_memory(bed: &BenchContext, streams: u32) -> Result<FigureReadings, String> {
    let place = loopback()?;
    let server = BenchTool::Linerate.serve(bed, &place)?;
    let mut at_server = Growth::new(server.process.memory());
    let mut at_client = Growth::new(None);
    let count = streams.to_string();
    let command = BenchTool::Linerate.client(bed, &place, &server, bed.transfer, &["-P", &count]);
    let client = ChildProcess::start(bed, &command)?;
    let output = client.finish(client_timeout(bed, streams), |client| {
        at_client.see(client.memory());
        at_server.see(server.process.memory());
    })?;
    carried(&output, streams)?;
    at_server.see(server.process.memory());
    let each = |bytes: u64| bytes as f64 / 1024.0 / f64::from(streams);
    let (of_server, of_client) = (each(at_server.resident()), each(at_client.resident()));
    let high = each(at_server.high_water() + at_client.high_water());
    let note = format!("server {of_server:.1}, client {of_client:.1}; by the high-water marks {high:.1}");
    Ok(FigureReadings { all: vec![of_server + of_client], note: Some(note) })
}

/// Checks that this number of streams was really measured.
pub(super) fn carried(output: &[u8], streams: u32) -> Result<(), String> {
    let document: serde_json::Value =
        serde_json::from_slice(output).map_err(|e| format!("linerate printed no JSON: {e}"))?;
    let flow = &document["flows"][0];
    match (flow["streams"].as_u64(), flow["receiver"]["bytes"].as_u64()) {
        (Some(count), Some(1..)) if count == u64::from(streams) => Ok(()),
        _ => Err(format!("{streams} streams did not carry data")),
    }
}

/// Growth of a process's memory above its baseline.
#[derive(Debug, Default)]
struct Growth {
    rest: Option<ProcessMemory>,
    peak: ProcessMemory,
}

impl Growth {
    fn new(rest: Option<ProcessMemory>) -> Self {
        Self { rest, peak: rest.unwrap_or_default() }
    }

    /// Records a reading; the first one is the baseline if none is known.
    fn see(&mut self, memory: Option<ProcessMemory>) {
        let Some(now) = memory else { return };
        self.rest.get_or_insert(now);
        self.peak.resident = self.peak.resident.max(now.resident);
        self.peak.high_water = self.peak.high_water.max(now.high_water);
    }

    fn resident(&self) -> u64 {
        self.peak.resident.saturating_sub(self.rest.unwrap_or_default().resident)
    }

    fn high_water(&self) -> u64 {
        self.peak.high_water.saturating_sub(self.rest.unwrap_or_default().resident)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_carried_nothing_are_no_reading() {
        assert_eq!(carried(br#"{"flows":[{"streams":7,"receiver":{"bytes":1}}]}"#, 7), Ok(()));
        assert!(carried(br#"{"flows":[{"streams":6,"receiver":{"bytes":1}}]}"#, 7).is_err());
        assert!(carried(br#"{"flows":[{"streams":7,"receiver":{"bytes":0}}]}"#, 7).is_err());
        assert!(carried(br#"{"flows":[{"streams":7}]}"#, 7).is_err());
    }

    #[test]
    fn growth_is_the_peak_over_the_rest() {
        let at = |resident, high_water| Some(ProcessMemory { resident, high_water });
        let mut growth = Growth::new(None);
        for reading in [at(10, 10), at(50, 60), None, at(20, 60)] {
            growth.see(reading);
        }
        assert_eq!((growth.resident(), growth.high_water()), (40, 50));
        let mut known = Growth::new(at(30, 35));
        known.see(at(25, 35));
        assert_eq!((known.resident(), known.high_water()), (0, 5));
    }
}
