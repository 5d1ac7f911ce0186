//! Thousands of streams.

use linerate_sock::limits;

use crate::support::{self, Process, ServeProcess, flow, test};

/// Our own memory per stream, including buffers and state.
const MOST_PER_STREAM: u64 = 64 << 10;

/// Open files that the largest test needs at either end.
const FILES: u64 = 10_500;

/// Peak memory of a process, bytes.
fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    linerate_sock::proc::host::parse_kib(&status, "VmHWM").unwrap()
}

fn many(streams: u64) {
    limits::raise_open_files(FILES).unwrap_or_else(|error| panic!("{}", error.source));
    let server = ServeProcess::start(&[]);
    let rest = peak_bytes(server.pid());
    let count = streams.to_string();
    let args = ["-P", count.as_str(), "-t", "2", "--upload", "--json", "--no-latency"];
    let done = Process::start(test("127.0.0.1", server.port, &args)).finish(support::TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    let upload = flow(&document, "upload");
    assert_eq!(upload["streams"].as_u64(), Some(streams));
    assert!(upload["receiver"]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(
        upload["byte_accounting"]["unaccounted_bytes"].as_u64(),
        Some(0),
        "{}",
        upload["byte_accounting"]
    );
    let grown = peak_bytes(server.pid()) - rest;
    assert!(grown / streams < MOST_PER_STREAM, "{} bytes per stream at the server", grown / streams);
}

#[test]
#[ignore = "needs some seconds of the whole machine"]
fn a_thousand_streams() {
    many(1_000);
}

#[test]
#[ignore = "needs 10500 open files and some seconds of the whole machine"]
fn ten_thousand_streams() {
    many(10_000);
}
