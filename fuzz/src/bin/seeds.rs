//! Writes the seeds of every target to a folder where the fuzzer looks for its corpus.

use std::path::PathBuf;
use std::{env, fs, io};

use linerate_fuzz::TARGETS;

fn main() -> io::Result<()> {
    let corpus = env::args_os().nth(1).map_or_else(|| PathBuf::from("corpus"), PathBuf::from);
    for target in TARGETS {
        let folder = corpus.join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
