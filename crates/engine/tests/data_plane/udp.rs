//! Datagrams over loopback, which loses none for which the receiving socket has room.

use linerate_engine::{EngineError, FlowReport, FlowSetup, Sockets, Txtime, start};
use linerate_model::metrics::{self, loss};
use linerate_model::{Caveat, CaveatKind, Effective, UdpTally};
use linerate_sock::departure::DepartureClock;
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::{Mono, clock};
use linerate_units::{Bitrate, Bytes, Span};

use crate::ends::{as_udp, check_conserved, in_ms, run_tcp, run_udp, sized, timed, udp_pairs, wait_until};

fn udp(report: &FlowReport) -> &UdpTally {
    report.tally.udp.as_ref().unwrap()
}

/// Conditions that hold whether or not the receiver kept up.
fn check_accounted(sender: &FlowReport, receiver: &FlowReport) {
    let (sent, read) = (udp(sender), udp(receiver));
    assert!(sender.tally.complete && receiver.tally.complete, "{:?}", receiver.tally.error);
    assert_eq!(sent.packets, read.packets + read.lost);
    assert_eq!((read.duplicates, read.out_of_order), (0, 0));
    for (tally, samples) in [(&sender.tally, &sender.samples), (&receiver.tally, &receiver.samples)] {
        let parts = tally.omitted_bytes.get() + tally.bytes.get() + tally.tail_bytes.get();
        assert_eq!(parts, tally.total_bytes.get());
        let packets: u64 = samples.iter().filter_map(|sample| sample.readings.get(loss::PACKETS)).sum();
        assert_eq!(packets, tally.udp.as_ref().unwrap().packets, "the intervals tile the flow");
    }
}

#[test]
fn a_limit_in_bytes_is_kept_with_a_shorter_last_datagram() {
    for (streams, bytes, mbps) in [(1, 100_000, 40.0), (3, 100_001, 40.0), (1, 1_000_000, 0.0)] {
        let (sender, receiver) = run_udp(as_udp(sized(bytes), 1000, mbps), streams);
        check_accounted(&sender, &receiver);
        assert_eq!(sender.tally.total_bytes, Bytes::new(bytes));
        assert_eq!(receiver.tally.total_bytes, Bytes::new(bytes), "lost {}", udp(&receiver).lost);
        assert_eq!(receiver.tally.streams.len(), streams);
    }
}

#[test]
fn a_last_datagram_is_never_shorter_than_its_header() {
    let (sender, receiver) = run_udp(as_udp(sized(1001), 1000, 40.0), 1);
    check_accounted(&sender, &receiver);
    assert_eq!((udp(&sender).packets, sender.tally.total_bytes.get()), (2, 1032));
}

#[test]
fn a_paced_sender_is_never_ahead_of_its_schedule() {
    let (sender, receiver) = run_udp(as_udp(timed(200), 1000, 8.0), 2);
    check_accounted(&sender, &receiver);
    // One datagram per millisecond and stream, the first at once: at most 200 each within 200 ms.
    assert!(udp(&sender).packets <= 400, "{}", udp(&sender).packets);
    assert!(udp(&receiver).jitter.is_some() && udp(&sender).jitter.is_none());
    assert_eq!(sender.settings.datagrams_per_call, Some(1));
    assert_eq!(receiver.settings.receive_merging, Some(true));
}

#[test]
fn a_rate_whose_gap_cannot_be_slept_leaves_in_bursts_on_schedule() {
    // 100 B at 400 Mbit/s: a gap of 2 µs, so a burst of 10 to 25 datagrams every 20 to 50 µs.
    let (sender, receiver) = run_udp(as_udp(sized(500_000), 100, 400.0), 1);
    check_accounted(&sender, &receiver);
    assert_eq!(udp(&sender).packets, 5000);
    assert!((10..=25).contains(&sender.settings.datagrams_per_call.unwrap()), "{:?}", sender.settings);
    let gaps = udp(&sender).send_gaps.unwrap();
    assert!(gaps.count >= 199 && gaps.mean_ns >= 20_000, "{gaps:?}");
    // The last burst is due after the time of 497,500 B.
    assert!(sender.tally.elapsed >= Span::from_ns(9_950_000), "{}", sender.tally.elapsed);
}

#[test]
fn datagrams_of_a_paced_flow_gather_before_they_are_read() {
    let (sender, receiver) = run_udp(as_udp(timed(300), 1448, 200.0), 1);
    check_accounted(&sender, &receiver);
    let calls: u64 =
        receiver.samples.iter().filter_map(|sample| sample.readings.get(metrics::flow::CALLS)).sum();
    // One every 58 µs, of which eight arrive within 500 µs.
    assert!(calls * 4 < udp(&receiver).packets, "{calls} calls for {} datagrams", udp(&receiver).packets);
    let gaps = udp(&sender).send_gaps.unwrap();
    assert_eq!(gaps.count + 1, udp(&sender).packets);
    assert!(udp(&receiver).send_gaps.is_none());
}

#[test]
fn a_slow_pace_has_the_time_of_its_slots() {
    // A datagram at 0, 100 and 200 ms, whose slot the test ends in its middle. A late host may send fewer.
    let (sender, receiver) = run_udp(as_udp(timed(250), 1000, 0.08), 1);
    check_accounted(&sender, &receiver);
    let slots = Span::from_ms(100 * udp(&sender).packets);
    assert!(sender.tally.elapsed >= slots.min(Span::from_ms(250)), "{}", sender.tally.elapsed);
    // The flow ends in the slot of its first datagram, of which 1000 s are left.
    let (near, _far) = udp_pairs(1);
    let (endless, _) = as_udp(timed(60_000), 1000, 8e-6);
    let begun = clock::now();
    let sender = start(endless, Sockets::Udp(near), begun).unwrap();
    wait_until(&sender, |sender| sender.progress().bytes.get() > 0);
    clock::sleep_until(in_ms(50));
    sender.stop_writing();
    let elapsed = sender.finish().tally.elapsed;
    assert!((Span::from_ms(50)..Span::from(clock::now().since(begun))).contains(&elapsed), "{elapsed}");
}

#[test]
fn what_is_due_within_a_period_leaves_at_its_start() {
    // 1000 bytes in 10 ms: bursts of a hundred datagrams, or of 100,000 bytes, at 0, 1 and 2 s. A machine may be late by
    // most of a second.
    let bursts = |(sender, receiver): (FlowSetup, FlowSetup)| {
        let of = |setup: FlowSetup| FlowSetup { pacing_tick: Some(Span::from_secs(1)), ..setup };
        (of(sender), of(receiver))
    };
    let (sender, receiver) = run_udp(bursts(as_udp(timed(2900), 1000, 0.8)), 1);
    check_accounted(&sender, &receiver);
    assert_eq!(udp(&sender).packets, 300);
    let pauses = udp(&sender).send_gaps.unwrap();
    assert!(pauses.max_ns > 500_000_000 && pauses.p50_ns < 100_000_000, "{pauses:?}");
    for streams in [1, 40] {
        let (mut sender, receiver) = bursts(timed(2900));
        sender.offered = Bitrate::from_bps(8e5);
        let (sender, receiver) = run_tcp((sender, receiver), streams);
        check_conserved(&sender, &receiver);
        assert_eq!(receiver.tally.total_bytes.get(), 300_000 * streams as u64, "{streams}");
    }
}

/// Loopback has no queue, so that what is handed over early also arrives early.
#[test]
fn datagrams_with_departure_times_leave_on_a_schedule_that_the_kernel_is_told() {
    let with = |txtime, (sender, receiver): (FlowSetup, FlowSetup)| {
        let (txtime, interface) = (Some(txtime), Some("lo".to_owned()));
        (FlowSetup { txtime, interface, ..sender }, receiver)
    };
    let told = Txtime::OnClock(DepartureClock::Monotonic);
    for (length, mbps, streams) in [(1000, 8.0, 1), (1000, 400.0, 1), (100, 100.0, 3)] {
        let bytes = length * 300 * streams as u64 + 50;
        let (sender, receiver) = run_udp(with(told, as_udp(sized(bytes), length, mbps)), streams);
        check_accounted(&sender, &receiver);
        assert_eq!(receiver.tally.total_bytes.get(), bytes.max(sender.tally.total_bytes.get()), "{mbps}");
        assert_eq!(sender.settings.txtime, Effective { asked: Some(true), effective: Some(true) });
        assert_eq!(sender.settings.datagrams_per_call, Some(1));
        assert!(udp(&sender).send_gaps.is_none(), "the kernel decides them");
        let ineffective = |caveat: &Caveat| caveat.kind == CaveatKind::SettingIneffective;
        assert!(!sender.caveats.iter().any(ineffective), "{:?}", sender.caveats);
        assert!(receiver.settings.txtime.asked.is_none());
        // The last datagram is handed over half a millisecond early, or 40 datagrams if they take less.
        let (rate, early) = (mbps * 1e6 / 8.0, Span::from_us(500));
        let last = Span::from_ns(((300.0 - 1.0) * length as f64 / rate * 1e9) as u64);
        assert!(sender.tally.elapsed + early >= last, "{} of {last}", sender.tally.elapsed);
    }
    let (sender, _) = run_udp(with(told, as_udp(timed(200), 1000, 8.0)), 1);
    assert!(udp(&sender).packets <= 200, "{}", udp(&sender).packets);
    // The program keeps the times itself, and says so.
    let (sender, receiver) = run_udp(with(Txtime::ByDiscipline, as_udp(sized(20_000), 1000, 8.0)), 1);
    check_accounted(&sender, &receiver);
    assert_eq!(sender.settings.txtime, Effective { asked: Some(true), effective: Some(false) });
    assert_eq!(udp(&sender).send_gaps.unwrap().count, 19);
    let caveat = sender.caveats.iter().find(|caveat| caveat.kind == CaveatKind::SettingIneffective).unwrap();
    assert!(caveat.text.contains("fq and etf") && caveat.text.contains("lo has noqueue"), "{}", caveat.text);
}

#[test]
fn datagrams_beyond_the_mtu_are_sent_one_by_one() {
    // Loopback has an MTU of 65,536 bytes. Payloads above 32 KiB leave one per call anyway, so only the longest
    // one, which IP fragments, exercises this case.
    let (sender, receiver) = run_udp(as_udp(sized(400_000), 65_507, 400.0), 1);
    check_accounted(&sender, &receiver);
    assert_eq!(sender.settings.datagrams_per_call, Some(1));
    assert_eq!(receiver.tally.total_bytes, Bytes::new(400_000));
}

#[test]
fn a_saturating_sender_is_accounted_to_the_last_datagram() {
    let (sender, receiver) = run_udp(as_udp(timed(100), 1448, 0.0), 1);
    check_accounted(&sender, &receiver);
    assert!(udp(&receiver).packets > 0);
    assert_eq!(sender.settings.datagrams_per_call, Some(44));
    let drops = udp(&receiver).socket_drops.unwrap();
    assert!(drops <= udp(&receiver).lost);
    let has_caveat = receiver.caveats.iter().any(|caveat| caveat.kind == CaveatKind::ReceiverDrops);
    assert_eq!(has_caveat, drops > 0);
}

#[test]
fn more_streams_than_threads_are_served_too() {
    let (sender, receiver) = run_udp(as_udp(sized(100 * 5_000), 500, 2.0), 100);
    check_accounted(&sender, &receiver);
    assert_eq!((udp(&sender).packets, udp(&receiver).packets), (1000, 1000));
}

#[test]
fn an_omitted_part_is_counted_apart() {
    let (mut sender, mut receiver) = as_udp(timed(2_800), 500, 10.0);
    // Long enough for a machine that is late by most of a second.
    (sender.omit, receiver.omit) = (Span::from_ms(900), Span::from_ms(900));
    receiver.measured = Some(Span::from_ms(1_000));
    let (sender, receiver) = run_udp((sender, receiver), 1);
    check_accounted(&sender, &receiver);
    let read = &receiver.tally;
    assert!(read.omitted_bytes.get() > 0 && read.bytes.get() > 0 && read.tail_bytes.get() > 0);
    assert!(read.elapsed <= Span::from_ms(1_000));
}

#[test]
fn what_is_not_of_this_test_is_ignored() {
    let (near, far) = udp_pairs(1);
    let (sender, receiver) = as_udp(sized(3000), 1000, 40.0);
    near[0].send(&[7; 1000]).unwrap();
    near[0].send(b"short").unwrap();
    near[0].send(b"").unwrap();
    let receiver = start(receiver, Sockets::Udp(far), clock::now()).unwrap();
    let sender = start(sender, Sockets::Udp(near), clock::now()).unwrap().finish();
    receiver.stop_reading(in_ms(30_000));
    let receiver = receiver.finish();
    check_accounted(&sender, &receiver);
    assert_eq!(receiver.tally.total_bytes, Bytes::new(3000));
}

#[test]
fn a_closed_port_ends_the_sender_with_the_reason() {
    let (near, far) = udp_pairs(1);
    drop(far);
    let sender = start(as_udp(timed(60_000), 100, 1.0).0, Sockets::Udp(near), clock::now()).unwrap();
    assert!(wait_for(sender.waker(), Interest::READ, Mono::FAR).unwrap());
    let tally = sender.finish().tally;
    assert!(!tally.complete);
    assert!(tally.error.is_some_and(|text| text.contains("nothing listens")));
}

#[test]
fn a_receiver_ends_at_its_deadline_although_datagrams_still_come() {
    let (near, far) = udp_pairs(1);
    let (sender, receiver) = as_udp(timed(60_000), 100, 8.0);
    let receiver = start(receiver, Sockets::Udp(far), clock::now()).unwrap();
    let sender = start(sender, Sockets::Udp(near), clock::now()).unwrap();
    while receiver.progress().bytes == Bytes::new(0) {
        clock::sleep_until(in_ms(1));
    }
    receiver.stop_reading(in_ms(20));
    assert!(receiver.finish().tally.complete);
    sender.abort();
    drop(sender);
}

#[test]
fn an_abort_ends_a_silent_receiver_and_a_slow_sender() {
    let (near, far) = udp_pairs(1);
    // One datagram of 1000 B at 80 bit/s: the second is due after 100 s.
    let (sender, receiver) = as_udp(timed(1_000_000), 1000, 80e-6);
    let receiver = start(receiver, Sockets::Udp(far), clock::now()).unwrap();
    let sender = start(sender, Sockets::Udp(near), clock::now()).unwrap();
    sender.stop_writing();
    assert!(sender.finish().tally.complete);
    receiver.abort();
    assert!(!receiver.finish().tally.complete);
}

#[test]
fn a_datagram_shorter_than_its_header_is_refused() {
    let (near, _far) = udp_pairs(1);
    let error = start(as_udp(timed(10), 31, 1.0).0, Sockets::Udp(near), Mono(0)).unwrap_err();
    assert!(matches!(error, EngineError::DatagramTooShort { length: 31, needed: 32 }));
    assert!(error.to_string().contains("-l"));
}
