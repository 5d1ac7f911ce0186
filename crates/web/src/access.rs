//! Who may do what: tokens, and sessions of browsers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use hmac::{Hmac, Mac};
use linerate_runner::now;
use linerate_sock::thread::locked;
use linerate_sock::{Mono, clock};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::listed_tokens::WatchedTokens;
use crate::problem::{ABILITY, HttpProblem, INTERNAL, SIGN_IN, TOKENS, TOO_MANY};
use crate::token_file::{TokenEntry, TokenFile, TokenFileError};

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
/// Most digests that are computed at a time: each needs 19 MiB, and the thread of the archive.
const MAX_VERIFICATIONS: usize = 1;

/// What a visitor may do. Each ability includes those before it.
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

impl Ability {
    /// All abilities, each including those before it.
    pub const ALL: [Self; 3] = [Self::View, Self::Run, Self::Admin];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Run => "run",
            Self::Admin => "admin",
        }
    }

    /// What it is for.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::View => "See results",
            Self::Run => "Also start and cancel tests",
            Self::Admin => "Also delete results",
        }
    }

    /// The ability with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ability| ability.name() == name)
    }
}

/// Who may use the service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// A token with all abilities.
    pub token: Option<WebToken>,
    /// Tokens that each have an ability.
    pub tokens: Option<TokenFile>,
    /// Whether everybody who reaches the service may see results. All else needs a token.
    pub public: bool,
    /// Whether a service that others reach needs no protection. Unless it is public, everybody may do everything.
    pub insecure: bool,
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

/// Who is asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebVisitor {
    /// The highest ability; absent if there is none.
    pub(crate) ability: Option<Ability>,
    /// The token that was given, perhaps at the beginning of a session.
    pub(crate) token: Option<TokenHolder>,
    /// The session in which it was given; absent for a token in the request itself.
    session: Option<SessionKey>,
}

/// The digest of a session's secret.
type SessionKey = [u8; 32];

impl WebVisitor {
    /// A visitor without a token.
    pub(crate) const fn without_token(ability: Option<Ability>) -> Self {
        Self { ability, token: None, session: None }
    }

    /// All abilities.
    pub(crate) fn abilities(&self) -> Vec<Ability> {
        Ability::ALL.into_iter().filter(|ability| Some(*ability) <= self.ability).collect()
    }
}

/// What visitors without a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnonymousAccess {
    /// Everything, until there is a token.
    Trusted,
    /// See results.
    Public,
    /// Nothing.
    Unknown,
}

/// The token that a visitor has given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenHolder {
    /// That of [`Access::token`].
    Common,
    /// The one with this id in the file.
    Listed(String),
}

/// The sessions and wrong tries.
#[derive(Debug)]
pub(crate) struct AccessControl {
    token: Option<WebToken>,
    tokens: Option<WatchedTokens>,
    strangers: AnonymousAccess,
    /// Whether browsers may send the cookie of a session over TLS only.
    is_tls: bool,
    /// Whether there was a token at some time: when the last one is removed, nobody gets its abilities.
    closed: AtomicBool,
    /// Of the keyed digests.
    key: [u8; 32],
    /// By the digest of their secret, when they began and with which token.
    sessions: Mutex<BTreeMap<SessionKey, (Mono, TokenHolder)>>,
    tries: Mutex<BTreeMap<IpAddr, (u32, Mono)>>,
    verifications: Arc<Semaphore>,
}

impl AccessControl {
    /// Reads the file of tokens. Without any token, visitors may do everything if the service is only for this host, or
    /// if the user wants it so.
    pub(crate) fn new(access: Access, is_loopback: bool, is_tls: bool) -> Result<Self, TokenFileError> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|error| TokenFileError::Make(format!("no random numbers: {error}")))?;
        let strangers = match (access.public, access.insecure || is_loopback) {
            (true, _) => AnonymousAccess::Public,
            (false, true) => AnonymousAccess::Trusted,
            (false, false) => AnonymousAccess::Unknown,
        };
        // Whoever lets everybody do everything does not ask for tokens.
        let used = access.tokens.filter(|_| access.public || !access.insecure);
        Ok(Self {
            token: access.token,
            tokens: used.map(WatchedTokens::open).transpose()?,
            strangers,
            is_tls,
            closed: AtomicBool::new(false),
            key,
            sessions: Mutex::default(),
            tries: Mutex::default(),
            verifications: Arc::new(Semaphore::new(MAX_VERIFICATIONS)),
        })
    }

    /// Whether there is a token, or was one since the start.
    pub(crate) fn has_token(&self) -> bool {
        if self.token.is_some() || self.closed.load(Ordering::Relaxed) {
            return true;
        }
        // A file that cannot be read may have some.
        let listed = self.tokens.as_ref().map(WatchedTokens::listed);
        let closed = listed.is_some_and(|listed| listed.is_none_or(|listed| !listed.entries.is_empty()));
        self.closed.fetch_or(closed, Ordering::Relaxed);
        closed
    }

    /// What visitors without a token may do.
    pub(crate) fn strangers(&self) -> Option<Ability> {
        match self.strangers {
            AnonymousAccess::Trusted if !self.has_token() => Some(Ability::Admin),
            AnonymousAccess::Public => Some(Ability::View),
            AnonymousAccess::Trusted | AnonymousAccess::Unknown => None,
        }
    }

    /// Whether a token would give more than strangers have.
    pub(crate) fn needs_token(&self) -> bool {
        self.strangers() != Some(Ability::Admin)
    }

    /// Who sent a request with these headers.
    ///
    /// # Errors
    /// The token in them is wrong, or there were too many wrong ones.
    pub(crate) async fn visitor(&self, headers: &HeaderMap, from: IpAddr) -> Result<WebVisitor, HttpProblem> {
        let stranger = WebVisitor::without_token(self.strangers());
        if stranger.ability == Some(Ability::Admin) {
            return Ok(stranger);
        }
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.split_once(' '));
        let holder = match bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
            Some((_, given)) => Some((self.verify(given.trim(), from).await?, None)),
            None => self.session_holder(headers),
        };
        let with = |(holder, session): (TokenHolder, Option<SessionKey>)| {
            let ability = self.ability_of(&holder)?;
            Some(WebVisitor { ability: Some(ability), token: Some(holder), session })
        };
        Ok(holder.and_then(with).unwrap_or(stranger))
    }

    /// The token of the session in a cookie, and the session.
    fn session_holder(&self, headers: &HeaderMap) -> Option<(TokenHolder, Option<SessionKey>)> {
        cookies(headers).map(digest).find_map(|key| Some((self.session_at(&key, clock::now())?, Some(key))))
    }

    /// The token of a session that has not ended at a moment.
    fn session_at(&self, key: &SessionKey, now: Mono) -> Option<TokenHolder> {
        let sessions = locked(&self.sessions);
        let found = sessions.get(key).filter(|(began, _)| now.since(*began) < SESSION_LIFETIME);
        found.map(|(_, holder)| holder.clone())
    }

    /// Whether a visitor who was permitted to see results still is: tokens are removed and sessions end while streams
    /// are open.
    pub(crate) fn still_sees(&self, visitor: &WebVisitor) -> bool {
        self.sees_at(visitor, clock::now())
    }

    fn sees_at(&self, visitor: &WebVisitor, now: Mono) -> bool {
        if visitor.session.as_ref().is_some_and(|key| self.session_at(key, now).is_none()) {
            return false;
        }
        match &visitor.token {
            Some(holder) => self.ability_of(holder).is_some(),
            None => self.strangers().is_some(),
        }
    }

    /// The ability that a token has now; absent if it was removed.
    fn ability_of(&self, holder: &TokenHolder) -> Option<Ability> {
        match holder {
            TokenHolder::Common => Some(Ability::Admin),
            TokenHolder::Listed(id) => {
                let listed = self.tokens.as_ref()?.listed()?;
                listed.with_id(id).filter(|entry| entry.is_valid(&now())).map(|entry| entry.ability)
            }
        }
    }

    /// Who a visitor is, for the owner of the service.
    pub(crate) fn name_of(&self, visitor: &WebVisitor) -> String {
        match &visitor.token {
            None => "without a token".to_owned(),
            Some(TokenHolder::Common) => "with the common token".to_owned(),
            Some(TokenHolder::Listed(id)) => {
                let listed = self.tokens.as_ref().and_then(WatchedTokens::listed);
                let name = listed.and_then(|listed| listed.with_id(id).map(|entry| entry.name.clone()));
                format!("with the token {}", name.unwrap_or_else(|| id.clone()))
            }
        }
    }

    /// Whether a visitor may do something.
    ///
    /// # Errors
    /// The visitor may not.
    pub(crate) async fn permit(
        &self,
        ability: Ability,
        headers: &HeaderMap,
        from: IpAddr,
    ) -> Result<WebVisitor, HttpProblem> {
        let visitor = self.visitor(headers, from).await?;
        match visitor.ability {
            Some(own) if own >= ability => Ok(visitor),
            Some(own) if visitor.token.is_some() => {
                let text = format!(
                    "your token has the ability {}; this needs one that was made with --ability {}",
                    own.name(),
                    ability.name()
                );
                Err(HttpProblem::new(ABILITY, text))
            }
            _ => Err(HttpProblem::new(
                SIGN_IN,
                "give a token of this server: on its page, or with Authorization: Bearer TOKEN",
            )),
        }
    }

    /// Which token this is.
    async fn verify(&self, given: &str, from: IpAddr) -> Result<TokenHolder, HttpProblem> {
        self.check_tries(from)?;
        if self.token.as_ref().is_some_and(|token| token.is(given)) {
            return Ok(TokenHolder::Common);
        }
        let Some(tokens) = &self.tokens else { return Err(self.wrong(from)) };
        let listed = tokens.listed().ok_or_else(|| {
            HttpProblem::new(TOKENS, "the tokens of this server cannot be read; its log says why")
                .retry_after(10)
        })?;
        // Ids are no secrets: that one is unknown is no hint to a token, and costs no time.
        let entry = TokenEntry::id_in(given).and_then(|id| listed.with_id(id)).cloned();
        let Some(entry) = entry else { return Err(self.wrong(from)) };
        let holder = TokenHolder::Listed(entry.id.clone());
        let until = entry.until.clone().filter(|_| !entry.is_valid(&now()));
        // Only who has the token learns that it is over.
        let valid = move |holder| match until {
            None => Ok(holder),
            Some(until) => Err(HttpProblem::new(SIGN_IN, format!("this token has expired, at {until}"))),
        };
        let digest = self.keyed_digest(given);
        if locked(&listed.verified).contains(&digest) {
            return valid(holder);
        }
        // The permit goes with the computation, which continues if the visitor leaves.
        let Ok(permit) = Arc::clone(&self.verifications).acquire_owned().await else {
            return Err(self.wrong(from));
        };
        self.check_tries(from)?;
        if locked(&listed.verified).contains(&digest) {
            return valid(holder);
        }
        // It counts as wrong until it is known to be right: a visitor who leaves before has tried too.
        self.count_try(from);
        let text = given.to_owned();
        let right = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            entry.is(&text)
        });
        if !right.await.unwrap_or(false) {
            return Err(wrong_token());
        }
        self.forgive_try(from);
        locked(&listed.verified).insert(digest);
        valid(holder)
    }

    fn keyed_digest(&self, given: &str) -> [u8; 32] {
        // A key of any length is one for HMAC.
        Hmac::<Sha256>::new_from_slice(&self.key)
            .map(|mac| mac.chain_update(given.as_bytes()).finalize().into_bytes().into())
            .unwrap_or_default()
    }

    /// Whether an address may try a token.
    fn check_tries(&self, from: IpAddr) -> Result<(), HttpProblem> {
        let now = clock::now();
        let mut tries = locked(&self.tries);
        tries.retain(|_, (_, since)| now.since(*since) < TRIES_WINDOW);
        // One network counts as one visitor: it may have any number of addresses.
        if tries.get(&group(from)).is_some_and(|(count, _)| *count >= MAX_TRIES) {
            return Err(HttpProblem::new(TOO_MANY, "too many wrong tokens from this address; wait a minute")
                .limit(u64::from(MAX_TRIES))
                .retry_after(TRIES_WINDOW.as_secs()));
        }
        Ok(())
    }

    fn count_try(&self, from: IpAddr) {
        let (mut tries, group) = (locked(&self.tries), group(from));
        if tries.len() < MAX_TRIERS || tries.contains_key(&group) {
            tries.entry(group).or_insert((0, clock::now())).0 += 1;
        }
    }

    fn forgive_try(&self, from: IpAddr) {
        if let Some((count, _)) = locked(&self.tries).get_mut(&group(from)) {
            *count = count.saturating_sub(1);
        }
    }

    fn wrong(&self, from: IpAddr) -> HttpProblem {
        self.count_try(from);
        wrong_token()
    }

    /// Begins a session; the cookie for it.
    ///
    /// # Errors
    /// The token is wrong, or there were too many wrong ones.
    pub(crate) async fn sign_in(&self, given: &str, from: IpAddr) -> Result<String, HttpProblem> {
        // Where everybody may do everything, a session is nothing that could be kept for later.
        let open = self.strangers() == Some(Ability::Admin);
        let holder = if open { None } else { Some(self.verify(given.trim(), from).await?) };
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)
            .map_err(|error| HttpProblem::new(INTERNAL, format!("no random numbers: {error}")))?;
        let secret = format!("{:032x}", u128::from_be_bytes(secret));
        if let Some(holder) = holder {
            self.begin_session(&secret, holder);
        }
        Ok(self.cookie(&secret, SESSION_LIFETIME))
    }

    fn begin_session(&self, secret: &str, holder: TokenHolder) {
        let mut sessions = locked(&self.sessions);
        let now = clock::now();
        sessions.retain(|_, (began, _)| now.since(*began) < SESSION_LIFETIME);
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = sessions.iter().min_by_key(|(_, (began, _))| *began).map(|(key, _)| *key)
        {
            sessions.remove(&oldest);
        }
        sessions.insert(digest(secret), (now, holder));
    }

    /// Ends a session; the cookie that removes it.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) -> String {
        for secret in cookies(headers) {
            locked(&self.sessions).remove(&digest(secret));
        }
        self.cookie("", Duration::ZERO)
    }

    fn cookie(&self, secret: &str, age: Duration) -> String {
        let secure = if self.is_tls { "Secure; " } else { "" };
        format!("{COOKIE}={secret}; {secure}HttpOnly; SameSite=Strict; Path=/; Max-Age={}", age.as_secs())
    }
}

fn wrong_token() -> HttpProblem {
    HttpProblem::new(SIGN_IN, "this is not a token of this server").at("token")
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
mod tests;
