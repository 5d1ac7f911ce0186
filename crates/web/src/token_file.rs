//! The file of the tokens: their names, abilities and digests, but none of the tokens.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params};
use linerate_runner::{
    PrivateFileError, day_or_time, in_days, local_time, now, read_private, whole_private_file,
};

use crate::access::Ability;
use crate::share_key::ShareKeyError;

/// First line of the file.
const SCHEMA: &str = "linerate.tokens/1";
/// The second one, for readers.
const COLUMNS: &str = "# name ability id made digest [until]";
/// Beginning of every token, so that one that was published can be found.
const PREFIX: &str = "lr_";
/// Bytes of the part of a token that selects its line, and of its secret.
const ID_BYTES: usize = 4;
const SECRET_BYTES: usize = 32;
/// Most tokens.
const MAX_TOKENS: usize = 1000;
/// Longest name of a token.
const MAX_NAME_CHARS: usize = 64;
/// Largest file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most memory that a digest in the file may ask for, KiB, and most passes over it.
const MAX_MEMORY_KIB: u32 = 64 << 10;
const MAX_PASSES: u32 = 10;

/// A file of tokens. One that does not exist has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile {
    path: PathBuf,
}

/// A token as the file has it: without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenEntry {
    /// What the user calls it.
    pub name: String,
    /// The highest ability; it includes the lower ones.
    pub ability: Ability,
    /// The part of the token that is no secret.
    pub id: String,
    /// When it was made, in RFC 3339 format.
    pub made: String,
    /// Argon2id, in PHC format.
    digest: String,
    /// When it ceases to be valid, in RFC 3339 format; absent for never.
    pub until: Option<String>,
}

/// Why tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The user has no directory for data.
    #[error(
        "the default file of tokens is in the user's data directory, and there is none ({0}); give --tokens FILE"
    )]
    NoFolder(String),
    /// The file that was named does not exist.
    #[error("there is no file {path}; make its first token with: linerate token add NAME --ability admin --tokens {path}", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read, or others can read it.
    #[error(transparent)]
    Read(#[from] PrivateFileError),
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not what `linerate token` writes.
    #[error("{}:{line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong, and the remedy.
        why: String,
    },
    /// A name cannot be that of a token.
    #[error("'{0}' is no name for a token: give 1 to {MAX_NAME_CHARS} letters, digits, '.', '-' or '_'")]
    Name(String),
    /// The name is taken.
    #[error(
        "there is already a token '{0}'; choose another name, or remove it with: linerate token remove {0}"
    )]
    Taken(String),
    /// Nothing has this name.
    #[error("there is no token '{name}' in {}; `linerate token list` shows all of them", path.display())]
    Unknown {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// The key of shared links cannot be replaced.
    #[error(transparent)]
    Shares(#[from] ShareKeyError),
    /// There are too many.
    #[error("there are already {MAX_TOKENS} tokens; remove one that is no longer used")]
    Full,
    /// The host has no random numbers, or the digest cannot be computed.
    #[error("cannot make a token: {0}")]
    Make(String),
}

impl TokenFileError {
    /// Whether the request or the file has to be corrected; otherwise this host is to blame.
    #[must_use]
    pub fn needs_correction(&self) -> bool {
        !matches!(self, Self::Write { .. } | Self::Make(_) | Self::Shares(_))
    }
}

impl TokenFile {
    /// The tokens in a file; without one, in `linerate/tokens` of the user's data directory.
    ///
    /// # Errors
    /// The user has no data directory.
    pub fn new(path: Option<&Path>) -> Result<Self, TokenFileError> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => linerate_archive::data_file("tokens")
                .map_err(|error| TokenFileError::NoFolder(error.to_string()))?,
        };
        Ok(Self { path })
    }

    /// The tokens of a service. A file that the user names has to exist: without its tokens, the service could be open
    /// to everybody. A user without a data directory has no default file.
    ///
    /// # Errors
    /// There is no such file.
    pub fn of_service(path: Option<&Path>) -> Result<Option<Self>, TokenFileError> {
        match path {
            Some(path) if !path.exists() => Err(TokenFileError::Missing { path: path.to_owned() }),
            path => Ok(Self::new(path).ok()),
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tokens, as they were added.
    ///
    /// # Errors
    /// The file cannot be read, others may read it, or a line is damaged.
    pub fn list(&self) -> Result<Vec<TokenEntry>, TokenFileError> {
        let Some(content) = read_private(&self.path, MAX_FILE_BYTES)? else { return Ok(Vec::new()) };
        let text = String::from_utf8_lossy(&content);
        let wrong = |line, why| TokenFileError::Line { path: self.path.clone(), line, why };
        let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        if lines.next().is_none_or(|(_, first)| first != SCHEMA) {
            let why =
                format!("the first line is not {SCHEMA}, so `linerate token` has not written this file");
            return Err(wrong(1, why));
        }
        let mut entries: Vec<TokenEntry> = Vec::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let entry = TokenEntry::parse(line).map_err(|why| {
                let remedy = "remove the line, and make a new token with: linerate token add";
                wrong(number, format!("{why}; {remedy}"))
            })?;
            if entries.iter().any(|other| other.name == entry.name || other.id == entry.id) {
                let why =
                    format!("the name or id of '{}' is used twice; remove one of the lines", entry.name);
                return Err(wrong(number, why));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    /// A line for each token, below a head.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn table(&self) -> Result<String, TokenFileError> {
        let entries = self.list()?;
        let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or_default().max("name".len());
        let row = |name: &str, ability: &str, id: &str, made: &str, until: &str| {
            format!("{name:width$}  {ability:7}  {id:8}  {made:16}  {until}\n")
        };
        let now = now();
        let rows = entries.iter().map(|entry| {
            let until = match &entry.until {
                None => "never".to_owned(),
                Some(until) if entry.is_valid(&now) => local_time(until),
                Some(until) => format!("{} (over)", local_time(until)),
            };
            row(&entry.name, entry.ability.name(), &entry.id, &local_time(&entry.made), &until)
        });
        Ok([row("name", "ability", "id", "made", "expires")].into_iter().chain(rows).collect())
    }

    /// Adds a token, and returns it: it is in no file. It is valid for a number of days, or for ever.
    ///
    /// # Errors
    /// The name is taken or cannot be one, or the file cannot be read or written.
    pub fn add(&self, name: &str, ability: Ability, days: Option<u32>) -> Result<String, TokenFileError> {
        if !is_name(name) {
            return Err(TokenFileError::Name(name.to_owned()));
        }
        self.change(|entries| {
            if entries.iter().any(|entry| entry.name == name) {
                return Err(TokenFileError::Taken(name.to_owned()));
            }
            if entries.len() >= MAX_TOKENS {
                return Err(TokenFileError::Full);
            }
            let mut id = hex(&random::<ID_BYTES>()?);
            while entries.iter().any(|entry| entry.id == id) {
                id = hex(&random::<ID_BYTES>()?);
            }
            let token = format!("{PREFIX}{id}_{}", hex(&random::<SECRET_BYTES>()?));
            let digest = digest(&token).map_err(|error| TokenFileError::Make(error.to_string()))?;
            let until = days.map(in_days);
            entries.push(TokenEntry { name: name.to_owned(), ability, id, made: now(), digest, until });
            Ok(token)
        })
    }

    /// Removes a token. Services that use the file refuse it from then on.
    ///
    /// # Errors
    /// There is no such token, or the file cannot be read or written.
    pub fn remove(&self, name: &str) -> Result<(), TokenFileError> {
        self.change(|entries| {
            let count = entries.len();
            entries.retain(|entry| entry.name != name);
            if entries.len() < count {
                return Ok(());
            }
            Err(TokenFileError::Unknown { name: name.to_owned(), path: self.path.clone() })
        })
    }

    /// Changes the file while no other process does.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<TokenEntry>) -> Result<T, TokenFileError>,
    ) -> Result<T, TokenFileError> {
        let fail = |source| TokenFileError::Write { path: self.path.clone(), source };
        let folder = self.path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(fail)?;
        // The file itself is replaced, so a lock of it would be one of the old file.
        let lock = File::open(folder).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let mut entries = self.list()?;
        let done = change(&mut entries)?;
        let lines = entries.iter().map(TokenEntry::line);
        let text: String = [SCHEMA.to_owned(), COLUMNS.to_owned()]
            .into_iter()
            .chain(lines)
            .map(|line| line + "\n")
            .collect();
        whole_private_file(&self.path, text.as_bytes()).map_err(fail)?;
        Ok(done)
    }

    /// What changes with the file; absent if there is none.
    pub(crate) fn stamp(&self) -> Option<TokenFileStamp> {
        let data = fs::metadata(&self.path).ok()?;
        Some(TokenFileStamp {
            inode: (data.dev(), data.ino()),
            size: data.size(),
            // Changes with the content, the mode and the name.
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }
}

/// Tells a file from the one that it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenFileStamp {
    inode: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl TokenEntry {
    fn parse(line: &str) -> Result<Self, String> {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, ability, id, made, digest, ref until @ ..] = columns[..] else {
            return Err(format!("{} columns instead of 5 or 6", columns.len()));
        };
        if until.len() > 1 {
            return Err(format!("{} columns instead of 5 or 6", columns.len()));
        }
        if !is_name(name) {
            return Err(format!("'{}' is no name of a token", name.escape_debug()));
        }
        let Some(ability) = Ability::named(ability) else {
            return Err(format!("'{}' is no ability", ability.escape_debug()));
        };
        if id.len() != 2 * ID_BYTES || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("'{}' is no id of a token", id.escape_debug()));
        }
        if let Some(wrong) = [made].iter().chain(until).find(|time| day_or_time(time).is_none()) {
            return Err(format!("'{}' is no time", wrong.escape_debug()));
        }
        if !is_digest(digest) {
            return Err("the last column is no digest of a token".to_owned());
        }
        let [name, id, made, digest] = [name, id, made, digest].map(str::to_owned);
        let until = until.first().and_then(|until| day_or_time(until));
        Ok(Self { name, ability, id, made, digest, until })
    }

    fn line(&self) -> String {
        let Self { name, ability, id, made, digest, until } = self;
        let until = until.as_ref().map(|until| format!(" {until}")).unwrap_or_default();
        format!("{name} {} {id} {made} {digest}{until}", ability.name())
    }

    /// Whether it is valid at a time, in RFC 3339 format in UTC.
    pub(crate) fn is_valid(&self, now: &str) -> bool {
        self.until.as_deref().is_none_or(|until| now < until)
    }

    /// The id in a token.
    pub(crate) fn id_in(token: &str) -> Option<&str> {
        token.strip_prefix(PREFIX)?.split_once('_').map(|(id, _)| id)
    }

    /// Whether this is the token. Slow by design, and with much memory.
    pub(crate) fn is(&self, token: &str) -> bool {
        let digest = PasswordHash::new(&self.digest);
        digest.is_ok_and(|digest| Argon2::default().verify_password(token.as_bytes(), &digest).is_ok())
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    // Other commands could take a hyphen for an option, and a line that begins with # is a comment.
    !text.is_empty() && text.len() <= MAX_NAME_CHARS && text.chars().all(is_part) && !text.starts_with('-')
}

/// Argon2id of a token, with the default costs.
fn digest(token: &str) -> Result<String, argon2::password_hash::Error> {
    let salt = random::<16>().map_err(|_| argon2::password_hash::Error::Crypto)?;
    let salt = SaltString::encode_b64(&salt)?;
    Ok(Argon2::default().hash_password(token.as_bytes(), &salt)?.to_string())
}

/// Whether a text is a digest that does not cost more than ours: whoever tries a token pays with our time.
fn is_digest(text: &str) -> bool {
    let Ok(digest) = PasswordHash::new(text) else { return false };
    let cheap = |params: Params| params.m_cost() <= MAX_MEMORY_KIB && params.t_cost() <= MAX_PASSES;
    digest.algorithm == Algorithm::Argon2id.ident()
        && digest.hash.is_some()
        && Params::try_from(&digest).is_ok_and(cheap)
}

fn random<const N: usize>() -> Result<[u8; N], TokenFileError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| TokenFileError::Make(format!("no random numbers: {error}")))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file() -> (tempfile::TempDir, TokenFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("tokens");
        (folder, TokenFile::new(Some(&path)).unwrap())
    }

    #[test]
    fn a_token_is_added_found_by_its_id_and_removed() {
        let (_folder, file) = file();
        assert_eq!(file.list().unwrap(), []);
        let missing = TokenFile::of_service(Some(file.path())).unwrap_err().to_string();
        assert!(missing.contains("--tokens"), "{missing}");
        let token = file.add("laptop", Ability::Run, None).unwrap();
        let other = file.add("wall", Ability::View, None).unwrap();
        let entries = file.list().unwrap();
        assert_eq!(
            entries.iter().map(|entry| entry.ability).collect::<Vec<_>>(),
            [Ability::Run, Ability::View]
        );
        assert_eq!(TokenEntry::id_in(&token), Some(entries[0].id.as_str()));
        assert!(entries[0].is(&token) && !entries[0].is(&other) && !entries[0].is(&token[..token.len() - 1]));
        assert_eq!(token.len(), 3 + 8 + 1 + 64);
        let table = file.table().unwrap();
        assert!(
            table.starts_with("name    ability  id        made              expires\nlaptop  run      "),
            "{table}"
        );
        assert!(!table.contains(&token[12..]) && !table.contains("argon2"), "{table}");
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("$argon2id$") && !text.contains(&token[12..]), "{text}");
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(file.add("wall", Ability::Admin, None), Err(TokenFileError::Taken(_))));
        file.remove("laptop").unwrap();
        assert_eq!(file.list().unwrap(), entries[1..]);
        let unknown = file.remove("laptop").unwrap_err().to_string();
        assert!(unknown.contains("no token 'laptop'") && unknown.contains("token list"), "{unknown}");
        for name in ["", "two words", "-v", "#1", "a\n", "ä", &"x".repeat(65)] {
            assert!(matches!(file.add(name, Ability::View, None), Err(TokenFileError::Name(_))), "{name}");
        }
    }

    #[test]
    fn a_damaged_line_is_named() {
        let (_folder, file) = file();
        file.add("laptop", Ability::Run, None).unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        let good = text.lines().last().unwrap().to_owned();
        let made = file.list().unwrap().remove(0).made;
        let costly = good.replace("m=19456", "m=4194304");
        for (line, why) in [
            ("wall view", "2 columns instead of 5 or 6"),
            (&format!("{good} 2026-01-01 x"), "7 columns instead of 5 or 6"),
            (&format!("{good} soon"), "'soon' is no time"),
            (&good.replace("run", "all"), "'all' is no ability"),
            (&good.replace("$argon2id", "$argon2i"), "no digest"),
            (&good[..good.len() - 60], "no digest"),
            (&costly, "no digest"),
            (&good.replace(&made, "yesterday"), "'yesterday' is no time"),
            (&good, "used twice"),
        ] {
            whole_private_file(file.path(), format!("{text}\n{line}\n").as_bytes()).unwrap();
            let error = file.list().unwrap_err().to_string();
            let place = format!("{}:5: ", file.path().display());
            assert!(error.starts_with(&place) && error.contains(why), "{error}");
            // A damaged file is not replaced by one that lacks what could not be read.
            assert!(file.add("wall", Ability::View, None).is_err());
        }
        assert_ne!(costly, good);
        whole_private_file(file.path(), b"0123456789abcdef0123456789abcdef\n").unwrap();
        assert!(file.list().unwrap_err().to_string().contains(":1: the first line is not linerate.tokens/1"));
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(file.list().unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn a_token_with_an_end_is_valid_until_then_and_says_so() {
        let (_folder, file) = file();
        file.add("laptop", Ability::Run, None).unwrap();
        file.add("guest", Ability::View, Some(3)).unwrap();
        let [laptop, guest] = file.list().unwrap().try_into().unwrap();
        assert!(laptop.is_valid("9999-12-31T23:59:59Z"));
        let until = guest.until.clone().unwrap();
        assert!(guest.is_valid(&now()) && guest.is_valid(&in_days(2)), "{until}");
        assert!(!guest.is_valid(&until) && !guest.is_valid(&in_days(4)), "{until}");
        assert!(
            file.table().unwrap().lines().nth(1).unwrap().ends_with("  never"),
            "{}",
            file.table().unwrap()
        );
        // A day that a user wrote into the file ends at its beginning.
        let text = fs::read_to_string(file.path()).unwrap().replace(&until, "2026-01-01");
        whole_private_file(file.path(), text.as_bytes()).unwrap();
        assert!(
            file.table().unwrap().lines().nth(2).unwrap().ends_with(" (over)"),
            "{}",
            file.table().unwrap()
        );
        assert!(!file.list().unwrap()[1].is_valid(&now()));
    }

    #[test]
    fn tokens_that_are_added_at_the_same_moment_are_all_kept() {
        let (_folder, file) = file();
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let file = &file;
                scope.spawn(move || file.add(name, Ability::View, None).unwrap());
            }
        });
        let mut names: Vec<String> = file.list().unwrap().into_iter().map(|entry| entry.name).collect();
        names.sort();
        assert_eq!(names, ["a", "b", "c", "d"]);
    }
}
