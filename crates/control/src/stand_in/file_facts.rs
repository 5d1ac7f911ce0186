//! What a tool has to know about a file that it sends or writes.

use std::fs;
use std::path::PathBuf;

use linerate_compat::iperf3::settings::Iperf3File;
use linerate_model::foreign_text::without_error_numbers;

/// What is known about the file at a path before a test.
#[must_use]
pub fn file_facts(path: PathBuf) -> Iperf3File {
    let found = fs::metadata(&path).ok();
    let special = found.as_ref().is_some_and(|found| !found.is_file());
    let bytes = found.map(|found| if special { 0 } else { found.len() });
    // Opening a pipe would wait for its writer.
    let opened = if special { Ok(()) } else { fs::File::open(&path).map(drop) };
    let unreadable = opened.err().map(|error| {
        (error.raw_os_error().unwrap_or(0), without_error_numbers(&error.to_string()).into_owned())
    });
    Iperf3File { path, bytes, special, unreadable }
}
