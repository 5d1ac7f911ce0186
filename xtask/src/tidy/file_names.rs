//! Generic file names are not allowed.

use super::Problem;
use crate::tree::Tree;

const BANNED: &[&str] = &["util", "utils", "common", "imp", "helpers", "misc"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, _) in tree.rust_files() {
        let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
        if let Some(part) = stem.split('/').find(|part| BANNED.contains(part)) {
            let what = format!("a file or folder named {part:?} says nothing about what is in it");
            problems.push(Problem::new(&file.path, 1, what, "name it after the one thing it holds"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn bins_for_leftovers_are_refused() {
        let samples = [("crates/sock/src/util.rs", ""), ("crates/app/src/common/mod.rs", "")];
        assert_eq!(found(check, &samples).len(), 2);
        assert!(found(check, &[("crates/sock/src/options.rs", ""), ("scripts/util", "")]).is_empty());
    }
}
