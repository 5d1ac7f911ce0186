//! Servers that are no brokers.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::Duration;

use linerate_broker::{Broker, BrokerEvent};

use crate::events::{config, wait_disconnected, wait_for};

const INFO: &str = "INFO {\"server_id\":\"x\",\"max_payload\":1000,\"proto\":1}\r\n";

/// A server that says `greeting` to every client, and `later` after its first subscription.
fn answering(greeting: &str, later: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let (greeting, later) = (greeting.to_owned(), later.to_owned());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(greeting.as_bytes());
            let mut line = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while !line.starts_with("SUB") {
                line.clear();
                if !lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    break;
                }
            }
            let _ = stream.write_all(later.as_bytes());
            // Until the client has enough of it.
            let _ = lines.read_line(&mut line);
        }
    });
    url
}

#[test]
fn garbage_instead_of_a_broker_is_an_error_and_no_crash() {
    for garbage in
        ["SSH-2.0-OpenSSH_9.2p1\r\n", "\x00\x1b[2J\r\n", "INFO {\r\n", "INFO {}\r\n-ERR\r\n", "-ERR 'x'\r\n"]
    {
        let client = Broker::connect(config(&answering(garbage, ""), &["a"])).unwrap();
        let first = wait_for(&client, |event| !matches!(event, BrokerEvent::Connected { .. }));
        let (BrokerEvent::Disconnected { why } | BrokerEvent::Refused { why }) = first else {
            panic!("{first:?}")
        };
        assert!(!why.is_empty() && !why.contains(char::is_control), "{why:?}");
    }
}

#[test]
fn a_broker_that_breaks_the_protocol_later_loses_the_connection_only() {
    for garbage in
        ["MSG a 1 18446744073709551615\r\nx", "MSG a\r\n", "HMSG a 1 5 3\r\n", "\u{1b}]0;x\u{7}\r\n"]
    {
        let later = format!("MSG a 1 2\r\nok\r\n{garbage}");
        let client = Broker::connect(config(&answering(&format!("{INFO}PONG\r\n"), &later), &["a"])).unwrap();
        wait_disconnected(&client);
        // The thread is alive: it connects again.
        wait_for(&client, |event| matches!(event, BrokerEvent::Connected { .. }));
    }
}

#[test]
fn a_client_ends_at_once_whatever_it_waits_for() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", silent.local_addr().unwrap());
    for url in [&*url, "nats://127.0.0.1:1", "nats://name.that.does.not.exist.invalid"] {
        let client = Broker::connect(config(url, &[])).unwrap();
        assert_eq!(client.receive(Duration::ZERO), None);
        drop(client);
    }
}
