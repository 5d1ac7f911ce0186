//! Peers of other tools' protocols that send endlessly: they make neither a server nor our clients of those
//! tools use much memory, and both end when requested.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::support::{self, Net, Process, Server, Side, TIMEOUT, eventually, linerate, signal};

/// Memory limit of a server or client after the flood, in which 400 MB are sent.
const MAX_BYTES: u64 = 128 << 20;

/// Sends `start` to a port of the server, then `flood` repeatedly.
fn flooder(net: &Net, port: u16, start: &str, flood: &str) -> Process {
    let script = format!(
        "exec 3<>/dev/tcp/{}/{port}; printf '{start}' >&3; yes \"$(printf '{flood}')\" | head -c 400M >&3",
        Side::A.address()
    );
    Process::start(net.exec(Side::B, "bash", &["-c", &script]))
}

#[test]
#[ignore = "needs root and network namespaces"]
fn floods_at_the_ports_of_older_tools_cost_a_server_nothing() {
    let net = Net::pair();
    let server = Server::start_in(&net, Side::A, &["--classic"]);
    // A cookie, then states that no client has; parameters of 2 GiB; an endless text; endless lines; numbers.
    let cookie = "abcdefghijklmnopqrstuvwxyz0123456789\\0";
    let large = format!("{cookie}\\177\\377\\377\\377");
    for (port, start, flood) in [
        (server.port, cookie, "\\001\\002\\003"),
        (server.port, &large, "[[[[{"),
        (5201, cookie, "{{{{"),
        (5000, "", "HELO nuttcp v6.1.2"),
        (5000, "HELO nuttcp v6.1.2\\n", "aaaaaaaaaaaaaaaaaaaaaaaa"),
        (5101, "", "\\377\\377\\377\\377"),
        (5002, "SyncMe", "SyncMe"),
    ] {
        let flooder = flooder(&net, port, start, flood);
        let done = flooder.finish(TIMEOUT);
        assert!(server.resident_bytes() < MAX_BYTES, "port {port}, {flood}: {done:?}");
        let next = Process::start(net.test(Side::B, server.port, &["-t", "1", "-b", "20M", "--upload"]));
        let next = next.finish(TIMEOUT);
        assert_eq!(next.code, Some(0), "after {flood} at port {port}: {next:?}, {}", server.stderr());
    }
    let flooder = flooder(&net, server.port, cookie, "\\001\\002\\003");
    server.signal("INT");
    let done = server.finish(TIMEOUT);
    assert!(done.code.is_some() && !done.stderr.contains("panicked"), "{done:?}");
    drop(flooder);
}

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
            eventually("it has heard the server, or ended", || {
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
