//! Who may do what: tokens, and sessions of browsers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use linerate_sock::thread::locked;
use linerate_sock::{Mono, clock};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::problem::{HttpProblem, INTERNAL, SIGN_IN, TOO_MANY};

/// Name of the cookie of a session.
const COOKIE: &str = "linerate_session";
/// Cookies of that name that are tried.
const MAX_COOKIES: usize = 8;
/// How long a session lasts.
const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// Most sessions; the oldest one ends for the next.
const MAX_SESSIONS: usize = 256;
/// Wrong tokens that one address may try, in this time.
const MAX_TRIES: u32 = 10;
const TRIES_WINDOW: Duration = Duration::from_secs(60);
/// Addresses whose wrong tries are counted.
const MAX_TRIERS: usize = 1024;

/// What a visitor may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// See results.
    View,
    /// Start and cancel tests.
    Run,
    /// Delete results.
    Admin,
}

/// All abilities.
const ALL: &[Ability] = &[Ability::View, Ability::Run, Ability::Admin];

/// Who may use the service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Access {
    /// Everybody who reaches it.
    #[default]
    Open,
    /// Whoever has the token.
    Token(WebToken),
}

/// The secret of the service, as its digest.
#[derive(Clone, PartialEq, Eq)]
pub struct WebToken([u8; 32]);

impl WebToken {
    /// Fewest characters of a token.
    pub const MIN_CHARS: usize = 16;

    /// A token from the content of a file. Spaces and line ends around it do not count.
    ///
    /// # Errors
    /// It is too short to be a secret.
    pub fn new(text: &str) -> Result<Self, TokenTooShort> {
        let text = text.trim();
        if text.chars().count() < Self::MIN_CHARS {
            return Err(TokenTooShort);
        }
        Ok(Self(digest(text)))
    }

    /// Whether this is the token. Digests are compared, whose first difference says nothing about the token.
    fn is(&self, text: &str) -> bool {
        self.0 == digest(text.trim())
    }
}

impl std::fmt::Debug for WebToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebToken")
    }
}

/// A token has too few characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token has at least {} characters; make one with: openssl rand -hex 16", WebToken::MIN_CHARS)]
pub struct TokenTooShort;

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The sessions and wrong tries.
#[derive(Debug)]
pub(crate) struct AccessControl {
    access: Access,
    /// By the digest of their secret, when they began.
    sessions: Mutex<BTreeMap<[u8; 32], Mono>>,
    tries: Mutex<BTreeMap<IpAddr, (u32, Mono)>>,
}

impl AccessControl {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, sessions: Mutex::default(), tries: Mutex::default() }
    }

    pub(crate) fn needs_token(&self) -> bool {
        self.access != Access::Open
    }

    /// What a visitor with these headers may do.
    ///
    /// # Errors
    /// The token in them is wrong, or there were too many wrong ones.
    pub(crate) fn abilities(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
    ) -> Result<&'static [Ability], HttpProblem> {
        let Access::Token(token) = &self.access else { return Ok(ALL) };
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.split_once(' '));
        if let Some((_, given)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
            return self.try_token(token, given, from).map(|()| ALL);
        }
        let now = clock::now();
        let session = cookies(headers).any(|secret| {
            let began = locked(&self.sessions).get(&digest(secret)).copied();
            began.is_some_and(|began| now.since(began) < SESSION_LIFETIME)
        });
        Ok(if session { ALL } else { &[] })
    }

    /// Whether a visitor may do something.
    ///
    /// # Errors
    /// The visitor may not.
    pub(crate) fn permit(
        &self,
        ability: Ability,
        headers: &HeaderMap,
        from: IpAddr,
    ) -> Result<(), HttpProblem> {
        if self.abilities(headers, from)?.contains(&ability) {
            return Ok(());
        }
        Err(HttpProblem::new(
            SIGN_IN,
            "give the token of this server: on its page, or with Authorization: Bearer TOKEN",
        ))
    }

    fn try_token(&self, token: &WebToken, given: &str, from: IpAddr) -> Result<(), HttpProblem> {
        let now = clock::now();
        let mut tries = locked(&self.tries);
        tries.retain(|_, (_, since)| now.since(*since) < TRIES_WINDOW);
        // One network counts as one visitor: it may have any number of addresses.
        let group = group(from);
        if tries.get(&group).is_some_and(|(count, _)| *count >= MAX_TRIES) {
            return Err(HttpProblem::new(TOO_MANY, "too many wrong tokens from this address; wait a minute")
                .limit(u64::from(MAX_TRIES))
                .retry_after(TRIES_WINDOW.as_secs()));
        }
        if token.is(given) {
            return Ok(());
        }
        if tries.len() < MAX_TRIERS || tries.contains_key(&group) {
            tries.entry(group).or_insert((0, now)).0 += 1;
        }
        Err(HttpProblem::new(SIGN_IN, "this is not the token of this server").at("token"))
    }

    /// Begins a session; the cookie for it.
    ///
    /// # Errors
    /// The token is wrong, or there were too many wrong ones.
    pub(crate) fn sign_in(&self, given: &str, from: IpAddr) -> Result<String, HttpProblem> {
        if let Access::Token(token) = &self.access {
            self.try_token(token, given, from)?;
        }
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)
            .map_err(|error| HttpProblem::new(INTERNAL, format!("no random numbers: {error}")))?;
        let secret = format!("{:032x}", u128::from_be_bytes(secret));
        let mut sessions = locked(&self.sessions);
        let now = clock::now();
        sessions.retain(|_, began| now.since(*began) < SESSION_LIFETIME);
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = sessions.iter().min_by_key(|(_, began)| **began).map(|(key, _)| *key)
        {
            sessions.remove(&oldest);
        }
        sessions.insert(digest(&secret), now);
        let age = SESSION_LIFETIME.as_secs();
        Ok(format!("{COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}"))
    }

    /// Ends a session; the cookie that removes it.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) -> String {
        for secret in cookies(headers) {
            locked(&self.sessions).remove(&digest(secret));
        }
        format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0")
    }
}

/// The secrets in the cookies of sessions. A browser may have one of an earlier server at this address besides ours.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE).map(|(_, secret)| secret).take(MAX_COOKIES)
}

/// Addresses that count as one visitor: an IPv4 address, or a network of /56.
pub(crate) fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() && !v6.is_unicast_link_local() => {
            IpAddr::from((v6.to_bits() & (u128::MAX << 72)).to_be_bytes())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";
    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn keeper() -> AccessControl {
        AccessControl::new(Access::Token(WebToken::new(&format!(" {SECRET}\n")).unwrap()))
    }

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn an_open_service_asks_nobody() {
        let keeper = AccessControl::new(Access::Open);
        assert_eq!(keeper.abilities(&HeaderMap::new(), HOME).unwrap(), ALL);
    }

    #[test]
    fn the_token_opens_and_another_one_does_not() {
        let keeper = keeper();
        assert_eq!(keeper.permit(Ability::View, &HeaderMap::new(), HOME).unwrap_err().status, 401);
        let right = with(header::AUTHORIZATION, &format!("Bearer {SECRET}"));
        assert!(keeper.permit(Ability::Admin, &right, HOME).is_ok());
        let wrong = with(header::AUTHORIZATION, "Bearer 0123456789abcdeg");
        assert_eq!(keeper.permit(Ability::View, &wrong, HOME).unwrap_err().status, 401);
        assert_eq!(WebToken::new("0123456789abcde"), Err(TokenTooShort));
        assert_eq!(format!("{:?}", keeper.access), "Token(WebToken)");
    }

    #[test]
    fn a_session_lasts_until_it_is_ended() {
        let keeper = keeper();
        assert_eq!(keeper.sign_in("wrong", HOME).unwrap_err().field.as_deref(), Some("token"));
        let set = keeper.sign_in(SECRET, HOME).unwrap();
        assert!(set.contains("HttpOnly; SameSite=Strict"), "{set}");
        let pair = set.split(';').next().unwrap();
        let headers = with(header::COOKIE, &format!("theme=dark; {pair}"));
        assert_eq!(keeper.abilities(&headers, HOME).unwrap(), ALL);
        assert_eq!(keeper.abilities(&with(header::COOKIE, &format!("{pair}0")), HOME).unwrap(), []);
        assert!(keeper.sign_out(&headers).contains("Max-Age=0"));
        assert_eq!(keeper.abilities(&headers, HOME).unwrap(), []);
    }

    #[test]
    fn sessions_do_not_grow_without_end() {
        let keeper = keeper();
        for _ in 0..MAX_SESSIONS + 50 {
            keeper.sign_in(SECRET, HOME).unwrap();
        }
        assert_eq!(locked(&keeper.sessions).len(), MAX_SESSIONS);
    }

    #[test]
    fn whoever_guesses_has_to_wait_and_others_do_not() {
        let keeper = keeper();
        let guess = |from: &str| keeper.sign_in("wrong", from.parse().unwrap()).unwrap_err().status;
        for _ in 0..MAX_TRIES {
            assert_eq!(guess("2001:db8:0:100::1"), 401);
        }
        let refused = keeper.sign_in(SECRET, "2001:db8:0:1ff:ffff::7".parse().unwrap()).unwrap_err();
        assert_eq!((refused.status, refused.retry_after), (429, Some(60)));
        assert_eq!(guess("2001:db8:0:200::1"), 401, "the neighbour has tries of its own");
        assert!(keeper.sign_in(SECRET, HOME).is_ok());
        for number in 0..MAX_TRIERS as u128 * 2 {
            let address = IpAddr::from((0x2001_0db9_u128 << 96 | number << 72).to_be_bytes());
            let _ = keeper.sign_in("wrong", address);
        }
        assert!(locked(&keeper.tries).len() <= MAX_TRIERS);
    }
}
