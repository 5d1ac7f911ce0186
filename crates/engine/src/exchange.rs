//! Messages in turn over one connection, as fast as it goes.

use std::net::TcpStream;
use std::time::Duration;

use linerate_model::flow::{Exchange, Exchanged, Reason};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::stream::{recv, send, set_nonblocking, set_recv_timeout, set_send_timeout};
use linerate_sock::{Mono, Moved, SockError, clock, queues};
use linerate_units::{Bytes, Span};

use crate::pump::{payload, reason};
use crate::setup::FlowSetup;

/// The longest that a call waits before it looks whether the exchange shall be given up.
const MAX_CALL_WAIT: Duration = Duration::from_millis(100);
/// Single turns are reported up to so many.
const MAX_REPORTED_TURNS: u32 = 100_000;
/// Bytes through which messages walk that no cache shall hold: more than the caches of one core.
const MESSAGE_POOL_BYTES: usize = 10_000_000;

/// Sends and receives messages in turn with blocking calls, in the calling thread. The socket comes back blocking, with
/// timeouts. Shutting it down from elsewhere ends the exchange.
///
/// # Errors
/// When a call fails, when the peer closes, when it takes longer than the exchange may, or when a message is longer than
/// 64 MiB.
pub fn exchange(socket: &TcpStream, task: &Exchange) -> Result<Exchanged, Reason> {
    let mut outgoing = MessageBuffer::new(task.send, task)?;
    let mut incoming = MessageBuffer::new(task.receive, &Exchange { head: Vec::new(), ..task.clone() })?;
    let mut times = Times::new(task);
    prepare(socket).map_err(|error| reason(&error))?;
    if task.cold {
        evict();
    }
    let start = clock::now();
    let give_up = start + task.patience.as_duration();
    times.begin(start);
    for turn in 0..task.repeats {
        if task.sends_first {
            write(socket, outgoing.next(), give_up)?;
            read(socket, incoming.next(), give_up, &mut times.arrivals)?;
        } else {
            read(socket, incoming.next(), give_up, &mut times.arrivals)?;
            write(socket, outgoing.next(), give_up)?;
        }
        times.turned(turn, socket);
    }
    Ok(times.end(incoming.current().to_vec()))
}

/// Sends and receives a message at the same time, again and again: neither end waits for the other to take the whole
/// of its message first, so no size is too large for the socket buffers. Otherwise as [`exchange`].
///
/// # Errors
/// As [`exchange`].
pub fn exchange_both(socket: &TcpStream, task: &Exchange) -> Result<Exchanged, Reason> {
    let mut outgoing = MessageBuffer::new(task.send, task)?;
    let mut incoming = MessageBuffer::new(task.receive, &Exchange { head: Vec::new(), ..task.clone() })?;
    let mut times = Times::new(task);
    set_nonblocking(socket, true).map_err(|error| reason(&error))?;
    if task.cold {
        evict();
    }
    let start = clock::now();
    let give_up = start + task.patience.as_duration();
    times.begin(start);
    for turn in 0..task.repeats {
        cross(socket, outgoing.next(), incoming.next(), give_up)?;
        times.turned(turn, socket);
    }
    Ok(times.end(incoming.current().to_vec()))
}

/// When an exchange began, and when its turns were over.
struct Times {
    start: Mono,
    before: Mono,
    first: Span,
    turns: Vec<Span>,
    /// So many turns are timed.
    timed: usize,
    last_turn: u32,
    /// Bytes that waited to be read after the first turn.
    waiting: u64,
    arrivals: Arrivals,
}

/// How fast messages arrived that came in pieces: the first piece may have waited, the others came as the path brought them.
#[derive(Debug, Default, Clone, Copy)]
struct Arrivals {
    bytes: u64,
    time: Span,
}

impl Times {
    fn new(task: &Exchange) -> Self {
        let timed =
            if task.each_turn && task.repeats <= MAX_REPORTED_TURNS { task.repeats as usize } else { 0 };
        Self {
            start: Mono(0),
            before: Mono(0),
            first: Span::ZERO,
            turns: Vec::with_capacity(timed),
            timed,
            last_turn: task.repeats.saturating_sub(1),
            waiting: 0,
            arrivals: Arrivals::default(),
        }
    }

    fn begin(&mut self, start: Mono) {
        (self.start, self.before) = (start, start);
    }

    /// The first and the last turn are timed in any case; a look at the clock is a share of a short one.
    #[inline]
    fn turned(&mut self, turn: u32, socket: &TcpStream) {
        if self.timed == 0 && turn != 0 && turn != self.last_turn {
            return;
        }
        let now = clock::now();
        if turn == 0 {
            self.first = Span::from(now.since(self.start));
            // What has come by now did not arrive in the time that is counted from here on.
            self.waiting = queues::readable(socket).unwrap_or(0);
        }
        if self.turns.len() < self.timed {
            self.turns.push(Span::from(now.since(self.before)));
        }
        self.before = now;
    }

    fn end(self, last: Vec<u8>) -> Exchanged {
        let elapsed = Span::from(self.before.since(self.start));
        let (waiting, arrived) = (Bytes::new(self.waiting), Bytes::new(self.arrivals.bytes));
        let arriving = self.arrivals.time;
        Exchanged { elapsed, first: self.first, waiting, arrived, arriving, turns: self.turns, last }
    }
}

fn prepare(socket: &TcpStream) -> Result<(), SockError> {
    set_nonblocking(socket, false)?;
    set_recv_timeout(socket, Some(MAX_CALL_WAIT))?;
    set_send_timeout(socket, Some(MAX_CALL_WAIT))
}

/// Where messages of one direction lie: always at the same place, or one behind the other through a pool.
struct MessageBuffer {
    bytes: Vec<u8>,
    length: usize,
    /// Where the latest message begins.
    at: usize,
}

impl MessageBuffer {
    fn new(length: Bytes, task: &Exchange) -> Result<Self, Reason> {
        let length = usize::try_from(length.get())
            .ok()
            .filter(|&length| length <= FlowSetup::MAX_BLOCK_BYTES)
            .ok_or_else(|| own(format!("a message of {length} is longer than 64 MiB")))?;
        let slots = if task.cold { (MESSAGE_POOL_BYTES / length.max(1)).max(1) } else { 1 };
        let mut bytes = payload::allocate(slots * length).map_err(|error| reason(&error))?;
        for slot in bytes.chunks_mut(length.max(1)) {
            slot.iter_mut().zip(&task.head).for_each(|(byte, head)| *byte = *head);
        }
        // The first step leads to the beginning.
        let at = (slots - 1) * length;
        Ok(Self { bytes, length, at })
    }

    /// The place of the next message.
    #[inline]
    fn next(&mut self) -> &mut [u8] {
        self.at += self.length;
        if self.at >= self.bytes.len() {
            self.at = 0;
        }
        &mut self.bytes[self.at..self.at + self.length]
    }

    /// The place of the latest message.
    fn current(&self) -> &[u8] {
        &self.bytes[self.at..self.at + self.length]
    }
}

/// Fills the caches with something else.
fn evict() {
    let mut other = vec![1_u8; MESSAGE_POOL_BYTES];
    other.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
    std::hint::black_box(&other);
}

#[inline]
fn write(socket: &TcpStream, message: &[u8], give_up: Mono) -> Result<(), Reason> {
    let mut done = 0;
    while done < message.len() {
        let moved = send(socket, &message[done..]).map_err(|error| reason(&error))?;
        done += moved.bytes();
        if done < message.len() {
            check(socket, Interest::WRITE, moved, give_up)?;
        }
    }
    Ok(())
}

#[inline]
fn read(
    socket: &TcpStream,
    message: &mut [u8],
    give_up: Mono,
    arrivals: &mut Arrivals,
) -> Result<(), Reason> {
    let mut done = 0;
    // The end of the first piece, where there are more.
    let mut first: Option<(usize, Mono)> = None;
    while done < message.len() {
        let moved = recv(socket, &mut message[done..]).map_err(|error| reason(&error))?;
        if moved == Moved::Closed {
            return Err(own("the peer closed the connection in the middle of a message".to_owned()));
        }
        done += moved.bytes();
        if done < message.len() {
            if first.is_none() && done > 0 {
                first = Some((done, clock::now()));
            }
            check(socket, Interest::READ, moved, give_up)?;
        }
    }
    if let Some((piece, at)) = first {
        arrivals.bytes += (message.len() - piece) as u64;
        arrivals.time = arrivals.time + Span::from(clock::now().since(at));
    }
    Ok(())
}

/// Sends one message and receives one, whichever can go on.
#[inline]
fn cross(socket: &TcpStream, out: &[u8], into: &mut [u8], give_up: Mono) -> Result<(), Reason> {
    let (mut sent, mut got) = (0, 0);
    while sent < out.len() || got < into.len() {
        let mut moved = 0;
        if sent < out.len() {
            moved += send(socket, &out[sent..]).map_err(|error| reason(&error))?.bytes();
            sent += moved;
        }
        if got < into.len() {
            let read = recv(socket, &mut into[got..]).map_err(|error| reason(&error))?;
            if read == Moved::Closed {
                return Err(own("the peer closed the connection in the middle of a message".to_owned()));
            }
            got += read.bytes();
            moved += read.bytes();
        }
        if moved == 0 {
            let interest = match (sent < out.len(), got < into.len()) {
                (true, true) => Interest::BOTH,
                (true, false) => Interest::WRITE,
                _ => Interest::READ,
            };
            check(socket, interest, Moved::Pending, give_up)?;
        }
    }
    Ok(())
}

/// After a call that moved only a part: whether it is too late, and a wait where nothing moved.
fn check(socket: &TcpStream, interest: Interest, moved: Moved, give_up: Mono) -> Result<(), Reason> {
    let now = clock::now();
    if now >= give_up {
        return Err(own("the peer did not take or answer the messages in time".to_owned()));
    }
    if moved == Moved::Pending {
        wait_for(socket, interest, give_up.min(now + MAX_CALL_WAIT)).map_err(|error| reason(&error))?;
    }
    Ok(())
}

/// A reason that is not the system's.
const fn own(text: String) -> Reason {
    Reason { errno: 0, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(cold: bool, head: &[u8]) -> Exchange {
        Exchange {
            link: linerate_model::flow::Link(0),
            send: Bytes::new(0),
            receive: Bytes::new(0),
            sends_first: true,
            repeats: 1,
            patience: Span::from_secs(1),
            head: head.to_vec(),
            cold,
            each_turn: true,
        }
    }

    #[test]
    fn cold_messages_walk_through_the_pool_and_begin_again() {
        let mut place = MessageBuffer::new(Bytes::new(3_000_000), &task(true, b"ab")).unwrap();
        let mut places = Vec::new();
        for _ in 0..4 {
            assert_eq!(place.next()[..3], *b"ab\0");
            places.push(place.at);
        }
        assert_eq!(places, [0, 3_000_000, 6_000_000, 0]);
        let mut warm = MessageBuffer::new(Bytes::new(5), &task(false, b"abcdefg")).unwrap();
        assert_eq!((warm.next().to_vec(), warm.at), (b"abcde".to_vec(), 0));
        assert_eq!((warm.next().len(), warm.at), (5, 0));
    }

    #[test]
    fn no_message_is_no_place_and_an_endless_one_is_refused() {
        let mut nothing = MessageBuffer::new(Bytes::new(0), &task(true, b"")).unwrap();
        assert!(nothing.next().is_empty() && nothing.current().is_empty());
        let error = MessageBuffer::new(Bytes::new(u64::MAX), &task(false, b"")).err().unwrap();
        assert!(error.errno == 0 && error.text.contains("64 MiB"));
    }

    fn connected() -> (TcpStream, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn messages_that_had_come_before_the_first_was_read_are_told() {
        let (near, mut far) = connected();
        std::io::Write::write_all(&mut far, &[7; 3000]).unwrap();
        // Loopback: what was written has arrived.
        assert_eq!(queues::readable(&near).unwrap(), 3000);
        let receive =
            Exchange { receive: Bytes::new(1000), sends_first: false, repeats: 3, ..task(false, b"") };
        let done = exchange(&near, &receive).unwrap();
        assert_eq!((done.waiting.get(), done.arrived.get()), (2000, 0));
    }

    #[test]
    fn what_comes_after_the_first_piece_of_a_message_is_timed_by_itself() {
        let (near, mut far) = connected();
        std::io::Write::write_all(&mut far, &[7; 400]).unwrap();
        let rest = std::thread::spawn(move || {
            // The reader has taken the first piece when nothing is left to be acknowledged and it asks for more.
            while queues::unacknowledged(&far).unwrap() > 0 {}
            std::io::Write::write_all(&mut far, &[7; 600]).unwrap();
            far
        });
        let receive =
            Exchange { receive: Bytes::new(1000), sends_first: false, repeats: 1, ..task(false, b"") };
        let done = exchange(&near, &receive).unwrap();
        rest.join().unwrap();
        // Both pieces may have been there at once; if not, the second is what arrived.
        assert!(matches!(done.arrived.get(), 0 | 600), "{done:?}");
        assert_eq!(done.arriving > Span::ZERO, done.arrived.get() > 0);
    }
}
