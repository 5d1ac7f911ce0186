//! Peers of other tools' protocols that send endlessly: they make neither a server nor our clients of those
//! tools use much memory, and both end when requested.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::support::{self, Process, TIMEOUT, eventually, linerate, signal};

/// Memory limit of a server or client after the flood, in which 400 MB are sent.
const MAX_BYTES: u64 = 128 << 20;

/// A server that answers every connection with the same bytes, as long as they are read.
fn endless(bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move |mut client: TcpStream| {
        let mut reader = client.try_clone().unwrap();
        std::thread::spawn(move || while reader.read(&mut [0; 65536]).is_ok_and(|count| count > 0) {});
        let block = bytes.repeat(65536 / bytes.len());
        while client.write_all(&block).is_ok() {}
    };
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || serve(client));
        }
    });
    port
}

#[test]
fn a_server_of_an_older_tool_that_never_stops_talking_is_left_at_ctrl_c() {
    for bytes in [&b"\x09"[..], b"\x09\x7f\xff\xff\xff", b"OK v6.1.2\n", b"a", b"\xff\x00", b"SyncMe"] {
        let port = endless(bytes).to_string();
        for tool in [
            &["iperf3", "-c", "127.0.0.1", "-p", &port, "-t", "60"][..],
            &["iperf3", "-c", "127.0.0.1", "-p", &port, "-t", "60", "-R"],
            &["iperf", "-c", "127.0.0.1", "-p", &port, "-t", "60", "-R"],
            &["nuttcp", &format!("-P{port}"), "-T60", "127.0.0.1"],
            &["netpipe", "-h", "127.0.0.1", "-P", &port],
        ] {
            let mut command = linerate();
            command.args(tool);
            let mut client = Process::start(command);
            let begun = linerate_sock::clock::now();
            eventually("it has received something, or ended", || {
                let late = linerate_sock::clock::now().since(begun) > Duration::from_millis(700);
                (late || !client.running()).then_some(())
            });
            if client.running() {
                assert!(support::resident_bytes(client.pid()) < MAX_BYTES, "{tool:?}, {bytes:?}");
                signal(client.pid(), "INT");
            }
            let done = client.finish(TIMEOUT);
            assert!(
                done.code.is_some() && !done.stderr.contains("panicked"),
                "{tool:?}, {bytes:?}: {done:?}"
            );
        }
    }
}
