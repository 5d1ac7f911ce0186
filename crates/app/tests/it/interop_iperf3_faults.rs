//! Misbehaving iperf3 servers for our client.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::support::raw_iperf3::{
    ACCESS_DENIED, CREATE_STREAMS, DISPLAY_RESULTS, EXCHANGE_RESULTS, IPERF_DONE, PARAM_EXCHANGE,
    SERVER_ERROR, TEST_END, TEST_RUNNING, TEST_START, byte, message, patient, rest,
};
use crate::support::{Done, Process, TIMEOUT, framed, linerate, number};

/// Actions of a raw server on our client's control connection.
type RawServerScript = fn(TcpStream, &TcpListener);

/// Runs our client, optionally with `-J`, against a server that follows a script.
fn before(script: RawServerScript, args: &[&str]) -> Done {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut command = linerate();
    command.args(["iperf3", "-c", "127.0.0.1", "-p", &port, "-t", "1", "-b", "1M"]).args(args);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (control, _) = listener.accept().unwrap();
            let mut control = patient(control);
            let mut cookie = [0; 37];
            control.read_exact(&mut cookie).unwrap();
            assert_eq!(cookie[36], 0);
            script(control, &listener);
        });
        Process::start(command).finish(TIMEOUT)
    })
}

/// A server that runs a test of one stream with these results; returns everything that the client sends after
/// them.
fn whole_test(mut control: TcpStream, listener: &TcpListener, results: &[u8]) -> Vec<u8> {
    control.write_all(&[PARAM_EXCHANGE]).unwrap();
    assert_eq!(message(&mut control)["parallel"], 1);
    control.write_all(&[CREATE_STREAMS]).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let mut stream = patient(stream);
    control.write_all(&[TEST_START, TEST_RUNNING]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| rest(&mut stream));
        assert_eq!(byte(&mut control), TEST_END);
        control.write_all(&[EXCHANGE_RESULTS]).unwrap();
        message(&mut control);
        control.write_all(&[&framed(results)[..], &[DISPLAY_RESULTS]].concat()).unwrap();
        rest(&mut control)
    })
}

#[test]
fn states_may_come_together_and_negatives_wrapped() {
    // -1 as written by version 3.12.
    let script: RawServerScript = |control, listener| {
        let results =
            br#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":18446744073709551615,
            "streams":[{"id":1,"bytes":131072,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,
            "start_time":0,"end_time":1.0}]}"#;
        assert_eq!(whole_test(control, listener, results), [IPERF_DONE]);
    };
    let done = before(script, &["-J"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    assert_eq!(number(&document, "/end/sum_received/bytes"), 131_072, "{document}");
    assert_eq!(document["end"]["sum_received"].get("retransmits"), None, "{document}");
    assert!(number(&document, "/end/sum_sent/retransmits") < 1000, "{document}");
}

/// Checks our client's error with a server of this script: exit code 1, and the same text in its JSON document.
fn gives_up(script: RawServerScript, text: &str) {
    let done = before(script, &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains(&format!("iperf3: error - {text}")), "{text}: {done:?}");
    let done = before(script, &["-J"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let document = done.json();
    assert!(document["error"].as_str().unwrap().contains(text), "{text}: {document}");
}

#[test]
fn what_a_server_refuses_is_reported_in_iperf3s_words() {
    gives_up(
        |mut control, _| control.write_all(&[ACCESS_DENIED]).unwrap(),
        "the server is busy running a test",
    );
    let one_word: RawServerScript = |mut control, _| {
        control.write_all(&[PARAM_EXCHANGE]).unwrap();
        message(&mut control);
        control.write_all(&[SERVER_ERROR, 0, 0, 0, 142]).unwrap();
    };
    gives_up(one_word, "test authorization failed");
    let twice: RawServerScript = |mut control, _| {
        control.write_all(&[PARAM_EXCHANGE]).unwrap();
        message(&mut control);
        control.write_all(&[SERVER_ERROR, 0, 0, 0, 27, 0, 0, 0, 0].repeat(2)).unwrap();
    };
    gives_up(twice, "total required bandwidth is larger than server limit");
    gives_up(|control, _| drop(control), "control socket has closed unexpectedly");
    gives_up(|mut control, _| control.write_all(b"S").unwrap(), "received an unknown control message");
}

#[test]
fn results_that_make_no_sense_fail_the_test() {
    let unknown: RawServerScript = |control, listener| {
        let results =
            br#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":-1,
            "streams":[{"id":99,"bytes":1,"retransmits":-1,"jitter":0,"errors":0,"packets":0}]}"#;
        whole_test(control, listener, results);
    };
    gives_up(unknown, "stream has an invalid id");
    let nothing: RawServerScript = |control, listener| {
        whole_test(control, listener, b"null");
    };
    gives_up(nothing, "unable to receive results");
}

#[test]
fn a_silent_server_is_given_up() {
    let silent: RawServerScript = |mut control, _| {
        rest(&mut control);
    };
    let done = before(silent, &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("iperf3: error - unable to receive control message"), "{done:?}");
}
