//! An ignored test must state what it needs.

use super::Problem;
use crate::skips::ignored_tests;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let silent = ignored_tests(tree).into_iter().filter(|test| !test.reason.starts_with("needs "));
    let remedy =
        "write #[ignore = \"needs …\"] with what the machine must have; a flaky test is a bug, not a skip";
    silent
        .map(|test| {
            Problem::new(&test.path, test.line, "a test is skipped without saying what it needs", remedy)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn a_skip_must_name_its_need() {
        let good = "#[test]\n#[ignore = \"needs root and network namespaces\"]\nfn a() {}\n";
        let bad = "#[test]\n#[ignore]\nfn a() {}\n#[test]\n#[ignore = \"flaky\"]\nfn b() {}\n";
        assert!(found(check, &[("crates/sock/tests/a.rs", good)]).is_empty());
        assert_eq!(
            found(check, &[("crates/sock/tests/a.rs", bad)]),
            ["crates/sock/tests/a.rs:2", "crates/sock/tests/a.rs:5"]
        );
    }
}
