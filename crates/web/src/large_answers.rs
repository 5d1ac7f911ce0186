//! Answers of many bytes. A client that reads slowly, or not at all, keeps them in the memory of this host, so that is
//! bounded: for all visitors together, and for each of them as connections are.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use linerate_control::{Permit, Shares};

use crate::problem::{HttpProblem, INTERNAL, TOO_MANY};

/// Unit in which the memory is shared. Smaller answers are in the buffers of connections anyway.
const BLOCK_BYTES: u64 = 1 << 20;
/// Memory of all large answers together, in blocks.
const MAX_BLOCKS: usize = 256;
/// An answer counts as this part of it at most. So three of any size are sent at a time, and at most two to one host.
const LARGEST_SHARE: usize = 4;
/// Bytes that are passed on at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The memory for large answers.
#[derive(Debug, Clone)]
pub(crate) struct LargeAnswers {
    shares: Arc<Shares>,
    largest: usize,
}

impl LargeAnswers {
    pub(crate) fn new() -> Self {
        Self::of(MAX_BLOCKS)
    }

    fn of(blocks: usize) -> Self {
        Self { shares: Shares::new(blocks), largest: blocks / LARGEST_SHARE }
    }
}

/// Sends an answer in pieces if it is large, and refuses it while too many others are being read.
pub(crate) async fn bound_memory(
    State(memory): State<LargeAnswers>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    // What has no known length is a stream.
    let Some(length) = response.body().size_hint().exact().filter(|length| *length > BLOCK_BYTES) else {
        return response;
    };
    let blocks =
        usize::try_from(length / BLOCK_BYTES).map_or(memory.largest, |blocks| blocks.min(memory.largest));
    let taken: Result<Vec<Permit>, _> = (0..blocks).map(|_| memory.shares.take(from.ip())).collect();
    let Ok(permits) = taken else {
        let text = "other large answers are still being read; try again when they have arrived";
        return HttpProblem::new(TOO_MANY, text).retry_after(10).into_response();
    };
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return HttpProblem::new(INTERNAL, "the answer could not be made").into_response();
    };
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Response::from_parts(parts, Body::from_stream(stream::unfold((bytes, permits), piece)))
}

/// The next piece. The places are free when the last one was taken.
async fn piece(
    (mut rest, permits): (Bytes, Vec<Permit>),
) -> Option<(Result<Bytes, Infallible>, (Bytes, Vec<Permit>))> {
    if rest.is_empty() {
        return None;
    }
    let piece = rest.split_to(rest.len().min(CHUNK_BYTES));
    Some((Ok(piece), (rest, permits)))
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use axum::{Extension, Router, middleware};
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;

    use super::*;

    const LARGE: usize = 3 << 20;

    /// The answer to a visitor from this address.
    async fn ask(memory: &LargeAnswers, path: &str, from: &str) -> Response {
        let router = Router::new()
            .route("/large", get(|| async { vec![7_u8; LARGE] }))
            .route("/small", get(|| async { "small" }))
            .layer(middleware::from_fn_with_state(memory.clone(), bound_memory))
            .layer(Extension(ConnectInfo(SocketAddr::new(from.parse().unwrap(), 1))));
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        TowerToHyperService::new(router).call(request).await.unwrap()
    }

    #[test]
    fn a_client_that_does_not_read_gets_a_share_of_the_memory() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let memory = LargeAnswers::of(8);
            let first = ask(&memory, "/large", "192.0.2.1").await;
            let second = ask(&memory, "/large", "192.0.2.1").await;
            assert_eq!([first.status().as_u16(), second.status().as_u16()], [200; 2]);
            let third = ask(&memory, "/large", "192.0.2.1").await;
            assert_eq!(third.status().as_u16(), 429);
            assert!(third.headers().contains_key(header::RETRY_AFTER));
            // Others get theirs, and everybody what is small.
            assert_eq!(ask(&memory, "/large", "198.51.100.1").await.status().as_u16(), 200);
            assert_eq!(ask(&memory, "/small", "192.0.2.1").await.status().as_u16(), 200);
            assert_eq!(first.headers()[header::CONTENT_LENGTH], LARGE.to_string());
            let read = to_bytes(first.into_body(), usize::MAX).await.unwrap();
            assert!(read.len() == LARGE && read.iter().all(|byte| *byte == 7));
            assert_eq!(ask(&memory, "/large", "192.0.2.1").await.status().as_u16(), 200, "a place is free");
            drop(second);
        });
    }
}
