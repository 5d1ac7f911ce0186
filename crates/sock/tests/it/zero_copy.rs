//! Each zero-copy method delivers the exact bytes.
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use linerate_sock::errqueue::{self, Notice};
use linerate_sock::open::{ConnectOptions, connect_tcp, listen_tcp};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::splice::{FileSender, HugeBuffer, Splicer, ZeroCopySender};
use linerate_sock::{Moved, SocketOptions, clock, queues, sockopt, stream};

/// Fits into a pipe and ends inside a page.
const SHORT: usize = 100_003;
/// Fits neither into a pipe nor into a socket buffer.
const LONG: usize = 5_000_011;
const TOTAL: usize = 12_000_000;

fn pair() -> (TcpStream, TcpStream) {
    let requested = SocketOptions::default();
    let listening = listen_tcp("127.0.0.1:0".parse().unwrap(), 1, &requested).unwrap();
    let deadline = clock::now() + Duration::from_secs(10);
    let options = ConnectOptions { addresses: vec![listening.local], socket: requested, deadline };
    let client = connect_tcp(&options).unwrap();
    (client.stream, listening.listener.accept().unwrap().0)
}

/// The byte at offset `place` of a stream that repeats a pattern. 251 divides neither a page nor a pattern, so
/// that missing, duplicated or swapped bytes are detected.
fn byte_at(place: usize, pattern: usize) -> u8 {
    (place % pattern % 251) as u8
}

fn splicer(pattern: usize) -> Splicer {
    let mut buffer = HugeBuffer::new(pattern).unwrap();
    for (place, byte) in buffer.iter_mut().enumerate() {
        *byte = byte_at(place, pattern);
    }
    Splicer::new(buffer).unwrap()
}

/// Compares received bytes with the pattern and advances `place`.
fn check(received: &[u8], place: &mut usize, pattern: usize) {
    for &byte in received {
        assert_eq!(byte, byte_at(*place, pattern), "at {place}");
        *place += 1;
    }
}

/// Sends with `send` until TOTAL bytes have been sent, and checks every byte at the other end.
fn deliver(pattern: usize, mut send: impl FnMut(&TcpStream) -> Moved) {
    let (client, server) = pair();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let (mut place, mut buffer) = (0, vec![0; 65_536]);
            while let Moved::Bytes(count) = stream::recv(&server, &mut buffer).unwrap() {
                check(&buffer[..count], &mut place, pattern);
            }
            place
        });
        let mut sent = 0;
        while sent < TOTAL {
            sent += send(&client).bytes();
        }
        queues::finish_writing(&client).unwrap();
        assert_eq!(receiver.join().unwrap(), sent);
    });
}

#[test]
fn splicing_repeats_the_pattern_exactly() {
    for pattern in [SHORT, LONG] {
        let mut splicer = splicer(pattern);
        deliver(pattern, |client| splicer.send(client).unwrap());
    }
}

#[test]
fn sendfile_repeats_the_pattern_exactly() {
    for pattern in [SHORT, LONG] {
        let bytes: Vec<u8> = (0..pattern).map(|place| byte_at(place, pattern)).collect();
        let mut sender = FileSender::new(&bytes).unwrap();
        deliver(pattern, |client| sender.send(client).unwrap());
    }
}

#[test]
fn a_full_socket_makes_splicing_pending_and_loses_nothing() {
    let mut splicer = splicer(LONG);
    let (client, server) = pair();
    stream::set_nonblocking(&client, true).unwrap();
    while splicer.send(&client).unwrap() != Moved::Pending {}
    let (mut place, mut buffer) = (0, vec![0; 65_536]);
    // Reading frees buffer space, so that the bytes left in the pipe follow without a gap.
    while place < TOTAL {
        splicer.send(&client).unwrap();
        let Moved::Bytes(count) = stream::recv(&server, &mut buffer).unwrap() else { panic!("closed") };
        check(&buffer[..count], &mut place, LONG);
    }
}

#[test]
fn zero_copy_sends_are_completed_in_order_and_loopback_says_it_copied() {
    let (client, server) = pair();
    sockopt::set_zerocopy(&client, true).unwrap();
    let bytes: Vec<u8> = (0..50_000).map(|place| byte_at(place, SHORT)).collect();
    let mut block = HugeBuffer::new(bytes.len()).unwrap();
    block.copy_from_slice(&bytes);
    let sender = ZeroCopySender::new(block);
    const SENDS: u32 = 5;
    let mut sent = 0;
    for _ in 0..SENDS {
        sent += sender.send(&client, 0..bytes.len()).unwrap().bytes();
    }
    assert_eq!(sent, bytes.len() * SENDS as usize);
    let (mut received, mut buffer) = (Vec::new(), vec![0; 65_536]);
    while received.len() < sent {
        let Moved::Bytes(count) = stream::recv(&server, &mut buffer).unwrap() else { panic!("closed") };
        received.extend_from_slice(&buffer[..count]);
    }
    assert!(received.chunks(bytes.len()).all(|chunk| chunk == bytes));
    let mut next = 0;
    while next < SENDS {
        assert!(wait_for(&client, Interest::ERROR, clock::now() + Duration::from_secs(10)).unwrap());
        match errqueue::take(&client).unwrap() {
            Some(Notice::ZeroCopy { first, last, copied }) => {
                assert_eq!(first, next);
                assert!(copied, "loopback always copies");
                next = last + 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(next, SENDS);
}
