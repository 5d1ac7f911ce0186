//! A forwarder that makes one end of an honest dialogue hostile: it replaces, repeats, withholds or cuts the
//! messages of that end.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_proto::agent;
use linerate_proto::native::{ConnectionPurpose, PREFACE_BYTES, Preface};
use serde_json::Value;

use super::absurd::{twist, word};
use super::{Rng, framed, pause};

/// What happens to the messages of the hostile end, from a certain one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Misdeed {
    /// Some values are replaced in every message.
    Twist(usize),
    /// One message is repeated endlessly, as fast as it is read.
    Flood,
    /// One message is repeated endlessly, a few hundred times per second.
    Trickle,
    /// Only heartbeats are sent.
    OnlyAlive,
    /// Nothing more is sent.
    Silence,
    /// The connection is closed.
    Close,
    /// A message starts that never ends, or exceeds the length limit.
    Half,
    /// Other messages are inserted between the honest ones.
    Insert,
    /// One message is sent twice.
    Twice,
    /// One message is omitted.
    Leave,
    /// Bytes that are not a message.
    Noise,
}

/// What happens to connections for data and probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SideTampering {
    Honest,
    /// Nothing is read or written.
    Held,
    Closed,
    /// Sends bytes endlessly, and reads everything.
    Noise,
}

/// The first message that is changed.
#[derive(Debug, Clone, Copy)]
enum From {
    /// Number of messages before it.
    Number(usize),
    /// The first message of this type.
    Word(&'static str),
}

impl From {
    fn has_come(self, number: usize, body: &[u8]) -> bool {
        match self {
            Self::Number(from) => number >= from,
            Self::Word(name) => {
                let word: Value = serde_json::from_slice(body).unwrap_or_default();
                word["type"] == name
            }
        }
    }
}

/// The random choices of a session.
#[derive(Debug, Clone, Copy)]
struct TamperingPlan {
    seed: u64,
    /// Whether the connecting end is the hostile one.
    near: bool,
    from: From,
    misdeed: Misdeed,
    side: SideTampering,
}

/// A running forwarder on its own port, closed on drop.
pub(crate) struct Tampering {
    pub(crate) port: u16,
    shared: Arc<TamperingState>,
}

struct TamperingState {
    plan: TamperingPlan,
    target: u16,
    over: AtomicBool,
    struck: AtomicBool,
}

impl Tampering {
    /// Forwards to a port of this host; the hostile end is the server there, or the connecting one.
    pub(crate) fn to(target: u16, near: bool, seed: u64) -> Self {
        use Misdeed::{Close, Flood, Half, Insert, Leave, Noise, OnlyAlive, Silence, Trickle, Twice, Twist};
        let rng = &mut Rng::new(!seed);
        let few = Twist(rng.of(&[1, 1, 3, 10]));
        let all = [
            few, few, few, few, Flood, Trickle, OnlyAlive, Silence, Close, Half, Insert, Twice, Leave, Noise,
        ];
        let misdeed = rng.of(&all);
        // Values are mostly replaced from one of the first messages on, as the effects appear only at the end.
        let from = rng.below(if matches!(misdeed, Twist(_)) { 3 } else { 14 });
        let misused = rng.percent(20);
        let side = if misused {
            rng.of(&[SideTampering::Held, SideTampering::Closed, SideTampering::Noise])
        } else {
            SideTampering::Honest
        };
        Self::with(target, TamperingPlan { seed, near, from: From::Number(from), misdeed, side })
    }

    /// From the first message of this type on, the server end sends heartbeats only.
    pub(crate) fn holding_back(target: u16, word: &'static str) -> Self {
        let (from, misdeed) = (From::Word(word), Misdeed::OnlyAlive);
        Self::with(target, TamperingPlan { seed: 0, near: false, from, misdeed, side: SideTampering::Honest })
    }

    fn with(target: u16, plan: TamperingPlan) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (over, struck) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Arc::new(TamperingState { plan, target, over, struck });
        // If another program uses the UDP port, there are no datagrams.
        if let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || echo(&socket, &shared));
        }
        let forwarder = Arc::clone(&shared);
        std::thread::spawn(move || {
            while !forwarder.over() {
                match listener.accept() {
                    Ok((near, _)) => {
                        let shared = Arc::clone(&forwarder);
                        std::thread::spawn(move || serve(near, &shared));
                    }
                    Err(_) => pause(Duration::from_millis(2)),
                }
            }
        });
        Self { port, shared }
    }

    /// Whether the dialogue was changed at all.
    pub(crate) fn has_tampered(&self) -> bool {
        self.shared.struck.load(Ordering::Relaxed)
    }

    /// The random choices, for a failure message.
    pub(crate) fn plan(&self) -> String {
        format!("{:?}", self.shared.plan)
    }
}

impl Drop for Tampering {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

impl TamperingState {
    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn mark_tampered(&self) {
        self.struck.store(true, Ordering::Relaxed);
    }
}

/// Returns datagrams with one byte replaced.
fn echo(socket: &UdpSocket, shared: &TamperingState) {
    let rng = &mut Rng::new(shared.plan.seed);
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut bytes = [0; 2048];
    while !shared.over() {
        let Ok((count @ 1.., from)) = socket.recv_from(&mut bytes) else { continue };
        let at = rng.below(count);
        bytes[at] = bytes[at].wrapping_add(u8::try_from(rng.below(3)).unwrap());
        let _ = socket.send_to(&bytes[..count], from);
    }
}

/// One connection; its kind follows from its first bytes.
fn serve(mut near: TcpStream, shared: &Arc<TamperingState>) {
    let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.target)) else { return };
    let _ = near.set_nonblocking(false);
    for end in [&near, &far] {
        let _ = (end.set_nodelay(true), end.set_read_timeout(Some(Duration::from_millis(100))));
        let _ = end.set_write_timeout(Some(Duration::from_millis(500)));
    }
    let mut start = vec![0; agent::MAGIC.len()];
    if !fill(&mut near, &mut start, shared) {
        return;
    }
    let known = start == agent::MAGIC;
    if !known {
        start.resize(PREFACE_BYTES, 0);
        if !fill(&mut near, &mut start[agent::MAGIC.len()..], shared) {
            return;
        }
    }
    let is_dialogue = known
        || matches!(Preface::decode(&start), Ok(Some(preface)) if preface.connection == ConnectionPurpose::Control);
    if !is_dialogue && shared.plan.side != SideTampering::Honest {
        misuse(near, shared);
        return;
    }
    if (&far).write_all(&start).is_err() {
        return;
    }
    let own = |end: &TcpStream| end.try_clone().unwrap();
    let (there, back) = ((own(&near), own(&far)), (own(&far), own(&near)));
    let (hostile, honest) = if shared.plan.near { (there, back) } else { (back, there) };
    // The far end's first bytes correspond to the ones that we have forwarded.
    let first = if shared.plan.near { 0 } else { start.len() };
    let carrier = Arc::clone(shared);
    std::thread::spawn(move || carry(honest.0, honest.1, &carrier));
    if is_dialogue {
        tamper(hostile.0, hostile.1, first, shared);
    } else {
        carry(hostile.0, hostile.1, shared);
    }
}

/// Misuses a connection for data or probes.
fn misuse(mut near: TcpStream, shared: &TamperingState) {
    let noise = [0x5a; 16 << 10];
    let mut bytes = [0; 16 << 10];
    while !shared.over() {
        match shared.plan.side {
            SideTampering::Held => pause(Duration::from_millis(50)),
            SideTampering::Noise => {
                let _ = near.read(&mut bytes);
                if near.write(&noise).is_err_and(|error| !is_late(&error)) {
                    return;
                }
            }
            SideTampering::Closed | SideTampering::Honest => return,
        }
    }
}

/// Whether the call can be retried.
fn is_late(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Reads until the buffer is full; false if the connection or the session ends first.
fn fill(from: &mut TcpStream, buffer: &mut [u8], shared: &TamperingState) -> bool {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(count @ 1..) => filled += count,
            Err(error) if is_late(&error) && !shared.over() => {}
            _ => return false,
        }
    }
    true
}

/// Writes everything; false if the connection or the session ends first.
fn write(to: &mut TcpStream, mut bytes: &[u8], shared: &TamperingState) -> bool {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(count @ 1..) => bytes = &bytes[count..],
            Err(error) if is_late(&error) && !shared.over() => {}
            _ => return false,
        }
    }
    true
}

fn close(ends: [&TcpStream; 2]) {
    for end in ends {
        let _ = end.shutdown(Shutdown::Both);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, shared: &TamperingState) {
    let mut piece = [0; 64 << 10];
    loop {
        match from.read(&mut piece) {
            Ok(0) => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(count) if write(&mut to, &piece[..count], shared) => {}
            Err(error) if is_late(&error) && !shared.over() => {}
            _ => return close([&from, &to]),
        }
    }
}

/// Forwards the messages of the hostile end.
fn tamper(mut from: TcpStream, mut to: TcpStream, first: usize, shared: &TamperingState) {
    let rng = &mut Rng::new(shared.plan.seed.rotate_left(17));
    let mut start = vec![0; first];
    if fill(&mut from, &mut start, shared) && write(&mut to, &start, shared) {
        let mut distorted = 0;
        for number in 0.. {
            let mut length = [0; 4];
            if !fill(&mut from, &mut length, shared) {
                break;
            }
            let mut body = vec![0; u32::from_be_bytes(length) as usize];
            if !fill(&mut from, &mut body, shared) {
                break;
            }
            let honest = distorted == 0 && !shared.plan.from.has_come(number, &body);
            let sent = if honest {
                write(&mut to, &framed(&body), shared)
            } else {
                distorted += 1;
                distort(&body, distorted == 1, &mut to, rng, shared)
            };
            if !sent {
                break;
            }
        }
    }
    close([&from, &to]);
}

/// Changes one message of the hostile end; false if it was the last one.
fn distort(body: &[u8], first: bool, to: &mut TcpStream, rng: &mut Rng, shared: &TamperingState) -> bool {
    shared.mark_tampered();
    let other = word(rng).to_string();
    let alive = br#"{"type":"heartbeat"}"#;
    let repeated = if rng.percent(50) { body } else { rng.of(&[other.as_bytes(), alive]) };
    match shared.plan.misdeed {
        Misdeed::Twist(of_hundred) => {
            let mut message: Value = serde_json::from_slice(body).unwrap();
            twist(&mut message, rng, of_hundred);
            write(to, &framed(message.to_string().as_bytes()), shared)
        }
        Misdeed::Flood => {
            let many = framed(repeated).repeat((256 << 10) / (repeated.len() + 4) + 1);
            while write(to, &many, shared) {}
            false
        }
        Misdeed::Trickle => again_and_again(&framed(repeated), Duration::from_millis(4), to, shared),
        Misdeed::OnlyAlive => again_and_again(&framed(alive), Duration::from_millis(300), to, shared),
        Misdeed::Silence => {
            while !shared.over() {
                pause(Duration::from_millis(50));
            }
            false
        }
        Misdeed::Close => false,
        Misdeed::Half => {
            let length = rng.of(&[4, 1_000, 60_000, 1 << 20, u32::MAX]);
            let begun = [&length.to_be_bytes()[..], &vec![b'['; rng.below(1 << 20)]].concat();
            write(to, &begun, shared) && again_and_again(b"", Duration::from_millis(50), to, shared)
        }
        Misdeed::Insert => {
            (0..rng.below(4)).all(|_| write(to, &framed(word(rng).to_string().as_bytes()), shared))
                && write(to, &framed(body), shared)
        }
        Misdeed::Twice if first => write(to, &framed(body).repeat(2), shared),
        Misdeed::Leave if first => true,
        Misdeed::Twice | Misdeed::Leave => write(to, &framed(body), shared),
        Misdeed::Noise => {
            let noise: Vec<u8> =
                (0..rng.below(100_000)).map(|_| u8::try_from(rng.below(256)).unwrap()).collect();
            write(to, &noise, shared)
        }
    }
}

/// Repeats this until the connection or the session ends.
fn again_and_again(message: &[u8], every: Duration, to: &mut TcpStream, shared: &TamperingState) -> bool {
    while !shared.over() && write(to, message, shared) {
        pause(every);
    }
    false
}
