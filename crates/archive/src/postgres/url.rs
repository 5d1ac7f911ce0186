//! The URL of a database: what libpq knows about encryption, and the client library does not.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// When a connection is encrypted, and what is then checked (libpq's `sslmode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EncryptionMode {
    Disable,
    /// If the server can do it.
    Prefer,
    /// The certificate is checked only if there are roots for it.
    Require,
    /// The certificate has to come from a root.
    VerifyCa,
    /// It has to be for the name of the server too.
    VerifyFull,
}

impl EncryptionMode {
    const ALL: [(&'static str, Self); 6] = [
        ("disable", Self::Disable),
        // libpq tries without encryption first. Neither checks the server.
        ("allow", Self::Prefer),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            format!("sslmode cannot be '{text}'; give one of {names}")
        })
    }
}

/// What the certificate of a server has to come from (libpq's `sslrootcert`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TrustedRoots {
    /// Certificates in a file, PEM.
    File(PathBuf),
    /// Those that this host trusts.
    System,
}

/// How connections to a server are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EncryptionSettings {
    pub(super) mode: EncryptionMode,
    /// Given by the user; else libpq's own file counts, if there is one.
    pub(super) roots: Option<TrustedRoots>,
    /// Certificate of this client and its key (`sslcert` and `sslkey`), PEM.
    pub(super) client: Option<(PathBuf, PathBuf)>,
}

/// Parameters that the client library does not know, and the variables that are used where the URL has none.
const PARAMETERS: [(&str, &str); 4] = [
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
];

impl EncryptionSettings {
    /// Takes the settings of encryption out of a URL; returns the rest of it with them. `variable` reads the environment.
    ///
    /// # Errors
    /// What is wrong in the URL or the environment.
    pub(super) fn take(
        url: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(String, Self), String> {
        // As in the client library, the first @ ends name and password, which may contain question marks.
        let server_at = url.find('@').unwrap_or(0);
        let (before, query) = match url[server_at..].split_once('?') {
            Some((_, query)) => (&url[..url.len() - query.len() - 1], query),
            None => (url, ""),
        };
        let mut values = PARAMETERS.map(|(_, name)| variable(name).filter(|value| !value.is_empty()));
        let mut rest = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match PARAMETERS.iter().position(|(taken, _)| *taken == name) {
                Some(at) => values[at] = Some(decode(name, value)?),
                None => rest.push(parameter),
            }
        }
        let settings = Self::new(values)?;
        let rest = if rest.is_empty() { before.to_owned() } else { format!("{before}?{}", rest.join("&")) };
        Ok((rest, settings))
    }

    fn new([mode, roots, certificate, key]: [Option<String>; 4]) -> Result<Self, String> {
        let roots = roots.map(|roots| match roots.as_str() {
            "system" => TrustedRoots::System,
            file => TrustedRoots::File(file.into()),
        });
        let by_host = roots == Some(TrustedRoots::System);
        let mode = match mode {
            Some(mode) => EncryptionMode::parse(&mode)?,
            None if by_host => EncryptionMode::VerifyFull,
            None => EncryptionMode::Prefer,
        };
        if by_host && !matches!(mode, EncryptionMode::Disable | EncryptionMode::VerifyFull) {
            // Anybody can have a certificate that a host trusts, for a name of his own.
            return Err("sslrootcert=system needs sslmode=verify-full".to_owned());
        }
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
            (None, None) => None,
            (Some(_), None) => return Err("sslcert needs sslkey=FILE with its private key".to_owned()),
            (None, Some(_)) => return Err("sslkey needs sslcert=FILE with its certificate".to_owned()),
        };
        Ok(Self { mode, roots, client })
    }
}

fn decode(name: &str, value: &str) -> Result<String, String> {
    let decoded = percent_decode_str(value).decode_utf8();
    decoded.map(Into::into).map_err(|_| format!("{name} is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(url: &str) -> Result<(String, EncryptionSettings), String> {
        EncryptionSettings::take(url, |_| None)
    }

    #[test]
    fn only_what_is_about_encryption_is_taken_out() {
        for (url, rest, mode) in [
            ("postgres://db/x", "postgres://db/x", EncryptionMode::Prefer),
            ("postgres://db/x?sslmode=verify-ca", "postgres://db/x", EncryptionMode::VerifyCa),
            (
                "postgres://me:a?b&c@db/x?connect_timeout=3&sslmode=disable&target_session_attrs=any",
                "postgres://me:a?b&c@db/x?connect_timeout=3&target_session_attrs=any",
                EncryptionMode::Disable,
            ),
            (
                "postgres:///x?host=/tmp/@&sslmode=require",
                "postgres:///x?host=/tmp/@&sslmode=require",
                EncryptionMode::Prefer,
            ),
            ("postgres://db/x?sslmode=disable&sslmode=require", "postgres://db/x", EncryptionMode::Require),
            ("postgres://db/x?sslrootcert=system", "postgres://db/x", EncryptionMode::VerifyFull),
        ] {
            let (found, settings) = take(url).unwrap();
            assert_eq!((found.as_str(), settings.mode), (rest, mode), "{url}");
        }
    }

    #[test]
    fn files_have_their_names_decoded() {
        let (_, settings) =
            take("postgres://db/x?sslrootcert=/my%20ca.pem&sslcert=me.crt&sslkey=me.key").unwrap();
        assert_eq!(settings.roots, Some(TrustedRoots::File("/my ca.pem".into())));
        assert_eq!(settings.client, Some(("me.crt".into(), "me.key".into())));
    }

    #[test]
    fn the_environment_counts_where_the_url_is_silent() {
        let variable = |name: &str| match name {
            "PGSSLMODE" => Some("verify-full".to_owned()),
            "PGSSLROOTCERT" => Some("/ca.pem".to_owned()),
            "PGSSLCERT" => Some(String::new()),
            _ => None,
        };
        let (_, settings) = EncryptionSettings::take("postgres://db/x?sslmode=require", variable).unwrap();
        assert_eq!(settings.mode, EncryptionMode::Require);
        assert_eq!(settings.roots, Some(TrustedRoots::File("/ca.pem".into())));
        assert_eq!(settings.client, None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for (query, part) in [
            ("sslmode=verify", "sslmode cannot be 'verify'; give one of disable, allow, prefer, require"),
            ("sslmode", "sslmode cannot be ''"),
            ("sslrootcert=system&sslmode=require", "verify-full"),
            ("sslcert=a.pem", "sslkey=FILE"),
            ("sslkey=a.pem", "sslcert=FILE"),
            ("sslmode=%FF", "not UTF-8"),
        ] {
            let error = take(&format!("postgres://db/x?{query}")).unwrap_err();
            assert!(error.contains(part), "{query}: {error}");
        }
    }
}
