//! Links, timers, signals and printed output.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use linerate_compat::stand_in::{Input, Link, LinkOptions, Output, SystemError, Transport};
use linerate_sock::open::listen_tcp;
use linerate_sock::{SocketOptions, clock};
use linerate_units::Span;

use super::script::{ScriptContext, loopback, options, port, run, run_with, script};
use crate::stand_in::Interrupts;

const CONTROL: Link = Link(1);

fn connect(context: &mut ScriptContext, port: u16, connect_timeout: Option<Span>) {
    let options = LinkOptions { connect_timeout, ..LinkOptions::default() };
    context.output(Output::Connect { link: CONTROL, port, to: None, options });
}

/// Exits with the errno of the reason, or 0 without one.
fn exit_as(context: &mut ScriptContext, reason: Option<SystemError>) {
    context.output(Output::Exit(reason.map_or(0, |reason| reason.errno)));
}

fn tries_to_connect(to: u16, limit: Option<Span>) -> i32 {
    let client = script(move |input, context| match input {
        Input::Begin => connect(context, to, limit),
        Input::NotOpened { link: CONTROL, reason } => exit_as(context, Some(reason)),
        Input::Opened { .. } => context.output(Output::Exit(0)),
        _ => {}
    });
    run(Some("127.0.0.1"), client).0
}

#[test]
fn a_port_where_nobody_listens_is_refused_with_the_systems_number() {
    // The local port of an open connection: nothing listens there, and no other socket can get it meanwhile.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert_eq!(tries_to_connect(connection.local_addr().unwrap().port(), None), 111);
}

#[test]
fn a_connect_that_nobody_answers_ends_at_its_time_limit() {
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let listening = listen_tcp(address, 0, &SocketOptions::default()).unwrap();
    // The accept queue has room for one. A second handshake may or may not complete, but a third gets no
    // answer.
    let fill = |_| {
        let socket = SocketOptions::default();
        linerate_sock::open::begin_connect(listening.local, &socket).unwrap()
    };
    let _waiting: Vec<_> = (0..4).map(fill).collect();
    assert_eq!(tries_to_connect(listening.local.port(), Some(Span::from_ms(100))), 110);
}

#[test]
fn bytes_pass_both_ways_and_a_half_close_is_seen_as_the_end() {
    let (sender, port) = port();
    let mut received = Vec::new();
    let server = script(move |input, context| match input {
        Input::Begin => {
            let options = options(Transport::Tcp);
            context.output(Output::Listen { link: CONTROL, port: 0, options });
        }
        Input::Opened { opened, .. } => sender.send(opened.local.port()).unwrap(),
        Input::Accepted { listener, link, opened } => {
            assert!(listener == CONTROL && link >= Link::FIRST_ACCEPTED);
            // A dual-stack listener reports peers without IPv4 mapping.
            assert!(opened.local.is_ipv4() && opened.remote.unwrap().is_ipv4());
        }
        Input::Bytes { bytes, .. } => received.extend_from_slice(bytes),
        Input::Closed { link, reason: None } => {
            received.reverse();
            context.output(Output::Send { link, bytes: std::mem::take(&mut received) });
            context.output(Output::Close { link });
            context.output(Output::Exit(0));
        }
        _ => {}
    });
    let serving = thread::spawn(move || run(None, server));
    let port = port.recv().unwrap();
    let mut received = Vec::new();
    let client = script(move |input, context| match input {
        Input::Begin => connect(context, port, None),
        Input::Opened { link, opened } => {
            assert!(opened.handshake.is_some() && opened.mss.is_some() && opened.congestion.is_some());
            assert_eq!(opened.remote, loopback(port));
            context.output(Output::Send { link, bytes: b"abc".to_vec() });
            context.output(Output::FinishWriting { link });
        }
        Input::Sent { .. } => context.output(Output::Print("sent ".to_owned())),
        Input::Bytes { bytes, .. } => received.extend_from_slice(bytes),
        Input::Closed { reason, .. } => {
            context.output(Output::Print(String::from_utf8(received.clone()).unwrap()));
            exit_as(context, reason);
        }
        _ => {}
    });
    assert_eq!(run(Some("localhost%lo"), client), (0, "sent cba".to_owned()));
    assert_eq!(serving.join().unwrap().0, 0);
}

#[test]
fn a_reset_is_reported_with_its_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = script(move |input, context| match input {
        Input::Begin => connect(context, port, None),
        Input::Opened { link, .. } => context.output(Output::Send { link, bytes: b"!".to_vec() }),
        Input::Closed { reason, .. } => exit_as(context, reason),
        _ => {}
    });
    let ending = thread::spawn(move || run(Some("127.0.0.1"), client));
    let (mut peer, _) = listener.accept().unwrap();
    peer.read_exact(&mut [0]).unwrap();
    linerate_sock::sockopt::set_linger_abort(&peer).unwrap();
    drop(peer);
    assert_eq!(ending.join().unwrap().0, 104);

    // The other way round.
    let client = script(move |input, context| match input {
        Input::Begin => connect(context, port, None),
        Input::Opened { link, .. } => {
            context.output(Output::Reset { link });
            context.output(Output::Exit(0));
        }
        _ => {}
    });
    let ending = thread::spawn(move || run(Some("127.0.0.1"), client));
    let (mut peer, _) = listener.accept().unwrap();
    assert_eq!(peer.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    ending.join().unwrap();
}

#[test]
fn more_than_a_socket_takes_is_sent_in_the_end_and_only_then_reported() {
    const MUCH: usize = 12 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (ticked, tick) = mpsc::channel();
    let client = script(move |input, context| match input {
        Input::Begin => connect(context, port, None),
        Input::Opened { link, .. } => {
            context.output(Output::Send { link, bytes: vec![7; MUCH] });
            context.deadline = Some(context.now + Span::from_ms(50));
        }
        Input::Tick => {
            context.deadline = None;
            context.output(Output::Print("tick ".to_owned()));
            ticked.send(()).unwrap();
        }
        Input::Sent { link } => {
            context.output(Output::Print("sent".to_owned()));
            context.output(Output::Close { link });
            context.output(Output::Exit(0));
        }
        _ => {}
    });
    let ending = thread::spawn(move || run(Some("127.0.0.1"), client));
    let (mut peer, _) = listener.accept().unwrap();
    // Two socket buffers cannot hold that much, so no other event arrives before the peer reads.
    tick.recv_timeout(Duration::from_secs(60)).unwrap();
    let mut all = Vec::new();
    peer.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), MUCH);
    assert_eq!(ending.join().unwrap(), (0, "tick sent".to_owned()));
}

#[test]
fn an_accepted_connection_is_tuned_as_far_as_the_kernel_lets_us() {
    let (sender, port) = port();
    let server = script(move |input, context| match input {
        Input::Begin => {
            let options = options(Transport::Tcp);
            context.output(Output::Listen { link: CONTROL, port: 0, options });
        }
        Input::Opened { link: CONTROL, opened } => sender.send(opened.local.port()).unwrap(),
        Input::Accepted { link, .. } => {
            let congestion = Some("no such".to_owned());
            let tuned = LinkOptions { snd_buf: Some(50_000), congestion, ..options(Transport::Tcp) };
            context.output(Output::Tune { link, options: tuned });
        }
        Input::Opened { opened, .. } => {
            // The kernel doubles the requested buffer size. An unknown congestion control algorithm changes
            // nothing.
            assert_eq!(opened.snd_buf, 100_000);
            assert!(opened.remote.is_some() && opened.congestion.is_some());
            context.output(Output::Exit(4));
        }
        _ => {}
    });
    let serving = thread::spawn(move || run(None, server));
    let _client = TcpStream::connect(loopback(port.recv().unwrap()).unwrap()).unwrap();
    assert_eq!(serving.join().unwrap().0, 4);
}

/// Without a look before each write, the kernel appends to what waits until that is 64 KiB long.
#[test]
fn a_socket_that_has_enough_to_send_gets_no_more() {
    const LOWAT: u64 = 4_096;
    const PIECE: usize = 2_048;
    let (sender, port) = port();
    let mut written = 0;
    let server = script(move |input, context| match input {
        Input::Begin => {
            let options = options(Transport::Tcp);
            context.output(Output::Listen { link: CONTROL, port: 0, options });
        }
        Input::Opened { link: CONTROL, opened } => sender.send(opened.local.port()).unwrap(),
        Input::Accepted { link, .. } => {
            let tuned = LinkOptions { notsent_lowat: Some(LOWAT), ..options(Transport::Tcp) };
            context.output(Output::Tune { link, options: tuned });
            context.output(Output::Send { link, bytes: vec![7; PIECE] });
        }
        // As fast as the socket takes it.
        Input::Sent { link } => {
            written += PIECE as u64;
            context.output(Output::Send { link, bytes: vec![7; PIECE] });
        }
        Input::Closed { link, .. } => context.output(Output::LookLink { link }),
        Input::LinkCounts { counts, .. } => {
            let counts = counts.unwrap().connection.unwrap();
            let waiting = written - (counts.bytes_sent - counts.bytes_retransmitted);
            assert!(waiting <= LOWAT + PIECE as u64, "{waiting} of {written} bytes wait in the socket");
            context.output(Output::Exit(if written > 100_000 { 5 } else { 6 }));
        }
        _ => {}
    });
    let serving = thread::spawn(move || run(None, server));
    let client = TcpStream::connect(loopback(port.recv().unwrap()).unwrap()).unwrap();
    // It reads nothing, so its window is full at some time, and what comes then is not sent.
    let received = || linerate_sock::tcp_info(&client).unwrap().bytes_received.unwrap();
    let mut before = 0;
    while received() == 0 || received() > before {
        before = received();
        clock::sleep_until(clock::now() + Duration::from_secs(1));
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(serving.join().unwrap().0, 5);
}

/// On a fast path, it would otherwise send as long as the path takes what it has, while others wait.
#[test]
fn a_link_that_carries_load_sends_when_its_turn_comes() {
    let (sender, port) = port();
    let mut counted = Vec::new();
    let server = script(move |input, context| match input {
        Input::Begin => {
            let options = options(Transport::Tcp);
            context.output(Output::Listen { link: CONTROL, port: 0, options });
        }
        Input::Opened { link: CONTROL, opened } => sender.send(opened.local.port()).unwrap(),
        Input::Accepted { link, .. } => {
            let tuned = LinkOptions { notsent_lowat: Some(1 << 20), ..options(Transport::Tcp) };
            context.output(Output::Tune { link, options: tuned });
            context.output(Output::Send { link, bytes: vec![7; 100] });
            context.output(Output::LookLink { link });
        }
        Input::Sent { link } => context.output(Output::LookLink { link }),
        Input::LinkCounts { counts, .. } => {
            counted.push(counts.unwrap().connection.unwrap().bytes_sent);
            if let [before, after] = counted[..] {
                context.output(Output::Exit(if (before, after) == (0, 100) { 4 } else { 5 }));
            }
        }
        _ => {}
    });
    let serving = thread::spawn(move || run(None, server));
    let client = TcpStream::connect(loopback(port.recv().unwrap()).unwrap()).unwrap();
    assert_eq!(serving.join().unwrap().0, 4);
    drop(client);
}

#[test]
fn a_discarded_link_causes_no_more_events() {
    let (sender, port) = port();
    let mut links = Vec::new();
    let server = script(move |input, context| match input {
        Input::Begin => {
            let options = options(Transport::Tcp);
            context.output(Output::Listen { link: CONTROL, port: 0, options });
        }
        Input::Opened { opened, .. } => sender.send(opened.local.port()).unwrap(),
        Input::Accepted { link, .. } => {
            links.push(link);
            if links.len() == 1 {
                context.output(Output::Discard { link });
            }
        }
        Input::Bytes { link, .. } | Input::Closed { link, .. } => {
            assert_eq!(Some(&link), links.get(1));
            context.output(Output::Exit(3));
        }
        _ => {}
    });
    let serving = thread::spawn(move || run(None, server));
    let address = loopback(port.recv().unwrap()).unwrap();
    let mut first = TcpStream::connect(address).unwrap();
    let mut second = TcpStream::connect(address).unwrap();
    // More than the socket buffers hold, so it must have been read.
    first.write_all(&vec![0; 12 << 20]).unwrap();
    drop(first);
    second.write_all(b"!").unwrap();
    assert_eq!(serving.join().unwrap().0, 3);
}

#[test]
fn a_datagram_socket_of_its_own_is_had_on_the_listeners_port() {
    let (sender, port) = port();
    let mut adopted = None;
    let server = script(move |input, context| match input {
        Input::Begin => {
            let options = options(Transport::Udp);
            context.output(Output::Listen { link: CONTROL, port: 0, options });
        }
        Input::Opened { opened, .. } => sender.send(opened.local.port()).unwrap(),
        Input::Datagram { link: CONTROL, from, bytes } => {
            assert_eq!(bytes, b"hello");
            context.output(Output::SendTo { link: CONTROL, to: from, bytes: b"from the listener".to_vec() });
            let options = options(Transport::Udp);
            context.output(Output::Adopt { listener: CONTROL, peer: from, options });
        }
        Input::Accepted { listener: CONTROL, link, .. } => {
            adopted = Some(link);
            context.output(Output::Send { link, bytes: b"from its own".to_vec() });
        }
        Input::Datagram { link, bytes, .. } => {
            assert_eq!((Some(link), bytes), (adopted, &b"again"[..]));
            context.output(Output::Exit(0));
        }
        _ => {}
    });
    let serving = thread::spawn(move || run(None, server));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(loopback(port.recv().unwrap()).unwrap()).unwrap();
    client.send(b"hello").unwrap();
    let mut answer = [0; 64];
    for expected in ["from the listener", "from its own"] {
        let count = client.recv(&mut answer).unwrap();
        assert_eq!(&answer[..count], expected.as_bytes());
    }
    client.send(b"again").unwrap();
    assert_eq!(serving.join().unwrap().0, 0);
}

#[test]
fn a_signal_wakes_a_stand_in_that_waits_for_nothing() {
    let waiting = script(|input, context| {
        if let Input::Signal(number) = input {
            context.output(Output::Exit(128 + number));
        }
    });
    let interrupts = Interrupts::new().unwrap();
    thread::scope(|scope| {
        let ending = scope.spawn(|| run_with(None, waiting, &interrupts, None));
        interrupts.raise(15);
        assert_eq!(ending.join().unwrap().0, 143);
    });
}

#[test]
fn what_is_typed_is_read_block_by_block_to_its_end() {
    let reader = script(|input, context| match input {
        Input::Begin => context.output(Output::Read),
        Input::Text(Some(text)) => {
            context.output(Output::Write(text.to_vec()));
            context.output(Output::Read);
        }
        Input::Text(None) => context.output(Output::Exit(0)),
        _ => {}
    });
    assert_eq!(run(None, reader), (0, "what was typed".to_owned()));
}

#[test]
fn looking_is_answered_before_anything_else() {
    let mut seen = Vec::new();
    let client = script(move |input, context| match input {
        Input::Begin => {
            // The error is known first but delivered second.
            connect(context, 0, None);
            context.output(Output::Look);
        }
        Input::Counts { flows, cpu } => {
            assert!(flows.is_empty() && cpu.elapsed > Span::ZERO);
            seen.push("counts");
        }
        Input::NotOpened { .. } => {
            assert_eq!(seen, ["counts"]);
            context.output(Output::Exit(0));
        }
        _ => {}
    });
    assert_eq!(run(Some("256.0.0.1 is no address"), client).0, 0);
}

#[test]
fn urgent_data_is_sent_in_its_place_and_is_no_part_of_the_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = script(move |input, context| match input {
        Input::Begin => connect(context, port, None),
        Input::Opened { link, .. } => {
            context.output(Output::Send { link, bytes: vec![1; 12 << 20] });
            context.output(Output::Urgent { link, byte: b'A' });
            context.output(Output::Send { link, bytes: vec![2; 10] });
            context.output(Output::Close { link });
        }
        Input::Sent { .. } => context.output(Output::Exit(0)),
        _ => {}
    });
    let ending = thread::spawn(move || run(Some("127.0.0.1"), client));
    let (peer, _) = listener.accept().unwrap();
    linerate_sock::sockopt::set_inline_urgent(&peer, true).unwrap();
    let mut all = Vec::new();
    (&peer).read_to_end(&mut all).unwrap();
    assert_eq!(
        (all.len(), &all[12 << 20..]),
        ((12 << 20) + 11, &b"A\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02"[..])
    );
    assert_eq!(ending.join().unwrap().0, 0);
}

#[test]
fn a_file_of_the_user_is_written_and_errors_are_reported() {
    let name = std::env::temp_dir().join(format!("linerate-stand-in-{}", std::process::id()));
    let path = name.to_str().unwrap().to_owned();
    let program = script(move |input, context| match input {
        Input::Begin => {
            let mut write = |name: &str, text: &str, append| {
                context.output(Output::WriteFile { name: name.to_owned(), text: text.to_owned(), append });
            };
            write(&path, "forgotten", false);
            write(&path, "first ", false);
            write(&path, "second", true);
            write("/no/such/folder/file", "", false);
            context.output(Output::LookHost { interrupts: None, interface: Some("lo".to_owned()) });
        }
        Input::Host(counts) => assert!(counts.packets.is_some()),
        Input::NotWritten { reason, .. } => exit_as(context, Some(reason)),
        _ => {}
    });
    assert_eq!(run(None, program).0, 2);
    assert_eq!(std::fs::read_to_string(&name).unwrap(), "first second");
    std::fs::remove_file(name).unwrap();
}

struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_of_the_output_that_has_gone_ends_nothing() {
    let printer = script(|input, context| {
        if matches!(input, Input::Begin) {
            context.output(Output::Print("first".to_owned()));
            context.output(Output::Print("second".to_owned()));
            context.output(Output::Exit(9));
        }
    });
    let interrupts = Interrupts::new().unwrap();
    let invocation = crate::stand_in::Invocation {
        host: None,
        world: linerate_model::World::Hosts,
        observer: None,
        log_store: None,
        interrupts: &interrupts,
        output: &mut Gone,
        complaints: &mut Gone,
        input: None,
    };
    assert_eq!(crate::stand_in::drive(printer, invocation).unwrap(), 9);
}

#[test]
fn that_a_client_has_left_is_known_before_a_later_one_is_accepted() {
    let connect = |port: u16| TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut port, mut clients, mut accepted, mut has_left) = (0, Vec::new(), Vec::new(), false);
    let server = script(move |input, context| match input {
        Input::Begin => {
            context.output(Output::Listen { link: CONTROL, port: 0, options: options(Transport::Tcp) });
        }
        Input::Opened { opened, .. } => {
            port = opened.local.port();
            clients.extend([connect(port), connect(port), connect(port)]);
            clients[1].write_all(b"1").unwrap();
        }
        Input::Accepted { link, .. } => {
            accepted.push(link);
            if accepted.len() == 5 {
                context.output(Output::Exit(i32::from(!has_left)));
            }
        }
        // Then the third client and the listener are ready in the same turn.
        Input::Bytes { bytes: b"1", .. } => {
            clients.push(connect(port));
            clients[2].write_all(b"2").unwrap();
        }
        // Before the listener's turn the first client leaves, and another one comes.
        Input::Bytes { .. } => {
            drop(clients.remove(0));
            clients.push(connect(port));
        }
        Input::Closed { link, .. } => has_left |= link == accepted[0],
        _ => {}
    });
    assert_eq!(run(None, server).0, 0);
}
