//! Secrets in files.

use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use linerate_sock::files::permission_bits;

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

/// Why a file that this program keeps for itself cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateFileError {
    /// It cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Other users may read or write it.
    #[error("other users may read or write {path} (its mode is {mode:o}); type: chmod 600 {path}", path = path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It has more bytes than such a file can have.
    #[error("{} has more than {limit} bytes, so it is not the file that is expected", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Most bytes.
        limit: u64,
    },
}

/// Reads a file that only its owner may read and write; absent if there is none.
///
/// # Errors
/// It cannot be read, is too long, or others may read or write it.
pub fn read_private(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, PrivateFileError> {
    let fail = |source| PrivateFileError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    // Of the file that is open, not of one that has replaced it.
    let mode = permission_bits(&file.metadata().map_err(fail)?);
    if let Some(mode) = mode.filter(|mode| mode & 0o077 != 0) {
        return Err(PrivateFileError::Exposed { path: path.to_owned(), mode });
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content).map_err(fail)?;
    if content.len() as u64 > limit {
        return Err(PrivateFileError::TooLong { path: path.to_owned(), limit });
    }
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_private_file_that_others_may_read_is_refused_with_the_command_that_helps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        assert!(matches!(read_private(&path, 9), Ok(None)));
        fs::write(&path, "seven").unwrap();
        for mode in [0o640, 0o602, 0o644] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = read_private(&path, 9).unwrap_err().to_string();
            assert!(error.contains(&format!("chmod 600 {}", path.display())), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_private(&path, 9).unwrap().as_deref(), Some(&b"seven"[..]));
        assert!(matches!(read_private(&path, 4), Err(PrivateFileError::TooLong { limit: 4, .. })));
        assert!(matches!(
            read_private(folder.path(), 4),
            Err(PrivateFileError::Exposed { .. } | PrivateFileError::Read { .. })
        ));
    }

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
