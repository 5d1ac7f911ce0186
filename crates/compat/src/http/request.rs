//! The head of a request, and responses (RFC 9112).

use linerate_model::ForeignText;

/// Most bytes of a request's head.
pub(super) const MAX_HEAD_BYTES: usize = 8 << 10;

/// Most header fields.
const MAX_FIELDS: usize = 64;

/// Most bytes of a query (ndt7: at least 4096).
const MAX_TARGET_BYTES: usize = 6 << 10;

/// The method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpMethod {
    /// GET.
    #[default]
    Get,
    /// POST.
    Post,
    /// OPTIONS, by which a browser asks whether a page of another host may send a request.
    Options,
}

/// The head of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
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
    /// Bytes of the body; absent if the head does not tell.
    pub content_length: Option<u64>,
    /// Whether the body comes in chunks, so that its length is unknown.
    pub is_chunked: bool,
    /// Whether the client waits for permission before it sends the body.
    pub expects_continue: bool,
    /// Whether the client may send another request over the connection.
    pub is_persistent: bool,
}

/// Why there is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// It is not HTTP/1.1.
    Malformed,
    /// The head is longer than 8 KiB, or has more than 64 fields.
    TooLarge,
    /// A method other than GET, POST and OPTIONS.
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
        let method = match parsed.method {
            Some("GET") => HttpMethod::Get,
            Some("POST") => HttpMethod::Post,
            Some("OPTIONS") => HttpMethod::Options,
            _ => return Err(RequestError::Method),
        };
        let target = parsed.path.unwrap_or_default();
        if target.len() > MAX_TARGET_BYTES {
            return Err(RequestError::TooLarge);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let is_persistent = parsed.version == Some(1);
        let (path, query) = (path.to_owned(), query.to_owned());
        let mut request = Self { method, path, query, is_persistent, ..Self::default() };
        let mut upgrades = false;
        let mut version = false;
        for field in parsed.headers.iter() {
            let value = String::from_utf8_lossy(field.value);
            let name = field.name;
            if request.read_body_field(name, value.trim())? {
                continue;
            }
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

    /// Reads a field that says how the body is sent, or what becomes of the connection; false if it is another one.
    fn read_body_field(&mut self, name: &str, value: &str) -> Result<bool, RequestError> {
        if name.eq_ignore_ascii_case("content-length") {
            // Digits only (RFC 9110, section 8.6), and once: two lengths are how requests are smuggled.
            let digits = !value.is_empty() && value.bytes().all(|digit| digit.is_ascii_digit());
            let length = value.parse().ok().filter(|_| digits && self.content_length.is_none());
            self.content_length = Some(length.ok_or(RequestError::Malformed)?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            // The only coding that is served (RFC 9112, section 6.1).
            let is_chunked = value.eq_ignore_ascii_case("chunked") && !self.is_chunked;
            self.is_chunked = is_chunked.then_some(true).ok_or(RequestError::Malformed)?;
        } else if name.eq_ignore_ascii_case("expect") {
            self.expects_continue = value.eq_ignore_ascii_case("100-continue");
        } else if name.eq_ignore_ascii_case("connection") {
            let closes = value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"));
            self.is_persistent &= !closes;
        } else {
            return Ok(false);
        }
        Ok(true)
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
    come_again("503 Service Unavailable", why)
}

/// The same for a client that comes back only after this status.
pub(super) fn come_again(status: &str, why: &str) -> Vec<u8> {
    let body = format!("{why}\n");
    let fields = [("Content-Type", "text/plain; charset=utf-8"), ("Retry-After", "5")];
    let mut response = head(status, &fields, Some(body.len()));
    response.extend_from_slice(body.as_bytes());
    response
}

/// The response to a client that may not measure here now, and need not ask again soon.
pub(super) fn not_allowed(why: &str) -> Vec<u8> {
    text("429 Too Many Requests", &format!("{why}\n"))
}

/// The head of a response over a connection that stays open if the client permits it. Pages of other hosts may read
/// the response and its times.
pub(super) fn persistent_head(
    status: &str,
    fields: &[(&str, &str)],
    length: u64,
    is_persistent: bool,
) -> Vec<u8> {
    let mut head = start_of_head(status, if is_persistent { "keep-alive" } else { "close" });
    head.push_str(
        "Timing-Allow-Origin: *\r\nAccess-Control-Expose-Headers: Server-Timing\r\n\
         Cache-Control: no-store, no-transform\r\n",
    );
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {length}\r\n\r\n"));
    head.into_bytes()
}

fn start_of_head(status: &str, connection: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nConnection: {connection}\r\nAccess-Control-Allow-Origin: *\r\n\
         Cross-Origin-Resource-Policy: cross-origin\r\nX-Content-Type-Options: nosniff\r\n"
    )
}

fn head(status: &str, fields: &[(&str, &str)], length: Option<usize>) -> Vec<u8> {
    let mut head = start_of_head(status, "close");
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}
