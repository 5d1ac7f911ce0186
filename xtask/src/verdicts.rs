//! `cargo xtask verdicts`: plants causes on purpose, and checks the verdicts.
//!
//! There are two worlds: our emulated networks (`cases/`), and the kernel's own means (`kernel/`), which share
//! no code with them. In the first, each case is a network with a cause and the same network without it. Trials
//! run one after another, or several in parallel (`--jobs`) where they leave a small machine mostly idle. A
//! trial whose measurement reports that it was disturbed (V26), or that the emulated network was late, is repeated at
//! most twice, and each trial records the machine's load average.

mod answer;
mod case;
mod cases;
mod kernel;
mod matrix;
mod trial;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use linerate_model::Rule;
use linerate_sock::{clock, thread};

use crate::process::Processes;
use crate::temp_folder::TempFolder;
use case::PlantedCase;
use matrix::{Bars, MatrixRow, MatrixTrial, VerdictMatrix};
use trial::LabTrialContext;

/// Seeds for each case that depends on chance.
const SEEDS: u32 = 20;
/// Most repetitions of a disturbed measurement.
const REPEATS: u32 = 2;

/// Required results in the emulated world.
const LAB_BARS: Bars =
    Bars { right_overall: 0.95, right_each: 0.80, wrong_overall: 0.02, controls_are_innocent: true };

/// Where causes are planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerdictWorld {
    /// In our emulated networks.
    Lab,
    /// With the kernel's own means.
    Kernel,
}

/// The command line.
#[derive(Debug, PartialEq, Eq)]
struct VerdictsOptions {
    world: VerdictWorld,
    /// Use the held-out situations, which are not used for tuning, instead of the others.
    held_out: bool,
    /// Folder for result documents, if they are kept.
    keep: Option<PathBuf>,
    only: Vec<String>,
    seeds: u32,
    jobs: usize,
    json: Option<PathBuf>,
    program: Option<PathBuf>,
    /// Leave out measurements that were disturbed, of which a busy machine has some.
    sample: bool,
}

impl VerdictsOptions {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            world: VerdictWorld::Lab,
            held_out: false,
            keep: None,
            only: Vec::new(),
            seeds: SEEDS,
            jobs: 1,
            json: None,
            program: None,
            sample: false,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().cloned().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--world" => {
                    options.world = match value()?.as_str() {
                        "lab" => VerdictWorld::Lab,
                        "kernel" => VerdictWorld::Kernel,
                        other => {
                            return Err(format!("there is no world {other:?}; there are lab and kernel"));
                        }
                    }
                }
                "--held-out" => options.held_out = true,
                "--keep" => options.keep = Some(value()?.into()),
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--seeds" => options.seeds = number(argument, &value()?)?,
                "--jobs" => options.jobs = number(argument, &value()?)? as usize,
                "--json" => options.json = Some(value()?.into()),
                "--program" => options.program = Some(value()?.into()),
                "--sample" => options.sample = true,
                other => {
                    return Err(format!(
                        "takes --world lab|kernel, --held-out, --only V04,V10 (or situations of the kernel's world), \
                         --seeds N, --jobs N, --keep FOLDER, --json FILE, --program FILE and --sample, got {other:?}"
                    ));
                }
            }
        }
        if options.world == VerdictWorld::Lab && (options.held_out || options.keep.is_some()) {
            return Err("--held-out and --keep are for --world kernel".to_owned());
        }
        let names = match options.world {
            VerdictWorld::Lab => cases::all().map(|case| case.rule.name()).collect(),
            VerdictWorld::Kernel => kernel::names(options.held_out),
        };
        if let Some(unknown) = options.only.iter().find(|only| !names.iter().any(|name| name == only)) {
            return Err(format!("nothing plants {unknown}; there are: {}", names.join(" ")));
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// Parses the number of an option.
fn number(option: &str, value: &str) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or(format!("{option} takes a number from 1, got {value:?}"))
}

/// A trial to run: its row, its case, whether the cause is planted, and its seed.
type TrialJob<'c> = (usize, &'c PlantedCase, bool, u32);

/// Rows, with the number of trials that each should have.
type Rows = Mutex<Vec<(MatrixRow, usize)>>;

/// Plants every selected cause, prints the matrix, and fails below the bars.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = VerdictsOptions::parse(arguments)?;
    let linerate = program(options.program.as_deref())?;
    let folder = TempFolder::create("verdicts")?;
    let start = clock::now();
    let matrix = match options.world {
        VerdictWorld::Lab => LabTrialContext::new(linerate, folder.path())?.matrix(&options)?,
        VerdictWorld::Kernel => kernel::matrix(&options, linerate, folder.path())?,
    };
    print!("{}", matrix.text());
    println!("{:.0} s", clock::now().since(start).as_secs_f64());
    if let Some(path) = &options.json {
        std::fs::write(path, format!("{:#}\n", matrix.document()))
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        println!("written: {}", path.display());
    }
    let judged = if options.sample {
        let (judged, gone) = matrix.undisturbed()?;
        count_skipped(&gone)?;
        judged
    } else {
        matrix
    };
    match judged.misses() {
        misses if misses.is_empty() => Ok(()),
        misses => Err(format!("below the bars:\n  {}", misses.join("\n  "))),
    }
}

/// Records what a sample has left out in the list of `make test`.
fn count_skipped(rows: &[String]) -> Result<(), String> {
    let lines: String =
        rows.iter().map(|row| format!("skipped: verdicts, {row}: the measurement was disturbed\n")).collect();
    print!("{lines}");
    let folder = target_folder()?.join("tmp");
    let list = folder.join("skipped.txt");
    let append = || {
        std::fs::create_dir_all(&folder)?;
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(&list)?;
        std::io::Write::write_all(&mut list, lines.as_bytes())
    };
    append().map_err(|e| format!("cannot write {}: {e}", list.display()))
}

impl LabTrialContext {
    fn new(linerate: PathBuf, folder: &Path) -> Result<Self, String> {
        let processes = Processes::new(&folder.join("programs.log"))?;
        Ok(Self { linerate, folder: folder.to_owned(), processes })
    }

    fn matrix(&self, options: &VerdictsOptions) -> Result<VerdictMatrix, String> {
        let (mut rows, mut light, mut heavy) = (Vec::new(), Vec::new(), Vec::new());
        for case in cases::all().filter(|case| options.wants(case.rule.name())) {
            for planted in [true, false] {
                let jobs = if case.alone { &mut heavy } else { &mut light };
                let seeds = 1..=if case.random { options.seeds } else { 1 };
                jobs.extend(seeds.clone().map(|seed| (rows.len(), case, planted, seed)));
                rows.push((MatrixRow::new(case, planted), seeds.count()));
            }
        }
        let rows = Mutex::new(rows);
        let run = |worker: usize, &(row, case, planted, seed): &TrialJob<'_>| {
            (row, self.trial(worker, case, planted, seed))
        };
        work(&light, options.jobs, &rows, &self.processes, &run);
        work(&heavy, 1, &rows, &self.processes, &run);
        gathered(rows, &self.processes, LAB_BARS)
    }

    fn trial(&self, worker: usize, case: &PlantedCase, planted: bool, seed: u32) -> MatrixTrial {
        let plant = if planted { &case.planted } else { &case.control };
        let start = clock::now();
        let mut trial =
            MatrixTrial { seed, answer: Err(String::new()), load: load(), repeats: 0, seconds: 0.0 };
        loop {
            trial.answer = self.run(worker, case, plant, seed);
            let disturbed = trial.answer.as_ref().is_ok_and(|answer| answer.disturbed);
            let wanted = plant.right.contains(&Rule::Disturbed);
            if !disturbed || wanted || trial.repeats == REPEATS {
                break;
            }
            trial.repeats += 1;
        }
        trial.seconds = clock::now().since(start).as_secs_f64();
        trial
    }
}

/// Runs the jobs, `at_once` in parallel, and prints each row when it is complete. This thread works too, so it
/// only takes longer if the host refuses others.
fn work<J: Sync>(
    jobs: &[J],
    at_once: usize,
    rows: &Rows,
    processes: &Processes,
    run: &(impl Fn(usize, &J) -> (usize, MatrixTrial) + Sync),
) {
    let next = AtomicUsize::new(0);
    let one = &|worker: usize| {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
            && !processes.stopped()
        {
            let (number, trial) = run(worker, job);
            add(rows, number, trial);
        }
    };
    std::thread::scope(|scope| {
        for worker in 1..at_once {
            if let Err(refused) = thread::spawn_scoped(scope, "trials", move || one(worker)) {
                eprintln!("xtask verdicts: {worker} at a time, not {at_once}: {refused}");
                break;
            }
        }
        one(0);
    });
}

/// Adds a trial to its row, and prints the row when it is complete.
fn add(rows: &Rows, number: usize, trial: MatrixTrial) {
    let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((row, wanted)) = rows.get_mut(number) else { return };
    row.trials.push(trial);
    if row.trials.len() == *wanted {
        println!("{}", row.line());
        row.doubts().for_each(|line| println!("{line}"));
    }
}

/// The matrix of the complete rows.
fn gathered(rows: Rows, processes: &Processes, bars: Bars) -> Result<VerdictMatrix, String> {
    if processes.stopped() {
        return Err("interrupted".to_owned());
    }
    let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(VerdictMatrix { rows: rows.into_iter().map(|(row, _)| row).collect(), bars })
}

/// Where cargo builds.
fn target_folder() -> Result<PathBuf, String> {
    let root = crate::tree::root()?;
    Ok(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from))
}

/// The program under test.
fn program(wanted: Option<&Path>) -> Result<PathBuf, String> {
    let linerate = match wanted {
        Some(wanted) => wanted.to_owned(),
        None => target_folder()?.join("release/linerate"),
    };
    if linerate.is_file() {
        return Ok(linerate);
    }
    Err(format!("{} is missing; type cargo build --release, or name one with --program", linerate.display()))
}

/// One-minute load average; 0 if unknown.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_options(words: &[&str]) -> Result<VerdictsOptions, String> {
        VerdictsOptions::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn rules_are_chosen_by_name() {
        let some = parse_options(&["--only", "V04,V13", "--seeds", "3"]).unwrap();
        let rules: Vec<&Rule> =
            cases::all().map(|case| &case.rule).filter(|rule| some.wants(rule.name())).collect();
        assert!(
            rules.iter().all(|rule| matches!(rule, Rule::ReceiverWindow | Rule::Policer)) && rules.len() >= 2,
            "{rules:?}"
        );
        assert_eq!((some.seeds, parse_options(&[]).unwrap().seeds), (3, SEEDS));
        assert!(parse_options(&["--only", "V98"]).unwrap_err().contains("V04"));
        assert_eq!((parse_options(&["--jobs", "3"]).unwrap().jobs, parse_options(&[]).unwrap().jobs), (3, 1));
        assert!(
            parse_options(&["--seeds", "0"]).is_err()
                && parse_options(&["--jobs", "-1"]).is_err()
                && parse_options(&["--json"]).is_err()
                && parse_options(&["fast"]).is_err()
        );
    }

    #[test]
    fn situations_are_chosen_by_name_and_those_aside_only_apart() {
        let some = parse_options(&["--world", "kernel", "--only", "policer-2m"]).unwrap();
        assert!(some.wants("policer-2m") && !some.wants("shaper-2m"));
        assert!(parse_options(&["--world", "kernel", "--only", "V04"]).unwrap_err().contains("shaper-2m"));
        assert!(parse_options(&["--world", "kernel", "--only", "aside-loss-3e-3"]).is_err());
        assert!(parse_options(&["--world", "kernel", "--held-out", "--only", "aside-loss-3e-3"]).is_ok());
        assert!(parse_options(&["--world", "moon"]).is_err() && parse_options(&["--held-out"]).is_err());
    }

    /// A quick run: causes that a busy machine hardly disturbs, with one seed.
    #[test]
    #[ignore = "needs root and network namespaces"]
    fn planted_causes_are_named_and_their_controls_are_not_blamed() {
        let program = built_program();
        run(&["--only", "V02,V03,V09,V15", "--seeds", "1", "--sample", "--program", &program]
            .map(str::to_owned))
        .unwrap();
    }

    /// A quick run of the other world: causes that both ends' counters show independent of the machine's load.
    #[test]
    #[ignore = "needs root and network namespaces"]
    fn causes_planted_with_the_kernels_own_means_are_named_and_controls_are_not_accused() {
        let program = built_program();
        let only = "own-tbf-50m,own-htb-20m,rmem-64k,wmem-64k,unscaled-window,offered-5m,slow-reader-20m,\
                    control-healthy,control-udp-below";
        let words = ["--world", "kernel", "--only", only, "--seeds", "1", "--sample", "--program", &program];
        run(&words.map(str::to_owned)).unwrap();
    }

    /// `make test` has built the program for the other tests with root.
    fn built_program() -> String {
        let built = std::env::current_exe().unwrap();
        built.parent().unwrap().parent().unwrap().join("linerate").display().to_string()
    }
}
