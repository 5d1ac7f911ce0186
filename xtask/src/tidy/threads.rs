//! Hosts may refuse threads, and the short forms of the standard library then panic: only one module may start
//! threads.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;

const ALLOWED_FILE: &str = "crates/sock/src/thread.rs";
/// A panic would also lose the results of long tasks.
const TASKS: &str = "xtask/src/";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files() {
        let ours = file.crate_name().is_some() || file.path.starts_with(TASKS);
        if file.is_test || !ours || file.path == ALLOWED_FILE {
            continue;
        }
        for (line, text) in numbered(&rust.code) {
            let starts = [
                "std::thread::spawn",
                "thread::Builder",
                "scope.spawn(",
                "use std::thread;",
                "std::thread::{self",
            ];
            if starts.iter().any(|start| text.contains(start)) && !rust.is_test_line(line) {
                let remedy =
                    "start it by linerate_sock::thread, and do what is right where the host refuses it";
                problems.push(Problem::new(&file.path, line, "a thread of the standard library", remedy));
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
    fn threads_are_started_in_one_place_but_for_those_of_tests() {
        let text = "fn a() { std::thread::spawn(|| ()); }\nfn b() { scope.spawn(|| ()); }\nuse std::thread;\n\
                    #[cfg(test)]\nmod tests { fn c() { std::thread::spawn(|| ()); } }\n";
        let path = "crates/engine/src/a.rs";
        assert_eq!(
            found(check, &[(path, text)]),
            ["crates/engine/src/a.rs:1", "crates/engine/src/a.rs:2", "crates/engine/src/a.rs:3"]
        );
        let task = "xtask/src/verdicts.rs";
        assert_eq!(found(check, &[(task, text)]).len(), 3, "a run of hours ends with a panic as well");
        assert!(found(check, &[(ALLOWED_FILE, text), ("crates/engine/tests/a.rs", text)]).is_empty());
    }
}
