//! Files and standard input, as results of programs.

use std::path::{Path, PathBuf};

use linerate_compat::import;
use linerate_report::check::CheckInput;
use linerate_runner::result_file;

/// Largest file to read, bytes.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Reads all files in order; an unreadable file does not stop the others.
pub(super) fn read_all(files: &[PathBuf], tool: Option<&str>) -> Vec<CheckInput> {
    files.iter().map(|path| read(path, tool)).collect()
}

fn read(path: &Path, tool: Option<&str>) -> CheckInput {
    let standard = result_file::is_stdin(path);
    let name = if standard { "standard input".to_owned() } else { path.display().to_string() };
    let outcome = match result_file::read(path, MAX_FILE_BYTES) {
        Ok(bytes) => import::read(&import::text(&bytes), tool).map_err(|error| error.to_string()),
        Err(error) => Err(format!("it could not be read: {error}")),
    };
    match outcome {
        Ok(readings) => CheckInput { name, failure: None, readings },
        Err(why) => CheckInput { name, failure: Some(why), readings: Vec::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_stops_nothing() {
        let found = read_all(&[PathBuf::from("/nowhere/at/all"), PathBuf::from("/")], None);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|input| input.failure.is_some()));
        assert!(found[0].name.contains("nowhere"));
    }
}
