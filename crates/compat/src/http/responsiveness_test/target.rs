//! The server, as a user types it.

use http::Uri;
use linerate_model::{ForeignText, join_host_and_port, split_host_and_port};

use super::super::responsiveness::{CONFIG_PATH, PORT};
use super::urls::port_of;

/// The address of what a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponsivenessTarget {
    host: String,
    uri: Uri,
    port: u16,
}

/// Why a text is no server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResponsivenessTargetError {
    /// It is neither a host nor an address.
    #[error("{0} is no server: give HOST, HOST:PORT, or an address such as https://HOST:PORT/.well-known/nq")]
    NoServer(ForeignText),
    /// An address has its own port.
    #[error("the port of an address is written in it; leave out --port")]
    TwoPorts,
}

impl ResponsivenessTarget {
    /// Reads what a user has typed: a host, which may have a zone, with or without `:PORT`, or an address that begins with
    /// `https://` or `http://`, of which a port has to be a part.
    ///
    /// # Errors
    /// It is neither, or there are two ports.
    pub fn parse(typed: &str, port: Option<u16>) -> Result<Self, ResponsivenessTargetError> {
        let none = || ResponsivenessTargetError::NoServer(ForeignText::new(typed));
        let is_url = ["https://", "http://"]
            .iter()
            .any(|scheme| typed.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
        match (is_url, port) {
            (true, Some(_)) => Err(ResponsivenessTargetError::TwoPorts),
            (true, None) => Self::read(typed).ok_or_else(none),
            (false, _) => Self::of_host(typed, port).ok_or_else(none),
        }
    }

    fn of_host(typed: &str, port: Option<u16>) -> Option<Self> {
        let (host, port) = split_host_and_port(typed, port)?;
        let port = port.unwrap_or(PORT);
        let name = host.split('%').next().unwrap_or_default();
        let found = Self::read(&format!("https://{}{CONFIG_PATH}", join_host_and_port(name, port)))?;
        // A host with a path would be an address.
        let is_host = found.port == port && found.uri.path() == CONFIG_PATH;
        is_host.then(|| Self { host, ..found })
    }

    fn read(typed: &str) -> Option<Self> {
        let mut uri: Uri = typed.parse().ok()?;
        let host = uri.host().filter(|host| !host.is_empty())?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = port_of(&uri)?;
        if uri.authority()?.as_str().contains('@') {
            return None;
        }
        if matches!(uri.path_and_query().map(http::uri::PathAndQuery::as_str), None | Some("" | "/")) {
            let mut parts = uri.into_parts();
            parts.path_and_query = Some(http::uri::PathAndQuery::from_static(CONFIG_PATH));
            uri = Uri::from_parts(parts).ok()?;
        }
        Some(Self { host, uri, port })
    }

    /// The host, without brackets: a name, or an address, which may have a zone.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The interface that is written after an address.
    pub(super) fn device(&self) -> Option<&str> {
        self.host.split_once('%').map(|(_, device)| device)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether its connections are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.uri.scheme_str() != Some("http")
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Host and port.
    pub(super) fn authority(&self) -> String {
        join_host_and_port(&self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(typed: &str, port: Option<u16>) -> ResponsivenessTarget {
        ResponsivenessTarget::parse(typed, port).unwrap()
    }

    #[test]
    fn hosts_and_addresses_are_read() {
        assert_eq!(parsed("nq.example", None).uri(), "https://nq.example:5202/.well-known/nq");
        assert_eq!(parsed("nq.example:443", None).port(), 443);
        assert_eq!(parsed("nq.example:443", Some(444)).port(), 444, "as everywhere");
        assert_eq!(parsed("[2001:db8::1]:443", None).uri(), "https://[2001:db8::1]:443/.well-known/nq");
        let zoned = parsed("fe80::1%eth0", Some(443));
        assert_eq!((zoned.host(), zoned.port(), zoned.device()), ("fe80::1%eth0", 443, Some("eth0")));
        assert_eq!(zoned.uri(), "https://[fe80::1]:443/.well-known/nq");
        let apple = parsed("https://nq.example/api/v1/config", None);
        assert_eq!((apple.port(), apple.uri().path(), apple.is_encrypted()), (443, "/api/v1/config", true));
        let plain = parsed("http://[2001:db8::1]:8080", None);
        assert_eq!((plain.host(), plain.port(), plain.is_encrypted()), ("2001:db8::1", 8080, false));
        assert_eq!(plain.uri().path(), CONFIG_PATH);
        assert_eq!(plain.authority(), "[2001:db8::1]:8080");
        let two = ResponsivenessTarget::parse("https://nq.example/", Some(443));
        assert_eq!(two, Err(ResponsivenessTargetError::TwoPorts));
        assert_eq!(parsed("HTTPS://nq.example/", None).uri().path(), CONFIG_PATH);
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for typed in [
            "https://",
            "https://h:0/",
            "https://h:x/",
            "https://u@h/",
            "https://h h/",
            "http://[::1/",
            "",
            "a b",
            "h/x",
            "h:x",
            "h:0",
            "h:99999",
            "[::1",
            "[::1]x",
            "u@h",
            "\u{1b}[31m",
        ] {
            let refused = ResponsivenessTarget::parse(typed, None);
            assert!(refused.is_err(), "{typed:?}: {refused:?}");
            assert!(!refused.unwrap_err().to_string().contains('\u{1b}'));
        }
    }
}
