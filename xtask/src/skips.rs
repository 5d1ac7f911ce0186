//! `cargo xtask skips`: lists and counts the tests that `cargo test` ignores.

use crate::rust_text::{line_of, numbered};
use crate::tree::{self, Tree};

/// A test under `#[ignore]`.
pub(crate) struct Ignored {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) name: String,
    /// The requirement that it states; empty if none.
    pub(crate) reason: String,
}

/// Prints every ignored test and their number.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("takes no argument, got {unknown:?}"));
    }
    let tests = ignored_tests(&Tree::read(&tree::root()?)?);
    for test in &tests {
        println!("{}:{}: {}: {}", test.path, test.line, test.name, test.reason);
    }
    println!("skips: {} tests are left out unless asked for with --ignored", tests.len());
    Ok(())
}

/// Finds the ignored tests in the order of files and lines.
pub(crate) fn ignored_tests(tree: &Tree) -> Vec<Ignored> {
    let mut found = Vec::new();
    for (file, rust) in tree.rust_files() {
        for (start, attribute) in rust.code.match_indices("#[ignore") {
            let line = line_of(&rust.code, start);
            let quoted = rust.code_and_literals.lines().nth(line - 1).unwrap_or_default();
            let reason = quoted.split_once(attribute).map_or("", |(_, rest)| rest);
            found.push(Ignored {
                path: file.path.clone(),
                line,
                name: function_after(&rust.code, line),
                reason: reason.trim_matches([' ', '=', '"', ']']).to_owned(),
            });
        }
    }
    found
}

fn function_after(code: &str, line: usize) -> String {
    let rest = numbered(code).skip(line - 1).find_map(|(_, text)| text.split_once("fn "));
    let name = rest.map_or("", |(_, name)| name);
    name.split(['(', '<']).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_and_reason_and_is_not_fooled_by_text() {
        let text = "// #[ignore = \"remark\"]\nlet s = \"#[ignore]\";\n#[test]\n#[ignore = \"needs root\"]\nfn opens_a_namespace() {}\n";
        let tests = ignored_tests(&Tree::of(&[("crates/sock/tests/a.rs", text)]));
        assert_eq!(tests.len(), 1);
        assert_eq!((tests[0].line, tests[0].name.as_str()), (4, "opens_a_namespace"));
        assert_eq!(tests[0].reason, "needs root");
    }
}
