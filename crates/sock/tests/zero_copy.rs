//! Every way of sending without a copy delivers the exact bytes.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use linerate_sock::errqueue::{self, Notice};
use linerate_sock::open::{ConnectOptions, connect_tcp, listen_tcp};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::splice::{FileSender, HugeBuffer, Splicer};
use linerate_sock::{Moved, SocketOptions, clock, queues, sockopt, stream};

const PATTERN: usize = 100_003;
const TOTAL: usize = 3_000_000;

fn pair() -> (TcpStream, TcpStream) {
    let wishes = SocketOptions::default();
    let listening = listen_tcp("127.0.0.1:0".parse().unwrap(), 1, &wishes).unwrap();
    let deadline = clock::now() + Duration::from_secs(10);
    let options = ConnectOptions { addresses: vec![listening.local], socket: wishes, deadline };
    let client = connect_tcp(&options).unwrap();
    (client.stream, listening.listener.accept().unwrap().0)
}

/// The byte at a place of the stream: neither 256 nor the page size divides 251, nor does it divide the pattern.
fn byte_at(place: usize) -> u8 {
    (place % PATTERN % 251) as u8
}

/// Sends with `send` until TOTAL bytes have gone, and checks every byte at the other end.
fn deliver(mut send: impl FnMut(&TcpStream) -> Moved) {
    let (client, server) = pair();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let (mut place, mut buffer) = (0, vec![0; 65_536]);
            while let Moved::Bytes(count) = stream::recv(&server, &mut buffer).unwrap() {
                for &byte in &buffer[..count] {
                    assert_eq!(byte, byte_at(place), "at {place}");
                    place += 1;
                }
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
    let mut pattern = HugeBuffer::new(PATTERN).unwrap();
    for (place, byte) in pattern.iter_mut().enumerate() {
        *byte = byte_at(place);
    }
    let mut splicer = Splicer::new(pattern).unwrap();
    deliver(|client| splicer.send(client).unwrap());
}

#[test]
fn sendfile_repeats_the_pattern_exactly() {
    let pattern: Vec<u8> = (0..PATTERN).map(byte_at).collect();
    let mut sender = FileSender::new(&pattern).unwrap();
    deliver(|client| sender.send(client).unwrap());
}

#[test]
fn a_full_socket_makes_splicing_pending_and_loses_nothing() {
    let mut pattern = HugeBuffer::new(PATTERN).unwrap();
    for (place, byte) in pattern.iter_mut().enumerate() {
        *byte = byte_at(place);
    }
    let mut splicer = Splicer::new(pattern).unwrap();
    let (client, server) = pair();
    stream::set_nonblocking(&client, true).unwrap();
    while splicer.send(&client).unwrap() != Moved::Pending {}
    let (mut place, mut buffer) = (0, vec![0; 65_536]);
    // Draining makes room again, so that the bytes left in the pipe follow without a gap.
    while place < TOTAL {
        splicer.send(&client).unwrap();
        let Moved::Bytes(count) = stream::recv(&server, &mut buffer).unwrap() else { panic!("closed") };
        for &byte in &buffer[..count] {
            assert_eq!(byte, byte_at(place), "at {place}");
            place += 1;
        }
    }
}

#[test]
fn zero_copy_sends_are_completed_in_order_and_loopback_says_it_copied() {
    let (client, server) = pair();
    sockopt::set_zerocopy(&client, true).unwrap();
    let bytes: Vec<u8> = (0..50_000).map(byte_at).collect();
    const SENDS: u32 = 5;
    let mut sent = 0;
    for _ in 0..SENDS {
        sent += stream::send_zerocopy(&client, &bytes).unwrap().bytes();
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
