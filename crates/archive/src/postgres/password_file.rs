//! Passwords in libpq's password file, which is `~/.pgpass` or named by `PGPASSFILE`.

use std::fs;
use std::path::{Path, PathBuf};

/// Port where the URL has none.
const DEFAULT_PORT: u16 = 5432;
/// A longer file is not one of passwords.
const MAX_BYTES: u64 = 1 << 20;

/// What a password is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PasswordNeed<'a> {
    /// Names or addresses of the servers, or the folders of their sockets, with their ports; one port may be for all.
    pub(super) hosts: &'a [String],
    pub(super) ports: &'a [u16],
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// The password that the file has for the hosts, if it is the same for all of them. `variable` reads the environment.
///
/// As with libpq, a file is not used if others may read it.
pub(super) fn find(need: PasswordNeed<'_>, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let path = location(variable)?;
    let metadata = fs::metadata(&path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES || is_readable_by_others(&path) {
        return None;
    }
    find_in(&fs::read_to_string(&path).ok()?, need)
}

fn location(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let given = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(file) = given("PGPASSFILE") {
        return Some(file.into());
    }
    if cfg!(windows) {
        return Some(Path::new(&given("APPDATA")?).join("postgresql").join("pgpass.conf"));
    }
    Some(Path::new(&given("HOME")?).join(".pgpass"))
}

#[cfg(unix)]
fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &Path) -> bool {
    false
}

fn find_in(text: &str, need: PasswordNeed<'_>) -> Option<String> {
    let port = |at: usize| need.ports.get(at).or(need.ports.first()).copied().unwrap_or(DEFAULT_PORT);
    let mut passwords = need.hosts.iter().enumerate().map(|(at, host)| {
        let wanted = [host.as_str(), &port(at).to_string(), need.database, need.user];
        text.lines().find_map(|line| password_of(line, wanted))
    });
    let first = passwords.next()??;
    // The client library has one password for all, and no host should see that of another.
    passwords.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// The password of a line `HOST:PORT:DATABASE:USER:PASSWORD` if all before it is `*` or what is wanted.
fn password_of(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut rest = line;
    for wanted in wanted {
        let (field, after) = split_field(rest)?;
        if rest.strip_prefix("*:").is_none() && field != wanted {
            return None;
        }
        rest = after;
    }
    let password = split_field(rest).map_or_else(|| unescaped(rest), |(password, _)| password);
    Some(password).filter(|password| !password.is_empty())
}

/// The text before the next colon that has no backslash before it, and what follows.
fn split_field(text: &str) -> Option<(String, &str)> {
    let mut escaped = false;
    let end = text.find(|character: char| {
        let ends = character == ':' && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    })?;
    Some((unescaped(&text[..end]), &text[end + 1..]))
}

/// The text without the backslashes that protect a character.
fn unescaped(text: &str) -> String {
    let mut characters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        plain.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# host:port:database:user:secret\n\
                        db.example.org:5432:runs:me:first\n\
                        db.example.org:*:*:me:second\n\
                        \\:\\:1:5433:runs:me:of an address\n\
                        /run/my\\:folder:5432:*:*:of a socket\n\
                        *:*:runs:a\\:b\\\\:p\\:w\\\\d\n\
                        localhost:5432:*:me:\n\
                        too:few:fields\n";

    fn password(host: &str, port: u16, database: &str, user: &str) -> Option<String> {
        find_in(FILE, PasswordNeed { hosts: &[host.to_owned()], ports: &[port], database, user })
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        for (host, port, database, user, expected) in [
            ("db.example.org", 5432, "runs", "me", Some("first")),
            ("db.example.org", 5432, "other", "me", Some("second")),
            ("db.example.org", 6000, "runs", "me", Some("second")),
            ("db.example.org", 5432, "runs", "you", None),
            ("::1", 5433, "runs", "me", Some("of an address")),
            ("/run/my:folder", 5432, "x", "y", Some("of a socket")),
            ("elsewhere", 1, "runs", "a:b\\", Some("p:w\\d")),
            ("localhost", 5432, "runs", "me", None),
            ("# host", 5432, "database", "user", None),
        ] {
            let found = password(host, port, database, user);
            assert_eq!(found.as_deref(), expected, "{host} {port} {database} {user}");
        }
    }

    #[test]
    fn no_host_sees_the_password_of_another() {
        let found = |hosts: &[&str], ports: &[u16]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            find_in(FILE, PasswordNeed { hosts: &hosts, ports, database: "runs", user: "me" })
        };
        let db = "db.example.org";
        assert_eq!(found(&[db], &[]).as_deref(), Some("first"), "5432 is the default");
        assert_eq!(found(&[db, db], &[5433]).as_deref(), Some("second"), "one port is for all");
        assert_eq!(found(&[db, db], &[5432, 5433]), None);
        assert_eq!(found(&[db, "::1"], &[5433]), None);
        assert_eq!(found(&[db, "a"], &[]), None);
        assert_eq!(found(&[], &[]), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".pgpass");
        fs::write(&file, FILE).unwrap();
        let home = folder.path().display().to_string();
        let find = |mode: u32| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let hosts = ["db.example.org".to_owned()];
            let need = PasswordNeed { hosts: &hosts, ports: &[], database: "runs", user: "me" };
            find(need, |name| (name == "HOME").then(|| home.clone()))
        };
        assert_eq!(find(0o600).as_deref(), Some("first"));
        assert_eq!(find(0o640), None);
        assert_eq!(find(0o604), None);
    }
}
