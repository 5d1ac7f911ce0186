//! The pages: one shell with the front end, which is part of the program.

use std::io::Write;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use linerate_compat::http::responsiveness_config as config_at;
use linerate_model::join_host_and_port;
use sha2::{Digest, Sha256};

use crate::config::WebAssets;
use crate::guard::host_of;
use crate::problem::{HttpProblem, NOT_FOUND};
use crate::service::Service;

/// The shell of all pages.
const SHELL: &str = include_str!("shell.html");
/// The icon of the pages.
const ICON: &str = include_str!("icon.svg");

/// Bytes of a digest that tell two builds of a file apart.
const TAG_BYTES: usize = 8;

/// A file of the program, also compressed.
#[derive(Debug)]
pub(crate) struct PageFile {
    media_type: &'static str,
    content: &'static str,
    packed: Bytes,
    tag: String,
}

/// The files of the pages.
#[derive(Debug)]
pub(crate) struct PageFiles {
    shell: PageFile,
    script: PageFile,
    worker: PageFile,
    style: PageFile,
    icon: PageFile,
}

impl PageFiles {
    pub(crate) fn new(assets: WebAssets) -> Self {
        let WebAssets { script, worker, style, .. } = assets;
        Self {
            shell: PageFile::new("text/html; charset=utf-8", SHELL),
            script: PageFile::new("text/javascript; charset=utf-8", script),
            worker: PageFile::new("text/javascript; charset=utf-8", worker),
            style: PageFile::new("text/css; charset=utf-8", style),
            icon: PageFile::new("image/svg+xml", ICON),
        }
    }
}

impl PageFile {
    fn new(media_type: &'static str, content: &'static str) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to memory does not fail.
        let packed =
            encoder.write_all(content.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default();
        let digest = Sha256::digest(content.as_bytes());
        let tag = digest.iter().take(TAG_BYTES).map(|byte| format!("{byte:02x}")).collect();
        Self { media_type, content, packed: packed.into(), tag }
    }

    /// The file. Browsers ask each time whether it has changed, which it does only with the program.
    fn response(&self, headers: &HeaderMap) -> Response {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let packs = accepts_gzip(text(header::ACCEPT_ENCODING));
        let tag = format!("\"{}{}\"", self.tag, if packs { "-gzip" } else { "" });
        let known = text(header::IF_NONE_MATCH) == tag;
        let caching = [
            (header::ETAG, tag),
            (header::CACHE_CONTROL, "no-cache".to_owned()),
            (header::VARY, "accept-encoding".to_owned()),
        ];
        if known {
            return (StatusCode::NOT_MODIFIED, caching).into_response();
        }
        let kind = [(header::CONTENT_TYPE, self.media_type)];
        if packs {
            return (caching, kind, [(header::CONTENT_ENCODING, "gzip")], self.packed.clone())
                .into_response();
        }
        (caching, kind, self.content).into_response()
    }
}

/// Whether a client takes compressed content (RFC 9110, section 12.5.3): a weight of 0 means that it does not.
fn accepts_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f64>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight| weight > 0.0)
    })
}

pub(crate) async fn shell(State(service): State<Service>, headers: HeaderMap) -> Response {
    let files = service.files();
    if files.script.content.is_empty() {
        let text = "this linerate was built without the front end; run `make ui` in the source tree (with \
                    Node.js 20.19 or newer) and build again. The interface at /api/v1/openapi.json works \
                    without it.\n";
        return (StatusCode::NOT_IMPLEMENTED, text).into_response();
    }
    files.shell.response(&headers)
}

/// The shell for a path that no page has.
pub(crate) async fn missing(state: State<Service>) -> Response {
    let mut page = shell(state, HeaderMap::new()).await;
    *page.status_mut() = StatusCode::NOT_FOUND;
    page
}

/// Where clients measure responsiveness, for those that only know the address of the pages.
pub(crate) async fn responsiveness_config(
    State(service): State<Service>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    let (Some(port), Some(host)) = (service.responsiveness_port(), host_of(&uri, &headers)) else {
        let why =
            "this server takes no measurements of responsiveness; it is started with --responsiveness-port";
        return Err(HttpProblem::new(NOT_FOUND, why));
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, config_at("https", &join_host_and_port(host, port))).into_response())
}

pub(crate) async fn script(State(service): State<Service>, headers: HeaderMap) -> Response {
    service.files().script.response(&headers)
}

pub(crate) async fn worker(State(service): State<Service>, headers: HeaderMap) -> Response {
    service.files().worker.response(&headers)
}

pub(crate) async fn style(State(service): State<Service>, headers: HeaderMap) -> Response {
    service.files().style.response(&headers)
}

pub(crate) async fn icon(State(service): State<Service>, headers: HeaderMap) -> Response {
    service.files().icon.response(&headers)
}
