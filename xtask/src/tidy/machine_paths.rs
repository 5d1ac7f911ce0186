//! Files must not contain paths of the machine they were written on.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;

/// Split, so that this file passes its own check.
const ROOTS: &[&str] =
    &[concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in &tree.files {
        for (line, text) in numbered(&file.text) {
            if let Some(root) = ROOTS.iter().find(|root| names_a_folder(text, root)) {
                let what = format!("a path of one machine ({root}…)");
                let remedy =
                    "write it relative to the workspace, or take it from an argument or the environment";
                problems.push(Problem::new(&file.path, line, what, remedy));
            }
        }
    }
    problems
}

/// An absolute path: the slash is not inside a longer path, address or name.
fn names_a_folder(text: &str, root: &str) -> bool {
    text.match_indices(root).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '}' | '>' | '~'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn absolute_paths_are_found_and_addresses_are_not() {
        let bad = format!("see \"{}x/a.rs\"\nok\nPATH={}bin\n", ROOTS[0], ROOTS[2]);
        assert_eq!(found(check, &[("docs/a.md", &bad)]), ["docs/a.md:1", "docs/a.md:3"]);
        let good = format!("https://example.org{}page and $HOME{}\n", ROOTS[1], ROOTS[1]);
        assert!(found(check, &[("docs/a.md", &good)]).is_empty());
    }
}
