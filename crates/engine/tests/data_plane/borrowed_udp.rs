//! Datagrams of stand-ins: headers of every layout, end marks, and sockets that stay open.

use std::net::UdpSocket;

use linerate_engine::{EngineError, FlowReport, FlowSetup, Sockets, start};
use linerate_model::Side;
use linerate_model::flow::{EndMark, FlowTask, Pattern, Payload, Stop, StreamCounts};
use linerate_model::flow::{SeqField, StampLayout, TimeField, TimeForm};
use linerate_sock::batch::send_segments;
use linerate_sock::clock;
use linerate_units::{Bitrate, Bytes, Span};

use crate::ends::{lend_udp, task, udp_pairs, wait_ended, wait_until};

fn layout(seq: SeqField, length: usize) -> StampLayout {
    StampLayout { tag_at: None, seq, time: None, stream_at: None, length }
}

const HALVES: SeqField = SeqField::Halves { low_at: 0, high_at: 12, first: 1 };

fn pair() -> (UdpSocket, UdpSocket) {
    let (mut near, mut far) = udp_pairs(1);
    (near.pop().unwrap(), far.pop().unwrap())
}

fn receiver(stamp: StampLayout, length: u64) -> FlowTask {
    FlowTask { stamp, ..task(Side::Receiver, length) }
}

/// Counts of a receiver that gets these datagrams; it has to read all of them.
fn counted(task: &FlowTask, datagrams: &[Vec<u8>]) -> FlowReport {
    let (near, far) = pair();
    // They wait in the socket, so that a stop at the first silence loses none.
    datagrams.iter().for_each(|datagram| assert_eq!(near.send(datagram).unwrap(), datagram.len()));
    let flow = lend_udp(task, &far);
    flow.stop(Stop::Regularly);
    let report = flow.finish();
    assert!(report.tally.complete, "{:?}", report.tally.error);
    report
}

fn numbers(counts: &StreamCounts) -> (u64, u64, u64, u64, u64) {
    (counts.packets, counts.highest, counts.lost, counts.out_of_order, counts.duplicates)
}

/// A datagram of 32 bytes with its number according to the layout, independent of the code under test.
fn numbered(seq: SeqField, number: u64) -> Vec<u8> {
    let mut datagram = vec![0xEE; 32];
    let mut put = |at: usize, bytes: &[u8]| datagram[at..at + bytes.len()].copy_from_slice(bytes);
    match seq {
        SeqField::Wide { at, .. } => put(at, &number.to_be_bytes()),
        SeqField::Narrow { at, .. } | SeqField::Signed { at, .. } => put(at, &(number as u32).to_be_bytes()),
        SeqField::Halves { low_at, high_at, .. } => {
            put(low_at, &(number as u32).to_be_bytes());
            put(high_at, &((number >> 32) as u32).to_be_bytes());
        }
        SeqField::Bytes { at, .. } => put(at, &(number * 32).to_le_bytes()),
        SeqField::Absent => {}
    }
    datagram
}

#[test]
fn planted_losses_late_ones_and_doubles_are_counted_in_every_layout() {
    let layouts = [
        SeqField::Wide { at: 8, first: 1 },
        SeqField::Narrow { at: 8, first: 1 },
        SeqField::Signed { at: 0, first: 1 },
        HALVES,
        SeqField::Bytes { at: 24, streams: 1 },
    ];
    for seq in layouts {
        // 4 and 5 are lost, 2 is late, 3 and 6 are duplicated; the highest is 8.
        let datagrams: Vec<_> = [1, 3, 2, 3, 6, 6, 7, 8].map(|number| numbered(seq, number)).into();
        let report = counted(&receiver(layout(seq, 16), 32), &datagrams);
        let stream = &report.counts.streams[0];
        assert_eq!(numbers(stream), (8, 8, 2, 1, 2), "{seq:?}");
        assert_eq!(stream.bytes, 8 * 32, "doubled ones are bytes too");
        assert_eq!(report.counts.tally.as_ref().unwrap().udp.as_ref().unwrap().lost, 2);
        assert_eq!(report.counts.marks, [None]);
    }
}

#[test]
fn datagrams_without_numbers_are_counted_and_none_is_missing() {
    let datagrams = [vec![1; 5], vec![2; 700], vec![3; 32]];
    let report = counted(&receiver(layout(SeqField::Absent, 0), 700), &datagrams);
    assert_eq!(numbers(&report.counts.streams[0]), (3, 3, 0, 0, 0));
    assert_eq!(report.counts.streams[0].bytes, 737);
}

#[test]
fn numbers_of_four_bytes_wrap() {
    let seq = SeqField::Narrow { at: 8, first: 0xFFFF_FFFE };
    let datagrams: Vec<_> = [0xFFFF_FFFE, 0xFFFF_FFFF, 1, 0, 2].map(|number| numbered(seq, number)).into();
    let report = counted(&receiver(layout(seq, 16), 32), &datagrams);
    assert_eq!(numbers(&report.counts.streams[0]), (5, 5, 0, 1, 0));
}

#[test]
fn what_is_shorter_than_the_header_or_has_an_absurd_number_is_no_data() {
    let seq = SeqField::Wide { at: 0, first: 1 };
    let datagrams =
        [numbered(seq, 1), vec![0; 15], numbered(seq, u64::MAX), numbered(seq, 0), numbered(seq, 2)];
    let report = counted(&receiver(layout(seq, 16), 32), &datagrams);
    assert_eq!(numbers(&report.counts.streams[0]), (2, 2, 0, 0, 0));
}

#[test]
fn a_negative_number_ends_the_stream_and_can_be_echoed() {
    let (near, far) = pair();
    let flow = lend_udp(&FlowTask { end_mark: EndMark::Negative, ..receiver(layout(HALVES, 16), 32) }, &far);
    let last = numbered(HALVES, 4_u64.wrapping_neg());
    for datagram in [&numbered(HALVES, 1), &numbered(HALVES, 3), &last] {
        near.send(datagram).unwrap();
    }
    // Without an order.
    wait_ended(&flow);
    let counts = flow.finish().counts;
    assert_eq!(counts.marks, [Some(last.clone())]);
    assert_eq!((numbers(&counts.streams[0]), counts.streams[0].bytes), ((2, 3, 1, 0, 0), 64));
    assert!(counts.streams[0].ended);
    // Later datagrams belong to the owner of the socket, one by one.
    // Two in one call, which a kernel with GRO may deliver merged.
    send_segments(&near, &[&last[..], &last[..]].concat(), 32).unwrap();
    let mut again = [0; 100];
    assert_eq!((far.recv(&mut again).unwrap(), &again[..32]), (32, &last[..]));
    assert_eq!(far.recv(&mut again).unwrap(), 32);
}

#[test]
fn a_negative_number_ends_nothing_where_it_is_no_mark() {
    let datagrams = [numbered(HALVES, 2_u64.wrapping_neg()), numbered(HALVES, 1)];
    let report = counted(&receiver(layout(HALVES, 16), 32), &datagrams);
    assert_eq!(numbers(&report.counts.streams[0]), (1, 1, 0, 0, 0));
}

#[test]
fn the_second_short_datagram_ends_the_stream_and_short_ones_are_no_data() {
    let (near, far) = pair();
    let end_mark = EndMark::Short { bytes: 4, nth: 2 };
    let flow = lend_udp(&FlowTask { end_mark, ..receiver(layout(SeqField::Absent, 0), 1400) }, &far);
    near.send(b"BOD").unwrap();
    for _ in 0..5 {
        near.send(&[7; 1400]).unwrap();
    }
    wait_until(&flow, |flow| flow.progress().bytes == Bytes::new(7000));
    assert!(!flow.progress().ended);
    near.send(b"EOD0").unwrap();
    wait_ended(&flow);
    let counts = flow.finish().counts;
    assert_eq!(counts.marks, [Some(b"EOD0".to_vec())]);
    assert_eq!((counts.streams[0].packets, counts.streams[0].bytes), (5, 7000));
}

#[test]
fn a_stop_at_once_ends_a_silent_receiver() {
    let (_near, far) = pair();
    let flow = lend_udp(&receiver(layout(SeqField::Absent, 0), 100), &far);
    flow.stop(Stop::AtOnce);
    wait_ended(&flow);
    let report = flow.finish();
    assert!(report.tally.complete && report.counts.first_at.is_none() && report.counts.last_at.is_none());
}

#[test]
fn every_layout_is_written_as_it_is_read() {
    let seqs = [
        SeqField::Wide { at: 8, first: 1 },
        SeqField::Narrow { at: 8, first: 1 },
        SeqField::Signed { at: 8, first: 0 },
        SeqField::Halves { low_at: 8, high_at: 12, first: 1 },
        SeqField::Bytes { at: 8, streams: 1 },
        SeqField::Absent,
    ];
    for seq in seqs {
        let time =
            (!matches!(seq, SeqField::Absent)).then_some(TimeField { at: 0, form: TimeForm::Monotonic });
        let stamp = StampLayout { time, ..layout(seq, 16) };
        let (near, far) = pair();
        let receiving = lend_udp(&receiver(stamp, 200), &far);
        let sender = FlowTask {
            stamp,
            bytes: Some(Bytes::new(19_801)),
            offered: Bitrate::from_bps(4e6),
            ..task(Side::Sender, 200)
        };
        let sender = lend_udp(&sender, &near);
        wait_until(&sender, |sender| sender.progress().finished_writing);
        assert!(!sender.progress().ended);
        sender.stop(Stop::AtOnce);
        receiving.stop(Stop::Regularly);
        let (sent, read) = (sender.finish().counts, receiving.finish().counts);
        assert_eq!((numbers(&sent.streams[0]), sent.streams[0].bytes), ((100, 100, 0, 0, 0), 20_000));
        assert_eq!(
            (numbers(&read.streams[0]), read.streams[0].bytes),
            ((100, 100, 0, 0, 0), 20_000),
            "{seq:?}"
        );
    }
}

/// The first `count` datagrams of a sender, as a plain socket receives them.
fn sent(task: &FlowTask, count: usize) -> Vec<Vec<u8>> {
    let (near, far) = pair();
    let sender = lend_udp(task, &near);
    let mut buffer = [0; 2000];
    let datagrams = (0..count).map(|_| {
        let length = far.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    });
    let datagrams = datagrams.collect();
    sender.stop(Stop::AtOnce);
    wait_ended(&sender);
    datagrams
}

#[test]
fn head_pattern_stamp_and_a_longer_first_datagram_lie_where_they_should() {
    let payload =
        Payload { head: (100..140).collect(), pattern: Pattern::Digits, first_length: Some(Bytes::new(42)) };
    let stamp = layout(SeqField::Signed { at: 0, first: 1 }, 16);
    let asked = FlowTask {
        payload,
        stamp,
        bytes: Some(Bytes::new(60)),
        offered: Bitrate::from_bps(1e6),
        ..task(Side::Sender, 20)
    };
    let datagrams = sent(&asked, 3);
    let head: Vec<u8> = (100..140).collect();
    assert_eq!(datagrams[0], [&[0, 0, 0, 1], &head[4..], b"01"].concat());
    assert_eq!(datagrams[1], [&[0, 0, 0, 2], &head[4..20]].concat());
    assert_eq!(datagrams[2], [&[0, 0, 0, 3], &head[4..20]].concat());
}

#[test]
fn a_wall_time_is_the_time_of_day() {
    let time = Some(TimeField { at: 4, form: TimeForm::Wall });
    let stamp = StampLayout { time, ..layout(SeqField::Signed { at: 0, first: 0 }, 12) };
    let before = clock::wall_ns() / 1000;
    let datagram =
        sent(&FlowTask { stamp, offered: Bitrate::from_bps(1e6), ..task(Side::Sender, 20) }, 1).remove(0);
    let after = clock::wall_ns() / 1000;
    let word = |at: usize| u64::from(u32::from_be_bytes(datagram[at..at + 4].try_into().unwrap()));
    let stamp = word(4) * 1_000_000 + word(8);
    assert!(before <= stamp && stamp <= after, "{before} {stamp} {after}");
}

#[test]
fn datagrams_of_a_burst_leave_together_also_when_they_fill_more_than_a_call() {
    for burst in [3, 200] {
        let (near, far) = pair();
        // At 8 bit/s the datagram after a burst is due after at least 300 s.
        let stamp = layout(SeqField::Wide { at: 0, first: 1 }, 8);
        let offered = Bitrate::from_bps(8.0);
        let sender = FlowTask { stamp, offered, burst: Some(burst), ..task(Side::Sender, 100) };
        let flow = lend_udp(&receiver(stamp, 100), &far);
        let sender = lend_udp(&sender, &near);
        wait_until(&flow, |flow| flow.counts().streams[0].packets >= u64::from(burst));
        sender.stop(Stop::AtOnce);
        let counts = sender.finish().counts;
        let round = if burst == 200 { 64 } else { 3 };
        assert!(counts.streams[0].packets >= u64::from(burst));
        assert_eq!(counts.streams[0].packets % round, 0, "whole calls");
    }
}

#[test]
fn datagrams_due_within_a_tick_leave_together() {
    let (near, far) = pair();
    // At 8 bit/s a datagram is due every 100 s, so a tick of 1000 s holds ten.
    let stamp = layout(SeqField::Wide { at: 0, first: 1 }, 8);
    let (offered, pacing_tick) = (Bitrate::from_bps(8.0), Some(Span::from_secs(1000)));
    let sender = FlowTask { stamp, offered, pacing_tick, ..task(Side::Sender, 100) };
    let flow = lend_udp(&receiver(stamp, 100), &far);
    let sender = lend_udp(&sender, &near);
    wait_until(&flow, |flow| flow.counts().streams[0].packets >= 10);
    sender.stop(Stop::AtOnce);
    wait_ended(&sender);
    let sent = sender.finish().counts.streams[0];
    assert_eq!((sent.packets, sent.calls), (10, 10), "a call for each");
}

#[test]
fn a_closed_port_is_noted_and_the_sender_goes_on() {
    let (near, far) = pair();
    drop(far);
    let stamp = layout(SeqField::Wide { at: 0, first: 1 }, 8);
    let sender = FlowTask { stamp, offered: Bitrate::from_bps(8e6), ..task(Side::Sender, 100) };
    let sender = lend_udp(&sender, &near);
    wait_until(&sender, |sender| sender.counts().trouble.is_some());
    let before = sender.counts().streams[0].packets;
    wait_until(&sender, |sender| sender.counts().streams[0].packets > before + 10);
    assert!(!sender.progress().ended);
    sender.stop(Stop::AtOnce);
    wait_ended(&sender);
    let report = sender.finish();
    let trouble = report.counts.trouble.unwrap();
    assert_eq!((trouble.errno, trouble.text.as_str()), (111, "Connection refused"));
    assert!(report.tally.complete);
    let udp = report.tally.udp.unwrap();
    assert!(udp.send_errors.unwrap() > 0);
}

#[test]
fn a_refused_datagram_consumes_no_number() {
    let (near, far) = pair();
    let address = far.local_addr().unwrap();
    drop(far);
    let stamp = layout(SeqField::Wide { at: 0, first: 1 }, 8);
    let sender = FlowTask { stamp, offered: Bitrate::from_bps(8e5), ..task(Side::Sender, 100) };
    let sender = lend_udp(&sender, &near);
    wait_until(&sender, |sender| sender.counts().trouble.is_some());
    let far = UdpSocket::bind(address).unwrap();
    let mut datagram = [0; 100];
    far.recv(&mut datagram).unwrap();
    let first = u64::from_be_bytes(datagram[..8].try_into().unwrap());
    sender.stop(Stop::AtOnce);
    let counts = sender.finish().counts;
    far.set_read_timeout(Some(Span::from_ms(100).as_duration())).unwrap();
    let mut arrived = 1;
    while far.recv(&mut datagram).is_ok() {
        arrived += 1;
        assert_eq!(u64::from_be_bytes(datagram[..8].try_into().unwrap()), first + arrived - 1);
    }
    assert_eq!(counts.streams[0].packets, first + arrived - 1, "every number up to the last was sent once");
}

#[test]
fn a_stream_of_many_is_counted_alone() {
    let (near, far) = udp_pairs(5);
    let stamp = layout(SeqField::Narrow { at: 0, first: 1 }, 8);
    let duplicates =
        |links: &[UdpSocket]| Sockets::Udp(links.iter().map(|link| link.try_clone().unwrap()).collect());
    let of = |task: FlowTask| {
        FlowSetup::of_task(&FlowTask { stamp, transport: linerate_model::Transport::Udp, ..task })
    };
    let receiving = start(of(task(Side::Receiver, 100)), duplicates(&far), clock::now()).unwrap();
    // The third stream gets one more datagram, whose number skips one.
    let mut planted = [0; 100];
    planted[..4].copy_from_slice(&12_u32.to_be_bytes());
    near[2].send(&planted).unwrap();
    wait_until(&receiving, |receiving| receiving.progress().bytes == Bytes::new(100));
    let asked = FlowTask {
        bytes: Some(Bytes::new(5000)),
        offered: Bitrate::from_bps(1e6),
        ..task(Side::Sender, 100)
    };
    let sender = start(of(asked), duplicates(&near), clock::now()).unwrap();
    wait_until(&sender, |sender| sender.progress().finished_writing);
    sender.stop(Stop::AtOnce);
    receiving.stop(Stop::Regularly);
    let (sent, read) = (sender.finish(), receiving.finish());
    assert!(sent.counts.streams.iter().all(|stream| stream.packets == 10 && stream.bytes == 1000));
    for (index, stream) in read.counts.streams.iter().enumerate() {
        let expected = if index == 2 { (11, 12, 1, 10, 0) } else { (10, 10, 0, 0, 0) };
        assert_eq!(numbers(stream), expected, "{index}");
    }
    let listed: Vec<u64> = read.tally.streams.iter().map(|stream| stream.bytes.get()).collect();
    assert_eq!(listed, [1000, 1000, 1100, 1000, 1000]);
    assert_eq!(read.tally.total_bytes, Bytes::new(5100));
}

#[test]
fn a_datagram_of_no_bytes_is_refused_by_its_header() {
    let (near, _far) = pair();
    let stamp = layout(HALVES, 16);
    let task = FlowTask { stamp, transport: linerate_model::Transport::Udp, ..task(Side::Sender, 0) };
    let error = start(FlowSetup::of_task(&task), Sockets::Udp(vec![near]), clock::now()).unwrap_err();
    assert!(matches!(error, EngineError::DatagramTooShort { length: 1, needed: 16 }));
}
