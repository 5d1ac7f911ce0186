//! Limits the length of files.

use super::Problem;
use crate::rust_text::{RustText, numbered};
use crate::tree::{SourceFile, Tree};

const WARN_ABOVE: usize = 500;
const FAIL_ABOVE: usize = 800;
/// Folders with a limit on their lines of code. The program is a thin caller of the other crates.
const FOLDERS: &[(&str, usize)] = &[("crates/app/src/", 4_000)];
const LANGUAGES: &[&str] = &[".rs", ".ts", ".tsx", ".sh"];

/// Flat tables, which may be long. Each with the reason why it is not split.
const EXCEPTIONS: &[(&str, &str)] = &[];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in &tree.files {
        let is_source = LANGUAGES.iter().any(|ending| file.path.ends_with(ending));
        let is_excepted = EXCEPTIONS.iter().any(|(path, _)| *path == file.path);
        if !is_source || is_excepted {
            continue;
        }
        let lines = source_lines(file);
        let what = format!("{lines} source lines");
        let remedy = "split it along the nouns in it; tests may move to a file of their own";
        let problem = Problem::new(&file.path, 1, what, remedy);
        if lines > FAIL_ABOVE {
            problems.push(problem);
        } else if lines > WARN_ABOVE {
            problems.push(problem.warning());
        }
    }
    for (folder, most) in FOLDERS {
        let files = tree.rust_files().filter(|(file, _)| file.path.starts_with(folder));
        let lines: usize = files.map(|(_, rust)| code_lines(rust)).sum();
        if lines > *most {
            let what = format!("{lines} lines of code in a folder that may have {most}");
            let remedy = "move to the crates below it what another caller would need too";
            problems.push(Problem::new(folder, 1, what, remedy));
        }
    }
    problems
}

/// Lines that are neither empty, nor a comment, nor part of a test module.
fn code_lines(rust: &RustText) -> usize {
    let code = numbered(&rust.code_and_literals);
    code.filter(|(line, text)| !text.trim().is_empty() && !rust.is_test_line(*line)).count()
}

/// Lines that are neither empty nor part of a test module; comments count.
fn source_lines(file: &SourceFile) -> usize {
    let is_test = |line| file.rust.as_ref().is_some_and(|rust| rust.is_test_line(line));
    numbered(&file.text).filter(|(line, text)| !text.trim().is_empty() && !is_test(*line)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(lines: usize, tests: usize) -> Vec<bool> {
        let text =
            format!("{}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "x();\n".repeat(lines), "y();\n".repeat(tests));
        check(&Tree::of(&[("crates/a/src/b.rs", &text)])).iter().map(|problem| problem.fatal).collect()
    }

    #[test]
    fn long_files_warn_and_very_long_ones_fail() {
        assert!(weights(500, 0).is_empty());
        assert_eq!(weights(501, 0), [false]);
        assert_eq!(weights(801, 0), [true]);
    }

    #[test]
    fn tests_and_data_do_not_count() {
        assert!(weights(400, 900).is_empty());
        assert!(check(&Tree::of(&[("fixtures/a.json", &"1\n".repeat(2000))])).is_empty());
    }

    #[test]
    fn every_exception_has_a_reason() {
        assert!(EXCEPTIONS.iter().all(|(_, reason)| !reason.is_empty()));
    }

    #[test]
    fn the_program_may_not_grow_into_a_library() {
        let of = |lines: usize| {
            let text = format!("//! A page.\n/// A comment.\n\n{}", "x();\n".repeat(lines));
            let paths: Vec<String> = (0..10).map(|file| format!("crates/app/src/cmd/{file}.rs")).collect();
            let samples: Vec<(&str, &str)> =
                paths.iter().map(|path| (path.as_str(), text.as_str())).collect();
            check(&Tree::of(&samples)).iter().filter(|problem| problem.fatal).count()
        };
        assert_eq!((of(400), of(401)), (0, 1));
    }
}
