//! Runs every target on seeded random bytes: pure noise, and mutated examples.

use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::{fs, thread};

use crate::{FuzzTarget, TARGETS};

const ROUNDS: u32 = 5_000;
const LONGEST: u64 = 300;
/// Rounds of those that make a database each time.
const SLOW: (&str, u32) = ("fleet_coordinator", 500);

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): small, and the same on every machine.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> usize {
        (self.next() % limit.max(1)) as usize
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(LONGEST)).map(|_| self.next() as u8).collect()
    }

    /// An example with a few bytes changed, removed or inserted.
    fn damaged(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..self.below(6) {
            let at = self.below(bytes.len() as u64 + 1);
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, self.next() as u8),
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ if at < bytes.len() => bytes[at] = self.next() as u8,
                _ => {}
            }
        }
        bytes
    }
}

#[test]
fn no_target_fails_on_noise() {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().unwrap().get();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((number, target)) = TARGETS.iter().enumerate().nth(next.fetch_add(1, Relaxed))
                {
                    feed(target, &mut Noise(number as u64 + 1));
                }
            });
        }
    });
}

fn feed(target: &FuzzTarget, noise: &mut Noise) {
    let seeds = (target.seeds)();
    for seed in &seeds {
        (target.run)(seed);
    }
    for _ in 0..if target.name == SLOW.0 { SLOW.1 } else { ROUNDS } {
        let seed = &seeds[noise.below(seeds.len() as u64)];
        let bytes = if noise.below(4) == 0 { noise.bytes() } else { noise.damaged(seed) };
        let result = std::panic::catch_unwind(|| (target.run)(&bytes));
        assert!(result.is_ok(), "{} fails on {bytes:?}", target.name);
    }
}

#[test]
fn every_target_is_in_the_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> =
        entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    files.sort();
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}
