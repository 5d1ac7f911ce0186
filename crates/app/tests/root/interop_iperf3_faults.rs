//! Misbehaving iperf3 peers: raw clients of our server, raw servers for our client.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpStream};

use serde_json::json;

use crate::support::raw_iperf3::{
    ACCESS_DENIED, CREATE_STREAMS, DISPLAY_RESULTS, EXCHANGE_RESULTS, IPERF_DONE, PARAM_EXCHANGE,
    SERVER_ERROR, TEST_END, TEST_RUNNING, TEST_START, byte, message, patient, rest,
};
use crate::support::{Iperf3, Netns, PORT, Process, TIMEOUT, eventually, framed, number};

use Iperf3::{Ours, Real};

/// The first bytes of every connection of a test.
const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz234567abcd\0";

fn connect() -> TcpStream {
    patient(TcpStream::connect((Ipv4Addr::LOCALHOST, PORT)).unwrap())
}

/// A raw client up to the request for its parameters.
fn greeted() -> TcpStream {
    let mut control = connect();
    control.write_all(COOKIE).unwrap();
    assert_eq!(byte(&mut control), PARAM_EXCHANGE);
    control
}

/// A raw client with a running test of one stream: control connection and stream.
fn running() -> (TcpStream, TcpStream) {
    let mut control = greeted();
    control.write_all(&framed(br#"{"tcp":true,"parallel":1,"time":1,"len":4096}"#)).unwrap();
    assert_eq!(byte(&mut control), CREATE_STREAMS);
    let mut stream = connect();
    stream.write_all(COOKIE).unwrap();
    assert_eq!([byte(&mut control), byte(&mut control)], [TEST_START, TEST_RUNNING]);
    (control, stream)
}

/// Checks that an answer is only this error: the state, its number, and an errno.
fn is_error(answer: &[u8], expected: u8) {
    assert_eq!(answer.get(..5), Some(&[SERVER_ERROR, 0, 0, 0, expected][..]), "{answer:?}");
    assert_eq!(answer.len(), 9, "{answer:?}");
}

/// Checks that a real client is still served.
fn still_serves(netns: &Netns, server: &mut Process) {
    let done = Real.ask(netns, &["-t", "1", "-b", "1M"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(server.running(), "{}", server.stderr());
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn parameters_that_cannot_be_are_refused_by_number() {
    let netns = Netns::new();
    let mut server = Ours.serve(&netns, &[]);
    let long = format!(r#"{{"tcp":true,"title":"{}"}}"#, "x".repeat(9_100));
    let cases: [(Vec<u8>, u8); 9] = [
        (framed(long.as_bytes()), 114),
        (framed(b"{\"tcp\":true,"), 114),
        (framed(b""), 114),
        ((1_u32 << 31).to_be_bytes().to_vec(), 114),
        (u32::MAX.to_be_bytes().to_vec(), 114),
        (framed(br#"{"tcp":true,"parallel":200,"time":1,"len":4096}"#), 6),
        (framed(br#"{"tcp":true,"parallel":-1,"time":1,"len":4096}"#), 6),
        (framed(br#"{"udp":true,"parallel":1,"time":1,"len":8}"#), 20),
        (framed(br#"{"tcp":true,"time":-5,"len":4096}"#), 5),
    ];
    netns.inside(|| {
        for (parameters, expected) in cases {
            let mut control = greeted();
            control.write_all(&parameters).unwrap();
            is_error(&rest(&mut control), expected);
        }
    });
    still_serves(&netns, &mut server);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_short_cookie_is_waited_for_in_vain_and_not_for_ever() {
    let netns = Netns::new();
    let mut server = Ours.serve(&netns, &[]);
    netns.inside(|| {
        let mut control = connect();
        control.write_all(b"abcd").unwrap();
        is_error(&rest(&mut control), 106);
    });
    still_serves(&netns, &mut server);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn an_unknown_state_ends_the_test_and_not_the_server() {
    let netns = Netns::new();
    let mut server = Ours.serve(&netns, &[]);
    netns.inside(|| {
        let (mut control, _stream) = running();
        control.write_all(&[0x63]).unwrap();
        is_error(&rest(&mut control), 110);
    });
    still_serves(&netns, &mut server);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn results_as_short_as_those_of_old_clients_are_taken() {
    let netns = Netns::new();
    let server = Ours.serve(&netns, &["-1", "-J"]);
    netns.inside(|| {
        let (mut control, mut stream) = running();
        stream.write_all(&[7; 40_960]).unwrap();
        // Otherwise the end message could overtake the payload.
        stream.shutdown(Shutdown::Write).unwrap();
        eventually("the server has read everything", || {
            let sockets = std::fs::read_to_string("/proc/thread-self/net/tcp6").unwrap();
            let sockets = sockets + &std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
            let waiting = |line: &&str| line.contains(&format!(":{PORT:04X} ")) && unread(line) > 0;
            sockets.lines().find(waiting).is_none().then_some(())
        });
        control.write_all(&[TEST_END]).unwrap();
        assert_eq!(byte(&mut control), EXCHANGE_RESULTS);
        let results = json!({
            "cpu_util_total": 1.0, "cpu_util_user": 0.5, "cpu_util_system": 0.5, "sender_has_retransmits": 1,
            "streams": [{"id": 1, "bytes": 40_960, "retransmits": 0, "jitter": 0, "errors": 0, "packets": 0}],
        });
        control.write_all(&framed(results.to_string().as_bytes())).unwrap();
        assert_eq!(number(&message(&mut control), "/streams/0/bytes"), 40_960);
        assert_eq!(byte(&mut control), DISPLAY_RESULTS);
        control.write_all(&[IPERF_DONE]).unwrap();
    });
    let done = server.finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.json().get("error"), None, "{done:?}");
}

/// Unread bytes in a socket according to proc_net_tcp(5): the second half of the fifth word.
fn unread(line: &str) -> u64 {
    let queues = line.split_whitespace().nth(4).unwrap_or_default();
    let waiting = queues.split_once(':').map_or("0", |(_, waiting)| waiting);
    u64::from_str_radix(waiting, 16).unwrap_or_default()
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn clients_that_vanish_in_any_state_leave_a_server_that_serves() {
    let netns = Netns::new();
    let mut server = Ours.serve(&netns, &[]);
    let states: [fn(); 7] = [
        || drop(connect()),
        || connect().write_all(b"abcd").unwrap(),
        || drop(greeted()),
        || greeted().write_all(&[0, 0, 0, 9, b'{']).unwrap(),
        || {
            let mut control = greeted();
            control.write_all(&framed(br#"{"tcp":true,"parallel":2}"#)).unwrap();
            assert_eq!(byte(&mut control), CREATE_STREAMS);
            connect().write_all(COOKIE).unwrap();
        },
        || drop(running()),
        || {
            let (mut control, stream) = running();
            drop(stream);
            control.write_all(&[TEST_END]).unwrap();
            assert_eq!(byte(&mut control), EXCHANGE_RESULTS);
        },
    ];
    netns.inside(|| {
        for vanish in states {
            vanish();
        }
    });
    still_serves(&netns, &mut server);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn streams_of_another_test_or_too_many_are_turned_away_and_harm_nothing() {
    let netns = Netns::new();
    let mut server = Ours.serve(&netns, &[]);
    netns.inside(|| {
        let mut control = greeted();
        control.write_all(&framed(br#"{"tcp":true,"parallel":1,"time":1,"len":4096}"#)).unwrap();
        assert_eq!(byte(&mut control), CREATE_STREAMS);
        let mut stranger = connect();
        stranger.write_all(&[b'x'; 37]).unwrap();
        assert_eq!(byte(&mut stranger), ACCESS_DENIED);
        let mut stream = connect();
        stream.write_all(COOKIE).unwrap();
        assert_eq!([byte(&mut control), byte(&mut control)], [TEST_START, TEST_RUNNING]);
        let mut surplus = connect();
        surplus.write_all(COOKIE).unwrap();
        assert_eq!(byte(&mut surplus), ACCESS_DENIED);
        stream.write_all(&[7; 4096]).unwrap();
        control.write_all(&[TEST_END]).unwrap();
        assert_eq!(byte(&mut control), EXCHANGE_RESULTS);
    });
    still_serves(&netns, &mut server);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn two_hundred_silent_clients_do_not_keep_others_out() {
    let netns = Netns::new();
    let mut server = Ours.serve(&netns, &[]);
    let silent: Vec<TcpStream> = netns.inside(|| (0..200).map(|_| connect()).collect());
    still_serves(&netns, &mut server);
    drop(silent);
    still_serves(&netns, &mut server);
}
