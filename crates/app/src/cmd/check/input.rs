//! Files and standard input, as text.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use linerate_compat::import;
use linerate_report::check::CheckInput;

/// Largest file to read, bytes.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Reads all files in order; an unreadable file does not stop the others.
pub(super) fn read_all(files: &[PathBuf], tool: Option<&str>) -> Vec<CheckInput> {
    files.iter().map(|path| read(path, tool)).collect()
}

fn read(path: &Path, tool: Option<&str>) -> CheckInput {
    let standard = path.as_os_str() == "-";
    let name = if standard { "standard input".to_owned() } else { path.display().to_string() };
    let bytes = if standard { limited(io::stdin().lock()) } else { File::open(path).and_then(limited) };
    let outcome = match bytes {
        Ok(bytes) => import::read(&import::text(&bytes), tool).map_err(|error| error.to_string()),
        Err(error) => Err(format!("it could not be read: {error}")),
    };
    match outcome {
        Ok(readings) => CheckInput { name, failure: None, readings },
        Err(why) => CheckInput { name, failure: Some(why), readings: Vec::new() },
    }
}

fn limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other("it is larger than 256 MiB; split it"));
    }
    Ok(bytes)
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
