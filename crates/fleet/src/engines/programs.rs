//! Where the programs of the servers are, and their versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::server_user::ServerUser;
use super::{EnginePaths, LocalServerError};

const POSTGRES_REMEDY: &str = "install it, on Debian and Ubuntu with `apt install postgresql`, elsewhere with the \
                               package postgresql-server or postgresql, or give its folder with --postgres-bin";
pub(super) const NATS_REMEDY: &str = "get it with `go install github.com/nats-io/nats-server/v2@v2.15.3` or as a release from nats.io, and \
     put it into PATH or give it with --nats-server";
/// What is called of PostgreSQL: it makes the data, serves it, and sends signals.
const POSTGRES_PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_ctl"];
/// Where Debian has them: packages keep them out of PATH, because several versions may be installed.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";

/// The folder with the programs of PostgreSQL. Of several installed versions it is the preferred one, else that in PATH,
/// else the newest.
pub(super) fn find_postgres(
    paths: &EnginePaths,
    preferred: Option<&str>,
) -> Result<PathBuf, LocalServerError> {
    let missing =
        |program, searched| LocalServerError::Missing { program, searched, remedy: POSTGRES_REMEDY };
    if let Some(folder) = &paths.postgres_bin {
        let absent = POSTGRES_PROGRAMS.into_iter().find(|program| !folder.join(program).is_file());
        return match absent {
            Some(program) => Err(missing(program, folder.display().to_string())),
            None => folder.canonicalize().map_err(|source| super::unusable(folder, source)),
        };
    }
    let complete = |folder: &PathBuf| POSTGRES_PROGRAMS.iter().all(|one| folder.join(one).is_file());
    let debian = |version: &str| Some(Path::new(DEBIAN_FOLDER).join(version).join("bin")).filter(complete);
    let newest = || {
        let installed = fs::read_dir(DEBIAN_FOLDER).into_iter().flatten().flatten();
        let names = installed.filter_map(|version| version.file_name().into_string().ok());
        let folders = names.filter_map(|name| Some((name.parse::<f64>().ok()?, debian(&name)?)));
        folders.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, folder)| folder)
    };
    let found = preferred.and_then(debian).or_else(|| search_path().find(complete)).or_else(newest);
    found.ok_or_else(|| missing("PostgreSQL", format!("PATH or {DEBIAN_FOLDER}")))
}

/// The program of NATS.
pub(super) fn find_nats(paths: &EnginePaths) -> Result<PathBuf, LocalServerError> {
    let missing =
        |searched| LocalServerError::Missing { program: "nats-server", searched, remedy: NATS_REMEDY };
    match &paths.nats_server {
        Some(program) if program.is_file() => {
            program.canonicalize().map_err(|source| super::unusable(program, source))
        }
        Some(program) => Err(missing(program.display().to_string())),
        None => search_path()
            .map(|folder| folder.join("nats-server"))
            .find(|program| program.is_file())
            .ok_or_else(|| missing("PATH".to_owned())),
    }
}

/// The folders of PATH. Relative ones would depend on the current directory, which servers change.
fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect::<Vec<_>>().into_iter()
}

/// What a program prints for `--version`.
pub(super) fn version_text(program: &Path, user: Option<&ServerUser>) -> Result<String, LocalServerError> {
    let mut command = Command::new(program);
    // Every user may enter this folder.
    command.arg("--version").current_dir("/").stdin(Stdio::null());
    if let Some(user) = user {
        user.run(&mut command);
    }
    let output = command.output().map_err(|source| cannot_run(program, user, source))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

pub(super) fn cannot_run(
    program: &Path,
    user: Option<&ServerUser>,
    source: std::io::Error,
) -> LocalServerError {
    let user = user.map(|user| user.name.clone());
    LocalServerError::Program { program: program.to_owned(), user, source }
}

/// The major version in what PostgreSQL's programs print, as it is in the file `PG_VERSION` of data.
pub(super) fn postgres_major(output: &str) -> Option<String> {
    let version = output.split_once("(PostgreSQL) ")?.1;
    let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
    let first: u32 = numbers.next()?.parse().ok()?;
    // Until version 9.6, the first two numbers were the major version.
    if first >= 10 { Some(first.to_string()) } else { Some(format!("{first}.{}", numbers.next()?)) }
}

/// The version in what nats-server prints, and its first two numbers.
pub(super) fn nats_version(output: &str) -> Option<(String, (u32, u32))> {
    let text = output.split_once("nats-server: ")?.1.split_whitespace().next()?.trim_start_matches('v');
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((text.to_owned(), (numbers.next()??, numbers.next()??)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_programs_print_them() {
        for (output, major) in [
            ("postgres (PostgreSQL) 17.5 (Debian 17.5-1)\n", Some("17")),
            ("postgres (PostgreSQL) 18beta1\n", Some("18")),
            ("postgres (PostgreSQL) 9.6.24\n", Some("9.6")),
            ("postgres: cannot say\n", None),
        ] {
            assert_eq!(postgres_major(output).as_deref(), major, "{output}");
        }
        for (output, version) in [
            ("nats-server: v2.15.3\n", Some((2, 15))),
            ("nats-server: v2.11.0-dev\n", Some((2, 11))),
            ("gnatsd 1\n", None),
        ] {
            assert_eq!(nats_version(output).map(|(_, numbers)| numbers), version, "{output}");
        }
    }
}
