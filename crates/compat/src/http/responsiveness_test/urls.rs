//! What a server offers: the addresses of its three objects.

use http::Uri;
use linerate_model::ForeignText;
use serde_json::Value;

/// Most bytes of a configuration.
pub(super) const MAX_CONFIG_BYTES: usize = 64 << 10;

/// The addresses.
#[derive(Debug, Clone)]
pub(super) struct TestUrls {
    /// One byte.
    pub(super) small: TestUrl,
    /// A download that does not end.
    pub(super) large: TestUrl,
    /// Where an upload goes.
    pub(super) upload: TestUrl,
}

/// An address at the server.
#[derive(Debug, Clone)]
pub(super) struct TestUrl {
    pub(super) uri: Uri,
    pub(super) port: u16,
}

impl TestUrls {
    /// Reads the configuration that a server sent in answer to the request for `asked`.
    ///
    /// # Errors
    /// It is none, or it names another host.
    pub(super) fn read(content: &[u8], asked: &Uri) -> Result<Self, String> {
        let document: Value = serde_json::from_slice(content)
            .map_err(|_| "the server's configuration is not JSON; check the address".to_owned())?;
        match document.get("version") {
            None => {}
            Some(version) if *version == 1 || *version == "1" => {}
            Some(_) => return Err("the server's configuration has another version than 1".to_owned()),
        }
        // The draft has renamed the fields. If both are there, one of them may be for other clients.
        let url = |names: [&str; 2]| {
            let found = names.iter().filter_map(|name| document.get("urls")?.get(name)?.as_str());
            let mut read = found.map(|text| TestUrl::read(text, asked)).collect::<Vec<_>>().into_iter();
            let none = || Err(format!("the server's configuration has no {}", names[0]));
            let first = read.next().unwrap_or_else(none);
            first.or_else(|refused| read.next().unwrap_or(Err(refused)))
        };
        Ok(Self {
            small: url(["small_download_url", "small_https_download_url"])?,
            large: url(["large_download_url", "large_https_download_url"])?,
            upload: url(["upload_url", "https_upload_url"])?,
        })
    }
}

impl TestUrl {
    fn read(text: &str, asked: &Uri) -> Result<Self, String> {
        let wrong = |what: &str| {
            let text = ForeignText::new(text);
            Err(format!("the server's configuration has the address {text}, {what}"))
        };
        let Ok(uri) = text.parse::<Uri>() else { return wrong("which is none") };
        if uri.scheme() != asked.scheme() {
            return wrong("which has another scheme than its own");
        }
        let same_host = match (uri.host(), asked.host()) {
            (Some(host), Some(asked)) => host.eq_ignore_ascii_case(asked),
            _ => false,
        };
        if !same_host {
            return wrong("which is another host; measure to that one");
        }
        match port_of(&uri) {
            Some(port) => Ok(Self { uri, port }),
            None => wrong("whose port is none"),
        }
    }
}

/// The port of an address; absent if what is written there is no port.
pub(super) fn port_of(uri: &Uri) -> Option<u16> {
    let authority = uri.authority()?.as_str();
    // The library reads what is no number as no port.
    let behind_host = authority.rsplit(']').next().unwrap_or(authority);
    match (behind_host.rsplit_once(':'), uri.scheme_str()) {
        (Some((_, port)), _) => port.parse().ok().filter(|port| *port != 0),
        (None, Some("http")) => Some(80),
        (None, _) => Some(443),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Uri {
        "https://nq.example:5202/.well-known/nq".parse().unwrap()
    }

    fn config(small: &str, large: &str, upload: &str) -> String {
        format!(
            r#"{{"version": 1, "urls": {{"small_download_url": "{small}", "large_https_download_url": "{large}",
                "upload_url": "{upload}"}}}}"#
        )
    }

    #[test]
    fn older_and_newer_names_are_read_and_ports_may_differ() {
        let text = config("https://NQ.example:5202/s", "https://nq.example/l?x=1", "https://nq.example:9/u");
        let urls = TestUrls::read(text.as_bytes(), &asked()).unwrap();
        assert_eq!([urls.small.port, urls.large.port, urls.upload.port], [5202, 443, 9]);
        assert_eq!(urls.large.uri.path_and_query().unwrap(), "/l?x=1");
    }

    #[test]
    fn what_cannot_be_measured_is_named() {
        let good = "https://nq.example:5202/x";
        for (small, part) in [
            ("https://other.example/s", "which is another host"),
            ("http://nq.example:5202/s", "another scheme"),
            ("https://nq.example:0/s", "port is none"),
            ("https://nq.example:99999/s", "none"),
            ("\\u001b[31m", "which is none"),
            ("/relative", "another scheme"),
        ] {
            let said = TestUrls::read(config(small, good, good).as_bytes(), &asked()).unwrap_err();
            assert!(said.contains(part), "{small}: {said}");
            assert!(!said.contains('\u{1b}'), "{said:?}");
        }
        let said = TestUrls::read(br#"{"urls": {}}"#, &asked()).unwrap_err();
        assert!(said.contains("small_download_url"), "{said}");
        let text = config(good, good, good).replace("\"version\": 1", "\"version\": 2");
        assert!(TestUrls::read(text.as_bytes(), &asked()).unwrap_err().contains("another version"));
        // The older name has an address with http, for other clients.
        let text = config(good, good, good).replace(
            "\"small_download_url\"",
            "\"small_https_download_url\": \"http://nq.example/\", \"small_download_url\"",
        );
        assert_eq!(TestUrls::read(text.as_bytes(), &asked()).unwrap().small.port, 5202);
        assert!(TestUrls::read(b"<html>", &asked()).unwrap_err().contains("not JSON"));
    }
}
