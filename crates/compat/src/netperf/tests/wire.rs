//! The messages of real programs, decoded and encoded again.

use linerate_model::sniff::Match;

use super::{messages, transcript};
use crate::netperf::wire::{kind, sniff};
use crate::netperf::{
    MESSAGE_BYTES, NetperfMessage, NetperfProtocol, NetperfRequest, NetperfResults, Response,
};

const ALL: [&str; 10] = [
    transcript!("tcp-stream"),
    transcript!("tcp-maerts"),
    transcript!("udp-stream"),
    transcript!("tcp-rr"),
    transcript!("tcp-crr"),
    transcript!("udp-rr"),
    transcript!("tcp-stream-cpu"),
    transcript!("tcp-stream-bytes"),
    transcript!("tcp-rr-count"),
    transcript!("tcp-maerts-selectors"),
];

fn message(bytes: &[u8]) -> NetperfMessage {
    NetperfMessage::take(&mut bytes.to_vec()).unwrap()
}

/// The messages of a recorded test.
fn test(transcript: &str) -> (NetperfRequest, Response, NetperfResults) {
    let all = messages(transcript);
    let [(true, request), (false, response), (false, results)] = &all[..] else { panic!("{}", all.len()) };
    (
        NetperfRequest::decode(&message(request)),
        Response::decode(&message(response)),
        NetperfResults::decode(&message(results)),
    )
}

#[test]
fn requests_of_the_real_client_survive_to_the_bit() {
    for transcript in ALL {
        let (_, bytes) = &messages(transcript)[0];
        let mut encoded = NetperfRequest::decode(&message(bytes)).encode().into_bytes();
        // The real client leaves in word 1 what was there before.
        encoded[4..8].copy_from_slice(&bytes[4..8]);
        assert_eq!(&encoded, bytes, "{}", transcript.lines().next().unwrap());
    }
}

#[test]
fn the_answers_of_the_real_server_are_read() {
    let (request, response, results) = test(transcript!("tcp-stream"));
    assert_eq!((request.length, request.protocol), (2, NetperfProtocol::Tcp));
    assert!(request.roles.receives && !request.roles.sends);
    assert_eq!((response.receive_buffer, response.send_buffer), (131_072, 16_384));
    assert!(response.port > 1024);
    assert!(results.received > 1 << 30 && results.receive_calls > 1000, "{results:?}");
    assert!((2.0..2.1).contains(&results.elapsed));
    assert_eq!((results.cpu, results.retransmits), (None, Some(0)));
    assert_eq!(results.congestion, "bbr");

    let (request, _, results) = test(transcript!("tcp-rr"));
    assert!(request.roles.transactions());
    assert_eq!((request.request_size, request.response_size), (Some(16), Some(512)));
    assert_eq!(results.received, 16 * u64::from(results.transactions));
    assert_eq!(results.sent, 512 * u64::from(results.transactions));

    let (request, _, results) = test(transcript!("udp-stream"));
    assert_eq!((request.protocol, results.retransmits), (NetperfProtocol::Udp, None));
    assert_eq!(results.received, 1000 * u64::from(results.receive_calls));

    let (request, _, results) = test(transcript!("tcp-stream-cpu"));
    assert!(request.has(crate::netperf::wire::flag::MEASURE_CPU));
    let cpu = results.cpu.unwrap();
    assert!(cpu.busy > 0.0 && cpu.busy <= 100.0 && results.cores == 2, "{results:?}");

    let (request, _, _) = test(transcript!("tcp-stream-bytes"));
    assert_eq!(request.length, -1_000_000);
    let (request, response, results) = test(transcript!("tcp-maerts-selectors"));
    assert_eq!((request.send_buffer, request.receive_buffer), (Some(65_536), Some(65_536)));
    assert_eq!((request.tos, response.tos), (Some(0x20), Some(0x20)));
    assert_eq!((request.congestion.as_str(), results.congestion.as_str()), ("cubic", "cubic"));
    assert!(request.roles.sends && request.has(crate::netperf::wire::flag::NO_DELAY));
    assert!(test(transcript!("tcp-crr")).0.connects_each_time());
    assert_eq!(test(transcript!("tcp-rr-count")).0.length, -100);
    assert_eq!(message(&messages(transcript!("passphrase"))[0].1).data_text(), "secret");
}

#[test]
fn answers_survive() {
    for transcript in ALL {
        let (request, response, results) = test(transcript);
        assert_eq!(NetperfRequest::decode(&request.encode()), request);
        assert_eq!(Response::decode(&response.encode()), response);
        assert_eq!(NetperfResults::decode(&results.encode()), results);
    }
    let long = NetperfRequest { congestion: "fourteen bytes€".into(), ..NetperfRequest::default() };
    assert_eq!(NetperfRequest::decode(&long.encode()).congestion, "fourteen bytes", "no part of a character");
    let error = NetperfMessage::error(kind::TEST_RESPONSE, 98);
    assert_eq!((error.kind(), error.errno()), (kind::TEST_RESPONSE, 98));
}

#[test]
fn a_connection_is_recognized_by_its_first_message() {
    for transcript in [ALL[0], transcript!("passphrase")] {
        let (_, bytes) = &messages(transcript)[0];
        assert_eq!(sniff(bytes), Match::Yes);
        assert_eq!((sniff(&bytes[..3]), sniff(&[])), (Match::More, Match::More));
    }
    for other in [&[0, 0, 0, b'X'][..], b"Sync", b"HELO", &[0, 0, 0, 0], b"GET / HTTP", &[0, 0, 2, 0x59]] {
        assert_eq!(sniff(other), Match::No, "{other:?}");
    }
    let refusal = (crate::netperf::NETPERF.refusal)("busy");
    assert_eq!((refusal.len(), message(&refusal).errno()), (MESSAGE_BYTES, 16));
}
