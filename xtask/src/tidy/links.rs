//! Links between documents must have valid targets.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, text) in numbered(&file.text) {
            for target in targets(text) {
                let path = resolve(&file.path, target);
                if !exists(tree, &path) {
                    let what = format!("the link to {target} leads nowhere");
                    problems.push(Problem::new(
                        &file.path,
                        line,
                        what,
                        "correct the path, or write the page",
                    ));
                }
            }
        }
    }
    problems
}

/// The targets of `[text](target)` that are files of ours, without anchors.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let all = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    let without_place = all.map(|target| target.split('#').next().unwrap_or_default());
    without_place.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// The path of a link in the document `from`, relative to the workspace root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let inside = |other: &str| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    tree.files.iter().any(|file| file.path == path || inside(&file.path))
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn links_are_followed_from_where_they_stand() {
        let good = "[a](../../README.md) and [b](c.md#part), [d](https://example.org/x.md), [e](#here), [f](../concepts)\n";
        let samples = [
            ("docs/guide/a.md", good),
            ("docs/guide/c.md", ""),
            ("docs/concepts/d.md", ""),
            ("README.md", "[a](docs/guide/a.md)\n"),
        ];
        assert!(found(check, &samples).is_empty());
    }

    #[test]
    fn a_link_to_nowhere_is_found() {
        let samples = [
            ("docs/a.md", "fine\n[x](b.md) [y](../docs/a.md) [z](../a.md) [w](../doc)\n"),
            ("docs/b.txt", ""),
        ];
        assert_eq!(found(check, &samples), ["docs/a.md:2", "docs/a.md:2", "docs/a.md:2"]);
    }
}
