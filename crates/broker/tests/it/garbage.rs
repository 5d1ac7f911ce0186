//! Servers that are no brokers.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use linerate_broker::{Broker, BrokerEvent, BrokerLogin};
use nkeys::KeyPair;

use crate::events::{DEADLINE, config, wait_disconnected, wait_for, wait_refused};

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

/// A server that sends `nonce`, and what clients answer.
fn asking_to_sign(nonce: &str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let (sender, said) = channel();
    let info = format!(
        "INFO {{\"server_id\":\"x\",\"max_payload\":1000,\"proto\":1,\"auth_required\":true,\"nonce\":\"{nonce}\"}}\r\n"
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(info.as_bytes());
            let mut line = String::new();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
            let _ = stream.write_all(b"PONG\r\n");
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    (url, said)
}

fn logins(folder: &tempfile::TempDir) -> [BrokerLogin; 2] {
    let seed = KeyPair::new_user().seed().unwrap();
    let file = folder.path().join("user.creds");
    let text = format!(
        "-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    );
    std::fs::write(&file, text).unwrap();
    [BrokerLogin::Key(seed), BrokerLogin::CredentialsFile(file)]
}

#[test]
fn a_broker_gets_no_signature_of_a_message_that_it_has_written() {
    let folder = tempfile::tempdir().unwrap();
    let long = "a".repeat(65);
    for login in logins(&folder) {
        for nonce in [r#"linerate-fleet 1 centre\n{\"type\":\"calendar\"}"#, "two words", long.as_str()] {
            let (url, said) = asking_to_sign(nonce);
            let mut config = config(&url, &[]);
            config.login = login.clone();
            let client = Broker::connect(config).unwrap();
            let why = wait_refused(&client);
            assert!(why.contains("nothing was signed"), "{why}");
            // The connection ends without a word.
            assert_eq!(said.recv_timeout(DEADLINE).unwrap(), "");
        }
    }
}

#[test]
fn a_nonce_is_signed() {
    let folder = tempfile::tempdir().unwrap();
    for login in logins(&folder) {
        let (url, said) = asking_to_sign("kZJ3oD-_+/=AAAA");
        let mut config = config(&url, &[]);
        config.login = login;
        let _client = Broker::connect(config).unwrap();
        let connect = said.recv_timeout(DEADLINE).unwrap();
        assert!(connect.starts_with("CONNECT ") && connect.contains(r#""sig":""#), "{connect}");
    }
}
