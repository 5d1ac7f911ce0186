//! The example that needs root, as a program: its switch and its agents are processes of their own.

use std::path::PathBuf;
use std::process::{Command, Output};

use linerate_lab::StateDir;

/// Cargo builds the examples before the tests of this package.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let found = test.parent().unwrap().with_file_name("examples").join("plan_in_lab");
    assert!(found.exists(), "{found:?} is missing; cargo build -p linerate-runner --examples builds it");
    found
}

#[test]
#[ignore = "needs root"]
fn a_plan_runs_in_a_lab_whose_processes_are_roles_of_the_example_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let Output { status, stdout, stderr } = Command::new(example()).arg(folder.path()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{out}\n{err}");
    assert!(out.contains("ended as Some(Completed)"), "{out}\n{err}");
    // Two points in both directions.
    assert_eq!(out.lines().filter(|line| line.starts_with("point ")).count(), 4, "{out}");
    let labs = StateDir::open(Some(folder.path())).unwrap().labs().unwrap();
    assert!(labs.is_empty(), "{labs:?}");
}
