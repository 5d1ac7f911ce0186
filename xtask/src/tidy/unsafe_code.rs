//! `unsafe` is only allowed in the crate `sock`, to keep it reviewable.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;
use crate::words::has_word;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files() {
        if file.crate_name() == Some("sock") {
            continue;
        }
        for (line, text) in numbered(&rust.code) {
            if has_word(text, "unsafe") {
                let remedy = "give crates/sock a safe function for it";
                problems.push(Problem::new(&file.path, line, "unsafe code outside sock", remedy));
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
    fn only_sock_may_be_unsafe() {
        let text =
            "// unsafe is a word\n#![forbid(unsafe_code)]\nfn a() { unsafe { b() } }\nlet s = \"unsafe\";\n";
        assert_eq!(found(check, &[("crates/engine/src/a.rs", text)]), ["crates/engine/src/a.rs:3"]);
        assert!(found(check, &[("crates/sock/src/a.rs", text)]).is_empty());
    }
}
