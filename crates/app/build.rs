//! Embeds the built front end, if there is one, into the program.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo names no package")?);
    let dist = here.join("../../ui/dist");
    // The folder always exists; its content comes from `make ui`.
    println!("cargo::rerun-if-changed={}", dist.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no folder for the build")?);
    // The small build has no pages.
    let has_pages = env::var_os("CARGO_FEATURE_FULL").is_some();
    for name in ["report.js", "report.css", "web.js", "web.css", "worker.js"] {
        fs::write(out.join(name), if has_pages { read(&dist.join(name)) } else { String::new() })?;
    }
    Ok(())
}

/// The text of a file; empty if there is none.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
