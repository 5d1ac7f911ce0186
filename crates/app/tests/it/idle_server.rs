//! The threads of a server: one waits at all its ports, and every test has its own.

use std::io::Write;
use std::net::{TcpStream, UdpSocket};

use linerate_sock::limits;

use crate::support::{
    Process, ServeProcess, TIMEOUT, await_idle, eventually, files_of, linerate, test, thread_names, threads,
};

/// Waits until the server has threads with all these names.
fn await_threads(server: &ServeProcess, names: &[&str]) {
    let present = |name: &&str| threads(server).iter().any(|thread| thread.starts_with(name));
    eventually(&names.join(", "), || names.iter().all(present).then_some(()));
}

fn iperf3(server: &ServeProcess, args: &[&str]) -> Process {
    let mut command = linerate();
    command.args(["iperf3", "-c", "127.0.0.1", "-p", &server.port.to_string(), "-b", "1M"]).args(args);
    Process::start(command)
}

#[test]
fn an_idle_server_has_one_thread_for_all_its_ports() {
    let server = ServeProcess::start(&["--bind", "127.0.0.1", "--bind", "::1"]);
    await_idle(&server);
}

#[test]
fn a_test_has_threads_of_its_own_that_end_with_it() {
    let server = ServeProcess::start(&[]);
    await_idle(&server);
    let native = Process::start(test("127.0.0.1", server.port, &["-t", "60", "-b", "1M", "--upload"]));
    await_threads(&server, &["run", "reflector", "pump", "sampler"]);
    drop(native);
    await_idle(&server);
    for _ in 0..2 {
        let foreign = iperf3(&server, &["-t", "60"]);
        await_threads(&server, &["embedded", "pump", "sampler"]);
        drop(foreign);
        await_idle(&server);
    }
    // Everybody is served as before.
    assert_eq!(iperf3(&server, &["-t", "1"]).finish(TIMEOUT).code, Some(0));
    let done = Process::start(test("127.0.0.1", server.port, &["-t", "1", "-b", "1M"])).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("latency"), "{done:?}");
}

#[test]
fn connections_that_say_nothing_add_no_thread() {
    limits::raise_open_files(4_000).unwrap();
    let server = ServeProcess::start(&[]);
    await_idle(&server);
    let (idle, files) = (threads(&server), files_of(server.pid()));
    let silent: Vec<TcpStream> = (0..400)
        .map(|number| {
            let mut client = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            // Nothing, or the beginning of our preface.
            client.write_all(&b"LINE"[..number % 5]).unwrap();
            client
        })
        .collect();
    eventually("all are accepted", || (files_of(server.pid()) >= files + silent.len()).then_some(()));
    assert_eq!(threads(&server), idle);
    // They keep nobody out.
    assert_eq!(iperf3(&server, &["-t", "1"]).finish(TIMEOUT).code, Some(0));
}

#[test]
fn a_flood_of_datagrams_adds_one_thread_at_most_and_keeps_nobody_out() {
    let server = ServeProcess::start(&[]);
    await_idle(&server);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..2_000_u32 {
        socket.send_to(&number.to_ne_bytes(), ("127.0.0.1", server.port)).unwrap();
    }
    let done = Process::start(test("127.0.0.1", server.port, &["-t", "1", "-u", "-b", "1M"])).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let embedded = thread_names(server.pid()).iter().filter(|name| name.starts_with("embedded")).count();
    assert!(embedded <= 1, "{embedded}");
    await_idle(&server);
}
