//! Unknown peers: other services on the port, other programs on ours, other versions, and noise.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

use linerate_proto::native::VERSION;
use linerate_sock::clock;

use crate::support::{Done, Process, ServeProcess, TIMEOUT, at_once, eventually, linerate, pause, test};

/// Timeout for a client to notice that the service is not ours.
const NOTICE: Duration = Duration::from_secs(30);

/// A preface of the native protocol with this version, for a control connection.
fn preface(version: u8) -> Vec<u8> {
    [&b"LINERATE"[..], &[version, 1], &[0; 22]].concat()
}

fn frame(json: &str) -> Vec<u8> {
    [&u32::try_from(json.len()).unwrap().to_be_bytes()[..], json.as_bytes()].concat()
}

/// Connects a client to a service that sends `first` at once, `answer` after the first received bytes, and then
/// closes.
fn client_of(first: &'static [u8], answer: &'static [u8]) -> Done {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let _ = connection.write_all(first);
            let mut received = [0; 64 << 10];
            let _ = connection.read(&mut received);
            let _ = connection.write_all(answer);
            let _ = connection.shutdown(std::net::Shutdown::Write);
            // Read to the end, so that a reset does not discard the answer.
            while matches!(connection.read(&mut received), Ok(1..)) {}
        });
        Process::start(test("127.0.0.1", port, &["-t", "1", "--json"])).finish(NOTICE)
    })
}

#[test]
fn the_service_behind_a_wrong_port_is_named() {
    let services: [(&str, &[u8], &[u8]); 7] = [
        ("an SSH server", b"SSH-2.0-OpenSSH_9.2p1\r\n", b""),
        ("an HTTP server", b"", b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        // To a request line without a version, servers answer as in HTTP/0.9, with the page only.
        (
            "an HTTP server",
            b"",
            b"<!DOCTYPE HTML>\n<html lang=\"en\"><head><title>Error response</title></head>",
        ),
        ("a TLS server", b"", b"\x15\x03\x01\x00\x02\x02\x46"),
        ("a mail or FTP server", b"220 mail.example.org ESMTP\r\n", b""),
        ("an iperf3 server", b"", b"\x09"),
        ("closes the connection without a reply", b"", b""),
    ];
    at_once(services, |(name, first, answer)| {
        let done = client_of(first, answer);
        assert_eq!(done.code, Some(1), "{name}: {done:?}");
        assert!(done.stderr.contains(name), "{name}: {}", done.stderr);
        assert!(done.stderr.contains("linerate serve"), "the remedy: {}", done.stderr);
        assert_eq!(done.json()["run"]["outcome"], "failed", "{name}");
    });
}

#[test]
#[ignore = "needs iperf3"]
fn an_iperf3_server_is_named() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let mut command = Command::new("iperf3");
    command.args(["-s", "-p", &port.to_string(), "--forceflush"]);
    let mut iperf3 = Process::start(command);
    eventually("iperf3 listens", || iperf3.stdout().contains("listening").then_some(()));
    let done = Process::start(test("127.0.0.1", port, &["-t", "1"])).finish(NOTICE);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("an iperf3 server"), "{done:?}");
    assert!(iperf3.running(), "it is unharmed");
}

#[test]
fn a_silent_service_is_given_up() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let done = Process::start(test("127.0.0.1", port, &["-t", "1"])).finish(NOTICE);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("no answer from the peer for 5 s"), "{done:?}");
    assert!(done.stderr.contains("greeting") && done.stderr.contains("linerate serve"), "{done:?}");
}

#[test]
fn a_server_of_another_version_is_reported_with_both_versions() {
    let done = client_of(b"LINERATE\x09\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", b"");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("protocol version 9 and this program 2"), "{done:?}");
    assert!(done.stderr.contains("same version at both ends"), "{done:?}");
}

#[test]
fn a_client_of_another_version_gets_ours() {
    let server = ServeProcess::start(&[]);
    let mut client = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    client.set_read_timeout(Some(NOTICE)).unwrap();
    client.write_all(&preface(9)).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, preface(VERSION), "magic, our version, and nothing that version 9 could misread");
    let foreign = server.await_events("foreign", 1);
    assert!(foreign["why"].as_str().unwrap().contains("protocol version 9"), "{foreign}");
}

#[test]
fn a_greeting_of_another_version_is_refused_with_ours() {
    let server = ServeProcess::start(&[]);
    let mut client = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    client.set_read_timeout(Some(NOTICE)).unwrap();
    let hello = r#"{"type":"hello","versions":[8,9],"capabilities":[],"host":{"name":"x"},"spec":{}}"#;
    client.write_all(&[preface(VERSION), frame(hello)].concat()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("refused") && text.contains(&format!("version {VERSION}")), "{text}");
}

/// xorshift64*: noise that is the same in every run.
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.next() % (most + 1)).map(|_| self.next() as u8).collect()
    }

    /// Input from an unknown client: noise, or the beginning of our protocol followed by noise.
    fn speech(&mut self) -> Vec<u8> {
        let noise = self.bytes(200);
        match self.next() % 8 {
            0 => [preface(VERSION), noise].concat(),
            1 => [&preface(VERSION)[..8 + (self.next() % 24) as usize], &noise[..0]].concat(),
            2 => [&b"LINERATE\x02\x02"[..], &noise].concat(),
            3 => [preface(VERSION), frame(&String::from_utf8_lossy(&noise))].concat(),
            _ => noise,
        }
    }
}

#[test]
fn ten_thousand_strangers_do_not_bring_a_server_down() {
    let mut server = ServeProcess::start(&[]);
    let noise = &mut Xorshift(0x5201);
    // Half of them stay connected, more than the server keeps.
    linerate_sock::limits::raise_open_files(6_000).unwrap();
    let mut open = Vec::new();
    let mut knock = |server: &ServeProcess, count: u32| {
        for number in 0..count {
            let mut stranger = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            // The server may reset the connection before everything is sent.
            let _ = stranger.write_all(&noise.speech());
            if number % 2 == 0 {
                open.push(stranger);
            }
            if number % 100 == 0 {
                pause(Duration::from_millis(20));
            }
        }
    };
    // The first connections fill the allocator's caches and touch code pages.
    knock(&server, 2_000);
    let before = server.resident_bytes();
    knock(&server, 8_000);
    assert!(server.running(), "{}", server.stderr());
    let after = server.resident_bytes();
    let grown = after.saturating_sub(before);
    assert!(grown < 4 << 20, "{before} bytes resident before, {after} after 8,000 strangers");
    // While the last ones are still connected.
    let done = Process::start(test("127.0.0.1", server.port, &["-t", "1", "-b", "20M"])).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_datagram_without_the_cookie_of_a_run_gets_no_answer() {
    let server = ServeProcess::start(&[]);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(("127.0.0.1", server.port)).unwrap();
    let mut noise = Xorshift(0x5202);
    for _ in 0..500 {
        let _ = socket.send(&noise.bytes(1400));
        // Well-formed except for the cookie: opening, echo, probe, and messages that only a server sends.
        for kind in 1..=6 {
            let mut forged = [&b"LINERATE\x02"[..], &[kind], &[0; 6]].concat();
            forged.extend(std::iter::repeat_with(|| noise.next() as u8).take(48));
            let _ = socket.send(&forged);
        }
        pause(Duration::from_micros(200));
    }
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let answer = socket.recv(&mut [0; 2048]);
    assert!(answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{answer:?}");
    let begun = clock::now();
    let done = Process::start(test("127.0.0.1", server.port, &["-t", "1", "-u", "-b", "1M"])).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "after {:?}: {done:?}", clock::now().since(begun));
}

/// Clears a screen, sets a window title, forges a line and changes the text direction, in JSON.
const STEERING: &str =
    r"x\u001b[2J\u001b]0;t\u0007\r\n127.0.0.1:9 (forged): measuring\u009b31m\u202e\u2066\u2028\u007fy";

/// Whether a terminal would obey control characters in a text of several lines.
fn steers(text: &str) -> bool {
    let of_text = |c: char| linerate_model::foreign_text::is_forbidden(c) && c != '\n';
    text.chars().any(of_text) || text.lines().any(|line| line.starts_with("127.0.0.1:9 (forged)"))
}

#[test]
fn words_of_a_server_do_not_steer_the_terminal_of_its_client() {
    for message in [
        format!(r#"{{"type":"refused","why":"{STEERING}"}}"#),
        format!(r#"{{"type":"failed","why":"{STEERING}"}}"#),
        format!(r#"{{"type":"{STEERING}"}}"#),
        format!(r#"{{"type":"refused","why":"version {STEERING}"}}"#),
    ] {
        let answer: &'static [u8] = [preface(VERSION), frame(&message)].concat().leak();
        let done = client_of(b"", answer);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(!steers(&done.stderr), "{message}: {done:?}");
        assert!(done.stderr.contains('x'), "{message}: it is printed nevertheless: {done:?}");
    }
}

#[test]
fn words_of_a_client_do_not_steer_the_terminal_of_its_server() {
    let mut command = linerate();
    command.args(["serve", "-p", "0"]);
    let mut server = Process::start(command);
    let port: u16 = eventually("the server listens", || {
        assert!(server.running(), "{}", server.stderr());
        let line = server.stderr();
        line.split_once("linerate test ")?.1.split_once("-p ")?.1.split_whitespace().next()?.parse().ok()
    });
    for message in [
        format!(r#"{{"type":"failed","why":"{STEERING}"}}"#),
        format!(r#"{{"type":"{STEERING}"}}"#),
        format!(r#"{{"type":"hello","versions":[2,2],"{STEERING}":1}}"#),
    ] {
        let before = server.stderr().lines().count();
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        connection.write_all(&[preface(VERSION), frame(&message)].concat()).unwrap();
        eventually("the server has printed something", || {
            let errors = server.stderr();
            (errors.ends_with('\n') && errors.lines().count() > before).then_some(())
        });
    }
    let errors = server.stderr();
    assert!(!steers(&errors), "{errors:?}");
    assert!(errors.contains("(forged)"), "it is printed in one line: {errors:?}");
}

#[test]
fn a_tool_that_is_switched_off_gets_no_test_and_the_others_do() {
    let server = ServeProcess::start(&["--without", "iperf3"]);
    let mut iperf3 = linerate();
    iperf3.args(["iperf3", "-c", "127.0.0.1", "-p", &server.port.to_string(), "-t", "1"]);
    let done = Process::start(iperf3).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    server.await_events("foreign", 1);
    let own = Process::start(test("127.0.0.1", server.port, &["-n", "64K", "--upload", "--no-latency"]));
    assert_eq!(own.finish(TIMEOUT).code, Some(0));
}
