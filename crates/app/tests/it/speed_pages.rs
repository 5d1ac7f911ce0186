//! The requests of LibreSpeed's and Cloudflare's clients against our server, by a client of a known speed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Folder, Process, ServeProcess, TIMEOUT, eventually, flow, linerate, pause};

/// Sends a request over a connection that is kept.
fn send(stream: &mut TcpStream, line: &str, body: &[u8]) {
    let head = format!("{line} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
}

/// Reads the head of a response, and returns the length of its body.
fn length(stream: &mut TcpStream) -> usize {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    length.unwrap().parse().unwrap()
}

#[test]
fn what_a_client_without_a_dialogue_moved_is_one_run_to_the_byte() {
    let folder = Folder::new();
    let archive = folder.file("runs.db");
    let server = ServeProcess::start(&["--archive", &archive]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    // It takes 300 ms for each, and asks for the second when it has the first.
    for _ in 0..2 {
        send(&mut stream, "GET /__down?bytes=3000001", &[]);
        let mut left = length(&mut stream);
        assert_eq!(left, 3_000_001);
        let mut block = vec![0; 100_000];
        while left > 0 {
            pause(Duration::from_millis(10));
            let most = left.min(block.len());
            stream.read_exact(&mut block[..most]).unwrap();
            left -= most;
        }
    }
    send(&mut stream, "GET /__down?bytes=0", &[]);
    assert_eq!(length(&mut stream), 0);
    send(&mut stream, "POST /__up", &vec![b'0'; 2_000_003]);
    assert_eq!(length(&mut stream), 0);

    let run = eventually("the run is archived", || {
        let mut show = linerate();
        show.args(["show", "--json", "--archive", &archive]);
        let done = Process::start(show).finish(TIMEOUT);
        let found: Value = serde_json::from_str(&done.stdout).ok()?;
        (found["run"]["outcome"] == "completed").then_some(found)
    });
    for (direction, bytes) in [("download", 6_000_002), ("upload", 2_000_003)] {
        assert_eq!(flow(&run, direction)["receiver"]["bytes"], bytes, "{run:#}");
    }
    assert_eq!(run["flows"].as_array().map(Vec::len), Some(2), "{run:#}");
    // The pause between the two downloads belongs to their time, the one before the upload does not.
    let seconds = flow(&run, "download")["receiver"]["seconds"].as_f64().unwrap();
    assert!((0.3..20.0).contains(&seconds), "{seconds}: {run:#}");
}
