//! Modules of one crate of which one is above the other: the lower one must not name the upper one.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;

/// The lower module (the beginning of its files' paths), and the upper one as its code would name it.
const TABLE: &[(&str, &str)] = &[
    // Commands join shared arguments with what they do, and the command line joins the commands.
    ("crates/app/src/args", "crate::cmd"),
    ("crates/app/src/args", "crate::cli"),
    ("crates/app/src/cmd", "crate::cli"),
    // What prints, reads and fails for all commands.
    ("crates/app/src/archive", "crate::cmd"),
    ("crates/app/src/command_error", "crate::cmd"),
    ("crates/app/src/output_format", "crate::cmd"),
    ("crates/app/src/print", "crate::cmd"),
    ("crates/app/src/stdout", "crate::cmd"),
    // A server uses stand-ins.
    ("crates/control/src/stand_in", "crate::server"),
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files() {
        let uppers = TABLE.iter().filter(|(lower, _)| file.path.starts_with(lower)).map(|(_, upper)| *upper);
        for upper in uppers {
            let named = |text: &str| {
                text.match_indices(upper).any(|(at, _)| {
                    let next = text.get(at + upper.len()..).and_then(|rest| rest.chars().next());
                    !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
                })
            };
            for (line, text) in numbered(&rust.code) {
                if named(text) && !rust.is_test_line(line) {
                    let remedy = "pass it as an argument, or move what both need to a third module";
                    problems.push(Problem::new(&file.path, line, format!("it names {upper}"), remedy));
                }
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
    fn a_lower_module_does_not_name_an_upper_one_except_in_tests() {
        let text = "//! See crate::server.\nuse crate::server::Permit;\nuse crate::server_ports::SharedServerPort;\n\
                    #[cfg(test)]\nmod tests { use crate::server::Server; }\n";
        assert_eq!(
            found(check, &[("crates/control/src/stand_in/links.rs", text)]),
            ["crates/control/src/stand_in/links.rs:2"]
        );
        assert!(found(check, &[("crates/control/src/calibrate.rs", text)]).is_empty());
    }
}
