//! One meaning per type name: two types with one name are one type, or one of them is misnamed.

use std::collections::BTreeMap;

use super::Problem;
use crate::rust_text::{is_name_byte, numbered};
use crate::tree::Tree;

/// Where the same types have another form on each system: of these modules a program contains one for each thing.
const SYSTEMS: &[&str] = &[
    "crates/sock/src/linux/",
    "crates/sock/src/unix/",
    "crates/sock/src/portable/windows/",
    "crates/sock/src/portable/",
    "crates/control/src/host_settings.rs",
    "crates/control/src/no_host_settings.rs",
    "crates/runner/src/lab_port_observer.rs",
    "crates/runner/src/no_lab.rs",
];

const REMEDY: &str = "make one type of both, or name the other one after its own thing, as its field does";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut known: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files() {
        for (line, text) in numbered(&rust.code) {
            let Some(name) = declared_type(text) else { continue };
            let others = known.entry(name).or_default();
            if let Some((path, at)) = others.iter().find(|(path, _)| !are_alternatives(path, &file.path)) {
                let what = format!("{path}:{at} declares another type with the name {name}");
                problems.push(Problem::new(&file.path, line, what, REMEDY));
            }
            others.push((&file.path, line));
        }
    }
    problems
}

/// Whether two files are for different systems, so that a type of one is that of the other.
fn are_alternatives(one: &str, other: &str) -> bool {
    let system = |path: &str| SYSTEMS.iter().position(|folder| path.starts_with(folder));
    system(one).zip(system(other)).is_some_and(|(one, other)| one != other)
}

/// The name of the type or trait that a line of code declares. The associated types of traits and of their
/// implementations share the trait's name for them, so they are not declarations.
fn declared_type(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let is_public = text.starts_with("pub");
    let text = text.strip_prefix("pub").map_or(text, |rest| {
        let rest =
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
        rest.trim_start()
    });
    let text = text.strip_prefix("unsafe ").unwrap_or(text);
    let (keyword, rest) = text.split_once(' ')?;
    let declares = match keyword {
        "struct" | "enum" | "union" | "trait" => true,
        "type" => is_public || !line.starts_with(' '),
        _ => false,
    };
    let length = rest.bytes().take_while(|&byte| is_name_byte(byte)).count();
    let name = rest.get(..length).filter(|name| !name.is_empty())?;
    declares.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn a_second_type_of_one_name_is_found_in_any_crate_and_in_tests() {
        let samples = [
            ("crates/a/src/lib.rs", "/// A path.\npub struct Path<'a> {\n    hops: &'a [u8],\n}\n"),
            ("crates/b/src/lib.rs", "pub(super) enum Path {}\nfn f() {}\ntype Hops = u8;\n"),
            ("crates/b/tests/it/main.rs", "mod a {\n    struct Hops(u8);\n    pub trait Path {}\n}\n"),
            ("fuzz/src/lib.rs", "union Hops { a: u8 }\n"),
        ];
        assert_eq!(
            found(check, &samples),
            [
                "crates/b/src/lib.rs:1",
                "crates/b/tests/it/main.rs:2",
                "crates/b/tests/it/main.rs:3",
                "fuzz/src/lib.rs:1"
            ]
        );
    }

    #[test]
    fn a_type_may_have_a_form_for_each_system_and_only_one_there() {
        let samples = [
            ("crates/sock/src/linux/poll.rs", "pub struct Poller;\n"),
            ("crates/sock/src/portable/poll.rs", "pub struct Poller;\n"),
            ("crates/sock/src/portable/stream.rs", "pub struct Poller;\n"),
            ("crates/sock/src/queue.rs", "pub struct Poller;\n"),
        ];
        assert_eq!(
            found(check, &samples),
            ["crates/sock/src/portable/stream.rs:1", "crates/sock/src/queue.rs:1"]
        );
    }

    #[test]
    fn uses_associated_types_comments_and_literals_declare_nothing() {
        let samples = [
            ("crates/a/src/lib.rs", "struct Path;\ntrait Walk {\n    type Item;\n}\n"),
            ("crates/b/src/lib.rs", "// struct Path;\nconst A: &str = \"\nstruct Path;\";\nuse a::Path;\n"),
            ("crates/c/src/lib.rs", "impl Walk for Path {\n    type Item = u8;\n}\nstruct Pathway;\n"),
            ("docs/a.md", "struct Path;\n"),
        ];
        assert!(found(check, &samples).is_empty());
    }
}
