//! Texts of netperf that no recording has.

use linerate_model::Direction;
use linerate_model::import::Quantity;

#[test]
fn what_a_text_does_not_say_is_not_guessed() {
    let read = |text: &str| crate::import::read(text, None).unwrap().remove(0);
    let reading = read("NETPERF_UNITS[0]=10^6bits/s\nTHROUGHPUT=93.5\nREMOTE_BYTES_RECVD=7\n");
    let claim = &reading.tests[0].claims[0];
    assert_eq!((claim.direction, claim.figure(Quantity::Bytes)), (None, None));
    assert_eq!(claim.figure(Quantity::Bitrate).unwrap().value, 93.5e6);
    let reading = read("ELAPSED_TIME=1.00\nDIRECTION=Send\nTHROUGHPUT=93.5\nREMOTE_TRANSPORT_RETRANS=-1\n");
    assert_eq!(reading.unread[0].why, "THROUGHPUT needs THROUGHPUT_UNITS");
    let claims = &reading.tests[0].claims;
    assert_eq!((claims.len(), claims[0].direction), (1, Some(Direction::Upload)));
    assert_eq!(claims[0].figure(Quantity::Bitrate), None);
}

#[test]
fn lines_of_others_are_not_taken() {
    for text in
        ["PATH=/bin:/usr/bin\n", "131072  16384  16384    1.00     8230.13\n", "A TEST from here to there\n"]
    {
        assert!(crate::import::read(text, Some("netperf")).is_err(), "{text}");
    }
}
