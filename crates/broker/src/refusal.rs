//! Failures that end by themselves, and those for which a person must act.

use std::error::Error;
use std::io;

use async_nats::{ConnectError, ConnectErrorKind, rustls};
use linerate_model::ForeignText;

/// Why a connection was not made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DialFailure {
    /// It may work later.
    Unreachable(ForeignText),
    /// It works after a person has changed something here or at the broker.
    Refused(ForeignText),
}

impl DialFailure {
    /// `key` is the public key of this client.
    pub(crate) fn of(error: &ConnectError, server: &str, key: Option<&str>) -> Self {
        let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        let unreachable = |why: &str| Self::Unreachable(format!("{server}: {why}").into());
        match error.kind() {
            ConnectErrorKind::AuthorizationViolation => Self::Refused(login_refused(server, key)),
            // Of the signature, which is only refused for what cannot be a nonce.
            ConnectErrorKind::Authentication => Self::Refused(
                format!(
                    "{server} sends something to sign that is not a nonce, so nothing was signed; do not trust it, and \
                     name another broker"
                )
                .into(),
            ),
            ConnectErrorKind::Tls => Self::Refused(format!("{server}: {error}").into()),
            ConnectErrorKind::TimedOut => unreachable("no answer"),
            ConnectErrorKind::Dns => unreachable(&format!("its address is unknown: {cause}")),
            _ if is_tls(error) => Self::Refused(format!("{server}: TLS failed: {cause}").into()),
            _ if needs_person(&cause) => Self::Refused(format!("{server}: {cause}").into()),
            _ => unreachable(&cause),
        }
    }
}

fn login_refused(server: &str, key: Option<&str>) -> ForeignText {
    let remedy = match key {
        Some(key) => format!("it does not know the public key {key}; add it to the users of the broker"),
        None => "it does not accept this login; give this client a key that the broker knows".to_owned(),
    };
    format!("{server} refuses the login: {remedy}").into()
}

/// Whether TLS found something wrong with a certificate or with what the broker speaks.
fn is_tls(error: &ConnectError) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let inner = io.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref::<rustls::Error>());
    inner.is_some()
}

/// Whether an error of the broker concerns the key or the permissions of this client.
pub(crate) fn needs_person(text: &str) -> bool {
    const SAYS: [&str; 5] = [
        "permissions violation",
        "authorization violation",
        "authentication expired",
        "authentication revoked",
        "tls required",
    ];
    let text = text.to_lowercase();
    SAYS.iter().any(|says| text.contains(says))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_say_who_and_are_safe_to_print() {
        let of = |error: &ConnectError| DialFailure::of(error, "nats://b", Some("UKEY"));
        let io =
            |text: &str| ConnectError::with_source(ConnectErrorKind::Io, io::Error::other(text.to_owned()));
        assert_eq!(of(&io("reset\x1b[2J")), DialFailure::Unreachable("nats://b: reset?[2J".into()));
        assert_eq!(
            of(&ConnectErrorKind::TimedOut.into()),
            DialFailure::Unreachable("nats://b: no answer".into())
        );
        let expired = of(&io("User Authentication Expired"));
        assert_eq!(expired, DialFailure::Refused("nats://b: User Authentication Expired".into()));
        let DialFailure::Refused(why) = of(&ConnectErrorKind::AuthorizationViolation.into()) else {
            panic!()
        };
        assert!(why.contains("UKEY; add it to the users"), "{why}");
        let alert = io::Error::other(rustls::Error::General("x".to_owned()));
        let tls = of(&ConnectError::with_source(ConnectErrorKind::Io, alert));
        assert!(matches!(tls, DialFailure::Refused(_)), "{tls:?}");
    }

    #[test]
    fn a_busy_broker_needs_nobody() {
        for text in
            ["Stale Connection", "maximum connections exceeded", "Authentication Timeout", "Slow Consumer"]
        {
            assert!(!needs_person(text), "{text}");
        }
        assert!(needs_person("Permissions Violation for Publish to \"a\""));
    }
}
