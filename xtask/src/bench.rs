//! `cargo xtask bench`: compares linerate with the installed peers, interleaved, and its lab with theory, on
//! this machine.
//!
//! A comparison consists of pairs of transfers, ours and theirs in turn, so that a drift of the machine affects
//! both; the order alternates from pair to pair. Every figure is a median with its extremes; a ratio is the
//! median over the pairs, not the ratio of medians. With enough pairs it has an interval, and only a ratio
//! whose interval excludes 1 is a difference. Whether a goal is reached is printed and does not change the exit
//! code, since noise may decide it.

mod alone;
mod archive;
mod bench_network;
mod booking;
mod browser;
mod duel;
mod figure;
mod first_byte;
mod lab;
mod machine;
mod page;
mod pairs;
mod report;
mod responsiveness;
mod samples_table;
mod sampling;
mod spread;
mod storm;
mod tools;
mod transactions;
mod viewers;
mod watching;

pub(crate) use tools::listening_port;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{ChildProcess, Processes};
use crate::tree;
use figure::BenchFigure;
use machine::Machine;

/// Common state of all measurements.
struct BenchContext {
    /// The program under test.
    linerate: PathBuf,
    /// The newer iperf3 that `make test` has unpacked, or the installed one.
    iperf3: PathBuf,
    /// Folder for logs, archives and results.
    folder: PathBuf,
    processes: Processes,
    /// Whether a quick run is requested.
    quick: bool,
    /// Number of pairs of a comparison.
    pairs: usize,
    /// Duration of each transfer.
    transfer: Duration,
    /// How long an idle server is observed.
    rest: Duration,
}

/// The command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct BenchOptions {
    quick: bool,
    only: Option<String>,
}

impl BenchOptions {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--only" => options.only = Some(rest.next().ok_or("--only needs a name")?.clone()),
                other => return Err(format!("takes --quick and --only NAME, got {other:?}")),
            }
        }
        Ok(options)
    }

    /// A name selects itself and everything that starts with it.
    fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| name.starts_with(only))
    }

    /// Only a complete result is worth committing.
    fn is_whole(&self) -> bool {
        !self.quick && self.only.is_none()
    }
}

/// Runs all selected measurements, prints the table, writes the JSON.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = BenchOptions::parse(arguments)?;
    if !names().any(|name| options.wants(name)) {
        let names: Vec<&str> = names().collect();
        return Err(format!("no such figure; there are: {}", names.join(", ")));
    }
    let root = tree::root()?;
    let bed = BenchContext::new(&root, options.quick)?;
    let machine = Machine::read();
    report::heading(&machine, &bed);
    let mut figures = Vec::new();
    let mut failures = 0;
    let wanted_duels = duel::PAIRED_RUNS.iter().filter(|duel| options.wants(duel.name));
    let wanted_alone = alone::SINGLE_RUNS.iter().filter(|alone| options.wants(alone.name));
    let wanted_trials = lab::TRIALS.iter().filter(|trial| trial.names().any(|name| options.wants(name)));
    let wanted_page = page::NAMES.iter().any(|name| options.wants(name)).then_some("report");
    let watching = watching::NAMES.iter().any(|name| options.wants(name)).then_some(watching::NAMES[0]);
    let browser = browser::NAMES.iter().any(|name| options.wants(name)).then_some(browser::NAMES[0]);
    let viewers = viewers::NAMES.iter().any(|name| options.wants(name)).then_some(viewers::NAMES[0]);
    let transactions = transactions::NAMES.iter().any(|name| options.wants(name)).then_some("transactions");
    let rpm =
        responsiveness::NAMES.iter().any(|name| options.wants(name)).then_some(responsiveness::NAMES[0]);
    let archive = archive::NAMES.iter().any(|name| options.wants(name)).then_some(archive::NAMES[0]);
    let table =
        samples_table::NAMES.iter().any(|name| options.wants(name)).then_some(samples_table::NAMES[0]);
    let booking = booking::NAMES.iter().any(|name| options.wants(name)).then_some(booking::NAMES[0]);
    let storm = storm::NAMES.iter().any(|name| options.wants(name)).then_some(storm::NAMES[0]);
    let outcomes = wanted_duels
        .map(|duel| (duel.name, duel.run(&bed)))
        .chain(transactions.map(|name| (name, transactions::run(&bed, |name| options.wants(name)))))
        .chain(wanted_alone.map(|alone| (alone.name, alone.run(&bed))))
        .chain(watching.map(|name| (name, watching::run(&bed))))
        .chain(viewers.map(|name| (name, viewers::run(&bed))))
        .chain(browser.map(|name| (name, browser::run(&bed))))
        .chain(rpm.map(|name| (name, responsiveness::run(&bed))))
        .chain(wanted_trials.map(|trial| (trial.name(), trial.run(&bed))))
        .chain(wanted_page.map(|name| (name, page::run(&bed))))
        .chain(archive.map(|name| (name, archive::run(&bed))))
        .chain(table.map(|name| (name, samples_table::run(&bed))))
        .chain(booking.map(|name| (name, booking::run(&bed))))
        .chain(storm.map(|name| (name, storm::run(&bed))));
    for (name, outcome) in outcomes {
        if bed.stopped() {
            return Err("interrupted; nothing was written".to_owned());
        }
        match outcome {
            Ok(BenchOutcome::Measured(measured)) => {
                let measured = measured.into_iter().filter(|figure| options.wants(figure.name));
                figures.extend(measured.inspect(report::row));
            }
            Ok(BenchOutcome::Skipped(why)) => println!("{name:<22} skipped: {why}"),
            Err(why) => {
                println!("{name:<22} failed: {why}");
                failures += 1;
            }
        }
    }
    write(
        &root,
        &bed,
        &options,
        &report::document(&machine, bed.iperf3_version().as_deref(), &bed, &figures),
    )?;
    match failures {
        0 => Ok(()),
        _ => Err(format!("{failures} figures could not be measured; {} says more", bed.log_path().display())),
    }
}

/// Names of all figures, in the order in which they are measured.
fn names() -> impl Iterator<Item = &'static str> {
    let duels = duel::PAIRED_RUNS.iter().map(|duel| duel.name);
    let alone = alone::SINGLE_RUNS.iter().map(|alone| alone.name);
    duels
        .chain(transactions::NAMES)
        .chain(alone)
        .chain(watching::NAMES)
        .chain(viewers::NAMES)
        .chain(browser::NAMES)
        .chain(responsiveness::NAMES)
        .chain(lab::TRIALS.iter().flat_map(lab::LabMeasurement::names))
        .chain(page::NAMES)
        .chain(archive::NAMES)
        .chain(samples_table::NAMES)
        .chain(booking::NAMES)
        .chain(storm::NAMES)
}

/// Result of one measurement.
enum BenchOutcome {
    Measured(Vec<BenchFigure>),
    /// Why this host cannot measure it.
    Skipped(&'static str),
}

impl BenchContext {
    fn new(root: &Path, quick: bool) -> Result<Self, String> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let linerate = target.join("release/linerate");
        if !linerate.is_file() {
            return Err(format!("{} is missing; type: cargo build --release", linerate.display()));
        }
        let folder = target.join("bench");
        fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let processes = Processes::new(&folder.join("programs.log"))?;
        let (pairs, seconds, rest) = if quick { (1, 1, 2) } else { (7, 3, 10) };
        let (transfer, rest) = (Duration::from_secs(seconds), Duration::from_secs(rest));
        let newer = root.join("target/peers/iperf3");
        let iperf3 = if newer.is_file() { newer } else { PathBuf::from("iperf3") };
        Ok(Self { linerate, iperf3, folder, processes, quick, pairs, transfer, rest })
    }

    /// First two words of what iperf3 prints about its version; absent if it does not start.
    fn iperf3_version(&self) -> Option<String> {
        let command = [self.iperf3.display().to_string(), "--version".to_owned()];
        let printed = ChildProcess::start(self, &command).ok()?.finish(tools::TIMEOUT, |_| ()).ok()?;
        let words: Vec<String> =
            String::from_utf8_lossy(&printed).split_whitespace().take(2).map(str::to_owned).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("programs.log")
    }

    /// Waits for this time, unless interrupted.
    fn wait(&self, time: Duration) -> Result<(), String> {
        self.processes.wait(time)
    }

    fn stopped(&self) -> bool {
        self.processes.stopped()
    }
}

impl AsRef<Processes> for BenchContext {
    fn as_ref(&self) -> &Processes {
        &self.processes
    }
}

/// Writes the result under its date, and a complete one also where it can be committed.
fn write(
    root: &Path,
    bed: &BenchContext,
    options: &BenchOptions,
    document: &serde_json::Value,
) -> Result<(), String> {
    let text = format!("{document:#}\n");
    let date = document["started_at"].as_str().unwrap_or_default().replace(':', "");
    let mut paths = vec![bed.folder.join(format!("{date}.json"))];
    if options.is_whole() {
        let kept = root.join("bench");
        fs::create_dir_all(&kept).map_err(|e| format!("cannot make {}: {e}", kept.display()))?;
        paths.push(kept.join("results.json"));
    }
    println!();
    for path in paths {
        fs::write(&path, &text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        println!("written: {}", path.display());
    }
    if options.is_whole() {
        println!("`cargo xtask gen` makes the tables of README and guide from it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_options(words: &[&str]) -> Result<BenchOptions, String> {
        BenchOptions::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_name_selects_all_that_begin_with_it() {
        let tcp = parse_options(&["--only", "tcp-"]).unwrap();
        assert!(tcp.wants("tcp-loopback") && !tcp.wants("udp-loopback"));
        assert!(!tcp.is_whole() && !parse_options(&["--quick"]).unwrap().is_whole());
        assert!(parse_options(&[]).unwrap().is_whole());
        assert!(parse_options(&["--only"]).is_err() && parse_options(&["fast"]).is_err());
    }

    #[test]
    fn no_two_figures_share_a_name() {
        let all: Vec<&str> = names().collect();
        let unique: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(unique.len(), all.len());
    }
}
