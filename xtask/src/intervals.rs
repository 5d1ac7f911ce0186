//! Whether figures are correct: shares of ceilings, and uncertainty intervals of rates.
//!
//! Uses a host, a router with a kernel token bucket, and another host, each in its own namespace. The reference
//! is the bucket's count in the same seconds; the emulator is not involved.

mod path;
mod run;
mod truth;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_sock::clock;

use crate::netns;
use crate::process::{ChildProcess, Processes};
use crate::temp_folder::TempFolder;
use path::Bottleneck;
use run::{IntervalsContext, IntervalsResult};

/// Rates of the bucket, bit/s: the primary ones, and values between them.
const RATES: [f64; 9] = [2e6, 3.7e6, 10e6, 33e6, 100e6, 170e6, 640e6, 1e9, 2e9];
/// Number of busy loops during a run.
const LOADS: [usize; 3] = [0, 4, 16];
/// Runs at each load, distributed over all rates.
const RUNS: usize = 100;
/// Measured time of each run, s.
const LENGTH_S: u64 = 10;
/// Share of the runs whose interval must contain the true rate.
const MIN_COVERAGE: f64 = 0.93;

/// The command line.
struct IntervalsOptions {
    runs: usize,
    length_s: u64,
    loads: Vec<usize>,
    rates: Vec<f64>,
    linerate: Option<PathBuf>,
    keep: Option<PathBuf>,
}

impl IntervalsOptions {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            runs: RUNS,
            length_s: LENGTH_S,
            loads: LOADS.to_vec(),
            rates: RATES.to_vec(),
            linerate: None,
            keep: None,
        };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--runs" => options.runs = number(name, value)?,
                "--time" => options.length_s = number(name, value)?,
                "--loads" => {
                    options.loads = value.split(',').map(|one| number(name, one)).collect::<Result<_, _>>()?
                }
                "--rates" => {
                    let mega = |one: &str| number::<f64>(name, one).map(|rate| rate * 1e6);
                    options.rates = value.split(',').map(mega).collect::<Result<_, _>>()?;
                }
                "--keep" => options.keep = Some(PathBuf::from(value)),
                "--linerate" => options.linerate = Some(PathBuf::from(value)),
                other => {
                    return Err(format!(
                        "unknown argument {other:?}; known: --runs N, --time SECONDS, --loads 0,4,16, --rates MBITS,…, --keep FOLDER, --linerate PROGRAM"
                    ));
                }
            }
        }
        if options.rates.iter().any(|rate| !rate.is_finite() || *rate < 1e5) || options.rates.is_empty() {
            return Err("--rates wants megabits per second, 0.1 or more".to_owned());
        }
        Ok(options)
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name} wants a number, not {value:?}"))
}

/// Measures, prints a line for each run and a table, and fails if a bar is missed.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = IntervalsOptions::read(arguments)?;
    if linerate_sock::netns::create().is_err() {
        return Err("namespaces with names need root".to_owned());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
    let linerate = options.linerate.clone().unwrap_or_else(|| root.join("target/release/linerate"));
    if !linerate.exists() {
        return Err(format!("{} is not built: cargo build --release -p linerate", linerate.display()));
    }
    netns::remove_left_over(path::TASK)?;
    let folder = TempFolder::create(path::TASK)?;
    if let Some(keep) = &options.keep {
        fs::create_dir_all(keep).map_err(|e| format!("cannot make {}: {e}", keep.display()))?;
    }
    let processes = Processes::new(&folder.file("programs.log"))?;
    let bed = IntervalsContext {
        linerate,
        folder: folder.path().to_owned(),
        processes,
        keep: options.keep.clone(),
    };
    judge(&measure(&bed, &options)?)
}

fn measure(bed: &IntervalsContext, options: &IntervalsOptions) -> Result<Vec<IntervalsResult>, String> {
    println!("   load        rate       truth    measured   half-width  allowed    share");
    let mut all = Vec::new();
    for &load in &options.loads {
        let loops = (0..load).map(|_| {
            ChildProcess::start(&bed.processes, &["sh", "-c", "while :; do :; done"].map(str::to_owned))
        });
        let loops = loops.collect::<Result<Vec<_>, _>>()?;
        for (number, &rate) in options.rates.iter().enumerate() {
            let bottleneck = Bottleneck::make(number, rate)?;
            // Distribute the runs over the rates; the first ones get one more if they do not divide evenly.
            for repeat in (number..options.runs).step_by(options.rates.len()) {
                let one = bed.run(&bottleneck, load, repeat, options.length_s)?;
                println!("{}", one.line());
                all.push(one);
            }
        }
        drop(loops);
        clock::sleep_until(clock::now() + Duration::from_millis(200));
    }
    Ok(all)
}

/// Prints the results for each load, and fails if a bar is missed.
fn judge(all: &[IntervalsResult]) -> Result<(), String> {
    let mut missed = Vec::new();
    let mut loads: Vec<usize> = all.iter().map(|one| one.load).collect();
    loads.dedup();
    println!();
    for load in loads {
        let of_load: Vec<&IntervalsResult> = all.iter().filter(|one| one.load == load).collect();
        let stated: Vec<&&IntervalsResult> =
            of_load.iter().filter(|one| one.half_width_bps.is_some()).collect();
        let held = stated.iter().filter(|one| one.holds()).count();
        let narrow = stated.iter().filter(|one| one.is_narrow()).count();
        let above = of_load.iter().filter(|one| one.share.is_some_and(|share| share > 1.0)).count();
        let mut errors: Vec<f64> = of_load.iter().map(|one| one.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        let worst = errors.last().copied().unwrap_or_default();
        println!(
            "load {load}: {held} of {} intervals hold the truth, {narrow} are narrow enough; {} state none; {above} shares above 100 %; error {:.3} % in the median, {:.3} % at worst",
            stated.len(),
            of_load.len() - stated.len(),
            errors.get(errors.len() / 2).copied().unwrap_or_default() * 100.0,
            worst * 100.0
        );
        if stated.is_empty() || (held as f64) < MIN_COVERAGE * stated.len() as f64 {
            missed.push(format!("load {load}: {held} of {} intervals hold the truth", stated.len()));
        }
        if narrow < stated.len() {
            missed.push(format!("load {load}: {} intervals are too wide", stated.len() - narrow));
        }
        if above > 0 {
            missed.push(format!("load {load}: {above} shares are above 100 %"));
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(
        load: usize,
        measured_bps: f64,
        half_width_bps: Option<f64>,
        share: Option<f64>,
    ) -> IntervalsResult {
        IntervalsResult {
            load,
            rate_bps: 1e8,
            truth_bps: 95e6,
            counted_half_bps: Some(5e4),
            measured_bps,
            half_width_bps,
            above_bps: 0.0,
            share,
            main: String::new(),
        }
    }

    #[test]
    fn each_bar_is_seen() {
        let good = || one(0, 95e6, Some(9e4), Some(0.99));
        assert_eq!(judge(&[good(), good()]), Ok(()));
        let off = judge(&[good(), one(0, 96e6, Some(9e4), None)]).unwrap_err();
        assert_eq!(off, "load 0: 1 of 2 intervals hold the truth");
        let wide = judge(&[good(), one(4, 95e6, Some(2e5), None)]).unwrap_err();
        assert_eq!(wide, "load 4: 1 intervals are too wide");
        assert!(judge(&[one(0, 95e6, Some(9e4), Some(1.001))]).unwrap_err().contains("above 100 %"));
        assert!(judge(&[one(0, 95e6, None, None)]).is_err(), "nothing stated is nothing shown");
    }

    #[test]
    fn options_are_parsed_and_wrong_ones_named() {
        let parse = |words: &[&str]| {
            IntervalsOptions::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        let some = parse(&["--rates", "3.7,640", "--loads", "0", "--runs", "4", "--time", "2"]).unwrap();
        assert_eq!((some.rates, some.loads, some.runs, some.length_s), (vec![3.7e6, 640e6], vec![0], 4, 2));
        assert!(parse(&["--rates", "fast"]).is_err() && parse(&["--loads"]).is_err());
        assert!(parse(&["--rates", "0"]).is_err() && parse(&["--seeds", "1"]).is_err());
    }
}
