//! Event streams (the HTML standard, "Server-sent events").

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, BoxStream, StreamExt};
use serde::Serialize;
use tokio::sync::watch;

use crate::labs::LabViewer;
use crate::live::{End, Message, message};
use crate::runs::{CurrentRuns, WebRun};
use crate::service::StreamWatcher;

/// After this time without a message, a comment shows that the connection lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The comment.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// A response that is a stream of messages.
pub(crate) struct Stream(BoxStream<'static, Result<Bytes, Infallible>>);

impl IntoResponse for Stream {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            // A proxy must not collect the messages.
            (header::HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        (headers, Body::from_stream(self.0)).into_response()
    }
}

impl aide::OperationOutput for Stream {
    type Inner = Self;
}

/// What a stream sends next.
struct LiveStream<S> {
    /// Makes a message of all that is known now.
    snapshot: S,
    messages: watch::Receiver<Message>,
    /// Those of [`Message::snapshots`] that this viewer has seen.
    snapshots: u64,
    stage: StreamStage,
    watcher: StreamWatcher,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamStage {
    Snapshot,
    Frames,
    Over,
}

/// The messages of a run that was started here.
pub(crate) fn run(watcher: StreamWatcher, run: Arc<WebRun>) -> Stream {
    let messages = run.live.subscribe();
    live(watcher, messages, move || run.live.snapshot())
}

/// The messages about the single streams of a run that was started here; absent for a plan.
pub(crate) fn streams_of(watcher: StreamWatcher, run: Arc<WebRun>) -> Option<Stream> {
    let messages = run.live.subscribe_streams()?;
    Some(live(watcher, messages, move || run.live.streams_snapshot()))
}

/// The messages of an emulated network.
pub(crate) fn lab(watcher: StreamWatcher, LabViewer { lab, messages }: LabViewer) -> Stream {
    live(watcher, messages, move || lab.snapshot_message())
}

/// A snapshot, then frames until the end.
fn live(
    watcher: StreamWatcher,
    mut messages: watch::Receiver<Message>,
    snapshot: impl Fn() -> Bytes + Send + 'static,
) -> Stream {
    // The snapshot contains what the newest message has.
    let Message { end, snapshots, .. } = messages.borrow_and_update().clone();
    let over = end.is_some();
    let start = LiveStream { snapshot, messages, snapshots, stage: StreamStage::Snapshot, watcher };
    Stream(
        stream::unfold(start, move |mut stream| async move {
            let bytes = match stream.stage {
                StreamStage::Snapshot => {
                    stream.stage = StreamStage::Frames;
                    let snapshot = (stream.snapshot)();
                    if over { stream.with_end(snapshot) } else { snapshot }
                }
                StreamStage::Frames => stream.next().await?,
                StreamStage::Over => return None,
            };
            Some((Ok(bytes), stream))
        })
        .boxed(),
    )
}

impl<S: Fn() -> Bytes> LiveStream<S> {
    /// The newest frame, once there is one that was not sent.
    async fn next(&mut self) -> Option<Bytes> {
        let waited = tokio::time::timeout(KEEP_ALIVE, self.messages.changed()).await;
        if !self.watcher.may_watch() {
            return None;
        }
        match waited {
            Err(_) => Some(COMMENT),
            Ok(Err(_)) => None,
            Ok(Ok(())) => {
                let Message { mut frame, end, snapshots } = self.messages.borrow_and_update().clone();
                if std::mem::replace(&mut self.snapshots, snapshots) != snapshots {
                    frame = (self.snapshot)();
                }
                Some(if end.is_some() { self.with_end(frame) } else { frame })
            }
        }
    }

    /// The last frame and the end.
    fn with_end(&mut self, frame: Bytes) -> Bytes {
        self.stage = StreamStage::Over;
        let end = self.messages.borrow().end.clone().unwrap_or_default();
        Bytes::from([frame, end].concat())
    }
}

/// The messages of a run that is only in the archive.
pub(crate) fn finished(seq: Option<u64>, snapshot: &impl Serialize, end: &End) -> Stream {
    let all = [message("snapshot", seq, snapshot), message("end", None, end)].concat();
    Stream(stream::iter([Ok(Bytes::from(all))]).boxed())
}

/// The current runs, now and after each change.
pub(crate) fn current_runs(watcher: StreamWatcher, current_runs: watch::Receiver<CurrentRuns>) -> Stream {
    let start = (watcher, current_runs, true);
    Stream(
        stream::unfold(start, |(watcher, mut current_runs, first)| async move {
            let waited = if first {
                Ok(Ok(()))
            } else {
                tokio::time::timeout(KEEP_ALIVE, current_runs.changed()).await
            };
            if !watcher.may_watch() {
                return None;
            }
            let bytes = match waited {
                Err(_) => COMMENT,
                Ok(Err(_)) => return None,
                Ok(Ok(())) => message("runs", None, &*current_runs.borrow_and_update()),
            };
            Some((Ok(bytes), (watcher, current_runs, false)))
        })
        .boxed(),
    )
}
