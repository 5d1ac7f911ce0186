//! A forwarder that makes one end of an honest dialogue hostile: what that end says is replaced, repeated, held back or cut.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_proto::agent;
use linerate_proto::native::{Connection, PREFACE_BYTES, Preface};
use serde_json::Value;

use super::absurd::{twist, word};
use super::{Rng, framed, pause};

/// What becomes of the words of the hostile end, from one of them on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Misdeed {
    /// Some values are replaced, in every word.
    Twist(usize),
    /// A word comes without end, as fast as it is read.
    Flood,
    /// A word comes without end, a few hundred times in a second.
    Trickle,
    /// Only that this end lives is said any more.
    OnlyAlive,
    /// Nothing more comes.
    Silence,
    /// The connection ends.
    Close,
    /// A message begins that never ends, or is longer than any.
    Half,
    /// Other words come between the honest ones.
    Insert,
    /// A word comes twice.
    Twice,
    /// A word never comes.
    Leave,
    /// Bytes that are no message.
    Noise,
}

/// What becomes of connections for data and probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Honest,
    /// Nothing is read or written.
    Held,
    Closed,
    /// Bytes without end, and whatever comes is read.
    Noise,
}

/// The first word that is no longer honest.
#[derive(Debug, Clone, Copy)]
enum From {
    /// So many come before it.
    Number(usize),
    /// The first one of this type.
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

/// Everything that is drawn for a session.
#[derive(Debug, Clone, Copy)]
struct Plan {
    seed: u64,
    /// The end that connects is the hostile one.
    near: bool,
    from: From,
    misdeed: Misdeed,
    side: Side,
}

/// A running forwarder on a port of its own, closed on drop.
pub(crate) struct Tampering {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    plan: Plan,
    target: u16,
    over: AtomicBool,
    struck: AtomicBool,
}

impl Tampering {
    /// Forwards to a port of this host; the end behind it is the hostile one, or the one that connects.
    pub(crate) fn to(target: u16, near: bool, seed: u64) -> Self {
        use Misdeed::{Close, Flood, Half, Insert, Leave, Noise, OnlyAlive, Silence, Trickle, Twice, Twist};
        let rng = &mut Rng::new(!seed);
        let few = Twist(rng.of(&[1, 1, 3, 10]));
        let all = [
            few, few, few, few, Flood, Trickle, OnlyAlive, Silence, Close, Half, Insert, Twice, Leave, Noise,
        ];
        let misdeed = rng.of(&all);
        // Values are absurd from the first word on, mostly: what comes of them is seen at the end.
        let from = rng.below(if matches!(misdeed, Twist(_)) { 3 } else { 14 });
        let misused = rng.percent(20);
        let side = if misused { rng.of(&[Side::Held, Side::Closed, Side::Noise]) } else { Side::Honest };
        Self::with(target, Plan { seed, near, from: From::Number(from), misdeed, side })
    }

    /// From the first word of this type on, the end behind it says only that it lives.
    pub(crate) fn holding_back(target: u16, word: &'static str) -> Self {
        let (from, misdeed) = (From::Word(word), Misdeed::OnlyAlive);
        Self::with(target, Plan { seed: 0, near: false, from, misdeed, side: Side::Honest })
    }

    fn with(target: u16, plan: Plan) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (over, struck) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Arc::new(Shared { plan, target, over, struck });
        // Some other program may have the port for datagrams: then there are none.
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

    /// Whether anything was done that an honest end does not do.
    pub(crate) fn has_tampered(&self) -> bool {
        self.shared.struck.load(Ordering::Relaxed)
    }

    /// What was drawn, for the text of a failure.
    pub(crate) fn plan(&self) -> String {
        format!("{:?}", self.shared.plan)
    }
}

impl Drop for Tampering {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn mark_tampered(&self) {
        self.struck.store(true, Ordering::Relaxed);
    }
}

/// Sends datagrams back, with a byte of each replaced.
fn echo(socket: &UdpSocket, shared: &Shared) {
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

/// One connection: told apart by its first bytes.
fn serve(mut near: TcpStream, shared: &Arc<Shared>) {
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
        || matches!(Preface::decode(&start), Ok(Some(preface)) if preface.connection == Connection::Control);
    if !is_dialogue && shared.plan.side != Side::Honest {
        misuse(near, shared);
        return;
    }
    if (&far).write_all(&start).is_err() {
        return;
    }
    let own = |end: &TcpStream| end.try_clone().unwrap();
    let (there, back) = ((own(&near), own(&far)), (own(&far), own(&near)));
    let (hostile, honest) = if shared.plan.near { (there, back) } else { (back, there) };
    // The far end's first bytes come back as ours went there.
    let first = if shared.plan.near { 0 } else { start.len() };
    let carrier = Arc::clone(shared);
    std::thread::spawn(move || carry(honest.0, honest.1, &carrier));
    if is_dialogue {
        tamper(hostile.0, hostile.1, first, shared);
    } else {
        carry(hostile.0, hostile.1, shared);
    }
}

/// Data or probes, not as they should be.
fn misuse(mut near: TcpStream, shared: &Shared) {
    let noise = [0x5a; 16 << 10];
    let mut bytes = [0; 16 << 10];
    while !shared.over() {
        match shared.plan.side {
            Side::Held => pause(Duration::from_millis(50)),
            Side::Noise => {
                let _ = near.read(&mut bytes);
                if near.write(&noise).is_err_and(|error| !is_late(&error)) {
                    return;
                }
            }
            Side::Closed | Side::Honest => return,
        }
    }
}

/// Whether it would have been possible later.
fn is_late(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Reads until the buffer is full; false when the connection or the session ends before.
fn fill(from: &mut TcpStream, buffer: &mut [u8], shared: &Shared) -> bool {
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

/// Writes all; false when the connection or the session ends before.
fn write(to: &mut TcpStream, mut bytes: &[u8], shared: &Shared) -> bool {
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

fn carry(mut from: TcpStream, mut to: TcpStream, shared: &Shared) {
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

/// The words of the hostile end.
fn tamper(mut from: TcpStream, mut to: TcpStream, first: usize, shared: &Shared) {
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
            let said = if honest {
                write(&mut to, &framed(&body), shared)
            } else {
                distorted += 1;
                distort(&body, distorted == 1, &mut to, rng, shared)
            };
            if !said {
                break;
            }
        }
    }
    close([&from, &to]);
}

/// One word of the hostile end; false when it was the last one.
fn distort(body: &[u8], first: bool, to: &mut TcpStream, rng: &mut Rng, shared: &Shared) -> bool {
    shared.mark_tampered();
    let other = word(rng).to_string();
    let alive = br#"{"type":"heartbeat"}"#;
    let repeated = if rng.percent(50) { body } else { rng.of(&[other.as_bytes(), alive]) };
    match shared.plan.misdeed {
        Misdeed::Twist(of_hundred) => {
            let mut said: Value = serde_json::from_slice(body).unwrap();
            twist(&mut said, rng, of_hundred);
            write(to, &framed(said.to_string().as_bytes()), shared)
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

/// Says this until nobody listens or the session is over.
fn again_and_again(said: &[u8], every: Duration, to: &mut TcpStream, shared: &Shared) -> bool {
    while !shared.over() && write(to, said, shared) {
        pause(every);
    }
    false
}
