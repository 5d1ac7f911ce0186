//! A connection that carries load: endless bodies in one direction, and requests of one byte between them.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Response, StatusCode, Uri};
use linerate_model::flow::StreamCounts;
use linerate_model::{Direction, ForeignText};
use linerate_units::{Span, Timestamp};

use super::super::acknowledged::LinkLoad;
use super::super::body_totals::BodyReading;
use super::super::http2::write_part;
use super::super::http2_client::{Awaited, Http2Tls, Requested};
use super::connection::{TestConnection, refusal, request};

/// Most bytes that are read of a small object, or of what explains a refusal.
pub(super) const MAX_SMALL_BYTES: usize = 4 << 10;

/// Most requests of one byte that wait for their answer: servers limit the streams of a connection.
const MAX_WAITING: usize = 20;

/// A body that ends before this number of bytes is no load, and most of those one after the other.
const MIN_BODY_BYTES: u64 = 1_000_000;
const MAX_SHORT_BODIES: u32 = 20;

/// When a request of one byte was sent, and the time until it was answered; absent if it never will be.
pub(super) type ProbeAnswer = (Timestamp, Option<Span>);

/// What a body is doing.
enum LoadBody {
    /// There is none yet.
    None,
    /// A download waits for the head of its response.
    Asked(ResponseFuture),
    Reading(RecvStream),
    Writing(SendStream<Bytes>, ResponseFuture),
    /// The request is refused, with a reason.
    Refused(Awaited),
}

/// What a step did.
enum LoadProgress {
    Nothing,
    Moved,
}

/// A connection that carries load.
pub(super) struct LoadConnection {
    pub(super) direction: Direction,
    pub(super) connection: TestConnection,
    uri: Uri,
    body: LoadBody,
    load: Option<LinkLoad>,
    /// Bytes that were read or written of the last body, and the short bodies one after the other until now.
    moved: u64,
    pub(super) short: u32,
    /// When the requests of one byte were sent.
    waiting: Vec<(Timestamp, Awaited)>,
    /// Whether the server takes no further requests over it.
    is_exhausted: bool,
}

impl std::fmt::Debug for LoadConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadConnection").field("direction", &self.direction).finish_non_exhaustive()
    }
}

impl LoadConnection {
    /// A connection that begins to connect, for bodies at this address. `short` is the number of short bodies of the one
    /// that it replaces.
    ///
    /// # Errors
    /// TLS cannot begin.
    pub(super) fn new(
        now: Timestamp,
        direction: Direction,
        uri: &Uri,
        tls: Option<&Http2Tls>,
        short: u32,
    ) -> Result<Self, String> {
        Ok(Self {
            direction,
            connection: TestConnection::new(now, tls)?,
            uri: uri.clone(),
            body: LoadBody::None,
            load: None,
            moved: 0,
            short,
            waiting: Vec::new(),
            is_exhausted: false,
        })
    }

    /// Works on what has arrived, and sends what there is room for. Returns the times of the requests of one byte that
    /// were answered or refused.
    ///
    /// # Errors
    /// The server does not take part in the test.
    pub(super) fn work(&mut self, now: Timestamp) -> Result<Vec<ProbeAnswer>, String> {
        loop {
            self.connection.http.advance();
            if !self.connection.is_ready() {
                return Ok(Vec::new());
            }
            match self.step(now)? {
                LoadProgress::Moved => {}
                LoadProgress::Nothing => break,
            }
        }
        let answered = self.take_answered(now)?;
        if self.connection.http.is_over() && !self.is_spent() {
            return Err("the server closed a connection that carried load".to_owned());
        }
        Ok(answered)
    }

    fn step(&mut self, now: Timestamp) -> Result<LoadProgress, String> {
        let mut context = Context::from_waker(Waker::noop());
        let (body, step) = match std::mem::replace(&mut self.body, LoadBody::None) {
            LoadBody::None => self.begin(now)?,
            LoadBody::Asked(mut response) => match Pin::new(&mut response).poll(&mut context) {
                Poll::Pending => (LoadBody::Asked(response), LoadProgress::Nothing),
                Poll::Ready(response) => match (head(response, self.direction.name())?, self.direction) {
                    (LoadBody::Reading(_), Direction::Upload) => (LoadBody::None, LoadProgress::Moved),
                    (other, _) => (other, LoadProgress::Moved),
                },
            },
            LoadBody::Reading(mut body) => match body.poll_data(&mut context) {
                Poll::Pending => (LoadBody::Reading(body), LoadProgress::Nothing),
                Poll::Ready(Some(Ok(bytes))) => {
                    // It fails if the stream has ended.
                    let _ = body.flow_control().release_capacity(bytes.len());
                    self.moved(now, bytes.len() as u64);
                    (LoadBody::Reading(body), LoadProgress::Moved)
                }
                Poll::Ready(Some(Err(error))) => return Err(broken("download", &error)),
                Poll::Ready(None) => (LoadBody::None, LoadProgress::Moved),
            },
            LoadBody::Writing(mut stream, mut response) => {
                match Pin::new(&mut response).poll(&mut context) {
                    // The server wants no more of it. Some have a limit.
                    Poll::Ready(Ok(response))
                        if response.status() == StatusCode::PAYLOAD_TOO_LARGE
                            && self.moved >= MIN_BODY_BYTES =>
                    {
                        (LoadBody::None, LoadProgress::Moved)
                    }
                    Poll::Ready(response) => match head(response, "upload")? {
                        LoadBody::Reading(_) => (LoadBody::None, LoadProgress::Moved),
                        other => (other, LoadProgress::Moved),
                    },
                    Poll::Pending => match write_part(&mut stream, self.connection.room.part(), None) {
                        Some(0) => (LoadBody::Writing(stream, response), LoadProgress::Nothing),
                        Some(count) => {
                            self.moved += count;
                            (LoadBody::Writing(stream, response), LoadProgress::Moved)
                        }
                        // Its response says why.
                        None => (LoadBody::Asked(response), LoadProgress::Moved),
                    },
                }
            }
            LoadBody::Refused(mut awaited) => match awaited.poll() {
                Poll::Pending => (LoadBody::Refused(awaited), LoadProgress::Nothing),
                Poll::Ready(Ok(answered)) => return Err(refusal(&answered)),
                Poll::Ready(Err(error)) => return Err(broken("request", &error)),
            },
        };
        self.body = body;
        Ok(step)
    }

    /// Begins the next body.
    fn begin(&mut self, now: Timestamp) -> Result<(LoadBody, LoadProgress), String> {
        let (method, is_whole) = match self.direction {
            Direction::Download => (Method::GET, true),
            Direction::Upload => (Method::POST, false),
        };
        let (response, stream) = match self.connection.http.request(request(method, &self.uri), is_whole) {
            Requested::Sent(response, stream) => (response, stream),
            Requested::NotNow => return Ok((LoadBody::None, LoadProgress::Nothing)),
            Requested::Never => {
                self.is_exhausted = true;
                return Ok((LoadBody::None, LoadProgress::Nothing));
            }
        };
        let is_long = std::mem::take(&mut self.moved) >= MIN_BODY_BYTES;
        self.short = if is_long { 0 } else { self.short + 1 };
        if self.short > MAX_SHORT_BODIES {
            return Err(format!("the server ends each {} after less than 1 MB", self.direction.name()));
        }
        if self.load.is_none() {
            let mut load = LinkLoad::new(now, self.direction, self.connection.sent.acknowledged());
            // What is acknowledged until the next reading belongs to it.
            if self.connection.is_counted {
                load.counted(now, &self.connection.counts, self.acknowledged());
            }
            self.load = Some(load);
        }
        let body = match self.direction {
            Direction::Download => LoadBody::Asked(response),
            Direction::Upload => LoadBody::Writing(stream, response),
        };
        Ok((body, LoadProgress::Moved))
    }

    /// What the server's kernel has acknowledged of bodies, if this end sends them.
    fn acknowledged(&self) -> Option<u64> {
        (self.direction == Direction::Upload).then(|| self.connection.sent.acknowledged())
    }

    fn moved(&mut self, now: Timestamp, bytes: u64) {
        self.moved += bytes;
        if let Some(load) = &mut self.load {
            load.read(now, bytes);
        }
    }

    /// Requests one byte between the bodies, if the connection takes the request.
    pub(super) fn probe(&mut self, now: Timestamp, uri: &Uri) {
        if self.load.is_none() || self.waiting.len() >= MAX_WAITING {
            return;
        }
        match self.connection.http.request(request(Method::GET, uri), true) {
            Requested::Sent(response, _) => {
                self.waiting.push((now, Awaited::new(response, MAX_SMALL_BYTES)));
            }
            Requested::NotNow => {}
            Requested::Never => self.is_exhausted = true,
        }
    }

    fn take_answered(&mut self, now: Timestamp) -> Result<Vec<ProbeAnswer>, String> {
        let (mut answered, mut trouble) = (Vec::new(), None);
        let is_exhausted = &mut self.is_exhausted;
        self.waiting.retain_mut(|(asked, awaited)| match awaited.poll() {
            Poll::Pending => true,
            Poll::Ready(Ok(response)) if response.status.is_success() => {
                answered.push((*asked, Some(now - *asked)));
                false
            }
            // The server has had enough of this connection, and did not look at the request.
            Poll::Ready(Err(error))
                if error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM) =>
            {
                *is_exhausted = true;
                answered.push((*asked, None));
                false
            }
            Poll::Ready(Ok(response)) => {
                trouble = Some(refusal(&response));
                false
            }
            Poll::Ready(Err(error)) => {
                trouble = Some(broken("request", &error));
                false
            }
        });
        trouble.map_or(Ok(answered), Err)
    }

    /// Whether requests of one byte can be sent over it.
    pub(super) fn takes_probes(&self) -> bool {
        self.load.is_some() && !self.is_exhausted && self.waiting.len() < MAX_WAITING
    }

    /// Whether its last body has ended and the server takes no further one: it has to be replaced.
    pub(super) fn is_spent(&self) -> bool {
        self.is_exhausted && matches!(self.body, LoadBody::None)
    }

    /// When the requests of one byte were sent that were not answered yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Timestamp> {
        self.waiting.iter().map(|(asked, _)| *asked)
    }

    /// Takes the counts of the kernel.
    pub(super) fn counted(&mut self, now: Timestamp, counts: &StreamCounts) {
        self.connection.counted(now, counts);
        let acknowledged = self.acknowledged();
        if let Some(load) = &mut self.load {
            load.counted(now, counts, acknowledged);
        }
    }

    /// Bytes of bodies that were read, or that the server's kernel has acknowledged.
    pub(super) fn bytes(&self) -> u64 {
        self.load.as_ref().map_or(0, |load| load.bytes)
    }

    /// What is known of its bodies; absent before the first one.
    pub(super) fn reading(&self) -> Option<BodyReading> {
        let TestConnection { counts, counted_at, .. } = &self.connection;
        self.load.as_ref().map(|load| load.reading(counts, *counted_at))
    }
}

/// The body of a response, or the reason why there is none.
fn head(response: Result<Response<RecvStream>, h2::Error>, what: &str) -> Result<LoadBody, String> {
    let (head, body) = response.map_err(|error| broken(what, &error))?.into_parts();
    if head.status.is_success() {
        return Ok(LoadBody::Reading(body));
    }
    Ok(LoadBody::Refused(Awaited::rest(head, body, MAX_SMALL_BYTES)))
}

pub(super) fn broken(what: &str, error: &h2::Error) -> String {
    // A server may add words of its own.
    format!("the server broke off a {what}: {}", ForeignText::new(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use linerate_model::flow::ConnectionCounts;

    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ns(ms * 1_000_000)
    }

    /// What was acknowledged between the first reading and the begin of the load belongs to no load; all after it does.
    #[test]
    fn a_load_counts_from_its_begin_even_if_it_comes_after_a_reading() {
        let uri = "http://h/u".parse().unwrap();
        let mut load = LoadConnection::new(at(0), Direction::Upload, &uri, None, 0).unwrap();
        let counts = |bytes_acknowledged| StreamCounts {
            connection: Some(ConnectionCounts { bytes_acknowledged, ..ConnectionCounts::default() }),
            ..StreamCounts::default()
        };
        load.counted(at(1), &counts(7));
        let from = "192.0.2.1:1".parse::<SocketAddr>().unwrap();
        load.connection.opened(at(2), &crate::virtual_hosts::opened(from, from));
        load.work(at(2)).unwrap();
        let sent = load.connection.take_to_send().unwrap().len() as u64;
        assert!(sent > 1_000, "{sent}");
        load.counted(at(100), &counts(7 + sent));
        assert!(load.bytes() > 1_000 && load.bytes() < sent, "{} of {sent}", load.bytes());
    }
}
