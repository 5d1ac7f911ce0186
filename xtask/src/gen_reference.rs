//! `cargo xtask gen`: the reference pages, printed by the program itself, so that they always match it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::tree;

/// A file below `docs/reference/` and the hidden command that prints it.
const PAGES: &[(&str, &[&str])] = &[
    ("result.schema.json", &["schema", "result"]),
    ("event.schema.json", &["schema", "event"]),
    ("spec.schema.json", &["schema", "spec"]),
    ("check.schema.json", &["schema", "check"]),
    ("compare.schema.json", &["schema", "compare"]),
    ("topology.schema.json", &["schema", "topology"]),
    ("topology.md", &["topology-reference"]),
    ("plan.schema.json", &["schema", "plan"]),
    ("plan-result.schema.json", &["schema", "plan-result"]),
    ("plan.md", &["plan-reference"]),
    ("metrics.md", &["metrics-reference"]),
    ("cli.md", &["cli-reference"]),
];

const FOLDER: &str = "docs/reference";

/// Writes all pages, or with `--check` compares them and fails on a difference.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("takes nothing or --check".to_owned()),
    };
    let folder = tree::root()?.join(FOLDER);
    let mut pages = Vec::new();
    for (name, command) in PAGES {
        pages.push((*name, print_page(command)?));
    }
    if check { compare(&folder, &pages) } else { write(&folder, &pages) }
}

fn print_page(command: &[&str]) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let call = format!("linerate {}", command.join(" "));
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--package", "linerate", "--"])
        .args(command)
        .output()
        .map_err(|e| format!("cannot run `{call}`: {e}"))?;
    if !output.status.success() {
        return Err(format!("`{call}` failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let text =
        String::from_utf8(output.stdout).map_err(|_| format!("`{call}` printed bytes that are not UTF-8"))?;
    Ok(format!("{}\n", text.trim_end()))
}

fn write(folder: &Path, pages: &[(&str, String)]) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    for (name, text) in pages {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        println!("gen: {FOLDER}/{name}");
    }
    Ok(())
}

fn compare(folder: &Path, pages: &[(&str, String)]) -> Result<(), String> {
    let mut stale = Vec::new();
    for (name, fresh) in pages {
        let kept = fs::read_to_string(folder.join(name)).unwrap_or_default();
        if let Some(line) = first_difference(&kept, fresh) {
            stale.push(format!("{FOLDER}/{name}:{line}: differs from what the program prints"));
        }
    }
    if stale.is_empty() {
        println!("gen: {} pages are fresh", pages.len());
        return Ok(());
    }
    Err(format!("{}\nrun `cargo xtask gen` and commit the result", stale.join("\n")))
}

/// The first line (from 1) in which two texts differ.
fn first_difference(kept: &str, fresh: &str) -> Option<usize> {
    if kept == fresh {
        return None;
    }
    let same = kept.lines().zip(fresh.lines()).take_while(|(a, b)| a == b).count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_by_their_line() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("", "a\n"), Some(1));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
    }

    #[test]
    fn a_stale_or_missing_page_fails_and_a_fresh_one_passes() {
        let folder = std::env::temp_dir().join(format!("linerate-gen-{}", std::process::id()));
        let pages = [("a.md", "one\n".to_owned())];
        assert!(compare(&folder, &pages).is_err());
        write(&folder, &pages).unwrap();
        assert!(compare(&folder, &pages).is_ok());
        let changed = [("a.md", "two\n".to_owned())];
        assert!(compare(&folder, &changed).unwrap_err().contains("docs/reference/a.md:1"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
