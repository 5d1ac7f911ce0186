//! Tests of a page against our server, by a client that behaves like a browser of a known speed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

use crate::support::{Folder, Process, ServeProcess, TIMEOUT, flow, linerate, pause, retried_when_busy};

const TEST: &str = "0123456789abcdef0123456789abcdef";

/// A connection of a page whose browser says that it is Chrome.
fn connect(server: &ServeProcess, part: &str, websocket: bool) -> TcpStream {
    let (stream, head) = ask(server, TEST, part, websocket);
    let status = if websocket { "HTTP/1.1 101 " } else { "HTTP/1.1 200 " };
    assert!(head.starts_with(status), "{head}");
    stream
}

/// The connection, and the head of the answer.
fn ask(server: &ServeProcess, test: &str, part: &str, websocket: bool) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: linerate.browser.1\r\n";
    let head = format!(
        "GET /linerate/browser/{test}/{part} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nOrigin: http://127.0.0.1:8080\r\n\
         User-Agent: Mozilla/5.0 Chrome/130.0.0.0 Safari/537.36\r\n{}\r\n",
        server.port,
        if websocket { upgrade } else { "" }
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    (stream, String::from_utf8(head).unwrap())
}

/// The answer of the pages to a request without a body.
fn request_pages(server: &ServeProcess, head: &str, more: &str) -> String {
    let printed = server.stderr();
    let base = printed.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    let address = base.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    let length = "Content-Length: 2\r\nContent-Type: application/json";
    let request =
        format!("{head} HTTP/1.1\r\nHost: {address}\r\n{length}\r\nConnection: close\r\n{more}\r\n{{}}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_browser_needs_a_ticket_of_the_pages_for_each_test() {
    let folder = Folder::new();
    let archive = folder.file("runs.db");
    let mut command = linerate();
    command.env("XDG_DATA_HOME", folder.path()).args(["serve", "-p", "0", "--json", "-B", "127.0.0.1"]);
    command.args(["--archive", &archive, "--web", "127.0.0.1:0"]);
    let server = ServeProcess::from(command);
    let control = "control?streams=1&seconds=1&directions=download";
    let answer = |ticket: &str| ask(&server, ticket, control, true).1;
    assert!(answer(TEST).starts_with("HTTP/1.1 403 "), "a name of its own is no ticket");
    let issued = request_pages(&server, "POST /api/v1/tickets", "X-Linerate: 1\r\n");
    assert!(issued.starts_with("HTTP/1.1 201 "), "{issued}");
    let at = issued.find("\"ticket\":\"").unwrap() + 10;
    let ticket = &issued[at..at + 32];
    let (mut page, head) = ask(&server, ticket, control, true);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    message(&mut page, "open");
    drop(page);
    // When the server has noticed that the page has left, the test is unknown.
    server.await_events("ended", 1);
    assert!(answer(ticket).starts_with("HTTP/1.1 403 "), "it was used");
    let of_another_site = request_pages(&server, "POST /api/v1/tickets", "Origin: http://pages.example\r\n");
    assert!(of_another_site.starts_with("HTTP/1.1 403 "), "{of_another_site}");
}

/// The next message of a kind from the server.
fn message(control: &mut TcpStream, kind: &str) -> Value {
    loop {
        let mut header = [0; 2];
        control.read_exact(&mut header).unwrap();
        let mut length = u64::from(header[1]);
        if length == 126 {
            let mut long = [0; 2];
            control.read_exact(&mut long).unwrap();
            length = u64::from(u16::from_be_bytes(long));
        }
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        control.read_exact(&mut payload).unwrap();
        if header[0] & 0x0f == 1 {
            let found: Value = serde_json::from_slice(&payload).unwrap();
            if found["kind"] == kind {
                return found;
            }
            assert!(!["busy", "failed"].contains(&found["kind"].as_str().unwrap()), "{found}");
        }
    }
}

#[test]
fn a_browser_that_reads_slowly_is_the_verdict_and_its_rate_is_what_it_took() {
    retried_when_busy(|| {
        let folder = Folder::new();
        let archive = folder.file("runs.db");
        let server = ServeProcess::start(&["--archive", &archive]);
        let mut control = connect(&server, "control?streams=1&seconds=3&directions=download", true);
        message(&mut control, "open");
        let mut down = connect(&server, "down?stream=0", false);
        message(&mut control, "go");
        // About 26 Mb/s over loopback, until the server ends the connection.
        let began = clock::now();
        let mut block = vec![0; 64 << 10];
        let mut taken = 0_u64;
        while let Ok(count @ 1..) = down.read(&mut block) {
            taken += count as u64;
            pause(Duration::from_millis(20));
        }
        let lasted = clock::now().since(began).as_secs_f64();
        let ended = message(&mut control, "ended");
        let finished = message(&mut control, "finished");

        // What the kernels hold between the programs is acknowledged, but was not read: loopback has 6 MB at most.
        let acknowledged = ended["bytes"].as_f64().unwrap();
        assert!(
            (taken as f64 * 0.8..taken as f64 + 8e6).contains(&acknowledged),
            "{ended}, {taken} in {lasted} s"
        );
        let mut show = linerate();
        show.args(["show", finished["run"].as_str().unwrap(), "--json", "--archive", &archive]);
        let document = Process::start(show).finish(TIMEOUT).json();
        let flow = flow(&document, "download");
        assert_eq!(
            (&flow["verdict"]["rule"], &flow["verdict"]["cause"]),
            (&"V29".into(), &"browser".into()),
            "{flow:#}"
        );
        assert_eq!(flow["receiver"]["bitrate_bps"], ended["bitrate_bps"], "{flow:#}");
    });
}
