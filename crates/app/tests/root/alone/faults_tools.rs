//! Peers of other tools' protocols that send endlessly: they make neither a server nor our clients of those
//! tools use much memory, and both end when requested.

use crate::support::{LinkSide, Net, Process, ServeProcess, TIMEOUT};

/// Memory limit of a server or client after the flood, in which 400 MB are sent.
const MAX_BYTES: u64 = 128 << 20;

/// Sends `start` to a port of the server, then `flood` repeatedly.
fn flooder(net: &Net, port: u16, start: &str, flood: &str) -> Process {
    let script = format!(
        "exec 3<>/dev/tcp/{}/{port}; printf '{start}' >&3; yes \"$(printf '{flood}')\" | head -c 400M >&3",
        LinkSide::A.address()
    );
    Process::start(net.exec(LinkSide::B, "bash", &["-c", &script]))
}

#[test]
#[ignore = "needs root and network namespaces"]
fn floods_at_the_ports_of_older_tools_cost_a_server_nothing() {
    let net = Net::pair();
    let server = ServeProcess::start_in(&net, LinkSide::A, &["--classic"]);
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
        let next = Process::start(net.test(LinkSide::B, server.port, &["-t", "1", "-b", "20M", "--upload"]));
        let next = next.finish(TIMEOUT);
        assert_eq!(next.code, Some(0), "after {flood} at port {port}: {next:?}, {}", server.stderr());
    }
    let flooder = flooder(&net, server.port, cookie, "\\001\\002\\003");
    server.signal("INT");
    let done = server.finish(TIMEOUT);
    assert!(done.code.is_some() && !done.stderr.contains("panicked"), "{done:?}");
    drop(flooder);
}
