//! Location of the archive.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::{ArchiveError, SqliteArchive};

/// The archive of this user: `linerate/archive.sqlite` in the data directory (`$XDG_DATA_HOME`, else
/// `~/.local/share`).
///
/// # Errors
/// If the user has no home directory, or its path is relative: the location of the archive would then depend on
/// the current directory.
pub fn default_path() -> Result<PathBuf, ArchiveError> {
    let strategy = etcetera::choose_base_strategy().map_err(|_| ArchiveError::NoHome)?;
    let folder = strategy.data_dir();
    if folder.is_relative() {
        return Err(ArchiveError::RelativeHome { home: strategy.home_dir().to_owned() });
    }
    Ok(folder.join("linerate").join("archive.sqlite"))
}

/// Opens the archive at `location`: the path of an SQLite file, which is created if it is missing.
///
/// # Errors
/// If `location` is the URL of a server, and as for [`SqliteArchive::open`].
pub fn open(location: &str) -> Result<SqliteArchive, ArchiveError> {
    if let Some((scheme, rest)) = location.split_once("://") {
        // The part before the last @ of the authority is a name and perhaps a password.
        let shown = rest.rsplit_once('@').map_or(rest, |(_, server)| server);
        return Err(ArchiveError::Unsupported { url: format!("{scheme}://{shown}") });
    }
    SqliteArchive::open(Path::new(location))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_a_file_of_ours_in_the_data_directory() {
        let path = default_path().unwrap();
        assert!(path.ends_with("linerate/archive.sqlite"), "{}", path.display());
        assert!(path.is_absolute());
    }
}
