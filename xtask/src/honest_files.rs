//! `cargo xtask honest-files`: files of every real program over every link, none of which `linerate check` may
//! call impossible.

use crate::{cargo, tree};

/// Runs the test that creates them, in its long form.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("takes no argument, got {unknown:?}"));
    }
    let status = cargo::command()
        .args([
            "test",
            "--package",
            "linerate",
            "--test",
            "root",
            "honest_files::",
            "--",
            "--ignored",
            "--nocapture",
        ])
        .env("LINERATE_HONEST_FILES", "all")
        .current_dir(tree::root()?)
        .status()
        .map_err(|e| format!("cannot run cargo test: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo test ended with {status}")) }
}
