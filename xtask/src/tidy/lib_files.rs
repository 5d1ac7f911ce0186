//! `lib.rs` may only contain the documentation of a crate and its exports.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;
use crate::words::has_word;

const DEFINITIONS: &[&str] = &["fn", "struct", "enum", "trait", "impl", "union", "macro_rules"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files() {
        if !file.path.starts_with("crates/") || !file.path.ends_with("/src/lib.rs") {
            continue;
        }
        if !file.text.starts_with("//!") {
            problems.push(Problem::new(
                &file.path,
                1,
                "the room has no description",
                "begin lib.rs with `//!` and what lives here",
            ));
        }
        for (line, text) in numbered(&rust.code) {
            let defined = DEFINITIONS.iter().find(|word| has_word(text, word));
            // `fn(…)` is a type.
            let defines = defined.is_some_and(|word| *word != "fn" || text.contains("fn "));
            if defines && !rust.is_test_line(line) {
                let remedy = "move it to a module named after it and list it here with `pub use`";
                problems.push(Problem::new(&file.path, line, "lib.rs defines something", remedy));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn docs_modules_and_lists_pass() {
        let text = "//! What lives here.\nmod open;\npub use open::Listener;\n\
            /// All. fn struct\npub static ALL: &[fn(u8) -> u8] = &[];\n#[cfg(test)]\nmod tests { fn a() {} }\n";
        assert!(found(check, &[("crates/sock/src/lib.rs", text)]).is_empty());
    }

    #[test]
    fn definitions_and_missing_docs_are_found() {
        let text = "mod open;\npub fn start() {}\nstruct A;\n";
        let places = found(check, &[("crates/sock/src/lib.rs", text)]);
        assert_eq!(
            places,
            ["crates/sock/src/lib.rs:1", "crates/sock/src/lib.rs:2", "crates/sock/src/lib.rs:3"]
        );
    }
}
