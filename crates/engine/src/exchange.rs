//! Exchanges messages in turns over one connection, as fast as possible.

use std::net::TcpStream;
use std::time::Duration;

use linerate_model::flow::{Exchange, Exchanged, SystemError};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::stream::{recv, send, set_nonblocking, set_recv_timeout, set_send_timeout};
use linerate_sock::{Mono, Moved, SockError, clock, queues};
use linerate_units::{Bytes, Span};

use crate::pump::{payload, reason};
use crate::setup::FlowSetup;

/// Longest time that a call waits before it checks the deadline of the exchange.
const MAX_CALL_WAIT: Duration = Duration::from_millis(100);
/// With more turns than this, the durations of single turns are not reported.
const MAX_REPORTED_TURNS: u32 = 100_000;
/// Size of the pool that cold messages walk through: more than the caches of one core hold.
const MESSAGE_POOL_BYTES: usize = 10_000_000;

/// Sends and receives messages in turns with blocking calls, in the calling thread. The socket is blocking
/// afterwards and has timeouts. Shutting it down from another thread ends the exchange.
///
/// # Errors
/// A call fails, the peer closes, the exchange exceeds its time limit, or a message is longer than 64 MiB.
pub fn exchange(socket: &TcpStream, task: &Exchange) -> Result<Exchanged, SystemError> {
    let mut outgoing = MessageBuffer::new(task.send, task)?;
    let mut incoming = MessageBuffer::new(task.receive, &Exchange { head: Vec::new(), ..task.clone() })?;
    let mut times = Times::new(task);
    prepare(socket).map_err(|error| reason(&error))?;
    if task.cold {
        evict();
    }
    let start = clock::now();
    let give_up = start + task.timeout.as_duration();
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

/// Repeatedly sends and receives a message at the same time: neither end waits until the other has taken its
/// whole message, so no size is too large for the socket buffers. Otherwise as [`exchange`].
///
/// # Errors
/// As [`exchange`].
pub fn exchange_both(socket: &TcpStream, task: &Exchange) -> Result<Exchanged, SystemError> {
    let mut outgoing = MessageBuffer::new(task.send, task)?;
    let mut incoming = MessageBuffer::new(task.receive, &Exchange { head: Vec::new(), ..task.clone() })?;
    let mut times = Times::new(task);
    set_nonblocking(socket, true).map_err(|error| reason(&error))?;
    if task.cold {
        evict();
    }
    let start = clock::now();
    let give_up = start + task.timeout.as_duration();
    times.begin(start);
    for turn in 0..task.repeats {
        cross(socket, outgoing.next(), incoming.next(), give_up)?;
        times.turned(turn, socket);
    }
    Ok(times.end(incoming.current().to_vec()))
}

/// When an exchange began, and when its turns ended.
struct Times {
    start: Mono,
    before: Mono,
    first: Span,
    turns: Vec<Span>,
    /// Number of turns to time.
    timed: usize,
    last_turn: u32,
    /// Bytes waiting to be read after the first turn.
    waiting: u64,
    arrivals: MessageRate,
}

/// Rate of messages that arrived in pieces, without each first piece, which may have waited in the socket
/// buffer.
#[derive(Debug, Default, Clone, Copy)]
struct MessageRate {
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
            arrivals: MessageRate::default(),
        }
    }

    fn begin(&mut self, start: Mono) {
        (self.start, self.before) = (start, start);
    }

    /// Always times the first and the last turn; the others only on request, as a clock reading takes a share
    /// of a short turn.
    #[inline]
    fn turned(&mut self, turn: u32, socket: &TcpStream) {
        if self.timed == 0 && turn != 0 && turn != self.last_turn {
            return;
        }
        let now = clock::now();
        if turn == 0 {
            self.first = Span::from(now.since(self.start));
            // Bytes that are already here did not arrive in the time counted from now on.
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

/// Buffer for the messages of one direction: always at the same address, or advancing through a pool.
struct MessageBuffer {
    bytes: Vec<u8>,
    length: usize,
    /// Offset of the latest message.
    at: usize,
}

impl MessageBuffer {
    fn new(length: Bytes, task: &Exchange) -> Result<Self, SystemError> {
        let length = usize::try_from(length.get())
            .ok()
            .filter(|&length| length <= FlowSetup::MAX_BLOCK_BYTES)
            .ok_or_else(|| own(format!("a message of {length} is longer than 64 MiB")))?;
        let slots = if task.cold { (MESSAGE_POOL_BYTES / length.max(1)).max(1) } else { 1 };
        let mut bytes = payload::allocate(slots * length).map_err(|error| reason(&error))?;
        for slot in bytes.chunks_mut(length.max(1)) {
            slot.iter_mut().zip(&task.head).for_each(|(byte, head)| *byte = *head);
        }
        // The first call of `next` wraps to offset 0.
        let at = (slots - 1) * length;
        Ok(Self { bytes, length, at })
    }

    /// Buffer of the next message.
    #[inline]
    fn next(&mut self) -> &mut [u8] {
        self.at += self.length;
        if self.at >= self.bytes.len() {
            self.at = 0;
        }
        &mut self.bytes[self.at..self.at + self.length]
    }

    /// Buffer of the latest message.
    fn current(&self) -> &[u8] {
        &self.bytes[self.at..self.at + self.length]
    }
}

/// Evicts the caches by filling them with other data.
fn evict() {
    let mut other = vec![1_u8; MESSAGE_POOL_BYTES];
    other.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
    std::hint::black_box(&other);
}

#[inline]
fn write(socket: &TcpStream, message: &[u8], give_up: Mono) -> Result<(), SystemError> {
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
    arrivals: &mut MessageRate,
) -> Result<(), SystemError> {
    let mut done = 0;
    // Size and time of the first piece, if the message arrives in more than one.
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

/// Sends one message and receives one at the same time.
#[inline]
fn cross(socket: &TcpStream, out: &[u8], into: &mut [u8], give_up: Mono) -> Result<(), SystemError> {
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

/// After a partial transfer: fails past the deadline, and waits when nothing moved.
fn check(socket: &TcpStream, interest: Interest, moved: Moved, give_up: Mono) -> Result<(), SystemError> {
    let now = clock::now();
    if now >= give_up {
        return Err(own("the peer did not receive or answer the messages in time".to_owned()));
    }
    if moved == Moved::Pending {
        wait_for(socket, interest, give_up.min(now + MAX_CALL_WAIT)).map_err(|error| reason(&error))?;
    }
    Ok(())
}

/// A reason that does not come from a system call.
const fn own(text: String) -> SystemError {
    SystemError { errno: 0, text }
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
            timeout: Span::from_secs(1),
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
    fn messages_that_arrived_before_the_first_read_are_reported() {
        let (near, mut far) = connected();
        std::io::Write::write_all(&mut far, &[7; 3000]).unwrap();
        // On loopback, what was written has arrived.
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
            // The reader has taken the first piece when everything is acknowledged. It then waits for more.
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
