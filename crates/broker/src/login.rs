//! Logging in at a broker, which sends a nonce to be signed.
//!
//! The key of a login may also sign messages. A broker must not get a signature of a text that it has chosen to look like
//! one of them, so nothing is signed that could be more than a nonce.

use std::future::ready;

use async_nats::{Auth, AuthError, ConnectOptions};
use nkeys::KeyPair;

/// The longest nonce. Those of nats-server have 15 characters.
const MAX_NONCE_BYTES: usize = 64;

/// Options of a login with a key.
pub(crate) fn with_key(key: KeyPair) -> ConnectOptions {
    let public = key.public_key();
    with_signatures(key, move |auth| auth.nkey = Some(public.clone()))
}

/// Options of a login with the text of a file with credentials.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn with_credentials(text: &str) -> Result<ConnectOptions, &'static str> {
    let mut blocks = blocks(text);
    let jwt = blocks.next().ok_or("it has no JWT")?.to_owned();
    let seed = blocks.next().ok_or("it has no seed after the JWT")?;
    let key = KeyPair::from_seed(seed).map_err(|_| "what follows the JWT is no seed")?;
    Ok(with_signatures(key, move |auth| auth.jwt = Some(jwt.clone())))
}

fn with_signatures(key: KeyPair, identify: impl Fn(&mut Auth) + Send + Sync + 'static) -> ConnectOptions {
    ConnectOptions::with_auth_callback(move |nonce| {
        ready(sign(&key, &nonce).map(|signature| {
            let mut auth = Auth::new();
            auth.signature = Some(signature);
            identify(&mut auth);
            auth
        }))
    })
}

fn sign(key: &KeyPair, nonce: &[u8]) -> Result<Vec<u8>, AuthError> {
    if !is_nonce(nonce) {
        return Err(AuthError::new("not a nonce"));
    }
    key.sign(nonce).map_err(AuthError::new)
}

/// Whether a text can only be a nonce. A broker without logins sends an empty one.
fn is_nonce(text: &[u8]) -> bool {
    text.len() <= MAX_NONCE_BYTES
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_+/=-".contains(byte))
}

/// The lines between two lines of dashes, as `nsc` writes them: a JWT and then a seed.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    let is_mark = |line: &str| line.len() >= 6 && line.starts_with("---") && line.ends_with("---");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut blocks = Vec::new();
    for lines in lines.windows(3) {
        let [before, content, after] = lines else { continue };
        let is_content = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.=".contains(&byte);
        let is_block = is_mark(before) && is_mark(after) && !is_mark(content);
        if is_block && !content.is_empty() && content.bytes().all(is_content) {
            blocks.push(*content);
        }
    }
    blocks.into_iter()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_cannot_be_a_message_is_signed() {
        let key = KeyPair::new_user();
        for nonce in ["", "kZJ3oD-_AAAAAAA", "a+/=", &"a".repeat(MAX_NONCE_BYTES)] {
            let signature = sign(&key, nonce.as_bytes()).unwrap();
            key.verify(nonce.as_bytes(), &signature).unwrap();
        }
        let long = "a".repeat(MAX_NONCE_BYTES + 1);
        for wrong in ["linerate-fleet 1 centre\n{}", "a b", "a\n", "{}", "é", "a.b", "\0", &long] {
            assert!(sign(&key, wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn credentials_need_a_jwt_and_a_seed() {
        let seed = KeyPair::new_user().seed().unwrap();
        let file = |jwt: &str, seed: &str| {
            format!(
                "-----BEGIN NATS USER JWT-----\r\n{jwt}\r\n------END NATS USER JWT------\r\n\r\n*** IMPORTANT ***\r\n\
                 -----BEGIN USER NKEY SEED-----\r\n{seed}\r\n------END USER NKEY SEED------\r\n"
            )
        };
        assert!(with_credentials(&file("a.b-c_.d=", &seed)).is_ok());
        let error = |text: &str| with_credentials(text).map(|_| ()).unwrap_err();
        assert_eq!(error(""), "it has no JWT");
        assert_eq!(error(&file("a.b", "")), "it has no seed after the JWT");
        assert_eq!(error(&file("a.b", "SUNO")), "what follows the JWT is no seed");
    }

    proptest! {
        #[test]
        fn no_text_of_credentials_is_a_crash(text in "(-----\n|[a-z]\n|-----BEGIN-----\n|.*){0,9}") {
            let _ = with_credentials(&text);
        }
    }
}
