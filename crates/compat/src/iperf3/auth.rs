//! Logins: a name, a password and the time, encrypted with the server's public key.
//!
//! The key is RSA. The padding is OAEP with SHA-1 since iperf3 3.17, and PKCS#1 v1.5 before. With PKCS#1 v1.5
//! an attacker can detect by timing whether a message was well-formed (CVE-2024-26306), so a server accepts it
//! only if configured to.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use linerate_units::Span;
use rand::RngCore;
use rsa::pkcs1::{DecodeRsaPrivateKey, DecodeRsaPublicKey};
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey};
use rsa::sha2::{Digest, Sha256};
use rsa::{Oaep, Pkcs1v15Encrypt, RsaPrivateKey, RsaPublicKey};

/// Longest line of a users file that is considered.
const MAX_LINE_BYTES: usize = 1023;

/// The key cannot be used: the text is not a PEM key, or one of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not an RSA key in PEM, or it has a passphrase; give a key created by \"openssl genrsa\"")]
pub struct BadKey;

/// The credentials of a client.
#[derive(Debug, Clone)]
pub struct Login {
    name: String,
    password: String,
    key: RsaPublicKey,
    pkcs1: bool,
}

impl Login {
    /// `key` is the server's public key in PEM; `pkcs1` selects the padding of servers before 3.17.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn new(name: &str, password: &str, key: &str, pkcs1: bool) -> Result<Self, BadKey> {
        let key = RsaPublicKey::from_public_key_pem(key)
            .or_else(|_| RsaPublicKey::from_pkcs1_pem(key))
            .map_err(|_| BadKey)?;
        Ok(Self { name: name.to_owned(), password: password.to_owned(), key, pkcs1 })
    }

    /// The token for a test that begins now; absent if name and password are too long for the key.
    pub(super) fn token(&self, unix_seconds: u64, random: impl RngCore) -> Option<String> {
        let plain = format!("user: {}\npwd:  {}\nts:   {unix_seconds}", self.name, self.password);
        let mut random = Random(random);
        let sealed = if self.pkcs1 {
            self.key.encrypt(&mut random, Pkcs1v15Encrypt, plain.as_bytes())
        } else {
            self.key.encrypt(&mut random, Oaep::new::<sha1::Sha1>(), plain.as_bytes())
        };
        sealed.ok().map(|sealed| STANDARD.encode(sealed))
    }
}

/// Decides which users may test.
pub struct Authenticator {
    key: RsaPrivateKey,
    users: Box<dyn FnMut() -> String + Send>,
    skew: Span,
    pkcs1: bool,
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("skew", &self.skew).field("pkcs1", &self.pkcs1).finish_non_exhaustive()
    }
}

impl Authenticator {
    /// `key` is the private key in PEM. `users` reads the users file again for every test. `skew` is the
    /// largest allowed difference between the clocks of both ends. `pkcs1` also accepts tokens of clients
    /// before 3.17.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn new(
        key: &str,
        users: Box<dyn FnMut() -> String + Send>,
        skew: Span,
        pkcs1: bool,
    ) -> Result<Self, BadKey> {
        let key = RsaPrivateKey::from_pkcs8_pem(key)
            .or_else(|_| RsaPrivateKey::from_pkcs1_pem(key))
            .map_err(|_| BadKey)?;
        Ok(Self { key, users, skew, pkcs1 })
    }

    /// Returns the user name of a valid token.
    pub(super) fn admits(&mut self, token: &str, unix_seconds: u64, random: impl RngCore) -> Option<String> {
        let sealed = STANDARD.decode(token.trim()).ok()?;
        let plain = self.open(&sealed, random)?;
        let (name, password, sent) = parse(&plain)?;
        let skew = Span::from_secs(unix_seconds.abs_diff(sent));
        let known = is_known(&(self.users)(), name, password);
        (known && skew <= self.skew).then(|| name.to_owned())
    }

    fn open(&self, sealed: &[u8], random: impl RngCore) -> Option<String> {
        let mut random = Random(random);
        let oaep = self.key.decrypt_blinded(&mut random, Oaep::new::<sha1::Sha1>(), sealed);
        let plain = match oaep {
            Err(_) if self.pkcs1 => self.key.decrypt_blinded(&mut random, Pkcs1v15Encrypt, sealed),
            other => other,
        };
        String::from_utf8(plain.ok()?).ok()
    }
}

/// Splits a decrypted token into name, password and time.
fn parse(plain: &str) -> Option<(&str, &str, u64)> {
    let mut words = plain.split_ascii_whitespace();
    let mut after = |label| (words.next()? == label).then(|| words.next()).flatten();
    let (name, password, sent) = (after("user:")?, after("pwd:")?, after("ts:")?);
    Some((name, password, sent.parse().ok()?))
}

/// Whether a users file has this name with this password. The digest is the SHA-256 of `{NAME}PASSWORD`.
fn is_known(users: &str, name: &str, password: &str) -> bool {
    let digest = Sha256::digest(format!("{{{name}}}{password}"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines = users.lines().filter(|line| !line.starts_with('#') && line.len() <= MAX_LINE_BYTES);
    let mut entries = lines.filter_map(|line| line.trim_end_matches('\r').split_once(','));
    entries.any(|(user, known)| user == name && known == digest)
}

/// Adapts a random generator to the interface of the RSA library.
struct Random<R>(R);

impl<R: RngCore> rsa::rand_core::RngCore for Random<R> {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rsa::rand_core::Error> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

/// The generator is cryptographically secure: both roles get an unguessable seed.
impl<R: RngCore> rsa::rand_core::CryptoRng for Random<R> {}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    const PRIVATE: &str = include_str!("../../../../fixtures/transcripts/iperf3/login-private.pem");
    const PUBLIC: &str = include_str!("../../../../fixtures/transcripts/iperf3/login-public.pem");
    const TOKENS: &str = include_str!("../../../../fixtures/transcripts/iperf3/login-tokens.txt");
    /// Times in the recorded tokens.
    const OAEP_AT: u64 = 1_795_287_965;
    const PKCS1_AT: u64 = 1_795_320_660;

    /// SHA-256 of `{mario}rossi`, from the documentation of iperf3.
    const USERS: &str = "# comment,bf7a\nno comma\nluigi,00\n\
        mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\r\n";

    fn gate(pkcs1: bool) -> Authenticator {
        Authenticator::new(PRIVATE, Box::new(|| USERS.to_owned()), Span::from_secs(10), pkcs1).unwrap()
    }

    fn random() -> StdRng {
        StdRng::seed_from_u64(1)
    }

    fn recorded(at: usize) -> &'static str {
        TOKENS.lines().nth(at).unwrap()
    }

    #[test]
    fn tokens_of_openssl_and_of_the_real_client_open_the_gate() {
        let mario = Some("mario".to_owned());
        assert_eq!(gate(false).admits(recorded(1), OAEP_AT, random()), mario);
        assert_eq!(gate(true).admits(recorded(1), OAEP_AT, random()), mario);
        assert_eq!(gate(true).admits(recorded(2), PKCS1_AT, random()), mario);
        assert_eq!(
            gate(false).admits(recorded(2), PKCS1_AT, random()),
            None,
            "the old padding must be asked for"
        );
    }

    #[test]
    fn a_token_is_good_for_some_seconds() {
        for (skew, good) in [(-11, false), (-10, true), (0, true), (10, true), (11, false)] {
            let now = OAEP_AT.saturating_add_signed(skew);
            assert_eq!(gate(false).admits(recorded(1), now, random()).is_some(), good, "{skew}");
        }
    }

    #[test]
    fn our_tokens_open_our_gate_with_the_right_password_only() {
        for pkcs1 in [false, true] {
            for (password, good) in [("rossi", true), ("verdi", false), ("", false)] {
                let token = Login::new("mario", password, PUBLIC, pkcs1).unwrap().token(7, random()).unwrap();
                assert_eq!(token.len(), 344);
                assert_eq!(gate(pkcs1).admits(&token, 7, random()).is_some(), good, "{password}");
            }
        }
        let luigi = Login::new("luigi", "rossi", PUBLIC, false).unwrap().token(7, random()).unwrap();
        assert_eq!(gate(false).admits(&luigi, 7, random()), None);
        let long = "x".repeat(300);
        assert_eq!(Login::new("mario", &long, PUBLIC, false).unwrap().token(7, random()), None);
    }

    #[test]
    fn garbage_opens_nothing() {
        for token in ["", "AAAA", "not base64!", &"A".repeat(344), &recorded(1)[4..]] {
            assert_eq!(gate(true).admits(token, OAEP_AT, random()), None, "{token:.20}");
        }
        assert_eq!(Login::new("mario", "rossi", "no key", false).unwrap_err(), BadKey);
        assert!(Authenticator::new(PUBLIC, Box::new(String::new), Span::ZERO, false).is_err());
    }
}
