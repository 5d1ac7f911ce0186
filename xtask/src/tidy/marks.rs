//! Unfinished work must not be marked in the code; limitations belong in LIMITS.md.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;
use crate::words::has_word;

/// Marks as whole words in any text; split, so that this file passes its own check.
const WORDS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
/// Macros in Rust code.
const MACROS: &[&str] = &[concat!("todo", "!"), concat!("unimplemented", "!"), concat!("dbg", "!")];

/// Inputs that we have not written.
const FOREIGN: &[&str] = &["fixtures/", "Cargo.lock", "package-lock.json"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in &tree.files {
        if FOREIGN.iter().any(|part| file.path.contains(part)) {
            continue;
        }
        let code = file.rust.as_ref().map_or("", |rust| &rust.code);
        let marks = numbered(&file.text).filter_map(|(line, text)| Some((line, find(WORDS, text)?)));
        let macros = numbered(code).filter_map(|(line, text)| Some((line, find(MACROS, text)?)));
        for (line, mark) in marks.chain(macros) {
            let remedy = "finish it now, or remove it and say in LIMITS.md what is missing";
            problems.push(Problem::new(&file.path, line, format!("the mark {mark}"), remedy));
        }
    }
    problems
}

fn find(marks: &'static [&str], text: &str) -> Option<&'static str> {
    marks.iter().find(|mark| has_word(text, mark)).copied()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn marks_are_found_in_comments_scripts_and_code() {
        let rust = format!("// {}: later\nfn a() {{ {}() }}\n", WORDS[0], MACROS[0]);
        let script = format!("# {} this\n", WORDS[1]);
        assert_eq!(
            found(check, &[("crates/app/src/a.rs", &rust), ("scripts/a.sh", &script)]),
            ["crates/app/src/a.rs:1", "crates/app/src/a.rs:2", "scripts/a.sh:1"]
        );
    }

    #[test]
    fn ordinary_words_and_recorded_inputs_pass() {
        let transcript = format!("{}\n", WORDS[0]);
        let samples =
            [("fixtures/a.txt", transcript.as_str()), ("crates/app/src/a.rs", "// todos are done\n")];
        assert!(found(check, &samples).is_empty());
    }
}
