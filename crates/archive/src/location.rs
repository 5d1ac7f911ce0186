//! Location of the archive.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::{Archive, ArchiveError};

/// The archive of this user: `archive.sqlite` among the user's data.
///
/// # Errors
/// As for [`data_file`].
pub fn default_path() -> Result<PathBuf, ArchiveError> {
    data_file("archive.sqlite")
}

/// The path of a file with this name among the data of this user: in the folder `linerate` of the data directory
/// (`$XDG_DATA_HOME`, else `~/.local/share`).
///
/// # Errors
/// If the user has no home directory, or its path is relative: the location of the file would then depend on the
/// current directory.
pub fn data_file(name: &str) -> Result<PathBuf, ArchiveError> {
    let strategy = etcetera::choose_base_strategy().map_err(|_| ArchiveError::NoHome)?;
    let folder = strategy.data_dir();
    if folder.is_relative() {
        return Err(ArchiveError::RelativeHome { home: strategy.home_dir().to_owned() });
    }
    Ok(folder.join("linerate").join(name))
}

/// Opens the archive at `location`: the path of an SQLite file, which is created if it is missing, or the URL of a
/// PostgreSQL database.
///
/// # Errors
/// If `location` is another URL, or the archive cannot be used.
pub fn open(location: &str) -> Result<Archive, ArchiveError> {
    match location.split_once("://") {
        Some((scheme, _)) => open_url(scheme, location),
        None => Archive::open(path_of(location)?),
    }
}

/// The path at `location`. SQLite makes a file that is gone when it is closed if there is none.
fn path_of(location: &str) -> Result<&Path, ArchiveError> {
    match location {
        "" => Err(ArchiveError::NoLocation),
        path => Ok(Path::new(path)),
    }
}

fn open_url(scheme: &str, url: &str) -> Result<Archive, ArchiveError> {
    let is_postgres = matches!(scheme, "postgres" | "postgresql");
    #[cfg(feature = "postgres")]
    if is_postgres {
        // As psql does; it keeps the password out of lists of processes.
        let variable = |name: &str| std::env::var(name).ok();
        let database = crate::postgres::PostgresDatabase::open(url, variable)?;
        return Ok(Archive::new(crate::database::Database::Postgres(Box::new(database))));
    }
    let why = match (is_postgres, cfg!(feature = "postgres")) {
        (true, _) => "this build has no PostgreSQL; give the path of an SQLite file",
        (false, true) => "give the path of an SQLite file or postgres://HOST/DATABASE",
        (false, false) => "give the path of an SQLite file",
    };
    Err(ArchiveError::Unsupported { url: without_password(url), why: why.to_owned() })
}

/// A URL as messages show it: without user, password and parameters.
pub(crate) fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    // The part before the last @ of the authority is a name and perhaps a password.
    let server = rest.rsplit_once('@').map_or(rest, |(_, server)| server);
    let server = server.split_once('?').map_or(server, |(server, _)| server);
    format!("{scheme}://{server}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_name_nor_password_nor_parameters_are_shown() {
        for (url, shown) in [
            ("postgres://me:se@cret@db.example/linerate", "postgres://db.example/linerate"),
            ("postgresql://db/x?password=secret", "postgresql://db/x"),
            ("postgres:///x", "postgres:///x"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn the_default_is_a_file_of_ours_in_the_data_directory() {
        let path = default_path().unwrap();
        assert!(path.ends_with("linerate/archive.sqlite"), "{}", path.display());
        assert!(path.is_absolute());
    }

    #[test]
    fn other_urls_are_refused_without_their_passwords() {
        let error = open("mysql://me:secret@db.example/linerate").unwrap_err().to_string();
        assert!(error.contains("mysql://db.example/linerate") && error.contains("SQLite file"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
