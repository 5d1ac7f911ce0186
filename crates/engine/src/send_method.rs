//! Which way of passing bytes to the kernel is the fastest on this host: a short comparison over its own loopback
//! interface.
//!
//! The way to the peer plays no part in it: a copy costs the same wherever the bytes go. `MSG_ZEROCOPY` is not
//! compared, because the kernel copies for it on loopback.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use linerate_model::SendMethod;
use linerate_sock::stream::{recv, set_recv_timeout, set_send_timeout};
use linerate_sock::{Mono, Moved, SockError, clock, queues, sockopt, thread};

use crate::flow::FlowSide;
use crate::plan::MAX_READ_BYTES;
use crate::pump::feed::Feed;
use crate::pump::payload;

/// Time for which a method sends in each round.
const SLICE: Duration = Duration::from_millis(15);
/// Rounds in which all methods take turns; their median counts.
const ROUNDS: usize = 3;
/// Longest wait of a call.
const CALL_WAIT: Duration = Duration::from_millis(200);
/// What a comparison depends on: the congestion control, the bytes of a call, and whether copying is a candidate.
type ComparisonKey = (Option<String>, usize, bool);

/// Answers that this process has found. Neither the host nor its kernel changes while it runs.
static ANSWERS: Mutex<BTreeMap<ComparisonKey, SendMethod>> = Mutex::new(BTreeMap::new());

/// The method that a sender uses, if it was told to choose one.
///
/// # Errors
/// This host has no loopback interface to compare them over, or no method works.
pub(crate) fn fastest(flow: &FlowSide, may_copy: bool) -> Result<SendMethod, SockError> {
    let congestion = flow.sockets.tcp(0).and_then(|socket| sockopt::congestion(socket).ok());
    let key = (congestion, flow.plan.block, may_copy);
    // Held while comparing: two comparisons at the same time would disturb each other.
    let mut answers = thread::locked(&ANSWERS);
    if let Some(known) = answers.get(&key) {
        return Ok(*known);
    }
    let found = compare(flow, SendMethod::candidates(may_copy), key.0.as_deref())?;
    answers.insert(key, found);
    Ok(found)
}

/// A candidate with its own connection.
struct ComparedMethod {
    method: SendMethod,
    feed: Feed,
    socket: TcpStream,
    /// Bytes per second in each round.
    rates: Vec<f64>,
}

fn compare(
    flow: &FlowSide,
    methods: &[SendMethod],
    congestion: Option<&str>,
) -> Result<SendMethod, SockError> {
    const OP: &str = "compare ways of sending over the loopback interface";
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|source| SockError::new(OP, source))?;
    let target = listener.local_addr().map_err(|source| SockError::new(OP, source))?;
    let mut candidates = Vec::new();
    let mut readers = Vec::new();
    for &method in methods {
        let socket = TcpStream::connect(target).map_err(|source| SockError::new(OP, source))?;
        let (far, _) = listener.accept().map_err(|source| SockError::new(OP, source))?;
        if let Some(name) = congestion {
            sockopt::set_congestion(&socket, name)?;
        }
        set_send_timeout(&socket, Some(CALL_WAIT))?;
        set_recv_timeout(&far, Some(CALL_WAIT))?;
        let mut buffer = payload::allocate(flow.plan.block.min(MAX_READ_BYTES))?;
        readers.push(thread::spawn("compare", move || {
            while let Ok(Moved::Bytes(_) | Moved::Pending) = recv(&far, &mut buffer) {}
        })?);
        // A kernel without a method is no reason to do without the others.
        if let Ok(feed) = Feed::with_method(flow, method) {
            candidates.push(ComparedMethod { method, feed, socket, rates: Vec::new() });
        }
    }
    for _ in 0..ROUNDS {
        candidates.retain_mut(|candidate| candidate.send_for(SLICE).is_ok());
    }
    let chosen = SendMethod::fastest(&candidates.iter().map(ComparedMethod::median).collect::<Vec<_>>());
    for candidate in &candidates {
        let _ = queues::finish_writing(&candidate.socket);
    }
    drop(candidates);
    for reader in readers {
        let _ = reader.join();
    }
    chosen.ok_or_else(|| SockError::new(OP, std::io::ErrorKind::Unsupported.into()))
}

impl ComparedMethod {
    fn send_for(&mut self, time: Duration) -> Result<(), SockError> {
        let start = clock::now();
        let until: Mono = start + time;
        let (mut bytes, mut now) = (0, start);
        while now < until {
            bytes += self.feed.send(&self.socket, u64::MAX)?.bytes();
            now = clock::now();
        }
        self.rates.push(bytes as f64 / now.since(start).as_secs_f64());
        Ok(())
    }

    fn median(&self) -> (SendMethod, f64) {
        let mut sorted = self.rates.clone();
        sorted.sort_by(f64::total_cmp);
        (self.method, sorted.get(sorted.len() / 2).copied().unwrap_or(0.0))
    }
}
