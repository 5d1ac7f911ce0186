//! Clients of other speed tests, which find the server that measures at the address of the pages too.

use std::io::{Read, Write};
use std::time::Duration;

use linerate_sock::clock;

use crate::client::{HttpReply, TestSite};

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

#[test]
fn the_address_of_the_pages_answers_speed_tests() {
    let site = TestSite::open();
    let own_address = site.get("/backend/getIP.php");
    assert_eq!(own_address.json()["processedString"], "127.0.0.1");
    let mut bytes = Vec::new();
    let mut stream = site.connect();
    stream.write_all(request("/__down?bytes=300001").as_bytes()).unwrap();
    stream.read_to_end(&mut bytes).unwrap();
    // The content is random, and no text.
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
    assert!(bytes.starts_with(b"HTTP/1.1 200 ") && bytes.len() - head - 4 == 300_001, "{}", bytes.len());
    let upload = format!(
        "POST /__up HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n{}",
        "0".repeat(100_000)
    );
    assert_eq!(site.send(&upload).status, 200);
    // The handshake of ndt7 needs a WebSocket.
    assert_eq!(site.get("/ndt/v7/download").status, 426);
    // What is no test stays where it was.
    assert_eq!(site.get("/healthz").body, "ok\n");
    assert_eq!(site.get("/empties").status, 404);
}

#[test]
fn a_request_that_comes_in_pieces_is_known_too() {
    let site = TestSite::open();
    for (path, answer) in [("/backend/getIP", "127.0.0.1"), ("/healthz", "ok")] {
        let mut stream = site.connect();
        for piece in request(path).as_bytes().chunks(6) {
            stream.write_all(piece).unwrap();
            clock::sleep_until(clock::now() + Duration::from_millis(3));
        }
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let reply = HttpReply::parse(&bytes);
        assert!(reply.status == 200 && reply.body.contains(answer), "{reply:?}");
    }
}
