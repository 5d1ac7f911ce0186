//! Secrets in files.

use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Largest file of a secret, bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Why a file gives no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretFileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is no file for a secret.
    #[error("the file is too large for a token")]
    TooLarge,
    /// Its content is no secret of this kind.
    #[error(transparent)]
    Content(Box<dyn Error + Send + Sync>),
}

/// Reads the secret in a file.
///
/// # Errors
/// The file cannot be read, or `parse` refuses its content.
pub fn read_secret<T, E: Error + Send + Sync + 'static>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, SecretFileError> {
    // The size of a device is not known.
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(SecretFileError::TooLarge);
    }
    parse(&text).map_err(|error| SecretFileError::Content(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_reason_is_that_of_the_file_or_of_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let number = |text: &str| text.trim().parse::<u32>();
        assert!(matches!(read_secret(&path, number), Err(SecretFileError::Read(_))));
        fs::write(&path, "7\n").unwrap();
        assert_eq!(read_secret(&path, number).unwrap(), 7);
        fs::write(&path, "x").unwrap();
        assert!(read_secret(&path, number).unwrap_err().to_string().contains("invalid digit"));
        fs::write(&path, vec![b'1'; 1 << 17]).unwrap();
        assert!(matches!(read_secret(&path, number), Err(SecretFileError::TooLarge)));
        let endless = read_secret(Path::new("/dev/zero"), number);
        assert!(matches!(endless, Err(SecretFileError::TooLarge)), "{endless:?}");
    }
}
