//! TCP flows of stand-ins: whole blocks, and connections that stay open.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use linerate_model::flow::{ChunkReader, EndMark, FlowId, FlowTask, Pattern, Payload, PayloadFraming, Stop};
use linerate_model::{SendMethod, Side};
use linerate_sock::clock;
use linerate_sock::poll::{Interest, wait_for};
use linerate_units::{Bitrate, Bytes, Span};

use crate::ends::{in_ms, lend_tcp, task, tcp_pairs, wait_ended, wait_until};

const SENDER: Side = Side::Sender;
const RECEIVER: Side = Side::Receiver;

/// Reads to the end of the connection, as the other end's program does.
fn read_all(mut link: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    link.set_nonblocking(false).unwrap();
    link.set_read_timeout(None).unwrap();
    link.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn a_limit_in_bytes_is_whole_blocks_at_both_ends_and_every_stream_is_counted() {
    for streams in [1, 3, 9] {
        let (near, far) = tcp_pairs(streams);
        let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
        // 50 blocks; the limit does not fill the last one.
        let sender = FlowTask { bytes: Some(Bytes::new(49_001)), ..task(SENDER, 1000) };
        let sender = lend_tcp(&sender, &near);
        wait_until(&sender, |sender| sender.progress().finished_writing);
        assert!(!sender.progress().ended, "it waits for the order how to end");
        assert_eq!(sender.counts().streams.len(), streams);
        sender.stop(Stop::Regularly);
        wait_ended(&sender);
        let (sent, read) = (sender.finish(), receiver.finish());
        for report in [&sent, &read] {
            assert!(report.tally.complete, "{:?}", report.tally.error);
            let counts = &report.counts;
            assert_eq!(counts.flow, FlowId(7));
            let bytes: u64 = counts.streams.iter().map(|stream| stream.bytes).sum();
            assert_eq!(bytes, 50_000);
            assert_eq!(counts.tally.as_ref().unwrap().total_bytes, Bytes::new(bytes));
            assert!(counts.streams.iter().all(|stream| stream.bytes % 1000 == 0 && stream.ended));
            assert!(
                counts.first_at.unwrap() <= counts.last_at.unwrap() && counts.last_at.unwrap() <= counts.at
            );
            assert_eq!(counts.trouble, None);
        }
        // Distributed evenly: 50 = 17 + 17 + 16, and 5 streams of 6 and 4 of 5.
        let most = sent.counts.streams.iter().map(|stream| stream.bytes).max().unwrap();
        assert_eq!(most, 50_u64.div_ceil(streams as u64) * 1000);
        let calls: u64 = sent.counts.streams.iter().map(|stream| stream.calls).sum();
        assert_eq!(calls, 50, "one call for each block while the peer reads");
    }
}

/// With a limit, and stopped in the middle.
#[test]
fn blocks_that_may_leave_together_stay_whole_and_take_fewer_calls() {
    let payload = Payload { pattern: Pattern::Digits, head: b"block".to_vec(), first_length: None };
    let block = [&b"block"[..], &b"567890123456789"[..]].concat();
    for limit in [Some(Bytes::new(20 * 200_001)), None] {
        let (near, mut far) = tcp_pairs(1);
        let reading = std::thread::spawn(move || {
            if limit.is_none() {
                // Let the buffers fill up in the middle of a block.
                clock::sleep_until(in_ms(100));
            }
            far.pop().map(read_all).unwrap_or_default()
        });
        let sender = FlowTask { bytes: limit, together: true, payload: payload.clone(), ..task(SENDER, 20) };
        let sender = lend_tcp(&sender, &near);
        match limit {
            Some(_) => wait_until(&sender, |sender| sender.progress().finished_writing),
            None => wait_until(&sender, |sender| sender.progress().bytes > Bytes::new(4_000_000)),
        }
        sender.stop(Stop::AtOnce);
        wait_ended(&sender);
        let report = sender.finish();
        drop(near);
        let (read, counts) = (reading.join().unwrap(), &report.counts.streams[0]);
        assert_eq!(read.len() as u64, counts.bytes);
        assert!(limit.is_none_or(|limit| limit.get() == counts.bytes), "{counts:?}");
        assert_eq!(read.len() % 20, 0, "the last block is whole");
        assert!(
            read.chunks(20).all(|found| found == block),
            "{:?}",
            read.chunks(20).find(|found| *found != block)
        );
        assert!(counts.calls < counts.bytes / 20, "{counts:?}");
    }
}

#[test]
fn the_kernels_figures_are_those_of_each_connection() {
    let (near, far) = tcp_pairs(2);
    let receiver = lend_tcp(&task(RECEIVER, 4096), &far);
    let sender = lend_tcp(&FlowTask { bytes: Some(Bytes::new(1 << 20)), ..task(SENDER, 4096) }, &near);
    wait_until(&receiver, |receiver| receiver.progress().bytes == Bytes::new(1 << 20));
    for stream in sender.counts().streams {
        assert!(stream.retransmits.is_some());
        assert!(stream.snd_cwnd.unwrap() > 0 && stream.snd_wnd.unwrap() > 0 && stream.pmtu.unwrap() > 0);
        assert!(stream.rtt.unwrap() > Span::ZERO && stream.rttvar.is_some());
        // The kernel's other figure, the assumed degree of reordering, starts at 3.
        assert_eq!(stream.reorder, Some(0), "nothing overtakes on the loopback interface");
    }
    assert!(receiver.counts().streams.iter().all(|stream| stream.retransmits.is_none()));
    sender.stop(Stop::AtOnce);
    receiver.stop(Stop::AtOnce);
    wait_ended(&sender);
    wait_ended(&receiver);
}

#[test]
fn an_offered_rate_sends_whole_blocks_when_they_are_due_the_first_at_once() {
    let (near, far) = tcp_pairs(1);
    let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
    // 50 blocks of 8000 bits at 1 Mbit/s: the last is due after 49 times 8 ms.
    let sender =
        FlowTask { offered: Bitrate::from_bps(1e6), bytes: Some(Bytes::new(50_000)), ..task(SENDER, 1000) };
    let sender = lend_tcp(&sender, &near);
    wait_until(&sender, |sender| sender.progress().finished_writing);
    sender.stop(Stop::Regularly);
    wait_ended(&sender);
    let (sent, read) = (sender.finish(), receiver.finish());
    assert_eq!((sent.counts.streams[0].bytes, read.counts.streams[0].bytes), (50_000, 50_000));
    assert_eq!(sent.counts.streams[0].calls, 50, "every block in a call of its own");
    assert!(sent.tally.elapsed >= Span::from_ms(392), "{}", sent.tally.elapsed);
}

#[test]
fn blocks_of_a_burst_leave_together() {
    let (near, far) = tcp_pairs(1);
    // At 8 bit/s the block after a burst of 10 is due after 10,000 s.
    let sender = FlowTask { offered: Bitrate::from_bps(8.0), burst: Some(10), ..task(SENDER, 1000) };
    let sender = lend_tcp(&sender, &near);
    let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
    wait_until(&receiver, |receiver| receiver.progress().bytes >= Bytes::new(10_000));
    sender.stop(Stop::AtOnce);
    wait_ended(&sender);
    assert_eq!(sender.finish().counts.streams[0].bytes, 10_000);
}

#[test]
fn blocks_due_within_a_tick_leave_together() {
    let (near, far) = tcp_pairs(1);
    // At 8 bit/s a block is due every 1000 s, so a tick of 10,000 s holds ten.
    let (offered, pacing_tick) = (Bitrate::from_bps(8.0), Some(Span::from_secs(10_000)));
    let sender = lend_tcp(&FlowTask { offered, pacing_tick, ..task(SENDER, 1000) }, &near);
    let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
    wait_until(&receiver, |receiver| receiver.progress().bytes >= Bytes::new(10_000));
    sender.stop(Stop::AtOnce);
    wait_ended(&sender);
    assert_eq!(sender.finish().counts.streams[0].bytes, 10_000);
}

#[test]
fn a_time_limit_counts_the_omitted_part_too() {
    let (near, far) = tcp_pairs(1);
    let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
    // Long enough for a machine that is late by most of a second.
    let (omit, time) = (Span::from_ms(900), Some(Span::from_ms(900)));
    let sender = FlowTask { omit, time, offered: Bitrate::from_bps(8e6), ..task(SENDER, 1000) };
    let sender = lend_tcp(&sender, &near);
    wait_until(&sender, |sender| sender.progress().finished_writing);
    sender.stop(Stop::Regularly);
    let tally = sender.finish().tally;
    assert!(tally.omitted_bytes > Bytes::new(0) && tally.bytes > Bytes::new(0));
    // One block per millisecond, the first at once: at most 1800, and none is cut.
    assert!(tally.total_bytes.get() <= 1_800_000 && tally.total_bytes.get().is_multiple_of(1000));
    assert_eq!(receiver.finish().tally.total_bytes, tally.total_bytes);
}

#[test]
fn a_stop_at_once_leaves_whole_blocks_and_a_connection_that_can_be_used() {
    for (streams, io) in
        [(1, None), (3, None), (1, Some(SendMethod::Sendfile)), (1, Some(SendMethod::Splice))]
    {
        let (near, far) = tcp_pairs(streams);
        let mut asked = task(SENDER, 100_003);
        asked.socket.io = io;
        asked.payload = Payload { pattern: Pattern::Digits, ..Payload::default() };
        let readers: Vec<_> = far.into_iter().map(|link| std::thread::spawn(|| read_all(link))).collect();
        let sender = lend_tcp(&asked, &near);
        // Another owner makes the connection non-blocking, so that many calls move only a part of a block.
        near.iter().for_each(|link| link.set_nonblocking(true).unwrap());
        wait_until(&sender, |sender| sender.progress().bytes > Bytes::new(10_000_000));
        sender.stop(Stop::AtOnce);
        wait_ended(&sender);
        let counts = sender.finish().counts;
        for mut link in near {
            link.set_nonblocking(false).unwrap();
            link.write_all(b"after the data").unwrap();
            link.shutdown(Shutdown::Write).unwrap();
        }
        for (reader, stream) in readers.into_iter().zip(&counts.streams) {
            let read = reader.join().unwrap();
            let (data, after) = read.split_at(stream.bytes as usize);
            assert_eq!(after, b"after the data", "{io:?}");
            assert_eq!(data.len() % 100_003, 0, "{io:?}");
            let block: Vec<u8> = (b'0'..=b'9').cycle().take(100_003).collect();
            assert!(data.chunks(100_003).all(|read| read == block), "{io:?}");
        }
    }
}

#[test]
fn a_peer_that_takes_nothing_keeps_a_block_from_being_finished_and_not_the_flow() {
    let (near, far) = tcp_pairs(1);
    let sender = lend_tcp(&task(SENDER, 8 << 20), &near);
    let mut before = 0;
    while before == 0 || sender.progress().bytes.get() > before {
        before = sender.progress().bytes.get();
        clock::sleep_until(in_ms(150));
    }
    sender.stop(Stop::AtOnce);
    assert!(wait_for(sender.waker(), Interest::READ, in_ms(60_000)).unwrap());
    wait_ended(&sender);
    let report = sender.finish();
    assert!(report.tally.complete);
    let reader = std::thread::spawn(|| far.into_iter().map(read_all).next().unwrap());
    near[0].shutdown(Shutdown::Write).unwrap();
    assert_eq!(reader.join().unwrap().len() as u64, report.counts.streams[0].bytes);
}

#[test]
fn a_regular_stop_closes_the_writing_side_only() {
    let (mut near, mut far) = tcp_pairs(1);
    let sender = lend_tcp(&task(SENDER, 1000), &near);
    let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
    wait_until(&receiver, |receiver| receiver.progress().bytes > Bytes::new(0));
    sender.stop(Stop::Regularly);
    wait_ended(&sender);
    let sent = sender.finish();
    // The end of the connection ends the receiver without an order.
    wait_ended(&receiver);
    let read = receiver.finish();
    assert!(read.tally.complete);
    assert_eq!(sent.counts.streams[0].bytes, read.counts.streams[0].bytes);
    far[0].write_all(b"answer").unwrap();
    drop(far);
    near[0].set_read_timeout(None).unwrap();
    assert_eq!(read_all(near.pop().unwrap()), b"answer");
}

#[test]
fn a_receiver_that_is_stopped_leaves_what_comes_later_to_others() {
    let (mut near, far) = tcp_pairs(1);
    let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
    near[0].write_all(&[1; 500]).unwrap();
    wait_until(&receiver, |receiver| receiver.progress().bytes == Bytes::new(500));
    receiver.stop(Stop::AtOnce);
    wait_ended(&receiver);
    let report = receiver.finish();
    assert!(report.tally.complete && report.counts.streams[0].ended);
    near[0].write_all(b"later").unwrap();
    drop(near);
    assert_eq!(far.into_iter().map(read_all).next().unwrap(), b"later");
}

#[test]
fn two_flows_share_the_two_directions_of_one_connection() {
    let (near, far) = tcp_pairs(1);
    let limited = FlowTask { bytes: Some(Bytes::new(3_000_000)), ..task(SENDER, 1000) };
    let flows =
        [&near, &far].map(|links| (lend_tcp(&limited, links), lend_tcp(&task(RECEIVER, 1000), links)));
    for (sender, _) in &flows {
        wait_until(sender, |sender| sender.progress().finished_writing);
        // Another owner makes the connection non-blocking.
        near[0].set_nonblocking(true).unwrap();
        sender.stop(Stop::Regularly);
    }
    let (senders, receivers): (Vec<_>, Vec<_>) = flows.into_iter().unzip();
    for sender in senders {
        assert_eq!(sender.finish().tally.total_bytes, Bytes::new(3_000_000));
    }
    for receiver in receivers {
        wait_ended(&receiver);
        let report = receiver.finish();
        assert_eq!((report.tally.total_bytes, report.tally.complete), (Bytes::new(3_000_000), true));
    }
}

#[test]
fn a_reset_is_kept_in_the_words_of_the_system() {
    let (near, far) = tcp_pairs(2);
    let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
    let sender = lend_tcp(&task(SENDER, 1000), &near);
    wait_until(&receiver, |receiver| receiver.progress().bytes > Bytes::new(0));
    receiver.stop(Stop::Abort);
    wait_ended(&receiver);
    let read = receiver.finish();
    assert!(!read.tally.complete && read.counts.trouble.is_none(), "it was ordered to end");
    drop(far);
    // Its streams fail, so that it ends without an order.
    wait_ended(&sender);
    let trouble = sender.counts().trouble.unwrap();
    // ECONNRESET, or EPIPE if the reset arrived between two calls; the texts are those of strerror(3).
    let known = [(104, "Connection reset by peer"), (32, "Broken pipe")];
    assert!(known.contains(&(trouble.errno, trouble.text.as_str())), "{trouble:?}");
    assert!(sender.finish().counts.streams.iter().all(|stream| stream.ended));
}

#[test]
fn the_head_begins_every_block_and_a_longer_first_block_holds_it_whole() {
    let (near, far) = tcp_pairs(1);
    let payload =
        Payload { head: b"header".to_vec(), pattern: Pattern::Byte(b'.'), first_length: Some(Bytes::new(8)) };
    let sender = FlowTask { payload, bytes: Some(Bytes::new(12)), ..task(SENDER, 4) };
    let sender = lend_tcp(&sender, &near);
    wait_until(&sender, |sender| sender.progress().finished_writing);
    sender.stop(Stop::Regularly);
    assert_eq!(sender.finish().counts.streams[0].bytes, 16);
    assert_eq!(far.into_iter().map(read_all).next().unwrap(), b"header..headhead");
}

#[test]
fn more_streams_than_threads_are_counted_one_by_one_too() {
    let (near, far) = tcp_pairs(200);
    let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
    let sender = FlowTask { bytes: Some(Bytes::new(400_000)), ..task(SENDER, 1000) };
    let sender = lend_tcp(&sender, &near);
    wait_until(&sender, |sender| sender.progress().finished_writing);
    sender.stop(Stop::Regularly);
    wait_ended(&sender);
    for report in [sender.finish(), receiver.finish()] {
        assert!(report.tally.complete, "{:?}", report.tally.error);
        assert!(report.counts.streams.iter().all(|stream| stream.bytes == 2000 && stream.ended));
    }
}

#[test]
fn shared_threads_stop_at_once_too() {
    let (near, far) = tcp_pairs(200);
    let receiver = lend_tcp(&task(RECEIVER, 1000), &far);
    let sender = lend_tcp(&task(SENDER, 1000), &near);
    wait_until(&receiver, |receiver| receiver.progress().bytes > Bytes::new(1 << 20));
    for handle in [&sender, &receiver] {
        handle.stop(Stop::AtOnce);
        assert!(wait_for(handle.waker(), Interest::READ, in_ms(60_000)).unwrap());
        wait_ended(handle);
    }
    assert!(sender.finish().tally.complete && receiver.finish().tally.complete);
    let mut link = near.into_iter().next().unwrap();
    link.set_nonblocking(false).unwrap();
    assert_eq!(link.write(b"still open").unwrap(), 10);
}

/// The peer waits for an answer, or sends what belongs to something else.
#[test]
fn a_given_length_ends_a_receiver_and_what_follows_stays_in_the_socket() {
    for length in [1, 65_535, 65_537, 3_000_001] {
        let (near, far) = tcp_pairs(1);
        let receiver = FlowTask { end_mark: EndMark::Length(length), ..task(RECEIVER, 65_536) };
        let receiver = lend_tcp(&receiver, &far);
        let mut writer = near.into_iter().next().unwrap();
        writer.set_nonblocking(false).unwrap();
        writer.write_all(&vec![1; usize::try_from(length).unwrap()]).unwrap();
        writer.write_all(b"next").unwrap();
        wait_ended(&receiver);
        let counts = receiver.finish().counts;
        assert_eq!((counts.streams[0].bytes, counts.trouble), (length, None));
        writer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(far.into_iter().next().unwrap()), b"next");
    }
}

#[test]
fn chunks_end_with_the_last_one_and_only_their_payload_counts() {
    let (near, far) = tcp_pairs(1);
    let mut begun = ChunkReader::default();
    assert_eq!(begun.take(b"186a0\r\n0123456789"), Ok((10, 17)));
    let receiver = FlowTask { framing: PayloadFraming::Chunks(begun), ..task(RECEIVER, 65_536) };
    let receiver = lend_tcp(&receiver, &far);
    let mut writer = near.into_iter().next().unwrap();
    writer.set_nonblocking(false).unwrap();
    let rest = [&vec![b'x'; 99_990][..], b"\r\n3;last\r\nabc\r\n0\r\n\r\n"].concat();
    for piece in rest.chunks(9_999) {
        writer.write_all(piece).unwrap();
    }
    wait_ended(&receiver);
    let counts = receiver.finish().counts;
    assert_eq!((counts.streams[0].bytes, counts.trouble), (99_993, None));
}
