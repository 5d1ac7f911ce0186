//! Random runs with everything real but the traffic: nats-server, PostgreSQL, and processes of coordinators and agents,
//! which are killed, stopped, copied and started again at random moments.
//!
//! `LINERATE_CHAOS` says how many, and `LINERATE_CHAOS_SEED` the first seed; without it, `cargo test -- --ignored` makes a
//! sample. What happens depends on the seed and on the machine, so a seed does not repeat everything.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a run that cannot be made fails")]

mod chaos_fleet;
mod checks;
mod faults;
mod processes;

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use chaos_fleet::ChaosFleet;
use linerate_sock::thread::locked;

/// Runs of `make test`.
const SAMPLE: u64 = 2;
/// Runs at the same time.
const AT_ONCE: u64 = 2;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["coordinator", folder] => processes::coordinator(Path::new(folder)),
        ["agent", folder, enrollment, own] => {
            processes::agent(Path::new(folder), Path::new(enrollment), PathBuf::from(own));
        }
        ["runs", first, count] => return runs(first.parse().unwrap(), count.parse().unwrap()),
        _ => {
            let count = number("LINERATE_CHAOS");
            if count.is_some() || words.contains(&"--ignored") || words.contains(&"--include-ignored") {
                return begin(number("LINERATE_CHAOS_SEED").unwrap_or(1), count.unwrap_or(SAMPLE));
            }
            println!("chaos: needs nats-server and PostgreSQL; made with --ignored, or by make chaos");
        }
    }
    ExitCode::SUCCESS
}

/// In a mount namespace of its own if that is possible, so that small disks of agents are gone with the processes.
fn begin(first: u64, count: u64) -> ExitCode {
    let (first, count) = (first.to_string(), count.to_string());
    let own = std::env::current_exe().unwrap();
    let words = ["runs", &first, &count];
    let apart = Command::new("unshare").arg("--mount").arg("true").output();
    let status = if apart.is_ok_and(|tried| tried.status.success()) {
        Command::new("unshare").arg("--mount").arg(own).args(words).status().unwrap()
    } else {
        Command::new(own).args(words).status().unwrap()
    };
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn runs(first: u64, count: u64) -> ExitCode {
    let next = AtomicU64::new(first);
    let failed = Mutex::new(Vec::new());
    let at_once = number("LINERATE_CHAOS_AT_ONCE").unwrap_or(AT_ONCE).min(count);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    match catch_unwind(|| ChaosFleet::new(seed).run()) {
                        Ok(Ok(summary)) => println!("seed {seed}: {summary}"),
                        Ok(Err(why)) => {
                            println!("seed {seed} FAILED: {why}");
                            locked(&failed).push(seed);
                        }
                        // It has printed why.
                        Err(_) => locked(&failed).push(seed),
                    }
                }
            });
        }
    });
    let failed = locked(&failed);
    println!("chaos: {count} runs, {} with violations {failed:?}", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
