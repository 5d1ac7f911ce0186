//! The head of a request, and responses (RFC 9112).

use linerate_model::ForeignText;

/// Most bytes of a request's head.
pub(super) const MAX_HEAD_BYTES: usize = 8 << 10;

/// Most header fields.
const MAX_FIELDS: usize = 64;

/// Most bytes of a query (ndt7: at least 4096).
const MAX_TARGET_BYTES: usize = 6 << 10;

/// The head of a GET request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// Path of the target, without the query.
    pub path: String,
    /// The query, not decoded; empty if there is none.
    pub query: String,
    /// Name of the host in the Host field, without the port.
    pub host: String,
    /// Name of the host in the Origin field; absent if a program that is no browser sends none.
    pub origin: Option<String>,
    /// The key of a WebSocket's handshake; absent if no WebSocket is requested.
    pub websocket_key: Option<String>,
    /// The subprotocols that the client of a WebSocket offers.
    pub protocols: Vec<String>,
    /// The program that the client claims to be.
    pub user_agent: ForeignText,
}

/// Why there is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// It is not HTTP/1.1.
    Malformed,
    /// The head is longer than 8 KiB, or has more than 64 fields.
    TooLarge,
    /// A method other than GET.
    Method,
}

impl HttpRequest {
    /// Reads the head of a request and returns it with its length; `None` if it is incomplete.
    ///
    /// # Errors
    /// It cannot become a request that is served here.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, RequestError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut parsed = httparse::Request::new(&mut fields);
        let length = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
            Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD_BYTES => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooLarge),
            Err(_) => return Err(RequestError::Malformed),
        };
        if parsed.method != Some("GET") {
            return Err(RequestError::Method);
        }
        let target = parsed.path.unwrap_or_default();
        if target.len() > MAX_TARGET_BYTES {
            return Err(RequestError::TooLarge);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self { path: path.to_owned(), query: query.to_owned(), ..Self::default() };
        let mut upgrades = false;
        let mut version = false;
        for field in parsed.headers.iter() {
            let value = String::from_utf8_lossy(field.value);
            let name = field.name;
            if name.eq_ignore_ascii_case("host") {
                request.host = host_of(&value).to_owned();
            } else if name.eq_ignore_ascii_case("origin") {
                let host = value.split_once("://").map_or("", |(_, rest)| host_of(rest));
                request.origin = Some(host.to_owned());
            } else if name.eq_ignore_ascii_case("upgrade") {
                upgrades = value.eq_ignore_ascii_case("websocket");
            } else if name.eq_ignore_ascii_case("sec-websocket-version") {
                version = value.trim() == "13";
            } else if name.eq_ignore_ascii_case("sec-websocket-key") {
                request.websocket_key = Some(value.trim().to_owned());
            } else if name.eq_ignore_ascii_case("sec-websocket-protocol") {
                request.protocols.extend(value.split(',').map(|protocol| protocol.trim().to_owned()));
            } else if name.eq_ignore_ascii_case("user-agent") {
                request.user_agent = ForeignText::new(&value);
            }
        }
        request.websocket_key = request.websocket_key.filter(|_| upgrades && version);
        Ok(Some((request, length)))
    }

    /// The value of a parameter of the query.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    }

    /// Whether the request comes from a page of this host, or from no page.
    #[must_use]
    pub fn is_of_own_page(&self) -> bool {
        self.origin.as_ref().is_none_or(|origin| origin.eq_ignore_ascii_case(&self.host))
    }

    /// Name and version of the browser; absent if it is none that is known.
    #[must_use]
    pub fn browser(&self) -> Option<String> {
        let text = self.user_agent.as_str();
        let version = |mark: &str| {
            let (_, rest) = text.split_once(mark)?;
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            rest.get(..end).filter(|version| !version.is_empty())
        };
        let known = [("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome")];
        let found = known.iter().find_map(|(mark, name)| Some(format!("{name} {}", version(mark)?)));
        let safari =
            || text.contains("Safari/").then(|| version("Version/").map(|v| format!("Safari {v}"))).flatten();
        found.or_else(safari)
    }
}

/// The name of a host, without its port.
fn host_of(text: &str) -> &str {
    let text = text.trim();
    match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => text.split([':', '/']).next().unwrap_or_default(),
    }
}

/// The head of a response to a page of another port, whose body ends with the connection.
pub(super) fn endless_body() -> Vec<u8> {
    head(
        "200 OK",
        &[("Content-Type", "application/octet-stream"), ("Cache-Control", "no-store, no-transform")],
        None,
    )
}

/// A complete response with a text.
pub(super) fn text(status: &str, body: &str) -> Vec<u8> {
    let mut response = head(
        status,
        &[("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")],
        Some(body.len()),
    );
    response.extend_from_slice(body.as_bytes());
    response
}

/// The response to a client that has to come back later.
pub(super) fn busy(why: &str) -> Vec<u8> {
    let body = format!("{why}\n");
    let fields = [("Content-Type", "text/plain; charset=utf-8"), ("Retry-After", "5")];
    let mut response = head("503 Service Unavailable", &fields, Some(body.len()));
    response.extend_from_slice(body.as_bytes());
    response
}

/// The response to a client that may not measure here now, and need not ask again soon.
pub(super) fn not_allowed(why: &str) -> Vec<u8> {
    text("429 Too Many Requests", &format!("{why}\n"))
}

fn head(status: &str, fields: &[(&str, &str)], length: Option<usize>) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nAccess-Control-Allow-Origin: *\r\n\
         Cross-Origin-Resource-Policy: cross-origin\r\nX-Content-Type-Options: nosniff\r\n"
    );
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}
