//! Tests that are skipped because something that they need is missing.

use std::fs;
use std::io::Write;

/// Prints that a test is skipped and why, even if the output of tests is captured, and records it for `make test`
/// to count.
pub(crate) fn skipped(test: &str, why: &str) {
    let line = format!("skipped: {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped.txt");
    let mut list = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    list.write_all(line.as_bytes()).unwrap();
}
