//! What an encrypted connection carries arrives, whole and in order, and its faults cost this end little.

use linerate_sock::handle::AsFd;
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::{clock, queues, sockopt, tcp_info};
use std::net::TcpStream;
use std::time::Duration;

use super::*;
use crate::control_stream::tests::{encrypted, read};
use crate::control_stream::{Arrival, ControlStream};

/// A client, and the server's end as a flow has it.
fn ends() -> (ControlStream, TcpStream, TlsChannel) {
    let (client, server) = encrypted(5);
    let (socket, channel, rest) = server.into_channel();
    assert_eq!(rest, b"");
    (client, socket, channel.unwrap())
}

fn pattern(length: u32) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Waits for the socket at most a moment.
fn wait(socket: &TcpStream, interest: Interest) {
    wait_for(socket, interest, clock::now() + Duration::from_millis(100)).unwrap();
}

#[test]
fn blocks_arrive_in_order_and_each_adds_what_its_records_add() {
    let (mut client, socket, channel) = ends();
    // As blocks of ndt7: the last record of each is a short one.
    let (block, blocks) = (pattern(65_546), 300);
    // Smaller than all blocks together, whatever the defaults of this system are.
    sockopt::set_snd_buf(&socket, 64 << 10).unwrap();
    sockopt::set_rcv_buf(client.tcp(), 64 << 10).unwrap();
    // What belongs to the handshake does not count.
    let deadline = clock::now() + Duration::from_secs(10);
    while queues::unacknowledged(&socket).unwrap() > 0 {
        assert!(!deadline.has_passed());
        wait(&socket, Interest::READ);
    }
    let before = tcp_info(&socket).unwrap().bytes_acked.unwrap();
    let (go, may_read) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let (mut received, mut buffer) = (Vec::new(), [0; 30_011]);
        // It starts when the buffers are full.
        may_read.recv().unwrap();
        while received.len() < blocks * 65_546 {
            match read(&mut client, &mut buffer) {
                Arrival::Bytes(count) => received.extend_from_slice(&buffer[..count]),
                Arrival::Nothing => {}
                Arrival::Closed => break,
            }
        }
        (received, client)
    });
    for _ in 0..blocks {
        let mut rest = block.as_slice();
        while !rest.is_empty() {
            let moved = channel.send(socket.as_fd(), rest).unwrap();
            rest = &rest[moved.bytes()..];
            if moved == Moved::Pending {
                let _ = go.send(());
                wait(&socket, Interest::WRITE);
            }
        }
    }
    // Fails the reader if the buffers were never full.
    drop(go);
    while !channel.flush(socket.as_fd()).unwrap() {
        wait(&socket, Interest::WRITE);
    }
    let (received, _client) = reading.join().unwrap();
    assert!(received.chunks(block.len()).all(|part| part == block), "{}", received.len());
    assert_eq!(received.len(), blocks * block.len());
    assert!(!channel.is_blocked());
    // Five records a block: what the figures of downloads rely on.
    let all = blocks as u64 * (65_546 + 5 * 22);
    let deadline = clock::now() + Duration::from_secs(10);
    while tcp_info(&socket).unwrap().bytes_acked.unwrap() - before < all {
        assert!(!deadline.has_passed());
        wait(&socket, Interest::READ);
    }
    assert_eq!(tcp_info(&socket).unwrap().bytes_acked.unwrap() - before, all);
}

#[test]
fn what_arrives_is_read_in_parts_of_any_length_to_its_end() {
    let (mut client, socket, channel) = ends();
    let sent = pattern(3_000_000);
    let sending = {
        let sent = sent.clone();
        std::thread::spawn(move || {
            client.queue(&sent);
            while client.unsent() > 0 {
                client.flush();
                wait(client.tcp(), Interest::WRITE);
            }
            client.flush_at_end();
            // It has read nothing: closed now, it would reset the connection, and what is on its way would be lost.
            client
        })
    };
    let (mut received, mut lengths) = (Vec::new(), [1, 16_383, 16_385, 65_536, 7].into_iter().cycle());
    let mut buffer = vec![0; 65_536];
    let end = loop {
        let part = &mut buffer[..lengths.next().unwrap()];
        match channel.recv(socket.as_fd(), part).unwrap() {
            Moved::Bytes(count) => received.extend_from_slice(&part[..count]),
            Moved::Pending => {
                assert!(!channel.has_arrived(), "a poll would not tell of it");
                wait(&socket, Interest::READ);
            }
            Moved::Closed => break channel.recv(socket.as_fd(), &mut buffer).unwrap(),
        }
    };
    drop(sending.join().unwrap());
    assert!(received == sent, "{} bytes", received.len());
    assert_eq!(end, Moved::Closed);
}

/// A record of application data that nobody with the keys has written.
const NOBODYS_RECORD: [u8; 22] = [23, 3, 3, 0, 17, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17];

#[test]
fn what_came_before_a_broken_record_arrives_and_then_the_error() {
    let (mut client, socket, channel) = ends();
    client.queue(b"good");
    client.flush();
    let mut tcp = client.into_tcp();
    tcp.write_all(&NOBODYS_RECORD).unwrap();
    // So that one call sees both.
    let deadline = clock::now() + Duration::from_secs(60);
    while queues::readable(&socket).unwrap() < 26 + NOBODYS_RECORD.len() as u64 {
        assert!(!deadline.has_passed());
    }
    let mut buffer = [0; 99];
    let moved = loop {
        match channel.recv(socket.as_fd(), &mut buffer) {
            Ok(Moved::Pending) => wait(&socket, Interest::READ),
            moved => break moved.unwrap(),
        }
    };
    assert_eq!((moved, &buffer[..4]), (Moved::Bytes(4), &b"good"[..]));
    assert!(channel.has_arrived(), "no poll tells of an error that was found already");
    for _ in 0..2 {
        let error = channel.recv(socket.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(error.op, DECRYPT);
    }
    assert!(!channel.has_arrived(), "the error was reported");
}

#[test]
fn an_announced_end_is_reported_although_the_connection_stays_open() {
    let (mut client, socket, channel) = ends();
    client.queue(b"bye");
    client.flush_at_end();
    let mut buffer = [0; 3];
    let mut got = 0;
    while got < 3 {
        match channel.recv(socket.as_fd(), &mut buffer[got..]).unwrap() {
            Moved::Bytes(count) => got += count,
            _ => wait(&socket, Interest::READ),
        }
    }
    let deadline = clock::now() + Duration::from_secs(60);
    // It may have come with the last byte, so that no poll tells of it.
    while !channel.has_arrived() && queues::readable(&socket).unwrap() == 0 {
        assert!(!deadline.has_passed());
    }
    assert_eq!(channel.recv(socket.as_fd(), &mut buffer).unwrap(), Moved::Closed);
    assert!(!channel.has_arrived(), "it was reported");
    drop(client);
}

#[test]
fn after_a_failed_write_nothing_waits_for_room() {
    let (client, socket, channel) = ends();
    let block = pattern(65_536);
    while channel.send(socket.as_fd(), &block).unwrap() != Moved::Pending {}
    assert!(channel.is_blocked());
    sockopt::set_linger_abort(client.tcp()).unwrap();
    drop(client);
    wait(&socket, Interest::READ);
    assert!(channel.flush(socket.as_fd()).is_err());
    // A poller would report such a socket as writable again and again.
    assert!(!channel.is_blocked());
}

#[test]
fn a_record_that_cannot_be_decrypted_is_an_error_and_a_lost_connection_too() {
    let (client, socket, channel) = ends();
    let mut tcp = client.into_tcp();
    tcp.write_all(&NOBODYS_RECORD).unwrap();
    wait(&socket, Interest::READ);
    assert!(channel.recv(socket.as_fd(), &mut [0; 9]).is_err());

    let (client, socket, channel) = ends();
    sockopt::set_linger_abort(client.tcp()).unwrap();
    drop(client);
    wait(&socket, Interest::READ);
    assert!(channel.send(socket.as_fd(), b"x").is_err());
}
