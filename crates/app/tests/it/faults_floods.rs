//! Hosts that overload a server, and servers and clients without threads or descriptors: others are served, and
//! refused clients get the reason.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

use linerate_model::flow::FlowId;
use linerate_proto::native::{ConnectionPurpose, DATAGRAM_BYTES, DatagramKind, Preface, ProbeDatagram};
use linerate_sock::limits;
use serde_json::Value;

use crate::support::{
    self, Done, Process, ServeProcess, TIMEOUT, await_idle, eventually, files_of, started_by, test, threads,
};

/// Another host, from the server's point of view.
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 7, 0, 2));

/// Longer than any deadline of the server, shorter than the time after which it formerly closed probe
/// connections.
const NOTICE: Duration = Duration::from_secs(30);

fn connect(port: u16) -> TcpStream {
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(NOTICE)).unwrap();
    client
}

fn frame(json: &str) -> Vec<u8> {
    [&u32::try_from(json.len()).unwrap().to_be_bytes()[..], json.as_bytes()].concat()
}

/// The first message of our clients.
fn greeting() -> Vec<u8> {
    let hello = r#"{"type":"hello","versions":[2,2],"capabilities":[],"host":{"name":"x"},"spec":{}}"#;
    [Preface::CONTROL.encode().to_vec(), frame(hello)].concat()
}

/// The next message other than a heartbeat.
fn message(client: &mut TcpStream) -> Value {
    loop {
        let mut length = [0; 4];
        client.read_exact(&mut length).unwrap();
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        client.read_exact(&mut body).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        if message["type"] != "heartbeat" {
            return message;
        }
    }
}

/// Reads the server's preface.
fn read_preface(client: &mut TcpStream) {
    let mut preface = [0; 32];
    client.read_exact(&mut preface).unwrap();
    assert_eq!(preface, Preface::CONTROL.encode());
}

fn measured(port: u16, args: &[&str]) -> Done {
    let short = ["-t", "1", "-b", "20M", "--upload"];
    Process::start(test("127.0.0.1", port, &[&short, args].concat())).finish(TIMEOUT)
}

#[test]
fn clients_that_never_say_hello_cost_no_thread_and_keep_nobody_out() {
    let server = ServeProcess::start(&[]);
    await_idle(&server);
    let idle = threads(&server);
    let mut silent: Vec<_> = (0..700)
        .map(|number| {
            let mut client = connect(server.port);
            // The preface, and for some a part of the greeting.
            client.write_all(&greeting()[..32 + 7 * (number % 5)]).unwrap();
            client
        })
        .collect();
    // Receiving the server's preface shows that it has read all of them.
    silent.iter_mut().for_each(read_preface);
    assert_eq!(threads(&server), idle);
    let done = measured(server.port, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(message(&mut silent[0])["why"], "no greeting within 5 s");
}

#[test]
fn a_host_that_takes_its_share_reads_so_and_another_is_next_in_line() {
    limits::raise_open_files(4_000).unwrap();
    let server = ServeProcess::start(&[]);
    let mut hog: Vec<_> = (0..400)
        .map(|_| {
            let mut client = connect(server.port);
            client.write_all(&greeting()).unwrap();
            client
        })
        .collect();
    let refused = hog.iter_mut().filter_map(|client| {
        read_preface(client);
        let reply = message(client);
        (reply["type"] == "refused").then(|| reply["why"].as_str().unwrap().to_owned())
    });
    let refused: Vec<String> = refused.collect();
    assert!(refused.len() >= 100, "{} were refused", refused.len());
    assert!(refused.iter().all(|why| why.starts_with("too many clients: ")), "{refused:?}");
    // Our own client, the 401st from this host.
    let done = measured(server.port, &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("too many clients") && done.stderr.contains("127.0.0.1"), "{done:?}");
    // A client of another host is next in the queue, and is measured when the current one turns out to be
    // silent.
    let done = measured(server.port, &["--bind", &OTHER.to_string()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let of_other = |event: &Value| event["client"].as_str().unwrap().starts_with(&OTHER.to_string());
    let places: Vec<Value> = server
        .events("waiting")
        .into_iter()
        .filter(of_other)
        .map(|event| event["position"].clone())
        .collect();
    assert_eq!(places, [1]);
}

#[test]
fn who_holds_the_server_and_measures_nothing_makes_room_for_another_host() {
    let server = ServeProcess::start(&[]);
    let mut idle = connect(server.port);
    idle.write_all(&greeting()).unwrap();
    read_preface(&mut idle);
    assert_eq!(message(&mut idle)["type"], "welcome");
    let mut alive = idle.try_clone().unwrap();
    // Heartbeats as long as the connection exists: for a minute if no other client waited.
    let heartbeats = std::thread::spawn(move || {
        while alive.write_all(&frame(r#"{"type":"heartbeat"}"#)).is_ok() {
            support::pause(Duration::from_millis(500));
        }
    });
    let done = measured(server.port, &["--bind", &OTHER.to_string()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let why = message(&mut idle)["why"].clone();
    assert!(why.as_str().unwrap().contains("other clients are waiting"), "{why}");
    heartbeats.join().unwrap();
}

#[test]
fn a_full_queue_makes_room_for_a_host_that_has_no_place() {
    let server = ServeProcess::start(&["--limit-clients", "2"]);
    let join = |answer: &str| {
        let mut client = connect(server.port);
        client.write_all(&greeting()).unwrap();
        read_preface(&mut client);
        assert_eq!(message(&mut client)["type"], answer);
        client
    };
    let (_at_work, mut in_line) = (join("welcome"), join("busy"));
    let done = measured(server.port, &[]);
    assert!(done.stderr.contains("2 clients are already connected"), "{done:?}");
    let done = measured(server.port, &["--bind", &OTHER.to_string()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let why = message(&mut in_line)["why"].clone();
    assert!(why.as_str().unwrap().contains("a new host has priority"), "{why}");
}

/// A run without a measurement: its control connection and cookie.
fn open_run(server: &ServeProcess) -> (TcpStream, [u8; 16]) {
    let mut control = connect(server.port);
    control.write_all(&greeting()).unwrap();
    read_preface(&mut control);
    let welcome = message(&mut control);
    let cookie = u128::from_str_radix(welcome["cookie"].as_str().unwrap(), 16).unwrap();
    (control, cookie.to_be_bytes())
}

fn probe(cookie: [u8; 16], number: u64) -> [u8; DATAGRAM_BYTES] {
    let kind = DatagramKind::Probe;
    ProbeDatagram { kind, flow: FlowId(0), stream: 0, cookie, number, times: [1, 0, 0] }.encode()
}

#[test]
fn probe_connections_cost_no_thread_are_limited_and_end_with_their_run() {
    let server = ServeProcess::start(&[]);
    let (control, cookie) = open_run(&server);
    eventually("probes are answered", || threads(&server).contains(&"reflector".to_owned()).then_some(()));
    let before = threads(&server);
    let preface = Preface { connection: ConnectionPurpose::Probe, flow: FlowId(0), stream: 0, cookie };
    let mut lines: Vec<_> = (0..100)
        .map(|_| {
            let mut line = connect(server.port);
            line.write_all(&preface.encode()).unwrap();
            line
        })
        .collect();
    // Some are answered, the others closed.
    let answered: Vec<bool> = lines
        .iter_mut()
        .map(|line| {
            let mut reply = [0; DATAGRAM_BYTES];
            let answered = line.write_all(&probe(cookie, 7)).and_then(|()| line.read_exact(&mut reply));
            let reply = ProbeDatagram::decode(&reply).filter(|_| answered.is_ok());
            reply.is_some_and(|reply| reply.kind == DatagramKind::Reply && reply.number == 7)
        })
        .collect();
    assert_eq!(answered.iter().filter(|answered| **answered).count(), 8);
    assert_eq!(threads(&server), before);
    drop(control);
    for (line, _) in lines.iter_mut().zip(&answered).filter(|(_, answered)| **answered) {
        let end = line.read(&mut [0; 1]);
        assert!(matches!(end, Ok(0)) || end.as_ref().is_err_and(|e| e.kind() == ErrorKind::ConnectionReset));
    }
}

#[test]
fn probes_and_openings_from_an_address_that_is_not_the_clients_get_nothing() {
    let server = ServeProcess::start(&[]);
    let (_control, cookie) = open_run(&server);
    let from = |host: IpAddr| {
        let socket = UdpSocket::bind((host, 0)).unwrap();
        socket.connect(("127.0.0.1", server.port)).unwrap();
        socket.set_read_timeout(Some(NOTICE)).unwrap();
        socket
    };
    let (forged, own) = (from(OTHER), from(Ipv4Addr::LOCALHOST.into()));
    let open = ProbeDatagram {
        kind: DatagramKind::Open,
        flow: FlowId(0),
        stream: 0,
        cookie,
        number: 0,
        times: [0; 3],
    };
    for question in [probe(cookie, 1), open.encode()] {
        forged.send(&question).unwrap();
        own.send(&question).unwrap();
        let mut answer = [0; 2048];
        let count = own.recv(&mut answer).unwrap();
        assert!(count <= question.len(), "{count} bytes answer {}", question.len());
    }
    // The server handles datagrams in one thread, in order of arrival.
    forged.set_nonblocking(true).unwrap();
    let nothing = forged.recv(&mut [0; 2048]);
    assert!(nothing.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{nothing:?}");
}

#[test]
fn a_client_with_64_descriptors_measures_one_stream() {
    let server = ServeProcess::start(&[]);
    let inner = test("127.0.0.1", server.port, &["-t", "1", "-b", "20M", "--json"]);
    let done = Process::start(started_by("prlimit", &["--nofile=64"], &inner)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let inner = test("127.0.0.1", server.port, &["-t", "1", "-P", "200", "--json"]);
    let done = Process::start(started_by("prlimit", &["--nofile=64"], &inner)).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("only 64 are allowed") && done.stderr.contains("ulimit -Hn"), "{done:?}");
}

#[test]
fn a_server_out_of_descriptors_says_so_once_and_recovers() {
    let server = ServeProcess::start(&[]);
    let limit = |files: usize| {
        let pid = server.pid().to_string();
        let mut command = Command::new("prlimit");
        assert!(command.args(["--pid", &pid, &format!("--nofile={files}:")]).status().unwrap().success());
    };
    limit(files_of(server.pid()) + 5);
    let strangers: Vec<_> = (0..40).map(|_| connect(server.port)).collect();
    let event = server.await_events("out_of_files", 1);
    assert!(event["why"].as_str().unwrap().contains("open files"), "{event}");
    drop(strangers);
    limit(1024);
    let done = measured(server.port, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(server.events("out_of_files").len(), 1);
}
