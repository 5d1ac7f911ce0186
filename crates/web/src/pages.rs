//! The pages: one shell with the front end, which is part of the program.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::service::Service;

/// The shell of all pages.
const SHELL: &str = include_str!("shell.html");
/// The icon of the pages.
const ICON: &str = include_str!("icon.svg");

pub(crate) async fn shell(State(service): State<Service>) -> Response {
    if service.assets().script.is_empty() {
        let text = "this linerate was built without the front end; run `make ui` in the source tree (with \
                    Node.js 20.19 or newer) and build again. The interface at /api/v1/openapi.json works \
                    without it.\n";
        return (StatusCode::NOT_IMPLEMENTED, text).into_response();
    }
    asset(&HeaderMap::new(), "text/html; charset=utf-8", SHELL)
}

/// The shell for a path that no page has.
pub(crate) async fn missing(state: State<Service>) -> Response {
    let mut page = shell(state).await;
    *page.status_mut() = StatusCode::NOT_FOUND;
    page
}

pub(crate) async fn script(State(service): State<Service>, headers: HeaderMap) -> Response {
    asset(&headers, "text/javascript; charset=utf-8", service.assets().script)
}

pub(crate) async fn style(State(service): State<Service>, headers: HeaderMap) -> Response {
    asset(&headers, "text/css; charset=utf-8", service.assets().style)
}

pub(crate) async fn icon(headers: HeaderMap) -> Response {
    asset(&headers, "image/svg+xml", ICON)
}

/// A file of the program. Browsers ask each time whether it has changed, which it does only with the program.
fn asset(headers: &HeaderMap, media_type: &'static str, content: &'static str) -> Response {
    let tag = format!("\"{}-{:x}\"", env!("CARGO_PKG_VERSION"), content.len() ^ checksum(content));
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let caching = [(header::ETAG, tag), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if known {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(header::CONTENT_TYPE, media_type)], content).into_response()
}

/// Tells two builds of a file apart (FNV-1a).
fn checksum(content: &str) -> usize {
    content
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ usize::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
