//! Sending without copying delivers the same bytes.

use linerate_engine::{FlowReport, FlowSetup};
use linerate_model::{CaveatKind, SendMethod};
use linerate_units::{Bitrate, Bytes};

use crate::ends::{check_conserved, run_tcp, sized, timed};

const METHODS: [SendMethod; 4] =
    [SendMethod::Copy, SendMethod::Splice, SendMethod::Sendfile, SendMethod::Zerocopy];

#[test]
fn every_method_delivers_a_limit_in_bytes_exactly() {
    for method in METHODS {
        for streams in [1, 3, 40] {
            let (mut sender, receiver) = sized(10_000_019);
            sender.socket.io = Some(method);
            let (sender, receiver) = run_tcp((sender, receiver), streams);
            check_conserved(&sender, &receiver);
            assert_eq!(receiver.tally.total_bytes, Bytes::new(10_000_019), "{method:?}");
        }
    }
}

#[test]
fn every_method_stops_after_its_time() {
    for method in METHODS {
        let (mut sender, receiver) = timed(80);
        sender.socket.io = Some(method);
        let (sender, receiver) = run_tcp((sender, receiver), 1);
        check_conserved(&sender, &receiver);
    }
}

#[test]
fn what_took_effect_is_reported() {
    for streams in [1, 100] {
        let spliced = sent_by(streams, |sender| sender.socket.io = Some(SendMethod::Splice));
        assert_eq!(spliced.settings.io.effective.as_deref(), Some("splice"));
        assert!(spliced.caveats.is_empty());
        // Loopback delivers to a socket on this host, for which the kernel always copies.
        let copied = sent_by(streams, |sender| sender.socket.io = Some(SendMethod::Zerocopy));
        assert_eq!(copied.settings.io.asked.as_deref(), Some("zerocopy"));
        assert_eq!(copied.settings.io.effective.as_deref(), Some("copy"));
        assert_eq!(copied.caveats[0].kind, CaveatKind::SettingIneffective);
    }
}

#[test]
fn a_sender_that_may_choose_says_what_it_chose() {
    let auto = sent_by(1, |sender| sender.socket.io = Some(SendMethod::Auto));
    assert_eq!(auto.settings.io.asked.as_deref(), Some("auto"));
    let methods = ["copy", "splice", "sendfile"];
    assert!(methods.contains(&auto.settings.io.effective.as_deref().unwrap()), "{:?}", auto.settings.io);
    let free = sent_by(1, |sender| sender.socket.zerocopy = true);
    assert_eq!(free.settings.io.asked.as_deref(), Some("copy-free"));
    assert!(methods[1..].contains(&free.settings.io.effective.as_deref().unwrap()), "{:?}", free.settings.io);
    assert_eq!((auto.caveats, free.caveats), (Vec::new(), Vec::new()));
}

/// The sender's report of a flow with a limit in bytes.
fn sent_by(streams: usize, change: impl Fn(&mut FlowSetup)) -> FlowReport {
    let (mut sender, receiver) = sized(4_000_000);
    change(&mut sender);
    run_tcp((sender, receiver), streams).0
}

#[test]
fn streams_that_share_a_thread_keep_their_rate_whatever_their_sockets_report() {
    // With MSG_ZEROCOPY every completion makes a socket ready. 40 streams of 2 Mb/s have 10 MB/s together.
    let of = |setup: FlowSetup| FlowSetup { offered: Bitrate::from_bps(2e6), ..setup };
    let (sender, receiver) = timed(300);
    let (mut sender, receiver) = (of(sender), of(receiver));
    sender.socket.io = Some(SendMethod::Zerocopy);
    let (sender, receiver) = run_tcp((sender, receiver), 40);
    check_conserved(&sender, &receiver);
    let due = 40 * 300 * 250;
    // The last chunk of each stream may begin just before the end.
    assert!(receiver.tally.total_bytes.get() <= due * 11 / 10, "{} of {due}", receiver.tally.total_bytes);
}

#[test]
fn a_rate_at_which_nothing_is_passed_by_reference_is_reported_as_copied() {
    let slow = sent_by(1, |sender| {
        sender.socket.io = Some(SendMethod::Splice);
        sender.offered = Bitrate::from_bps(400e6);
    });
    assert_eq!(slow.settings.io.effective.as_deref(), Some("copy"));
    assert_eq!(slow.caveats[0].kind, CaveatKind::SettingIneffective);
    let auto = sent_by(1, |sender| {
        sender.socket.io = Some(SendMethod::Auto);
        sender.offered = Bitrate::from_bps(400e6);
    });
    assert_eq!((auto.settings.io.effective.as_deref(), auto.caveats.len()), (Some("copy"), 0));
}
