//! `--world kernel`: causes planted with the kernel's own means, on a path that shares no code with the
//! emulator.
//!
//! Four namespaces (client, two routers, server) are connected by veth pairs, and if a round-trip time is
//! required, the routers by the tests' own delay forwarder. Each situation is an entry of `grid/`; the ten in
//! `held_out` are run separately.

mod forwarder;
mod grid;
mod held_out;
mod network;
mod situation;
mod trial;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use linerate_model::Cause;
use linerate_sock::clock;

use super::answer::NamedFinding;
use super::matrix::{Bars, MatrixRow, MatrixTrial, VerdictMatrix};
use super::{VerdictsOptions, load, work};
use crate::netns;
use situation::Situation;
use trial::KernelTrialContext;

/// Required results.
const REQUIRED: Bars =
    Bars { right_overall: 0.85, right_each: 0.0, wrong_overall: 0.04, controls_are_innocent: true };

/// Most repetitions of a disturbed measurement.
const REPEATS: u32 = 2;

/// Names of the situations, for messages.
pub(super) fn names(held_out: bool) -> Vec<&'static str> {
    situations(held_out).map(|situation| situation.name).collect()
}

fn situations(held_out: bool) -> Box<dyn Iterator<Item = &'static Situation>> {
    if held_out { Box::new(held_out::SITUATIONS.iter()) } else { Box::new(grid::all()) }
}

impl MatrixRow {
    fn of_situation(situation: &'static Situation) -> Self {
        let judge = Box::new(|answer: &_| trial::judge(answer, situation));
        let right = if situation.right.is_empty() { situation.secondary } else { situation.right };
        let right = right.iter().copied().map(NamedFinding::Cause).collect();
        let (label, planted) = (situation.name, !situation.control);
        Self { label, name: "", planted, right, judge, trials: Vec::new() }
    }
}

/// Plants every selected situation.
pub(super) fn matrix(
    options: &VerdictsOptions,
    linerate: PathBuf,
    folder: &Path,
) -> Result<VerdictMatrix, String> {
    netns::remove_left_over(network::TASK)?;
    network::remove_left_groups();
    let processes = crate::process::Processes::new(&folder.join("programs.log"))?;
    if let Some(folder) = &options.keep {
        std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    }
    let bed =
        KernelTrialContext { linerate, folder: folder.to_owned(), keep: options.keep.clone(), processes };
    let (mut rows, mut light, mut heavy) = (Vec::new(), Vec::new(), Vec::new());
    for situation in situations(options.held_out).filter(|situation| options.wants(situation.name)) {
        let jobs = if situation.alone { &mut heavy } else { &mut light };
        let seeds = 1..=if situation.random { options.seeds } else { 1 };
        jobs.extend(seeds.clone().map(|seed| (rows.len(), situation, seed)));
        rows.push((MatrixRow::of_situation(situation), seeds.count()));
    }
    let rows = Mutex::new(rows);
    let run = |worker, situation: &Situation, seed| bed.trial(worker, situation, seed);
    work(&light, options.jobs, &rows, &bed.processes, &|worker, &(row, it, seed)| {
        (row, run(worker, it, seed))
    });
    work(&heavy, 1, &rows, &bed.processes, &|worker, &(row, it, seed)| (row, run(worker, it, seed)));
    super::gathered(rows, &bed.processes, REQUIRED)
}

impl KernelTrialContext {
    fn trial(&self, worker: usize, situation: &Situation, seed: u32) -> MatrixTrial {
        let start = clock::now();
        let mut trial =
            MatrixTrial { seed, answer: Err(String::new()), load: load(), repeats: 0, seconds: 0.0 };
        loop {
            trial.answer = self.run(worker, situation, seed);
            let disturbed = trial.answer.as_ref().is_ok_and(|answer| answer.disturbed);
            if !disturbed || situation.right.contains(&Cause::Invalid) || trial.repeats == REPEATS {
                break;
            }
            trial.repeats += 1;
        }
        trial.seconds = clock::now().since(start).as_secs_f64();
        trial
    }
}
