//! The addresses of other speed tests: what LibreSpeed's page and Cloudflare's engine ask a server for.
//!
//! LibreSpeed's page downloads random bytes (`garbage`), uploads to `empty`, measures its round trips with requests
//! to the same address, and asks for its own address (`getIP`). Cloudflare's engine has one address for a direction.
//! Neither has a dialogue around its requests.
//!
//! Sources: librespeed/speedtest 5.4, @cloudflare/speedtest 1.14.

use std::net::IpAddr;

use super::request::{self, HttpMethod, HttpRequest};

/// Name in results.
pub(super) const LIBRESPEED: &str = "librespeed";

/// Name in results.
pub(super) const CLOUDFLARE: &str = "cloudflare";

/// Most bytes of one body, in either direction: those of LibreSpeed's largest download.
pub(super) const MAX_BODY_BYTES: u64 = MAX_CHUNKS * CHUNK_BYTES;

/// LibreSpeed: bytes of a chunk, how many there are by default and at most.
const CHUNK_BYTES: u64 = 1 << 20;
const DEFAULT_CHUNKS: u64 = 4;
const MAX_CHUNKS: u64 = 1024;

/// What is at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndpointKind {
    /// Bytes to download.
    Payload,
    /// A place to upload to, which answers with nothing.
    Sink,
    /// The client's address.
    Address,
}

/// An address of another speed test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// Name of its tool.
    pub(super) tool: &'static str,
    kind: EndpointKind,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A complete response.
    Response(Vec<u8>),
    /// A download of this many bytes.
    Download(u64),
    /// An upload of this many bytes; absent if it comes in chunks.
    Upload(Option<u64>),
}

impl Endpoint {
    /// What is at this path; absent if nothing is.
    pub(super) fn of(path: &str) -> Option<Self> {
        let of = |tool, kind| Some(Self { tool, kind });
        match path {
            "/__down" => return of(CLOUDFLARE, EndpointKind::Payload),
            "/__up" => return of(CLOUDFLARE, EndpointKind::Sink),
            _ => {}
        }
        // Each with or without the folder and the ending, because there are servers in several languages.
        let name = path.strip_prefix("/backend").unwrap_or(path).strip_prefix('/')?;
        match name.strip_suffix(".php").unwrap_or(name) {
            "garbage" => of(LIBRESPEED, EndpointKind::Payload),
            "empty" => of(LIBRESPEED, EndpointKind::Sink),
            "getIP" => of(LIBRESPEED, EndpointKind::Address),
            _ => None,
        }
    }

    /// What a request to this address asks for, or the response that refuses it.
    pub(super) fn wanted(self, request: &HttpRequest, client: Option<IpAddr>) -> Result<Wanted, Vec<u8>> {
        let refuse = |status: &str, why: &str| Err(request::text(status, why));
        let respond = |fields: &[(&str, &str)], body: &str| {
            let length = body.len() as u64;
            let mut response = request::persistent_head("200 OK", fields, length, request.is_persistent);
            response.extend_from_slice(body.as_bytes());
            Ok(Wanted::Response(response))
        };
        // What a server ignores of a request is taken for the next one (RFC 9112, section 9.3).
        let has_body = request.is_chunked || request.content_length.is_some_and(|bytes| bytes > 0);
        match (request.method, self.kind) {
            (HttpMethod::Get | HttpMethod::Options, _) if has_body => {
                refuse("400 Bad Request", "only POST has a body here\n")
            }
            (HttpMethod::Options, _) => {
                let fields = [
                    ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
                    ("Access-Control-Allow-Headers", "Content-Type, Content-Encoding, Cache-Control"),
                    ("Access-Control-Max-Age", "86400"),
                ];
                respond(&fields, "")
            }
            (HttpMethod::Get, EndpointKind::Payload) => self
                .payload_bytes(request)
                .map(Wanted::Download)
                .or_else(|why| refuse("400 Bad Request", why)),
            (HttpMethod::Get, EndpointKind::Address) => {
                let text = client.map_or_else(String::new, |client| client.to_canonical().to_string());
                let body = format!("{{\"processedString\":\"{text}\",\"rawIspInfo\":\"\"}}");
                respond(&[("Content-Type", "application/json; charset=utf-8")], &body)
            }
            (HttpMethod::Get, EndpointKind::Sink) => respond(&[], ""),
            (HttpMethod::Post, EndpointKind::Sink) => match request.content_length {
                // Both are how requests are smuggled.
                Some(_) if request.is_chunked => {
                    refuse("400 Bad Request", "a body has a length or comes in chunks\n")
                }
                None if request.is_chunked => Ok(Wanted::Upload(None)),
                Some(bytes) if bytes > MAX_BODY_BYTES => {
                    refuse("413 Content Too Large", "a body has at most 1 GiB\n")
                }
                bytes => Ok(Wanted::Upload(Some(bytes.unwrap_or_default()))),
            },
            (HttpMethod::Post, _) => refuse("405 Method Not Allowed", "nothing can be uploaded here\n"),
        }
    }

    fn payload_bytes(self, request: &HttpRequest) -> Result<u64, &'static str> {
        if self.tool == LIBRESPEED {
            // As its own servers do, whatever else the value is.
            let chunks = request.parameter("ckSize").and_then(|chunks| chunks.parse::<u64>().ok());
            return Ok(
                chunks.filter(|chunks| *chunks > 0).unwrap_or(DEFAULT_CHUNKS).min(MAX_CHUNKS) * CHUNK_BYTES
            );
        }
        let bytes = request.parameter("bytes").map_or(Ok(0), str::parse::<u64>);
        bytes.ok().filter(|bytes| *bytes <= MAX_BODY_BYTES).ok_or("bytes is a number up to 1073741824\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(head: &str) -> Result<Wanted, String> {
        let head = format!("{head}\r\nHost: h\r\n\r\n");
        let (request, _) = HttpRequest::read(head.as_bytes()).unwrap().unwrap();
        let endpoint = Endpoint::of(&request.path).unwrap();
        endpoint
            .wanted(&request, Some([192, 0, 2, 7].into()))
            .map_err(|response| String::from_utf8(response).unwrap().lines().next().unwrap().to_owned())
    }

    #[test]
    fn every_spelling_of_an_address_is_known_and_no_other() {
        for path in ["/garbage", "/garbage.php", "/backend/garbage", "/backend/garbage.php"] {
            assert_eq!(Endpoint::of(path).map(|found| found.tool), Some(LIBRESPEED), "{path}");
        }
        for path in
            ["/", "/backend", "/backend/", "/backendgarbage", "/garbage.phpx", "/backend/backend/empty"]
        {
            assert_eq!(Endpoint::of(path), None, "{path}");
        }
        assert_eq!(Endpoint::of("/__down").map(|found| found.tool), Some(CLOUDFLARE));
    }

    #[test]
    fn the_length_of_a_download_is_that_of_the_query() {
        let mib = |chunks: u64| Ok(Wanted::Download(chunks << 20));
        assert_eq!(wanted("GET /garbage.php?r=0.5&ckSize=100 HTTP/1.1"), mib(100));
        assert_eq!(wanted("GET /garbage HTTP/1.1"), mib(4));
        assert_eq!(wanted("GET /garbage?ckSize=abc HTTP/1.1"), mib(4));
        assert_eq!(wanted("GET /garbage?ckSize=0 HTTP/1.1"), mib(4));
        assert_eq!(wanted("GET /garbage?ckSize=5000 HTTP/1.1"), mib(1024));
        assert_eq!(wanted("GET /__down?bytes=100001 HTTP/1.1"), Ok(Wanted::Download(100_001)));
        assert_eq!(wanted("GET /__down HTTP/1.1"), Ok(Wanted::Download(0)));
        for bytes in ["-1", "1e6", "1073741825", "99999999999999999999"] {
            let refused = wanted(&format!("GET /__down?bytes={bytes} HTTP/1.1"));
            assert_eq!(refused, Err("HTTP/1.1 400 Bad Request".to_owned()), "{bytes}");
        }
    }

    #[test]
    fn an_upload_has_a_length_within_bounds_or_comes_in_chunks() {
        let of = |fields: &str| wanted(&format!("POST /empty HTTP/1.1\r\n{fields}"));
        assert_eq!(of("Content-Length: 20000000"), Ok(Wanted::Upload(Some(20_000_000))));
        assert_eq!(of("X: y"), Ok(Wanted::Upload(Some(0))));
        assert_eq!(of("Transfer-Encoding: chunked"), Ok(Wanted::Upload(None)));
        let both = "Transfer-Encoding: chunked\r\nContent-Length: 4";
        assert_eq!(of(both), Err("HTTP/1.1 400 Bad Request".to_owned()));
        assert_eq!(of("Content-Length: 1073741825"), Err("HTTP/1.1 413 Content Too Large".to_owned()));
        assert_eq!(wanted("POST /garbage HTTP/1.1"), Err("HTTP/1.1 405 Method Not Allowed".to_owned()));
    }

    #[test]
    fn the_client_is_told_its_address() {
        let Ok(Wanted::Response(response)) = wanted("GET /backend/getIP.php?isp=true HTTP/1.1") else {
            panic!()
        };
        let text = String::from_utf8(response).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "{\"processedString\":\"192.0.2.7\",\"rawIspInfo\":\"\"}");
        assert!(head.contains("\r\nConnection: keep-alive\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())), "{head}");
    }
}
