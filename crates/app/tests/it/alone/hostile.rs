//! Peers of the native protocol that request the impossible, and send too much, too little, or in any order.
//!
//! Every session is generated from a seed, with which it can be repeated: `make hostile SESSIONS=1
//! SEED=number`.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_model::flow::FlowId;
use linerate_proto::native::{ConnectionPurpose, DatagramKind, Preface, ProbeDatagram};
use linerate_sock::clock;
use serde_json::{Value, json};

use crate::support::absurd::{HostileRole, orders, spec, word};
use crate::support::{
    self, Peer, Process, Rng, ServeProcess, TIMEOUT, await_idle, eventually, framed, hello, prepare, test,
    threads_of,
};

/// Number of parallel sessions.
const AT_ONCE: u64 = 12;

/// Memory that a server may keep after the sessions: its allocator does not return all pages at once.
const KEPT_BYTES: u64 = 96 << 20;

/// Longest acceptable wait of an honest client.
const SERVED: Duration = Duration::from_secs(5);

/// The specification of a small honest test.
fn upload() -> Value {
    json!({"traffic": {"upload": true, "no_latency": true, "duration_ns": 100_000_000}})
}

/// An upload up to the start of data transfer.
fn running(port: u16) -> Option<(Peer, TcpStream)> {
    let mut peer = Peer::welcomed(port, &upload())?;
    peer.send(&prepare(FlowId(0), "upload", 1)).ok()?;
    peer.receive("prepared")?;
    let data = peer.side(ConnectionPurpose::Data, FlowId(0), 0).ok()?;
    peer.receive("flows_ready")?;
    peer.send(&json!({"type": "start"})).ok()?;
    Some((peer, data))
}

/// One session. Its outcome does not matter; errors are the server's answers.
fn session(port: u16, seed: u64) {
    let rng = &mut Rng::new(seed);
    let _ = match rng.below(11) {
        0 => mutated_greeting(port, rng),
        1 => mutated_orders(port, rng),
        2 => flood(port, rng),
        3 => half_a_message(port, rng),
        4 => out_of_order(port, rng),
        5 => stray_connections(port, rng),
        6 => slow_greeting(port, rng),
        7 => many_connections(port, rng),
        8 => many_probes(port, rng),
        9 => many_places(port, rng),
        _ => silent(port, rng),
    };
}

fn mutated_greeting(port: u16, rng: &mut Rng) -> Option<()> {
    let mut peer = Peer::welcomed(port, &spec(rng))?;
    peer.send(&orders(rng)).ok()?;
    peer.receive("prepared")?;
    let _data = peer.side(ConnectionPurpose::Data, FlowId(0), 0).ok()?;
    peer.send(&json!({"type": "start"})).ok()
}

fn mutated_orders(port: u16, rng: &mut Rng) -> Option<()> {
    let asked = rng.of(&[1, 65_536, 64 << 20]);
    let spec = json!({"traffic": {"upload": true, "no_latency": true, "length_bytes": asked, "udp": rng.percent(20)}});
    let mut peer = Peer::welcomed(port, &spec)?;
    peer.send(&orders(rng)).ok()?;
    let _data = peer.side(ConnectionPurpose::Data, FlowId(0), 0).ok()?;
    peer.receive("flows_ready")?;
    peer.send(&json!({"type": "start"})).ok()
}

/// One message repeatedly, without reading the answers.
fn flood(port: u16, rng: &mut Rng) -> Option<()> {
    let (mut peer, _data) = if rng.percent(50) {
        running(port)?
    } else {
        let peer = Peer::welcomed(port, &upload())?;
        let data = peer.side(ConnectionPurpose::Probe, FlowId(0), 0).ok()?;
        (peer, data)
    };
    let word = framed(word(rng).to_string().as_bytes());
    let many = word.repeat((1 << 20) / word.len() + 1);
    for _ in 0..rng.below(8) {
        peer.raw(&many).ok()?;
    }
    Some(())
}

fn half_a_message(port: u16, rng: &mut Rng) -> Option<()> {
    let mut peer = if rng.percent(50) { Peer::connect(port).ok()? } else { Peer::welcomed(port, &upload())? };
    let length = rng.of(&[4, 1_000, 60_000, 1 << 20, u32::MAX]);
    peer.raw(&length.to_be_bytes()).ok()?;
    peer.raw(&vec![b'['; rng.below(1 << 20)]).ok()
}

fn out_of_order(port: u16, rng: &mut Rng) -> Option<()> {
    let (mut peer, _data) = running(port)?;
    for _ in 0..rng.below(40) {
        peer.send(&word(rng)).ok()?;
    }
    Some(())
}

/// Unexpected data connections.
fn stray_connections(port: u16, rng: &mut Rng) -> Option<()> {
    let mut peer = Peer::welcomed(port, &upload())?;
    if rng.percent(30) {
        peer.cookie[rng.below(16)] ^= 1;
    }
    let mut held = Vec::new();
    for _ in 0..rng.below(60) {
        let stream = u32::try_from(rng.below(1 << 31)).unwrap();
        held.push(
            peer.side(ConnectionPurpose::Data, rng.of(&[FlowId(0), FlowId(1), FlowId(65_535)]), stream)
                .ok()?,
        );
    }
    peer.send(&prepare(FlowId(0), "upload", 1)).ok()
}

/// Sends a greeting a few bytes at a time, and not completely.
fn slow_greeting(port: u16, rng: &mut Rng) -> Option<()> {
    let mut peer = Peer::connect(port).ok()?;
    let greeting = framed(hello(&upload()).to_string().as_bytes());
    for piece in greeting.chunks(1 + rng.below(40)).take(rng.below(10)) {
        peer.raw(piece).ok()?;
        support::pause(rng.time(Duration::from_millis(100)));
    }
    Some(())
}

/// Connections that send nothing but their preface.
fn many_connections(port: u16, rng: &mut Rng) -> Option<()> {
    let held: Vec<_> = (0..rng.below(60)).map_while(|_| Peer::connect(port).ok()).collect();
    support::pause(rng.time(Duration::from_millis(200)));
    drop(held);
    Some(())
}

/// More probe connections than a run may have, without reading the answers.
fn many_probes(port: u16, rng: &mut Rng) -> Option<()> {
    let peer = Peer::welcomed(port, &upload())?;
    let cookie = peer.cookie;
    let probe = ProbeDatagram {
        kind: DatagramKind::Probe,
        flow: FlowId(0),
        stream: 0,
        cookie,
        number: 1,
        times: [0; 3],
    };
    let many = probe.encode().repeat(1 + rng.below(2_000));
    let mut held = Vec::new();
    for _ in 0..rng.below(30) {
        held.push(peer.side(ConnectionPurpose::Probe, FlowId(0), 0).ok()?);
    }
    // The server closes excess connections.
    let _ = held.iter_mut().map(|line| line.write(&many)).filter(Result::is_ok).count();
    // Some end with their run, some before.
    if rng.percent(50) {
        drop(held);
        support::pause(rng.time(Duration::from_millis(100)));
    }
    Some(())
}

/// Many places in the queue in parallel.
fn many_places(port: u16, rng: &mut Rng) -> Option<()> {
    let mut held = Vec::new();
    for _ in 0..rng.below(12) {
        let mut peer = Peer::connect(port).ok()?;
        peer.send(&hello(&upload())).ok()?;
        held.push(peer);
    }
    support::pause(rng.time(Duration::from_millis(300)));
    Some(())
}

/// Sends a hello and nothing more, or not even that.
fn silent(port: u16, rng: &mut Rng) -> Option<()> {
    let mut peer = Peer::connect(port).ok()?;
    if rng.percent(50) {
        peer.send(&hello(&upload())).ok()?;
    }
    support::pause(rng.time(Duration::from_millis(500)));
    Some(())
}

/// Time until an honest client is admitted.
fn served(port: u16) -> Duration {
    let began = clock::now();
    let mut peer =
        Peer::welcomed(port, &upload()).unwrap_or_else(|| panic!("an honest client was not let in"));
    let took = clock::now().since(began);
    peer.send(&json!({"type": "bye"})).unwrap();
    took
}

#[test]
fn hostile_sessions_leave_a_server_as_it_was_and_honest_clients_are_served_meanwhile() {
    let sessions = HostileRole::Client.sessions();
    linerate_sock::limits::raise_open_files(4_000).unwrap();
    let mut server = ServeProcess::start(&["--policy", "shared"]);
    let port = server.port;
    // What the first run allocates for all others is not a leak.
    drop(running(port));
    await_idle(&server);
    let (idle, memory) = (threads_of(server.pid()), server.resident_bytes());
    let over = AtomicBool::new(false);
    let longest = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    while let Some(seed) = sessions.next() {
                        session(port, seed);
                    }
                })
            })
            .collect();
        let honest = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                longest = longest.max(served(port));
                support::pause(Duration::from_millis(50));
            }
            longest
        });
        let hurt = workers.into_iter().filter_map(|worker| worker.join().err()).count();
        over.store(true, Ordering::Relaxed);
        let longest = honest.join();
        assert_eq!(hurt, 0, "a peer of the test failed by itself");
        longest.unwrap_or_else(|_| panic!("{sessions}: an honest client was not let in"))
    });
    assert!(server.running(), "{sessions}: the server is gone: {}", server.stderr());
    eventually("threads back to idle", || (threads_of(server.pid()) <= idle).then_some(()));
    let kept = eventually("memory back to idle", || {
        let kept = server.resident_bytes().saturating_sub(memory);
        (kept <= KEPT_BYTES).then_some(kept)
    });
    println!("{sessions}: {idle} threads, {kept} bytes more, an honest client waited {longest:?} at most");
    assert!(!sessions.asked || longest <= SERVED, "{sessions}: an honest client waited {longest:?}");
    let done = Process::start(test("127.0.0.1", port, &["-t", "0.2", "-b", "20M"])).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn blocks_longer_than_the_greeting_asked_for_do_not_take_the_server_down() {
    let mut server = ServeProcess::start(&[]);
    for length in [1 << 40, 8 << 30] {
        let spec = json!({"traffic": {"upload": true, "no_latency": true, "length_bytes": 1}});
        let mut peer = Peer::welcomed(server.port, &spec).unwrap();
        peer.send(&prepare(FlowId(0), "upload", length)).unwrap();
        let _data = peer.side(ConnectionPurpose::Data, FlowId(0), 0);
        let failed = peer.receive("failed").unwrap();
        assert!(failed["why"].as_str().unwrap().contains("does not match the request"), "{failed}");
        assert!(server.running(), "{}", server.stderr());
    }
    let done = Process::start(test("127.0.0.1", server.port, &["-t", "0.2", "-b", "20M"])).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_client_that_floods_its_server_is_named_and_costs_no_memory() {
    let server = ServeProcess::start(&[]);
    drop(running(server.port));
    server.await_events("ended", 1);
    let memory = server.resident_bytes();
    let (mut peer, _data) = running(server.port).unwrap();
    let many = framed(br#"{"type":"cut"}"#).repeat(100_000);
    // Until the server closes. One that does not get the processor for two seconds reads on later.
    let busy = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
    peer.write_until(&many, |error| !busy.contains(&error.kind()));
    let ended = server.await_events("ended", 2);
    assert!(
        ended["error"].as_str().unwrap().contains("sends more than a measurement can contain"),
        "{ended}"
    );
    let kept = server.resident_bytes().saturating_sub(memory);
    assert!(kept <= KEPT_BYTES, "{kept} bytes");
}

/// A server that admits everybody and then sends one message endlessly.
fn talking_server(word: Value) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut received = vec![0; 64 << 10];
        let _ = client.read(&mut received);
        let can = ["tcp", "udp", "probe_udp", "probe_tcp"];
        let welcome = json!({"type": "welcome", "version": 2, "capabilities": can, "host": {}, "cookie": "0".repeat(32), "concurrent_runs": 0});
        client.write_all(&Preface::CONTROL.encode()).unwrap();
        client.write_all(&framed(welcome.to_string().as_bytes())).unwrap();
        let many = framed(word.to_string().as_bytes()).repeat(1_000);
        while client.write_all(&many).is_ok() {}
    });
    port
}

#[test]
fn a_server_that_floods_its_client_is_named() {
    let progress = json!({"type": "progress", "flow": 0, "side": "sender", "bytes": 1, "elapsed_ns": 1});
    for word in [json!({"type": "heartbeat"}), progress] {
        let port = talking_server(word);
        let done = Process::start(test("127.0.0.1", port, &["-t", "1", "--upload"])).finish(TIMEOUT);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains("sends more than a measurement can contain"), "{done:?}");
    }
}

#[test]
fn a_run_that_needs_more_memory_than_the_server_gives_is_refused_by_name() {
    let server = ServeProcess::start(&["--limit-memory", "64M"]);
    let large = ["-P", "8", "-l", "64M", "-t", "0.2"];
    let done = Process::start(test("127.0.0.1", server.port, &large)).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    for words in ["the server refused", "grants 64 MiB (--limit-memory)", "fewer streams", "shorter -l"] {
        assert!(done.stderr.contains(words), "{words}: {done:?}");
    }
    let small = ["-P", "2", "-t", "0.2", "-b", "20M"];
    let done = Process::start(test("127.0.0.1", server.port, &small)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
}

fn descriptors(server: &ServeProcess) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count()
}

/// What a session may open for itself after its client was welcomed.
const OWN_DESCRIPTORS: usize = 16;

#[test]
fn data_connections_that_nobody_awaits_are_closed() {
    let server = ServeProcess::start(&[]);
    let mut peer = Peer::welcomed(server.port, &upload()).unwrap();
    let before = descriptors(&server);
    // For streams that do not exist, flows that do not exist, and duplicates.
    let mut held = Vec::new();
    for k in 0..300 {
        for (flow, stream) in [(0, k + 1), (60_000, k), (9, 0), (0, u32::MAX - k)] {
            held.push(peer.side(ConnectionPurpose::Data, FlowId(flow), stream).unwrap());
        }
        // On a busy machine the connections take longer than the server waits for a silent client.
        peer.send(&json!({"type": "heartbeat"})).unwrap();
    }
    // The run continues, and may hold as many connections as it has streams.
    eventually("strays are closed", || {
        peer.send(&json!({"type": "heartbeat"})).unwrap();
        (descriptors(&server) <= before + OWN_DESCRIPTORS).then_some(())
    });
    peer.send(&json!({"type": "bye"})).unwrap();
}
