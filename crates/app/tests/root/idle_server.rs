//! The threads of a server that also waits at the ports of older tools.

use std::net::TcpStream;

use linerate_sock::limits;

use crate::support::{Netns, Process, ServeProcess, TIMEOUT, await_idle, eventually, files_of, threads};

/// Ports on which the first bytes distinguish several tools, and ports of a single one.
const SEVERAL: [u16; 2] = [5000, 5001];
const SINGLE: [u16; 2] = [5002, 12_865];

/// Ports on which NTttcp's data would arrive.
const DATA: [u16; 2] = [5003, 5016];

fn classic_server(netns: &Netns) -> ServeProcess {
    let serve = ["serve", "-p", "0", "--classic", "--json"];
    ServeProcess::from(netns.exec(env!("CARGO_BIN_EXE_linerate"), &serve))
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_idle_server_with_the_ports_of_older_tools_has_no_more_threads() {
    let netns = Netns::new();
    let server = classic_server(&netns);
    await_idle(&server);
    SEVERAL.iter().chain(&SINGLE).chain(&DATA).for_each(|port| netns.await_listener(*port));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn silent_clients_of_older_tools_add_at_most_a_thread_for_each_tool() {
    limits::raise_open_files(4_000).unwrap();
    let netns = Netns::new();
    let server = classic_server(&netns);
    await_idle(&server);
    let (idle, files) = (threads(&server), files_of(server.pid()));
    let connect = |ports: [u16; 2]| {
        let each = || ports.map(|port| TcpStream::connect(("127.0.0.1", port)).unwrap());
        netns.inside(|| (0..100).flat_map(|_| each()).collect::<Vec<_>>())
    };
    let several = connect(SEVERAL);
    eventually("all are accepted", || (files_of(server.pid()) >= files + several.len()).then_some(()));
    assert_eq!(threads(&server), idle);
    // Only one tool comes into question, and it may have to speak first.
    let single = connect(SINGLE);
    eventually("they have threads", || (threads(&server).len() == idle.len() + SINGLE.len()).then_some(()));
    drop((several, single));
    await_idle(&server);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn older_tools_are_served_after_the_server_was_idle() {
    let netns = Netns::new();
    let server = classic_server(&netns);
    let clients = [
        "iperf -c 127.0.0.1 -t 1 -b 1M",
        "iperf -c 127.0.0.1 -t 1 -b 1M -u",
        "ttcp -t -s -n 64 127.0.0.1",
        "ttcp -t -s -u -n 64 127.0.0.1",
        "nuttcp -T1 -R1M 127.0.0.1",
        "netpipe -h 127.0.0.1 -l 1 -u 64 -o /dev/null",
        "ntttcp -s127.0.0.1 -t 1 -P 3 -n 1 -B 1M",
    ];
    for client in clients.iter().chain(&clients) {
        await_idle(&server);
        let args: Vec<&str> = client.split(' ').collect();
        let done = Process::start(netns.exec(env!("CARGO_BIN_EXE_linerate"), &args)).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{client}: {done:?}, {}", server.stderr());
    }
    await_idle(&server);
    assert_eq!(server.events("ended").len(), 2 * clients.len(), "{}", server.stderr());
}
