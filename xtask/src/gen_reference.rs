//! `cargo xtask gen`: the reference pages, made by an example of the program's crate, so that they always match it,
//! and the tables of speed, made from the last whole benchmark.

use std::fs;
use std::path::Path;

use crate::cargo;
use crate::speed_tables;
use crate::temp_folder::TempFolder;
use crate::tree;

const FOLDER: &str = "docs/reference";

/// The name of a page, and its text.
type ReferenceFile = (String, String);

/// Writes all pages, or with `--check` compares them and fails on a difference.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let root = tree::root()?;
    let folder = root.join(FOLDER);
    match arguments {
        [] => {
            let names = write_pages(&folder)?;
            names.iter().for_each(|name| println!("gen: {FOLDER}/{name}"));
            for (page, text) in speed_tables::pages(&root)? {
                fs::write(root.join(page), text).map_err(|e| format!("cannot write {page}: {e}"))?;
                println!("gen: {page}");
            }
            Ok(())
        }
        [flag] if flag == "--check" => {
            let reference = fresh_pages()?.into_iter().map(|(name, text)| (format!("{FOLDER}/{name}"), text));
            let speed = speed_tables::pages(&root)?.into_iter().map(|(page, text)| (page.to_owned(), text));
            compare(&root, &reference.chain(speed).collect::<Vec<_>>())
        }
        _ => Err("takes nothing or --check".to_owned()),
    }
}

/// The pages as they should be.
fn fresh_pages() -> Result<Vec<ReferenceFile>, String> {
    let folder = TempFolder::create("reference")?;
    let read = |name: String| {
        let path = folder.file(&name);
        let text = fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Ok((name, text))
    };
    write_pages(folder.path())?.into_iter().map(read).collect()
}

/// Runs the example, which writes the pages into a folder; returns their names.
fn write_pages(folder: &Path) -> Result<Vec<String>, String> {
    let call = "cargo run --package linerate --example reference";
    let output = cargo::command()
        .args(["run", "--quiet", "--package", "linerate", "--example", "reference", "--"])
        .arg(folder)
        .output()
        .map_err(|e| format!("cannot run `{call}`: {e}"))?;
    if !output.status.success() {
        return Err(format!("`{call}` failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Compares the pages below the root with what they should be.
fn compare(root: &Path, pages: &[ReferenceFile]) -> Result<(), String> {
    let mut stale = Vec::new();
    for (name, fresh) in pages {
        let kept = fs::read_to_string(root.join(name)).unwrap_or_default();
        if let Some(line) = first_difference(&kept, fresh) {
            stale.push(format!(
                "{name}:{line}: differs from what the program prints, or from the last benchmark"
            ));
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
        let folder = TempFolder::create("gen").unwrap();
        let name = format!("{FOLDER}/a.md");
        fs::create_dir_all(folder.file(FOLDER)).unwrap();
        let pages = [(name.clone(), "one\n".to_owned())];
        assert!(compare(folder.path(), &pages).is_err());
        fs::write(folder.file(&name), "one\n").unwrap();
        assert!(compare(folder.path(), &pages).is_ok());
        let changed = [(name, "two\n".to_owned())];
        assert!(compare(folder.path(), &changed).unwrap_err().contains("docs/reference/a.md:1"));
    }
}
