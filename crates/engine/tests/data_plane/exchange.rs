//! Messages in turns over loopback.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use linerate_engine::{exchange, exchange_both};
use linerate_model::flow::{Exchange, Link};
use linerate_units::{Bytes, Span};

use crate::ends::tcp_pairs;

fn turns(send: u64, receive: u64, repeats: u32) -> Exchange {
    Exchange {
        link: Link(1),
        send: Bytes::new(send),
        receive: Bytes::new(receive),
        sends_first: true,
        repeats,
        timeout: Span::from_secs(60),
        head: Vec::new(),
        cold: false,
        each_turn: true,
    }
}

fn pair() -> (TcpStream, TcpStream) {
    let (mut near, mut far) = tcp_pairs(1);
    (near.pop().unwrap(), far.pop().unwrap())
}

#[test]
fn ping_pong_between_two_ends_moves_every_message_both_ways() {
    for (length, cold) in [(1, false), (3, true), (300_000, false), (300_000, true)] {
        let (near, far) = pair();
        let ping = Exchange { head: b"ping".to_vec(), cold, ..turns(length, length, 40) };
        let pong = Exchange { head: b"pong".to_vec(), sends_first: false, cold, ..turns(length, length, 40) };
        let other = thread::spawn(move || exchange(&far, &pong).unwrap());
        let near = exchange(&near, &ping).unwrap();
        let far = other.join().unwrap();
        let expected = |head: &[u8]| {
            let mut message = vec![0; length as usize];
            message.iter_mut().zip(head).for_each(|(byte, head)| *byte = *head);
            message
        };
        assert_eq!((near.last, far.last), (expected(b"pong"), expected(b"ping")));
        assert_eq!((near.turns.len(), far.turns.len()), (40, 40));
        assert_eq!(near.turns.iter().map(|turn| turn.as_ns()).sum::<u64>(), near.elapsed.as_ns());
        assert_eq!((near.first, far.first), (near.turns[0], far.turns[0]));
        assert!(near.elapsed > Span::ZERO);
    }
}

#[test]
fn both_send_before_they_receive() {
    let (near, far) = pair();
    let other = thread::spawn(move || exchange(&far, &turns(1000, 1000, 500)).unwrap());
    let near = exchange(&near, &turns(1000, 1000, 500)).unwrap();
    assert_eq!((near.turns.len(), other.join().unwrap().last.len()), (500, 1000));
}

#[test]
fn one_direction_only_counts_no_turns_above_a_hundred_thousand() {
    let (near, far) = pair();
    let other = thread::spawn(move || exchange(&far, &turns(0, 10, 100_001)).unwrap());
    let sent = exchange(&near, &turns(10, 0, 100_001)).unwrap();
    let read = other.join().unwrap();
    assert!(sent.last.is_empty() && sent.turns.is_empty() && read.turns.is_empty());
    assert_eq!(read.last, [0; 10]);
}

#[test]
fn both_at_once_needs_no_buffer_for_a_whole_message() {
    // Far more than the buffers of both ends hold: ends that send everything before they read would deadlock.
    let length = 16 << 20;
    let (near, far) = pair();
    let task = Exchange { head: b"both".to_vec(), each_turn: false, ..turns(length, length, 3) };
    let other = {
        let task = task.clone();
        thread::spawn(move || exchange_both(&far, &task).unwrap())
    };
    let (near, far) = (exchange_both(&near, &task).unwrap(), other.join().unwrap());
    for end in [near, far] {
        assert_eq!((end.last.len() as u64, &end.last[..5]), (length, &b"both\0"[..]));
        assert!(
            end.turns.is_empty() && Span::ZERO < end.first && end.first < end.elapsed,
            "{:?}",
            end.elapsed
        );
    }
}

#[test]
fn both_at_once_ends_with_the_reason_when_the_peer_is_silent_or_gone() {
    let (near, far) = pair();
    let hasty = Exchange { timeout: Span::from_ms(50), ..turns(1 << 20, 1, 3) };
    assert!(exchange_both(&near, &hasty).unwrap_err().text.contains("in time"));
    drop(far);
    let (near, far) = pair();
    drop(far);
    assert!(exchange_both(&near, &turns(0, 1, 1)).unwrap_err().text.contains("peer closed"));
}

#[test]
fn a_message_is_put_together_from_parts_although_calls_do_not_wait() {
    let (near, mut far) = pair();
    near.set_nonblocking(true).unwrap();
    let other = thread::spawn(move || {
        for part in [&b"ab"[..], b"c", b"def"] {
            far.write_all(part).unwrap();
        }
        let mut answer = [0; 4];
        far.read_exact(&mut answer).unwrap();
        answer
    });
    let task = Exchange { sends_first: false, head: b"head".to_vec(), ..turns(4, 6, 1) };
    assert_eq!(exchange(&near, &task).unwrap().last, b"abcdef");
    assert_eq!(other.join().unwrap(), *b"head");
}

#[test]
fn silence_a_peer_that_takes_nothing_and_one_that_closes_end_it_with_the_reason() {
    let (near, far) = pair();
    let hasty = |task: Exchange| Exchange { timeout: Span::from_ms(50), ..task };
    let silent = exchange(&near, &hasty(turns(1, 1, 3))).unwrap_err();
    assert!(silent.errno == 0 && silent.text.contains("in time"), "{silent:?}");
    let full = exchange(&near, &hasty(turns(1 << 20, 0, 1000))).unwrap_err();
    assert!(full.text.contains("in time"), "{full:?}");
    drop(far);
    // The peer closed with unread bytes, so the kernel sent a reset.
    let gone = exchange(&near, &turns(0, 1, 1)).unwrap_err();
    assert_eq!((gone.errno, gone.text.as_str()), (104, "Connection reset by peer"));
    let (near, far) = pair();
    drop(far);
    assert!(exchange(&near, &turns(0, 1, 1)).unwrap_err().text.contains("peer closed"));
}
