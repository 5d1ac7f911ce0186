//! The emulator's stages know no system: only its folder `shell` may name the room that does.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;
use crate::words::has_word;

const SHELL: [&str; 2] = ["crates/emu/src/shell/", "crates/emu/src/shell.rs"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files() {
        if file.crate_name() != Some("emu") || SHELL.iter().any(|shell| file.path.starts_with(shell)) {
            continue;
        }
        for (line, text) in numbered(&rust.code) {
            if has_word(text, "linerate_sock") {
                let remedy = "time and frames are arguments there; what touches the system belongs to crates/emu/src/shell";
                problems.push(Problem::new(&file.path, line, "a stage that names the system", remedy));
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
    fn only_the_shell_names_sock() {
        let text = "// linerate_sock is a word\nuse linerate_sock::clock;\n";
        assert_eq!(found(check, &[("crates/emu/src/port.rs", text)]), ["crates/emu/src/port.rs:2"]);
        assert!(found(check, &[("crates/emu/src/shell/switch.rs", text)]).is_empty());
        assert!(found(check, &[("crates/engine/src/run.rs", text)]).is_empty());
    }
}
