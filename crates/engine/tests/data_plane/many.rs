//! TCP with more streams than threads.

use linerate_sock::clock;
use linerate_units::{Bitrate, Bytes, Span};

use crate::ends::{check_conserved, in_ms, run_tcp, sized, start_tcp, timed};

const STREAMS: usize = 300;

#[test]
fn a_limit_in_bytes_is_kept_to_the_byte() {
    // Also with fewer bytes than streams, when some have nothing to write.
    for bytes in [7, 20_000_003] {
        let (sender, receiver) = run_tcp(sized(bytes), STREAMS);
        check_conserved(&sender, &receiver);
        assert_eq!(receiver.tally.bytes, Bytes::new(bytes));
        assert!(receiver.tally.streams.is_empty(), "too many to list");
        assert_eq!(sender.settings.length, Bytes::new(256 << 10));
    }
}

#[test]
fn a_limit_in_time_has_a_measured_part_and_a_tail() {
    let (sender, mut receiver) = timed(2_800);
    // Long enough for a machine that is late by most of a second.
    (receiver.omit, receiver.measured) = (Span::from_ms(900), Some(Span::from_ms(1_000)));
    let (sender, receiver) = run_tcp((sender, receiver), STREAMS);
    check_conserved(&sender, &receiver);
    let read = &receiver.tally;
    assert!(read.elapsed <= Span::from_ms(1_000));
    assert!(read.omitted_bytes.get() > 0 && read.bytes.get() > 0 && read.tail_bytes.get() > 0);
}

#[test]
fn rates_hold_at_both_ends() {
    let (mut sender, mut receiver) = sized(300 * 10_000);
    sender.offered = Bitrate::from_bps(8e5);
    let (sent, read) = run_tcp((sender.clone(), receiver.clone()), STREAMS);
    check_conserved(&sent, &read);
    // Each stream has 10 kB at 100 kB/s in chunks of 1024 B: the last is due after the time of 9216 B.
    assert!(sent.tally.elapsed >= Span::from_ms(92), "{}", sent.tally.elapsed);
    (receiver.read_rate, sender.offered) = (Bitrate::from_bps(8e5), None);
    let (sent, read) = run_tcp((sender, receiver), STREAMS);
    check_conserved(&sent, &read);
    assert!(read.tally.elapsed >= Span::from_ms(92), "{}", read.tally.elapsed);
}

#[test]
fn an_abort_ends_both_ends() {
    let (sender, receiver) = start_tcp(timed(60_000), STREAMS);
    clock::sleep_until(in_ms(50));
    sender.abort();
    let sent = sender.finish().tally;
    assert!(!sent.complete && sent.queued_bytes.is_some());
    let read = receiver.finish().tally;
    assert!(!read.complete && read.error.is_some());
    assert!(read.total_bytes <= sent.total_bytes);
}

#[test]
fn an_order_to_stop_ends_the_flow_in_the_regular_way() {
    let (sender, receiver) = start_tcp(timed(60_000), STREAMS);
    clock::sleep_until(in_ms(30));
    sender.stop_writing();
    let (sender, receiver) = (sender.finish(), receiver.finish());
    check_conserved(&sender, &receiver);
}
