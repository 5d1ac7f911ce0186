//! `cargo xtask verdicts`: causes that are planted in emulated networks, and what the verdicts call them.
//!
//! Each case is a network with a cause and the same network without it (`cases/`). Trials run one after another: two
//! on a small machine would disturb each other. A trial whose measurement says of itself that it was disturbed (V26)
//! is repeated, at most twice, and each trial carries the machine's load average.

mod case;
mod cases;
mod matrix;
mod trial;

use std::path::{Path, PathBuf};

use linerate_sock::clock;

use crate::process::Keeper;
use case::Case;
use matrix::{Matrix, Row, Trial};
use trial::Stage;

/// Seeds for each case in which chance decides something.
const SEEDS: u32 = 20;
/// How often a disturbed measurement is repeated.
const REPEATS: u32 = 2;

/// How the task was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    only: Vec<String>,
    seeds: u32,
    json: Option<PathBuf>,
    program: Option<PathBuf>,
}

impl Wish {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut wish = Self { only: Vec::new(), seeds: SEEDS, json: None, program: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().cloned().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--only" => wish.only = value()?.split(',').map(str::to_owned).collect(),
                "--seeds" => {
                    let seeds = value()?;
                    let number = seeds.parse().ok().filter(|number| *number > 0);
                    wish.seeds = number.ok_or(format!("--seeds takes a number from 1, got {seeds:?}"))?;
                }
                "--json" => wish.json = Some(value()?.into()),
                "--program" => wish.program = Some(value()?.into()),
                other => {
                    return Err(format!(
                        "takes --only V04,V10, --seeds N, --json FILE and --program FILE, got {other:?}"
                    ));
                }
            }
        }
        for rule in &wish.only {
            if !cases::all().any(|case| case.rule == rule) {
                let rules: Vec<&str> = cases::all().map(|case| case.rule).collect();
                return Err(format!("no case plants {rule}; there are: {}", rules.join(" ")));
            }
        }
        Ok(wish)
    }

    fn wants(&self, case: &Case) -> bool {
        self.only.is_empty() || self.only.iter().any(|rule| rule == case.rule)
    }
}

/// Plants every wanted cause, prints the matrix, and fails below the bars.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = Wish::parse(arguments)?;
    let stage = Stage::new(wish.program.as_deref())?;
    let start = clock::now();
    let matrix = stage.matrix(&wish)?;
    print!("{}", matrix.text());
    println!("{:.0} s", clock::now().since(start).as_secs_f64());
    if let Some(path) = &wish.json {
        std::fs::write(path, format!("{:#}\n", matrix.document()))
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        println!("written: {}", path.display());
    }
    match matrix.misses() {
        misses if misses.is_empty() => Ok(()),
        misses => Err(format!("below the bars:\n  {}", misses.join("\n  "))),
    }
}

impl Stage {
    fn new(program: Option<&Path>) -> Result<Self, String> {
        let root = crate::tree::root()?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let linerate = program.map_or_else(|| target.join("release/linerate"), Path::to_path_buf);
        if !linerate.is_file() {
            return Err(format!(
                "{} is missing; type cargo build --release, or name one with --program",
                linerate.display()
            ));
        }
        // Sockets are in that folder, and their paths may not be long.
        let folder = std::env::temp_dir().join(format!("linerate-verdicts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let keeper = Keeper::new(&folder.join("programs.log"))?;
        Ok(Self { linerate, folder, keeper })
    }

    fn matrix(&self, wish: &Wish) -> Result<Matrix, String> {
        let mut rows = Vec::new();
        for case in cases::all().filter(|case| wish.wants(case)) {
            for planted in [true, false] {
                let mut row = Row::new(case, planted);
                for seed in 1..=if case.random { wish.seeds } else { 1 } {
                    row.trials.push(self.trial(case, planted, seed));
                    if self.keeper.stopped() {
                        return Err("interrupted".to_owned());
                    }
                }
                println!("{}", row.line());
                row.doubts().for_each(|line| println!("{line}"));
                rows.push(row);
            }
        }
        Ok(Matrix { rows })
    }

    fn trial(&self, case: &Case, planted: bool, seed: u32) -> Trial {
        let plant = if planted { &case.planted } else { &case.control };
        let start = clock::now();
        let mut trial = Trial { seed, answer: Err(String::new()), load: load(), repeats: 0, seconds: 0.0 };
        loop {
            trial.answer = self.run(case, plant, seed);
            let disturbed = trial.answer.as_ref().is_ok_and(|answer| answer.disturbed);
            let wanted = plant.right.contains(&"V26");
            if !disturbed || wanted || trial.repeats == REPEATS {
                break;
            }
            trial.repeats += 1;
        }
        trial.seconds = clock::now().since(start).as_secs_f64();
        trial
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Load average of the machine over a minute; 0 where nobody tells.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(words: &[&str]) -> Result<Wish, String> {
        Wish::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn rules_are_chosen_by_name() {
        let some = wish(&["--only", "V04,V13", "--seeds", "3"]).unwrap();
        let rules: Vec<&str> = cases::all().filter(|case| some.wants(case)).map(|case| case.rule).collect();
        assert!(rules.iter().all(|rule| ["V04", "V13"].contains(rule)) && rules.len() >= 2, "{rules:?}");
        assert_eq!((some.seeds, wish(&[]).unwrap().seeds), (3, SEEDS));
        assert!(wish(&["--only", "V98"]).unwrap_err().contains("V04"));
        assert!(wish(&["--seeds", "0"]).is_err() && wish(&["--json"]).is_err() && wish(&["fast"]).is_err());
    }

    /// The quick form: causes that a busy machine does not disturb, one seed.
    #[test]
    #[ignore = "needs root and network namespaces"]
    fn planted_causes_are_named_and_their_controls_are_not_blamed() {
        // `make test` has built the program that the other tests with root use.
        let built = std::env::current_exe().unwrap();
        let program = built.parent().unwrap().parent().unwrap().join("linerate");
        let program = program.display().to_string();
        run(&["--only", "V02,V03,V09,V15", "--seeds", "1", "--program", &program].map(str::to_owned))
            .unwrap();
    }
}
