//! Every dependency needs a comment with its reason, and their number is limited.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;

const MANIFEST: &str = "Cargo.toml";
const SECTION: &str = "[workspace.dependencies]";
/// One comment may cover several related packages.
const MAX_GROUP: usize = 4;
const MAX_DEPENDENCIES: usize = 73;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let Some(manifest) = tree.file(MANIFEST) else {
        return vec![Problem::new(MANIFEST, 1, "the workspace has no manifest", "run this in the workspace")];
    };
    let mut problems = Vec::new();
    let (mut inside, mut explained, mut count) = (false, 0, 0);
    for (line, text) in numbered(&manifest.text) {
        let text = text.trim();
        if text.starts_with('[') {
            inside = text == SECTION;
        } else if !inside || text.contains("path = ") {
            continue;
        } else if text.starts_with('#') {
            explained = MAX_GROUP;
        } else if text.is_empty() {
            explained = 0;
        } else if text.contains('=') {
            count += 1;
            if explained == 0 {
                let what = "a dependency without a reason";
                problems.push(Problem::new(
                    MANIFEST,
                    line,
                    what,
                    "say in a comment above it what it saves us",
                ));
            }
            explained = explained.saturating_sub(1);
        }
    }
    if count > MAX_DEPENDENCIES {
        let what = format!("{count} outside packages; the house allows {MAX_DEPENDENCIES}");
        problems.push(Problem::new(MANIFEST, 1, what, "remove one that a few lines of our own replace"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn a_reason_covers_its_group_and_no_more() {
        let good = "[workspace.dependencies]\nunits = { path = \"a\" }\n# Why.\nclap = \"4\"\nclap_mangen = \"1\"\n\
            [profile.dev]\nopt-level = 1\n";
        assert!(found(check, &[("Cargo.toml", good)]).is_empty());
        let bad = "[workspace.dependencies]\nclap = \"4\"\n# Why.\na = \"1\"\n\nb = \"1\"\n";
        assert_eq!(found(check, &[("Cargo.toml", bad)]), ["Cargo.toml:2", "Cargo.toml:6"]);
    }

    #[test]
    fn the_number_of_packages_is_bounded() {
        let mut text = "[workspace.dependencies]\n".to_owned();
        for index in 0..=MAX_DEPENDENCIES {
            text.push_str(&format!("# Why.\np{index} = \"1\"\n"));
        }
        assert_eq!(found(check, &[("Cargo.toml", &text)]), ["Cargo.toml:1"]);
    }
}
