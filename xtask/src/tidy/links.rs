//! Links between documents must have valid targets, in the sources and in the book that `make docs` builds of them.

use std::collections::BTreeSet;

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;

/// The table of contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Folders whose pages belong in the book.
const BOOK_FOLDERS: &[&str] = &["docs/guide/", "docs/concepts/", "docs/reference/"];

/// Folder of pages that the book lists by itself.
const LISTED: &str = "docs/design";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let book = book_pages(tree);
    let mut problems = missing_pages(tree, &book);
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, text) in numbered(&file.text) {
            for target in targets(text) {
                if let Some((what, remedy)) = fault(tree, &book, &file.path, target) {
                    problems.push(Problem::new(&file.path, line, what, remedy));
                }
            }
        }
    }
    problems
}

/// What is wrong with a link in the document `from`, and what to do.
fn fault(tree: &Tree, book: &BTreeSet<String>, from: &str, target: &str) -> Option<(String, &'static str)> {
    let (page, place) = target.split_once('#').unwrap_or((target, ""));
    let path = if page.is_empty() { from.to_owned() } else { resolve(from, page) };
    if !exists(tree, &path) {
        let what = format!("the link to {target} leads nowhere");
        return Some((what, "correct the path, or write the page"));
    }
    if book.contains(from) && !in_book(book, &path) {
        let what = format!("the link to {target} leads out of the book");
        return Some((what, "add the page to docs/SUMMARY.md, or name the file without a link"));
    }
    let document = tree.file(&path).filter(|_| !place.is_empty() && path.ends_with(".md"))?;
    if anchors(&document.text).contains(place) {
        return None;
    }
    Some((format!("{path} has no heading #{place}"), "correct the part of the link after '#'"))
}

/// The pages of the book.
fn book_pages(tree: &Tree) -> BTreeSet<String> {
    let Some(summary) = tree.file(SUMMARY) else { return BTreeSet::new() };
    let named = summary.text.lines().flat_map(targets).map(|target| resolve(SUMMARY, target));
    let all = tree.files.iter().map(|file| file.path.clone());
    named.chain(all.filter(|path| path.starts_with(LISTED) && path.ends_with(".md"))).collect()
}

fn missing_pages(tree: &Tree, book: &BTreeSet<String>) -> Vec<Problem> {
    let pages =
        tree.files.iter().map(|file| &file.path).filter(|path| {
            path.ends_with(".md") && BOOK_FOLDERS.iter().any(|folder| path.starts_with(folder))
        });
    let missing = pages.filter(|path| !book.contains(*path));
    missing
        .map(|path| {
            let what = format!("the page is not in {SUMMARY}, so the book lacks it");
            Problem::new(path, 1, what, "add a line with its title there")
        })
        .collect()
}

/// Whether the book has a page or file for a path of the sources. It takes files of `docs/` as they are.
fn in_book(book: &BTreeSet<String>, path: &str) -> bool {
    book.contains(path)
        || path == LISTED
        || (path.starts_with("docs/") && path.contains('.') && !path.ends_with(".md"))
}

/// The targets of `[text](target)` that are files of ours or headings of the same page.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let all = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    all.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// Names of the headings of a document, as links give them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let name = anchor(heading.trim());
        let repeat = (1..).map(|number| format!("{name}-{number}"));
        let unused = std::iter::once(name.clone()).chain(repeat).find(|name| !anchors.contains(name));
        anchors.extend(unused);
    }
    anchors
}

/// The name of a heading: letters, digits, hyphens and underscores, with hyphens in place of blanks.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
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
        let good = "[a](../../README.md) and [b](c.md#part), [d](https://example.org/x.md), [e](#here), [f](../concepts)\n# Here\n";
        let samples = [
            ("docs/notes/a.md", good),
            ("docs/notes/c.md", "# A\n## Part\n"),
            ("docs/concepts.d/d.md", ""),
            ("docs/concepts/d.txt", ""),
            ("README.md", "[a](docs/notes/a.md)\n"),
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

    #[test]
    fn a_link_to_a_heading_that_does_not_exist_is_found() {
        let samples = [
            ("a.md", "[x](#two-words) [y](b.md#the-same-1) [z](b.md#two-words)\n## `Two` words?\n"),
            ("b.md", "# The same\n# The same\n"),
        ];
        assert_eq!(found(check, &samples), ["a.md:1"]);
    }

    #[test]
    fn the_book_has_every_page_and_leads_to_nothing_outside() {
        let samples = [
            ("docs/SUMMARY.md", "- [a](guide/a.md)\n- [r](../README.md)\n"),
            ("docs/guide/a.md", "[d](../design/d.md) [s](../reference/s.json) [r](../../README.md)\n"),
            ("docs/guide/b.md", "[a](a.md)\n"),
            ("docs/design/d.md", "[b](../guide/b.md)\n"),
            ("docs/reference/s.json", "{}"),
            ("README.md", "[d](docs/design)\n[g](docs/guide) [t](bench/t.json)\n"),
            ("bench/t.json", "{}"),
        ];
        let expected = ["docs/guide/b.md:1", "README.md:2", "README.md:2", "docs/design/d.md:1"];
        assert_eq!(
            found(check, &samples).into_iter().collect::<BTreeSet<_>>(),
            expected.map(str::to_owned).into()
        );
    }
}
