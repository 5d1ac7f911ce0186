//! Which way of passing bytes to the kernel is the fastest on this host: a short comparison over its own loopback
//! interface.
//!
//! The way to the peer plays no part in it: a copy costs the same wherever the bytes go. `MSG_ZEROCOPY` is not
//! compared, because the kernel copies for it on loopback.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_model::SendMethod;
use linerate_sock::open::{ConnectOptions, connect_tcp};
use linerate_sock::stream::{recv, set_recv_timeout, set_send_timeout};
use linerate_sock::{Mono, Moved, SockError, SocketOptions, clock, sockopt, thread};

use crate::flow::FlowSide;
use crate::pump::feed::Feed;
use crate::pump::payload;

/// Time for which a method sends in each round.
const SLICE: Duration = Duration::from_millis(15);
/// Rounds in which all methods take turns; their median counts.
const ROUNDS: usize = 3;
/// Longest wait of a call, and of a connection to this host.
const CALL_WAIT: Duration = Duration::from_millis(20);
const CONNECT_WAIT: Duration = Duration::from_millis(500);
/// Bytes of a block: a length that was asked for is rounded to a power of two between these, so that peers cannot make
/// this host compare, or remember, as many lengths as they like.
const SHORTEST_BLOCK: usize = 256 << 10;
const LONGEST_BLOCK: usize = 1 << 20;
/// Bytes that a reader takes at once.
const READ_BYTES: usize = 512 << 10;
/// How long an answer is used. Another load on the host may have disturbed the comparison.
const KEPT: Duration = Duration::from_secs(600);

/// What a comparison depends on: the congestion control, the bytes of a call, and whether copying is a candidate.
type ComparisonKey = (Option<String>, usize, bool);

/// Answers that this process has found, and when.
static ANSWERS: Mutex<BTreeMap<ComparisonKey, (SendMethod, Mono)>> = Mutex::new(BTreeMap::new());

/// The method that a sender uses, if it was told to choose one.
///
/// # Errors
/// This host has no loopback interface to compare them over, or no method works.
pub(crate) fn fastest(flow: &FlowSide, may_copy: bool) -> Result<SendMethod, SockError> {
    let congestion = flow.sockets.tcp(0).and_then(|socket| sockopt::congestion(socket).ok());
    let block = flow.plan.block.clamp(SHORTEST_BLOCK, LONGEST_BLOCK).next_power_of_two();
    let key = (congestion, block, may_copy);
    // Held while comparing: two comparisons at the same time would disturb each other. One takes a fraction of a second.
    let mut answers = thread::locked(&ANSWERS);
    if let Some((known, at)) = answers.get(&key)
        && clock::now().since(*at) < KEPT
    {
        return Ok(*known);
    }
    let found = compare(flow, block, SendMethod::candidates(may_copy), key.0.as_deref())?;
    answers.insert(key, (found, clock::now()));
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

/// The readers of all connections, which end with this value.
struct Readers {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    fn add(&mut self, far: TcpStream) -> Result<(), SockError> {
        set_recv_timeout(&far, Some(CALL_WAIT))?;
        let mut buffer = payload::allocate(READ_BYTES)?;
        let ended = Arc::clone(&self.ended);
        let read = move || {
            while !ended.load(Ordering::Relaxed)
                && matches!(recv(&far, &mut buffer), Ok(Moved::Bytes(_) | Moved::Pending))
            {}
        };
        self.threads.push(thread::spawn("compare", read)?);
        Ok(())
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for reader in self.threads.drain(..) {
            let _ = reader.join();
        }
    }
}

fn compare(
    flow: &FlowSide,
    block: usize,
    methods: &[SendMethod],
    congestion: Option<&str>,
) -> Result<SendMethod, SockError> {
    const OP: &str = "compare ways of sending over the loopback interface";
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|source| SockError::new(OP, source))?;
    let target = listener.local_addr().map_err(|source| SockError::new(OP, source))?;
    let mut candidates = Vec::new();
    let mut readers = Readers { ended: Arc::default(), threads: Vec::new() };
    for &method in methods {
        let near = connect_tcp(&ConnectOptions {
            addresses: vec![target],
            socket: SocketOptions::default(),
            deadline: clock::now() + CONNECT_WAIT,
        })?;
        let (far, _) = listener.accept().map_err(|source| SockError::new(OP, source))?;
        readers.add(far)?;
        let socket = near.stream;
        if let Some(name) = congestion {
            // An algorithm that only root or a route may choose makes the comparison a little less like the test.
            let _ = sockopt::set_congestion(&socket, name);
        }
        set_send_timeout(&socket, Some(CALL_WAIT))?;
        // A kernel without a method is no reason to do without the others.
        if let Ok(feed) = Feed::with_method(flow, method, block) {
            candidates.push(ComparedMethod { method, feed, socket, rates: Vec::new() });
        }
    }
    for _ in 0..ROUNDS {
        candidates.retain_mut(|candidate| candidate.send_for(SLICE).is_ok());
    }
    let chosen = SendMethod::fastest(&candidates.iter().map(ComparedMethod::median).collect::<Vec<_>>());
    chosen.ok_or_else(|| SockError::new(OP, std::io::ErrorKind::Unsupported.into()))
}

impl ComparedMethod {
    fn send_for(&mut self, time: Duration) -> Result<(), SockError> {
        let start = clock::now();
        let until = start + time;
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
