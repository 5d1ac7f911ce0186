//! Sending without copying delivers the same bytes.

use linerate_model::{CaveatKind, ZeroCopy};
use linerate_units::Bytes;

use crate::ends::{check_conserved, run_tcp, sized, timed};

#[test]
fn every_method_delivers_a_limit_in_bytes_exactly() {
    for method in [ZeroCopy::Splice, ZeroCopy::Sendfile, ZeroCopy::Msg] {
        for streams in [1, 3] {
            let (mut sender, receiver) = sized(10_000_019);
            sender.socket.zerocopy = Some(method);
            let (sender, receiver) = run_tcp((sender, receiver), streams);
            check_conserved(&sender, &receiver);
            assert_eq!(receiver.tally.total_bytes, Bytes::new(10_000_019), "{method:?}");
        }
    }
}

#[test]
fn every_method_stops_after_its_time() {
    for method in [ZeroCopy::Splice, ZeroCopy::Sendfile, ZeroCopy::Msg] {
        let (mut sender, receiver) = timed(80);
        sender.socket.zerocopy = Some(method);
        let (sender, receiver) = run_tcp((sender, receiver), 1);
        check_conserved(&sender, &receiver);
    }
}

#[test]
fn what_took_effect_is_reported() {
    let run = |method, streams| {
        let (mut sender, receiver) = sized(4_000_000);
        sender.socket.zerocopy = Some(method);
        run_tcp((sender, receiver), streams).0
    };
    let spliced = run(ZeroCopy::Splice, 1);
    assert_eq!(spliced.settings.zerocopy.effective.as_deref(), Some("splice"));
    assert!(spliced.caveats.is_empty());
    // Loopback delivers to a socket on this host, for which the kernel always copies.
    let copied = run(ZeroCopy::Msg, 1);
    assert_eq!(copied.settings.zerocopy.effective.as_deref(), Some("copy"));
    assert_eq!(copied.caveats[0].kind, CaveatKind::SettingIneffective);
    let shared = run(ZeroCopy::Splice, 100);
    assert_eq!(shared.settings.zerocopy.effective.as_deref(), Some("copy"));
    assert_eq!(shared.caveats[0].kind, CaveatKind::SettingIneffective);
}
