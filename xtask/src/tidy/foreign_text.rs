//! Decoded text from a peer or a file must be a `ForeignText`, which is safe to print, instead of a `String`.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;
use crate::words::has_word;

/// Crates that decode input of peers and files into types that others print.
const DECODING_CRATES: [&str; 3] = ["model", "proto", "compat"];
/// The file that defines the type.
const DEFINING_FILE: &str = "crates/model/src/foreign_text.rs";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files() {
        if file.is_test
            || file.path == DEFINING_FILE
            || !file.crate_name().is_some_and(|room| DECODING_CRATES.contains(&room))
        {
            continue;
        }
        let (mut derived, mut within) = (false, false);
        for (line, text) in numbered(&rust.code) {
            // An item ends at its brace in the first column, or on its first line.
            if within {
                within = !text.starts_with(['}', ')']);
            } else if text.starts_with("#[") {
                derived |= has_word(text, "derive") && has_word(text, "Deserialize");
            } else if !text.trim().is_empty() {
                within = derived && !text.trim_end().ends_with([';', '}']);
                if !derived {
                    continue;
                }
                derived = false;
            }
            if has_word(text, "String") && !rust.is_test_line(line) {
                let remedy = "take ForeignText, or ForeignLines for text of several lines";
                problems.push(Problem::new(
                    &file.path,
                    line,
                    "a decoded string that nobody has cleaned",
                    remedy,
                ));
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
    fn decoded_types_hold_no_bare_string() {
        let text = "#[derive(Debug, Deserialize)]\npub struct A {\n    /// String.\n    pub b: Option<String>,\n    c: ForeignText,\n}\n\
                    fn d(e: String) {}\n#[derive(Debug)]\nstruct F {\n    g: String,\n}\n\
                    #[derive(Deserialize)]\nstruct H(String);\nfn i() -> String {}\n";
        let path = "crates/model/src/a.rs";
        assert_eq!(found(check, &[(path, text)]), ["crates/model/src/a.rs:4", "crates/model/src/a.rs:13"]);
        assert_eq!(found(check, &[("crates/compat/src/iperf3/a.rs", text)]).len(), 2);
        assert!(found(check, &[(DEFINING_FILE, text), ("crates/app/src/a.rs", text)]).is_empty());
    }
}
