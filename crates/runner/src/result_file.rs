//! Files with results of other programs, or standard input for `-`.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Whether a path means standard input.
#[must_use]
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The content of a file.
///
/// # Errors
/// It cannot be read, or has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if is_stdin(path) {
        read_bounded(io::stdin().lock(), most)
    } else {
        read_bounded(File::open(path)?, most)
    }
}

fn read_bounded(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("it is larger than {} MiB; split it", most >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// The time at which a file was last changed, RFC 3339; now if that is unknown.
#[must_use]
pub fn time(path: &Path) -> String {
    let changed = fs::metadata(path).and_then(|about| about.modified()).ok().filter(|_| !is_stdin(path));
    let time = changed.and_then(|time| jiff::Timestamp::try_from(time).ok());
    let time = time.and_then(|time| time.round(jiff::Unit::Second).ok());
    time.map_or_else(crate::now, |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_large_is_refused_before_it_is_in_memory() {
        assert_eq!(read_bounded(&[7; 3][..], 3).unwrap(), [7; 3]);
        let error = read_bounded(io::repeat(0), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 1 MiB; split it");
    }
}
