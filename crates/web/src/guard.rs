//! What every request passes: the name of the host, the site it comes from, and the headers of every response.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use linerate_control::BrowserPort;

use crate::problem::{FOREIGN_HOST, FOREIGN_PAGE, HttpProblem};
use crate::service::Service;

/// The header without which nothing is changed: the form of another site cannot send it.
pub(crate) const WRITE_HEADER: HeaderName = HeaderName::from_static("x-linerate");

/// What pages may load, without the addresses that they may connect to.
const CONTENT_SECURITY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; \
                                style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; form-action 'self'; \
                                base-uri 'none'; frame-ancestors 'none'; connect-src 'self'";

/// Headers of every response.
const HEADERS: &[(&str, &str)] = &[
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    // Isolated pages have fine timers.
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Refuses what does not belong here, and completes the response.
pub(crate) async fn guard(
    State(service): State<Service>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let checked = check(&service, &request);
    let host = host_of(request.uri(), request.headers()).filter(|host| service.names().contains(host));
    let policy = content_security(host, service.browser_test());
    let mut response = match checked {
        Ok(()) => {
            request.extensions_mut().insert(VisitorAddress(from.ip().to_canonical()));
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The policy for a page at this name of the host. Its tests connect to the port of the server.
fn content_security(host: Option<&str>, port: Option<BrowserPort>) -> String {
    let (Some(host), Some(BrowserPort { number: port, has_tls })) = (host, port) else {
        return CONTENT_SECURITY.to_owned();
    };
    // A policy cannot name an address of IPv6.
    let host = if host.contains(':') { "*" } else { host };
    let encrypted =
        if has_tls { format!(" https://{host}:{port} wss://{host}:{port}") } else { String::new() };
    format!("{CONTENT_SECURITY} http://{host}:{port} ws://{host}:{port}{encrypted}")
}

/// The address that a request comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VisitorAddress(pub(crate) IpAddr);

fn check(service: &Service, request: &Request) -> Result<(), HttpProblem> {
    let host = host_of(request.uri(), request.headers());
    if !host.is_some_and(|host| service.names().contains(host)) {
        return Err(HttpProblem::new(
            FOREIGN_HOST,
            "this server does not answer to the name in the address; use its address, or start it with --web-name NAME",
        ));
    }
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let foreign = || {
        HttpProblem::new(
            FOREIGN_PAGE,
            "requests that change something need the header X-Linerate: 1 and come from this server's own pages",
        )
    };
    let header = |name: &HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let same_site = header(&HeaderName::from_static("sec-fetch-site"))
        .is_none_or(|site| matches!(site, "same-origin" | "none"));
    let same_origin = header(&header::ORIGIN).is_none_or(|origin| {
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.is_some() && authority == header(&header::HOST)
    });
    if header(&WRITE_HEADER).is_none() || !same_site || !same_origin {
        return Err(foreign());
    }
    Ok(())
}

/// The host that a request names, without its port.
pub(crate) fn host_of<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let given = match uri.authority() {
        Some(authority) => authority.as_str(),
        None => headers.get(header::HOST)?.to_str().ok()?,
    };
    if given.contains('@') {
        return None;
    }
    match given.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(address, _)| address),
        None => Some(given.rsplit_once(':').map_or(given, |(host, _)| host)),
    }
}

/// The names that the service answers to. A page of another site can give its name the address of this host (DNS
/// rebinding) and read our answers, unless we refuse its name.
#[derive(Debug, Clone)]
pub(crate) struct HostNames(Vec<String>);

impl HostNames {
    /// Addresses, `localhost`, the name of this host, and further names.
    pub(crate) fn new(host: &str, further: &[String]) -> Self {
        let names = further.iter().map(String::as_str).chain(["localhost", host]);
        Self(names.map(|name| name.trim_end_matches('.').to_ascii_lowercase()).collect())
    }

    fn contains(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        // No other site has an address as its name.
        host.parse::<IpAddr>().is_ok() || self.0.contains(&host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_own_names_are_answered_and_others_are_not() {
        let names = HostNames::new("ams-1", &["speed.example.net".to_owned()]);
        for own in ["localhost", "127.0.0.1", "::1", "2001:db8::1", "AMS-1", "speed.example.net", "ams-1."] {
            assert!(names.contains(own), "{own}");
        }
        for foreign in ["evil.example", "ams-1.evil.example", "127.0.0.1.nip.io", "", "0x7f000001"] {
            assert!(!names.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn pages_connect_to_the_port_of_the_server_and_nowhere_else() {
        let plain = BrowserPort { number: 5201, has_tls: false };
        let policy = |host| content_security(host, Some(plain));
        assert!(policy(Some("ams-1")).ends_with("connect-src 'self' http://ams-1:5201 ws://ams-1:5201"));
        assert!(policy(Some("2001:db8::1")).ends_with("connect-src 'self' http://*:5201 ws://*:5201"));
        assert!(policy(None).ends_with("connect-src 'self'"));
        let both = content_security(Some("ams-1"), Some(BrowserPort { has_tls: true, ..plain }));
        assert!(both.ends_with(" ws://ams-1:5201 https://ams-1:5201 wss://ams-1:5201"), "{both}");
        assert!(content_security(Some("ams-1"), None).ends_with("connect-src 'self'"));
    }

    #[test]
    fn the_host_is_read_as_browsers_write_it() {
        let host = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, value.parse().unwrap());
            host_of(&Uri::from_static("/x"), &headers).map(str::to_owned)
        };
        assert_eq!(host("ams-1:8080").as_deref(), Some("ams-1"));
        assert_eq!(host("ams-1").as_deref(), Some("ams-1"));
        assert_eq!(host("[2001:db8::1]:8080").as_deref(), Some("2001:db8::1"));
        assert_eq!(host("evil@localhost:80"), None);
        assert_eq!(host_of(&Uri::from_static("/"), &HeaderMap::new()), None);
        let headers = HeaderMap::new();
        assert_eq!(host_of(&Uri::from_static("http://evil.example/x"), &headers), Some("evil.example"));
    }
}
