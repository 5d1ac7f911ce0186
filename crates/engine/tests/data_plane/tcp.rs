//! TCP with a thread for each stream.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use linerate_engine::{FlowFile, FlowSetup, Sockets, start};
use linerate_model::metrics::{flow, tcp};
use linerate_model::{CaveatKind, Side, StreamCounting};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::{Mono, clock};
use linerate_units::{Bitrate, Bytes, Span};

use crate::ends::{check_conserved, in_ms, run_tcp, sized, start_tcp, tcp_pairs, timed};

fn mbps(mbps: f64) -> Option<Bitrate> {
    Bitrate::from_bps(mbps * 1e6)
}

#[test]
fn a_limit_in_bytes_is_kept_to_the_byte_over_one_and_over_five_streams() {
    for (streams, bytes) in [(1, 1), (1, 3_000_001), (5, 3), (5, 20_000_003)] {
        let (sender, receiver) = run_tcp(sized(bytes), streams);
        check_conserved(&sender, &receiver);
        assert_eq!(receiver.tally.total_bytes, Bytes::new(bytes));
        assert_eq!(receiver.tally.bytes, Bytes::new(bytes), "without a length the measured part has no tail");
        assert_eq!(receiver.tally.streams.len(), streams);
    }
}

#[test]
fn the_bytes_of_the_first_read_mark_the_origin_and_are_not_in_the_rate() {
    let (near, far) = tcp_pairs(1);
    let receiver = start(sized(0).1, Sockets::Tcp(far), clock::now()).unwrap();
    let mut writer = near.into_iter().next().unwrap();
    writer.write_all(&[1; 1000]).unwrap();
    while receiver.progress().bytes < Bytes::new(1000) {
        clock::sleep_until(in_ms(1));
    }
    clock::sleep_until(in_ms(20));
    writer.write_all(&[2; 500]).unwrap();
    writer.shutdown(Shutdown::Write).unwrap();
    let tally = receiver.finish().tally;
    assert_eq!((tally.bytes.get(), tally.first_read_bytes.get()), (1500, 1000));
    assert!(tally.elapsed >= Span::from_ms(20));
    assert_eq!(Some(tally.bitrate), Bitrate::of(Bytes::new(500), tally.elapsed));
    assert!(tally.complete);
}

#[test]
fn a_limit_in_time_measures_that_long_and_counts_the_tail_apart() {
    for streams in [1, 5] {
        let (sender, mut receiver) = timed(2_000);
        // The sender runs longer than the receiver measures, so that there is a tail, and each part is long enough
        // for a machine that is late by most of a second.
        receiver.measured = Some(Span::from_ms(1_000));
        let (sender, receiver) = run_tcp((sender, receiver), streams);
        check_conserved(&sender, &receiver);
        let read = &receiver.tally;
        assert!(read.elapsed <= Span::from_ms(1_000));
        assert!(read.tail_bytes > Bytes::new(0) && read.bytes > read.first_read_bytes);
        let inside = read.bytes.get() - read.first_read_bytes.get();
        assert_eq!(Some(read.bitrate), Bitrate::of(Bytes::new(inside), read.elapsed));
        assert_eq!(sender.tally.tail_bytes, Bytes::new(0));
        assert!(receiver.samples.iter().any(|sample| sample.outside));
        assert!(receiver.samples.iter().any(|sample| !sample.outside));
    }
}

#[test]
fn an_omitted_part_is_counted_apart_at_both_ends() {
    // Long enough for a machine that is late by most of a second.
    let (mut sender, mut receiver) = timed(2_000);
    (sender.omit, receiver.omit) = (Span::from_ms(900), Span::from_ms(900));
    receiver.measured = Some(Span::from_ms(1_000));
    let (sender, receiver) = run_tcp((sender, receiver), 2);
    check_conserved(&sender, &receiver);
    for report in [&sender, &receiver] {
        let tally = &report.tally;
        assert!(tally.omitted_bytes > Bytes::new(0) && tally.bytes > Bytes::new(0));
        assert_eq!(tally.first_read_bytes, Bytes::new(0));
        assert_eq!(Some(tally.bitrate), Bitrate::of(tally.bytes, tally.elapsed));
        let first = &report.samples[0];
        assert!(first.outside && first.start_ns.as_ns() == 0);
        // No interval spans the end of the omitted part.
        for sample in &report.samples {
            let whole = sample.end_ns.as_ns() < 900_000_000 || sample.start_ns.as_ns() >= 900_000_000;
            assert!(whole || sample.outside);
        }
    }
    assert!(receiver.tally.elapsed <= Span::from_ms(1_000));
}

#[test]
fn an_offered_rate_is_kept_to_a_chunk_by_the_schedule() {
    let (mut sender, receiver) = timed(300);
    sender.offered = mbps(80.0);
    let (sender, receiver) = run_tcp((sender, receiver), 2);
    check_conserved(&sender, &receiver);
    // 80 Mbit/s for 0.3 s are 3 MB, in 60 chunks of 5 ms. The next one would be due at the end, when writing
    // has stopped. A busy host may write fewer, never more.
    for stream in &receiver.tally.streams {
        assert!(stream.bytes.get() <= 3_000_000, "{}", stream.bytes);
    }
    assert!(sender.settings.pacing_bps.effective.is_some_and(|rate| rate.bps() == 1e8));
}

#[test]
fn a_slow_pace_has_the_time_of_its_slots() {
    for streams in [1, 20] {
        let (mut sender, receiver) = timed(250);
        // A chunk of 1024 bytes at 0, 100 and 200 ms. A late host may write fewer.
        sender.offered = mbps(0.081_92);
        let (sender, receiver) = run_tcp((sender, receiver), streams);
        check_conserved(&sender, &receiver);
        let chunks = sender.tally.streams.iter().map(|stream| stream.bytes.get() / 1024).max().unwrap();
        let slots = Span::from_ms(100 * chunks).min(Span::from_ms(250));
        assert!(sender.tally.elapsed >= slots, "{streams}: {} for {chunks}", sender.tally.elapsed);
    }
}

#[test]
fn a_limit_in_bytes_at_a_rate_takes_the_time_of_the_schedule() {
    let (mut sender, receiver) = sized(1_000_000);
    sender.offered = mbps(40.0);
    let (sender, receiver) = run_tcp((sender, receiver), 1);
    check_conserved(&sender, &receiver);
    assert_eq!(receiver.tally.total_bytes, Bytes::new(1_000_000));
    // The last chunk of 25 kB is due after the time of 975 kB: 195 ms.
    assert!(sender.tally.elapsed >= Span::from_ms(195), "{}", sender.tally.elapsed);
}

#[test]
fn a_kernel_rate_is_set_and_the_program_offers_everything() {
    let (mut sender, receiver) = sized(300_000);
    sender.fq_rate = mbps(200.0);
    let (sender, receiver) = run_tcp((sender, receiver), 1);
    check_conserved(&sender, &receiver);
    assert_eq!(sender.settings.pacing_bps.asked, sender.settings.pacing_bps.effective);
}

#[test]
fn a_slow_reader_reads_by_its_schedule() {
    let (sender, mut receiver) = sized(1_000_000);
    receiver.read_rate = mbps(40.0);
    let (sender, receiver) = run_tcp((sender, receiver), 1);
    check_conserved(&sender, &receiver);
    // From the first read to the last chunk of 25 kB: 975 kB at 40 Mbit/s take 195 ms.
    assert!(receiver.tally.elapsed >= Span::from_ms(195), "{}", receiver.tally.elapsed);
}

#[test]
fn an_order_to_stop_writing_ends_the_flow_in_the_regular_way() {
    let (sender, receiver) = start_tcp(timed(60_000), 2);
    clock::sleep_until(in_ms(50));
    assert!(!sender.progress().finished_writing);
    sender.stop_writing();
    assert!(wait_for(sender.waker(), Interest::READ, Mono::FAR).unwrap());
    assert!(sender.progress().finished_writing);
    let (sender, receiver) = (sender.finish(), receiver.finish());
    check_conserved(&sender, &receiver);
}

#[test]
fn an_abort_ends_both_ends_and_the_queue_is_counted() {
    let (sender, receiver) = start_tcp(timed(60_000), 2);
    while receiver.progress().bytes < Bytes::new(1 << 20) {
        clock::sleep_until(in_ms(1));
    }
    receiver.abort();
    let read = receiver.finish().tally;
    assert!(!read.complete && read.error.is_some_and(|text| text.contains("stopped")));
    // The reset ends the sender without an order.
    let sent = sender.finish().tally;
    assert!(!sent.complete && sent.error.is_some_and(|text| text.contains("2 of 2 streams")));
    assert!(sent.total_bytes >= read.total_bytes);
}

#[test]
fn an_aborted_sender_knows_what_was_not_delivered() {
    let (near, far) = tcp_pairs(1);
    let (sender, _) = timed(60_000);
    // The other end does not read.
    let sender = start(sender, Sockets::Tcp(near), clock::now()).unwrap();
    while sender.progress().bytes < Bytes::new(100_000) {
        clock::sleep_until(in_ms(1));
    }
    sender.abort();
    let sent = sender.finish().tally;
    assert!(!sent.complete);
    let arrived = linerate_sock::queues::readable(&far[0]).unwrap();
    assert!(sent.queued_bytes.unwrap().get() + arrived >= sent.total_bytes.get());
}

#[test]
fn the_half_close_is_not_taken_for_a_byte_in_the_queue() {
    let (near, _far) = tcp_pairs(1);
    let end = near[0].try_clone().unwrap();
    let sender = start(timed(60_000).0, Sockets::Tcp(near), clock::now()).unwrap();
    // The other end does not read: the queue is full when it stops growing.
    let mut before = 0;
    while before == 0 || sender.progress().bytes.get() > before {
        before = sender.progress().bytes.get();
        clock::sleep_until(in_ms(1_000));
    }
    sender.stop_writing();
    assert!(wait_for(sender.waker(), Interest::READ, Mono::FAR).unwrap());
    sender.abort();
    let queued = sender.finish().tally.queued_bytes.unwrap().get();
    let with_fin = linerate_sock::queues::unacknowledged(&end).unwrap();
    assert_eq!(queued + 1, with_fin);
}

#[test]
fn a_deadline_for_reading_ends_a_silent_flow() {
    let (near, far) = tcp_pairs(1);
    let receiver = start(timed(1000).1, Sockets::Tcp(far), clock::now()).unwrap();
    receiver.stop_reading(in_ms(10));
    let report = receiver.finish();
    assert!(!report.tally.complete);
    assert_eq!((report.tally.total_bytes.get(), report.samples.len(), report.first_byte), (0, 0, None));
    drop(near);
}

#[test]
fn a_peer_that_closes_early_leaves_a_partial_count_and_a_reason() {
    let (near, far) = tcp_pairs(1);
    let receiver = start(timed(60_000).1, Sockets::Tcp(far), clock::now()).unwrap();
    let mut writer = near.into_iter().next().unwrap();
    writer.write_all(&[0; 10_000]).unwrap();
    while receiver.progress().bytes < Bytes::new(10_000) {
        clock::sleep_until(in_ms(1));
    }
    linerate_sock::queues::abort(writer).unwrap();
    let tally = receiver.finish().tally;
    assert_eq!((tally.total_bytes.get(), tally.complete), (10_000, false));
    assert!(tally.error.is_some_and(|text| text.contains("closed the connection")));
}

#[test]
fn dropping_a_handle_stops_everything() {
    let (sender, receiver) = start_tcp(timed(60_000), 3);
    drop(sender);
    assert!(!receiver.finish().tally.complete);
}

#[test]
fn a_flow_without_sockets_is_refused() {
    let error = start(timed(10).0, Sockets::Tcp(Vec::new()), Mono(0)).unwrap_err();
    assert!(error.to_string().contains("at least one stream"));
}

#[test]
fn discarding_in_the_kernel_counts_the_same_bytes_and_says_so() {
    let (sender, mut receiver) = sized(5_000_000);
    receiver.socket.skip_rx_copy = true;
    let (sender, receiver) = run_tcp((sender, receiver), 2);
    check_conserved(&sender, &receiver);
    assert_eq!(receiver.tally.total_bytes, Bytes::new(5_000_000));
    assert_eq!(receiver.caveats.iter().map(|c| c.kind).collect::<Vec<_>>(), [CaveatKind::RxCopySkipped]);
}

#[test]
fn the_readings_of_the_measured_part_are_those_of_each_side() {
    let (sender, receiver) = run_tcp(timed(300), 1);
    let (sent, read) = (&sender.tally.readings, &receiver.tally.readings);
    assert!(sent.get(tcp::SRTT).is_some() && read.get(tcp::SRTT).is_none());
    assert!(sent.get(tcp::RCV_WND).is_none() && read.get(tcp::RCV_WND).is_some());
    assert!(read.get(flow::CALLS).is_some_and(|calls| calls > 0));
    assert!(sender.tally.cpu_seconds > 0.0 && sender.tally.host_busy.is_some());
    assert!(sender.first_byte.is_some());
    let settings = &sender.settings;
    assert_eq!(settings.length, Bytes::new(512 << 10));
    assert!(settings.congestion.effective.is_some() && settings.snd_buf.is_some());
    assert!(settings.local.starts_with("127.0.0.1:") && settings.tcp_options.contains(&"sack".into()));
}

#[test]
fn samples_are_handed_out_once_and_reported_whole() {
    let (sender, receiver) = start_tcp(timed(1000), 1);
    let mut seen = Vec::new();
    while !receiver.progress().ended {
        seen.extend(receiver.new_samples());
        clock::sleep_until(in_ms(5));
    }
    drop(sender.finish());
    let report = receiver.finish();
    assert!(seen.len() > 1 && report.samples.starts_with(&seen));
    assert!(report.samples.iter().all(|sample| sample.side == Side::Receiver));
}

#[test]
fn both_ends_count_each_of_several_streams_and_none_of_a_single_one_or_of_very_many() {
    let (sender, receiver) = start_tcp(sized(5_000_000), 3);
    while !(receiver.progress().ended && sender.progress().ended) {
        clock::sleep_until(in_ms(5));
    }
    let ((sent, acknowledged), (received, read)) =
        (sender.stream_bytes().unwrap(), receiver.stream_bytes().unwrap());
    assert_eq!((sent, received), (StreamCounting::Acknowledged, StreamCounting::Received));
    let report = receiver.finish();
    let counted: Vec<Bytes> = report.tally.streams.iter().map(|stream| stream.bytes).collect();
    assert_eq!((counted.len(), &counted), (3, &read));
    assert_eq!(acknowledged, read);
    drop(sender.finish());
    for streams in [1, 129] {
        let (sender, receiver) = start_tcp(sized(500_000), streams);
        assert_eq!((sender.stream_bytes(), receiver.stream_bytes()), (None, None), "{streams}");
        drop((sender.finish(), receiver.finish()));
    }
}

#[test]
fn a_cpu_that_does_not_exist_costs_the_pinning_and_nothing_else() {
    let (sender, receiver) = sized(1000);
    let sender = FlowSetup { affinity: Some(8000), ..sender };
    let receiver = FlowSetup { affinity: Some(0), ..receiver };
    let (sender, receiver) = run_tcp((sender, receiver), 1);
    check_conserved(&sender, &receiver);
    assert_eq!(sender.caveats.first().map(|c| c.kind), Some(CaveatKind::SettingIneffective));
    assert_eq!((sender.settings.affinity, receiver.settings.affinity), (None, Some(0)));
}

#[test]
fn a_slow_reader_that_is_stopped_reads_what_has_arrived() {
    for streams in [1, 40] {
        let (sender, mut receiver) = sized(2 << 20);
        // At this rate reading would take more than three minutes.
        receiver.read_rate = Bitrate::from_bps(8e4);
        let (sender, receiver) = start_tcp((sender, receiver), streams);
        let deadline = clock::now() + Duration::from_secs(20);
        while !sender.progress().finished_writing && !deadline.has_passed() {
            clock::sleep_until(clock::now() + Duration::from_millis(5));
        }
        receiver.stop_reading(clock::now() + Duration::from_secs(20));
        let receiver = receiver.finish();
        assert_eq!(receiver.tally.total_bytes.get(), 2 << 20, "{streams} streams");
        assert!(receiver.tally.complete, "{streams} streams: {:?}", receiver.tally.error);
        assert_eq!(sender.finish().tally.total_bytes.get(), 2 << 20);
    }
}

#[test]
fn a_file_is_sent_from_its_beginning_again_and_written_as_it_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let [source, sink] = ["source", "sink"].map(|name| folder.path().join(name));
    // No multiple of a block, and no two blocks alike.
    let content: Vec<u8> = (0..700_001_u32).flat_map(u32::to_le_bytes).take(700_001).collect();
    std::fs::write(&source, &content).unwrap();
    for bytes in [1, 300_000, content.len(), 2 * content.len() + 5] {
        let (mut sender, mut receiver) = sized(bytes as u64);
        (sender.file, receiver.file) = (Some(FlowFile::of(&source)), Some(FlowFile::of(&sink)));
        let (sender, receiver) = run_tcp((sender, receiver), 1);
        check_conserved(&sender, &receiver);
        let expected: Vec<u8> = content.iter().copied().cycle().take(bytes).collect();
        assert!(std::fs::read(&sink).unwrap() == expected, "{bytes}");
        let names = [&sender, &receiver].map(|end| end.settings.file.as_ref().unwrap().name.to_string());
        assert_eq!(names, ["source", "sink"]);
    }
}
