//! Links that show one run to whoever has them: the secret in a link is made from the run's id and a key of this host.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use linerate_model::calendar::UnixTime;
use linerate_runner::{PrivateFileError, read_private, whole_private_file};
use linerate_sock::clock;
use sha2::Sha256;

/// Bytes of the key, and of the secret in a link.
const KEY_BYTES: usize = 32;
const SECRET_BYTES: usize = 16;
/// Bytes of the last day before the secret of a link that has one.
const DAY_BYTES: usize = 4;
/// What the key is used for comes first, so that no other use of it gives the same digest: a link for good, and one with a
/// last day.
const PURPOSE: &[u8] = b"linerate shared run 1\0";
const PURPOSE_WITH_DAY: &[u8] = b"linerate shared run 2\0";
/// Largest file of a key.
const MAX_FILE_BYTES: u64 = 1024;

/// The key of the links. It is made with the first link, and whoever replaces it makes all links void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareKey {
    path: PathBuf,
}

/// Why the key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShareKeyError {
    /// The user has no directory for data.
    #[error("the key of shared links is kept in the user's data directory, and there is none ({0})")]
    NoFolder(String),
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
    /// The file is not what this program writes.
    #[error("{} is not the key of shared links; replace it, and make all links void, with: linerate token rotate-shares", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The host has no random numbers.
    #[error("no random numbers for the key of shared links: {0}")]
    Random(String),
}

/// A day in UTC. Links end with a day, so that a run has one link for each time that it is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkDay(u32);

impl LinkDay {
    const MS: i64 = 24 * 3600 * 1000;

    pub(crate) fn today() -> Self {
        let days = clock::wall_ns() / 1_000_000_000 / (24 * 3600);
        Self(u32::try_from(days).unwrap_or(u32::MAX))
    }

    pub(crate) fn after(self, days: u16) -> Self {
        Self(self.0.saturating_add(days.into()))
    }

    /// The moment after it.
    pub(crate) fn end(self) -> UnixTime {
        UnixTime::from_ms((i64::from(self.0) + 1) * Self::MS)
    }
}

impl ShareKey {
    /// The key in a file; without one, in `linerate/web-share.key` of the user's data directory.
    ///
    /// # Errors
    /// The user has no data directory.
    pub fn new(path: Option<&Path>) -> Result<Self, ShareKeyError> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => linerate_archive::data_file("web-share.key")
                .map_err(|error| ShareKeyError::NoFolder(error.to_string()))?,
        };
        Ok(Self { path })
    }

    /// Replaces the default key of this user.
    ///
    /// # Errors
    /// The user has no data directory, or the file cannot be written.
    pub fn rotate_default() -> Result<(), ShareKeyError> {
        Self::new(None)?.rotate()
    }

    /// Replaces the key: all links that were made until now are void.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn rotate(&self) -> Result<(), ShareKeyError> {
        self.make().map(|_| ())
    }

    fn make(&self) -> Result<[u8; KEY_BYTES], ShareKeyError> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|error| ShareKeyError::Random(error.to_string()))?;
        let fail = |source| ShareKeyError::Write { path: self.path.clone(), source };
        let text = format!("{}\n", URL_SAFE_NO_PAD.encode(key));
        whole_private_file(&self.path, text.as_bytes()).map_err(fail)?;
        Ok(key)
    }

    /// Read each time, as it may have been replaced; absent if there is none.
    fn read(&self) -> Result<Option<[u8; KEY_BYTES]>, ShareKeyError> {
        let Some(content) = read_private(&self.path, MAX_FILE_BYTES)? else { return Ok(None) };
        let key = URL_SAFE_NO_PAD.decode(content.trim_ascii()).ok().and_then(|key| key.try_into().ok());
        key.map(Some).ok_or_else(|| ShareKeyError::Damaged { path: self.path.clone() })
    }

    /// The secret of the link to a run, which is valid until the end of a day, or for good. Makes the key if there is none.
    pub(crate) fn secret(&self, run: &str, last_day: Option<LinkDay>) -> Result<String, ShareKeyError> {
        let key = match self.read()? {
            Some(key) => key,
            None => self.make()?,
        };
        let mut secret = last_day.map_or_else(Vec::new, |day| day.0.to_be_bytes().to_vec());
        let digest = mac(&key, run, last_day).map(|mac| mac.finalize().into_bytes()).unwrap_or_default();
        secret.extend(&digest[..SECRET_BYTES]);
        Ok(URL_SAFE_NO_PAD.encode(secret))
    }

    /// Whether this is the secret of a link to a run that is valid today.
    pub(crate) fn is_secret(&self, run: &str, secret: &str, today: LinkDay) -> Result<bool, ShareKeyError> {
        let Some(key) = self.read()? else { return Ok(false) };
        let Ok(secret) = URL_SAFE_NO_PAD.decode(secret) else { return Ok(false) };
        let (last_day, digest) = match secret.split_first_chunk::<DAY_BYTES>() {
            Some((day, digest)) if digest.len() == SECRET_BYTES => {
                (Some(LinkDay(u32::from_be_bytes(*day))), digest)
            }
            _ => (None, secret.as_slice()),
        };
        let is_past = last_day.is_some_and(|day| day < today);
        let mac = mac(&key, run, last_day).filter(|_| digest.len() == SECRET_BYTES && !is_past);
        Ok(mac.is_some_and(|mac| mac.verify_truncated_left(digest).is_ok()))
    }
}

/// A key of any length is one for HMAC, so this is never absent.
fn mac(key: &[u8], run: &str, last_day: Option<LinkDay>) -> Option<Hmac<Sha256>> {
    let mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    let mac = match last_day {
        Some(day) => mac.chain_update(PURPOSE_WITH_DAY).chain_update(day.0.to_be_bytes()),
        None => mac.chain_update(PURPOSE),
    };
    Some(mac.chain_update(run.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const DAY: LinkDay = LinkDay(20_785);

    #[test]
    fn a_link_with_a_last_day_ends_with_it_and_the_day_cannot_be_changed() {
        let folder = tempfile::tempdir().unwrap();
        let key = ShareKey::new(Some(&folder.path().join("share.key"))).unwrap();
        let last = DAY.after(7);
        let secret = key.secret("eb5dd9d31af4b587", Some(last)).unwrap();
        let is_valid = |secret: &str, day| key.is_secret("eb5dd9d31af4b587", secret, day).unwrap();
        assert!(is_valid(&secret, DAY) && is_valid(&secret, last) && !is_valid(&secret, last.after(1)));
        assert!(!key.is_secret("eb5dd9d31af4b588", &secret, DAY).unwrap());
        // Whoever has the link knows its digest, and cannot make a later day or none of it.
        let mut bytes = URL_SAFE_NO_PAD.decode(&secret).unwrap();
        assert!(!is_valid(&URL_SAFE_NO_PAD.encode(&bytes[DAY_BYTES..]), DAY));
        bytes[DAY_BYTES - 1] += 1;
        assert!(!is_valid(&URL_SAFE_NO_PAD.encode(&bytes), DAY));
        let for_good = key.secret("eb5dd9d31af4b587", None).unwrap();
        let for_good = [&last.0.to_be_bytes()[..], &URL_SAFE_NO_PAD.decode(for_good).unwrap()].concat();
        assert!(!is_valid(&URL_SAFE_NO_PAD.encode(for_good), DAY));
        assert_eq!(linerate_fleet::rfc3339(last.end()), "2026-12-06T00:00:00Z");
    }

    #[test]
    fn a_secret_is_for_one_run_until_the_key_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("share.key");
        let key = ShareKey::new(Some(&path)).unwrap();
        assert!(!key.is_secret("eb5dd9d31af4b587", "AAAAAAAAAAAAAAAAAAAAAA", DAY).unwrap());
        assert!(!path.exists(), "only a link that is made makes the key");
        let secret = key.secret("eb5dd9d31af4b587", None).unwrap();
        assert_eq!((secret.len(), key.secret("eb5dd9d31af4b587", None).unwrap()), (22, secret.clone()));
        assert!(key.is_secret("eb5dd9d31af4b587", &secret, DAY).unwrap());
        assert!(!key.is_secret("eb5dd9d31af4b588", &secret, DAY).unwrap());
        for wrong in ["", "A", &secret[..20], &format!("{secret}AA"), &secret.to_lowercase(), "../../etc"] {
            assert!(!key.is_secret("eb5dd9d31af4b587", wrong, DAY).unwrap(), "{wrong}");
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        key.rotate().unwrap();
        assert!(!key.is_secret("eb5dd9d31af4b587", &secret, DAY).unwrap());
        whole_private_file(&path, b"short").unwrap();
        let damaged = key.secret("eb5dd9d31af4b587", None).unwrap_err().to_string();
        assert!(damaged.contains("linerate token rotate-shares"), "{damaged}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(key.secret("eb5dd9d31af4b587", None).unwrap_err().to_string().contains("chmod 600"));
    }
}
