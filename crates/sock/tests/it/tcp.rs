//! Real TCP connections over loopback.
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_sock::open::{
    AllowedIpVersion, ConnectOptions, Connected, Listening, begin_connect, connect_tcp, listen_tcp, resolve,
};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::{
    KeepAlive, Mono, Moved, SockError, SocketOptions, clock, proc, queues, sockopt, stream, tcp_info,
};

fn listen(options: &SocketOptions) -> Listening {
    listen_tcp("127.0.0.1:0".parse().unwrap(), 16, options).unwrap()
}

fn dial(addresses: Vec<SocketAddr>, socket: SocketOptions) -> Result<Connected, SockError> {
    let deadline = clock::now() + Duration::from_secs(10);
    connect_tcp(&ConnectOptions { addresses, socket, deadline })
}

fn pair(options: &SocketOptions) -> (Connected, TcpStream) {
    let listening = listen(options);
    let client = dial(vec![listening.local], options.clone()).unwrap();
    let (server, _) = listening.listener.accept().unwrap();
    (client, server)
}

/// A port without a listener that no other test can get while the socket exists.
fn held_port() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&"127.0.0.2:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, addr)
}

fn read_all(server: &TcpStream, wanted: usize) -> Vec<u8> {
    let mut bytes = vec![0; wanted];
    let mut filled = 0;
    while filled < wanted {
        match stream::recv(server, &mut bytes[filled..]).unwrap() {
            Moved::Bytes(more) => filled += more,
            other => panic!("{other:?} after {filled} bytes"),
        }
    }
    bytes
}

#[test]
fn the_same_bytes_leave_several_times_in_one_call_and_no_more_than_there_are_parts() {
    let (client, server) = pair(&SocketOptions::default());
    assert_eq!(stream::send_repeated(&client.stream, b"abc", 3).unwrap(), Moved::Bytes(9));
    assert_eq!(read_all(&server, 9), b"abcabcabc");
    let most = stream::MAX_PARTS;
    assert_eq!(stream::send_repeated(&client.stream, b"xy", most + 5).unwrap(), Moved::Bytes(2 * most));
    assert_eq!(read_all(&server, 2 * most), b"xy".repeat(most));
}

#[test]
fn tcp_info_counts_the_bytes_of_a_live_connection() {
    let (client, server) = pair(&SocketOptions::default());
    let sent = vec![7; 100_000];
    let mut offset = 0;
    while offset < sent.len() {
        offset += stream::send(&client.stream, &sent[offset..]).unwrap().bytes();
    }
    assert_eq!(read_all(&server, sent.len()), sent);
    let received = tcp_info(&server).unwrap();
    assert_eq!(received.bytes_received, Some(100_000));
    let info = tcp_info(&client.stream).unwrap();
    assert_eq!(info.bytes_sent.map(|sent| sent - info.bytes_retrans.unwrap()), Some(100_000));
    assert_eq!(info.snd_mss, sockopt::snd_mss(&client.stream).ok());
    assert!(info.rtt.unwrap() > 0 && info.snd_cwnd.unwrap() > 0);
    assert!(info.snd_wnd.unwrap() > 0);
    assert!(info.options().unwrap().sack);
    assert_eq!(info.rcv_wscale(), tcp_info(&server).unwrap().snd_wscale());
    assert!(client.handshake > Duration::ZERO);
}

#[test]
fn queues_hold_what_the_peer_has_not_read() {
    let (client, server) = pair(&SocketOptions::default());
    assert_eq!(stream::send(&client.stream, b"twelve bytes").unwrap(), Moved::Bytes(12));
    assert!(wait_for(&server, Interest::READ, clock::now() + Duration::from_secs(10)).unwrap());
    assert_eq!(queues::readable(&server).unwrap(), 12);
    assert!(queues::unacknowledged(&client.stream).unwrap() <= 12);
    assert_eq!(stream::discard(&server, 100).unwrap(), Moved::Bytes(12));
    assert_eq!(queues::readable(&server).unwrap(), 0);
}

#[test]
fn finishing_ends_the_stream_and_aborting_resets_it() {
    let (client, server) = pair(&SocketOptions::default());
    queues::finish_writing(&client.stream).unwrap();
    assert_eq!(stream::recv(&server, &mut [0; 8]).unwrap(), Moved::Closed);
    assert_eq!(stream::discard(&server, 8).unwrap(), Moved::Closed);

    let (client, server) = pair(&SocketOptions::default());
    queues::abort(client.stream).unwrap();
    let error = stream::recv(&server, &mut [0; 8]).unwrap_err();
    assert!(error.remedy().unwrap().contains("peer closed"), "{error:?}");
}

#[test]
fn a_full_pipe_and_an_expired_timeout_are_pending_and_no_error() {
    let (client, server) = pair(&SocketOptions::default());
    stream::set_recv_timeout(&server, Some(Duration::from_millis(1))).unwrap();
    assert_eq!(stream::recv(&server, &mut [0; 8]).unwrap(), Moved::Pending);
    stream::set_send_timeout(&client.stream, Some(Duration::from_millis(1))).unwrap();
    let block = vec![0; 1 << 20];
    while stream::send(&client.stream, &block).unwrap() != Moved::Pending {}
    stream::set_nonblocking(&client.stream, true).unwrap();
    assert_eq!(stream::send(&client.stream, &block).unwrap(), Moved::Pending);
}

#[test]
fn options_are_read_back_as_granted() {
    let options = SocketOptions {
        snd_buf: Some(100_000),
        rcv_buf: Some(200_000),
        mss: Some(1000),
        congestion: Some("reno".into()),
        tos: Some(0x88),
        no_delay: true,
        max_pacing_rate: Some(10_000_000_000),
        ..SocketOptions::default()
    };
    let (client, server) = pair(&options);
    let granted = &client.granted;
    assert_eq!((granted.snd_buf.asked, granted.snd_buf.granted), (Some(100_000), 200_000));
    assert_eq!((granted.rcv_buf.granted, granted.rcv_buf.clamped), (400_000, false));
    assert_eq!(granted.congestion.as_deref(), Some("reno"));
    assert_eq!(granted.tos, Some(0x88));
    assert_eq!(granted.max_pacing_rate, Some(10_000_000_000), "above 32 bits of bytes per second");
    assert!(!granted.mptcp);
    let mss = granted.mss.unwrap();
    assert!((988..=1000).contains(&mss), "timestamps take 12 bytes at most: {mss}");
    let inherited = options.granted(&server).unwrap();
    assert_eq!((inherited.rcv_buf.granted, inherited.congestion.as_deref()), (400_000, Some("reno")));
}

#[test]
fn a_window_above_the_kernels_limit_is_reported_as_clamped() {
    let limit: u64 = proc::sysctl("net.core.wmem_max").unwrap().parse().unwrap();
    let options = SocketOptions { snd_buf: Some(limit + 1_000_000), ..SocketOptions::default() };
    let granted = listen(&options).granted;
    assert!(granted.snd_buf.clamped);
    assert_eq!(granted.snd_buf.granted, 2 * limit);
    assert_eq!(granted.rcv_buf.asked, None);
    assert!(!granted.rcv_buf.clamped);
}

#[test]
fn an_unknown_congestion_control_is_refused_with_those_there_are() {
    let options = SocketOptions { congestion: Some("nosuch".into()), ..SocketOptions::default() };
    let error = dial(vec!["127.0.0.1:9".parse().unwrap()], options).unwrap_err();
    let available = proc::sysctl("net.ipv4.tcp_available_congestion_control").unwrap();
    assert!(error.source.to_string().contains(&available), "{}", error.source);
}

#[test]
fn a_refused_address_is_named_and_the_next_one_is_tried() {
    let listening = listen(&SocketOptions::default());
    let (_held, free) = held_port();
    let error = dial(vec![free], SocketOptions::default()).unwrap_err();
    assert_eq!(error.addr, Some(free));
    assert!(error.remedy().unwrap().contains("nothing listens"));
    let connected = dial(vec![free, listening.local], SocketOptions::default()).unwrap();
    assert_eq!(connected.peer, listening.local);
}

/// A listener whose backlog is full, so that it completes no further handshake, and the connections that fill
/// it.
fn silent() -> (Listening, Vec<TcpStream>) {
    let listening = listen_tcp("127.0.0.1:0".parse().unwrap(), 0, &SocketOptions::default()).unwrap();
    let mut held = Vec::new();
    while let Ok(connected) = dial_until(vec![listening.local], clock::now() + Duration::from_millis(200)) {
        held.push(connected.stream);
        assert!(held.len() <= 4, "a backlog of 0 holds one or two");
    }
    (listening, held)
}

fn dial_until(addresses: Vec<SocketAddr>, deadline: Mono) -> Result<Connected, SockError> {
    connect_tcp(&ConnectOptions { addresses, socket: SocketOptions::default(), deadline })
}

#[test]
fn connecting_to_nobody_ends_at_the_deadline() {
    let (listening, _held) = silent();
    let deadline = clock::now() + Duration::from_millis(50);
    let error = dial_until(vec![listening.local], deadline).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
    assert!(deadline.has_passed());
}

#[test]
fn an_address_that_swallows_packets_leaves_time_for_the_next() {
    let (swallowing, _held) = silent();
    let listening = listen(&SocketOptions::default());
    let deadline = clock::now() + Duration::from_secs(8);
    let connected = dial_until(vec![swallowing.local, listening.local], deadline).unwrap();
    assert_eq!(connected.peer, listening.local);
    assert!(!deadline.has_passed());
}

#[test]
fn the_source_address_and_port_are_obeyed() {
    let listening = listen(&SocketOptions::default());
    let (_held, local) = held_port();
    let options =
        SocketOptions { local: Some(local.ip()), local_port: Some(local.port()), ..SocketOptions::default() };
    let _client = dial(vec![listening.local], options).unwrap();
    assert_eq!(listening.listener.accept().unwrap().1, local);
}

#[test]
fn a_listener_on_any_v6_address_takes_ipv4_too() {
    let listening = listen_tcp("[::]:0".parse().unwrap(), 4, &SocketOptions::default()).unwrap();
    let addr = SocketAddr::new("127.0.0.1".parse().unwrap(), listening.local.port());
    dial(vec![addr], SocketOptions::default()).unwrap();
    let (_, peer) = listening.listener.accept().unwrap();
    assert!(peer.is_ipv6(), "mapped: {peer}");
}

#[test]
fn multipath_is_used_where_both_ends_want_it_and_tcp_info_still_answers() {
    let mptcp = SocketOptions { mptcp: true, ..SocketOptions::default() };
    let enabled = proc::sysctl("net.mptcp.enabled").as_deref() == Some("1");
    let (client, _server) = pair(&mptcp);
    assert_eq!(client.granted.mptcp, enabled);
    assert!(tcp_info(&client.stream).unwrap().snd_mss.unwrap() > 0);

    let plain = listen(&SocketOptions::default());
    let client = dial(vec![plain.local], mptcp).unwrap();
    assert!(!client.granted.mptcp, "the peer did not agree, so it fell back");
}

#[test]
fn names_resolve_in_the_version_asked_for() {
    let all = resolve("localhost", 80, AllowedIpVersion::Any).unwrap();
    assert!(!all.is_empty());
    assert_eq!(resolve("[::1]", 5201, AllowedIpVersion::Any).unwrap(), ["[::1]:5201".parse().unwrap()]);
    let error = resolve("127.0.0.1", 80, AllowedIpVersion::V6).unwrap_err();
    assert_eq!(error.source.to_string(), "\"127.0.0.1\" has no IPv6 address");
}

#[test]
fn the_remaining_options_are_accepted() {
    let (client, _server) = pair(&SocketOptions::default());
    let fd = &client.stream;
    sockopt::set_user_timeout(fd, Duration::from_secs(5)).unwrap();
    let (idle, interval) = (Some(Duration::from_secs(10)), Some(Duration::from_secs(2)));
    sockopt::set_keep_alive(fd, KeepAlive { idle, interval, probes: Some(3) }).unwrap();
    sockopt::set_dont_fragment(fd, true).unwrap();
    sockopt::set_max_pacing_rate(fd, u64::MAX).unwrap();
    assert_eq!(sockopt::max_pacing_rate(fd).unwrap(), u64::MAX);
    assert_eq!(sockopt::path_mtu(fd).unwrap(), tcp_info(fd).unwrap().pmtu.unwrap());
    assert!(sockopt::set_device(fd, "nosuchdevice0").unwrap_err().remedy().unwrap().contains("ip link"));
}

#[test]
fn a_flow_label_is_leased_and_carried_to_the_peer() {
    let listening = listen_tcp("[::1]:0".parse().unwrap(), 1, &SocketOptions::default()).unwrap();
    let options = SocketOptions { flow_label: Some(0xabcde), ..SocketOptions::default() };
    let connecting = begin_connect(listening.local, &options).unwrap();
    assert!(wait_for(&connecting, Interest::WRITE, Mono::FAR).unwrap());
    let connected = connecting.finish().unwrap();
    assert_eq!(connected.peer, listening.local);
    // The kernel refuses a label that has not been leased, so a connection proves the lease.
    let SocketAddr::V6(peer) = connected.stream.peer_addr().unwrap() else { panic!("IPv6") };
    assert_eq!(u32::from_be(peer.flowinfo()), 0xabcde);
    // IPv4 has no flow label, and the option has no effect.
    let listening = listen_tcp("127.0.0.1:0".parse().unwrap(), 1, &SocketOptions::default()).unwrap();
    assert!(begin_connect(listening.local, &options).is_ok());
}

#[test]
fn a_listener_for_version_6_alone_is_not_there_for_version_4() {
    let options = SocketOptions { only_v6: true, ..SocketOptions::default() };
    let listening = listen_tcp("[::]:0".parse().unwrap(), 1, &options).unwrap();
    let port = listening.local.port();
    assert!(TcpStream::connect(("::1", port)).is_ok());
    let refused = TcpStream::connect(("127.0.0.9", port)).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_connection_that_is_refused_says_so_when_it_is_finished() {
    let (_held, addr) = held_port();
    let connecting = begin_connect(addr, &SocketOptions::default()).unwrap();
    assert!(wait_for(&connecting, Interest::WRITE, Mono::FAR).unwrap());
    assert_eq!(connecting.finish().unwrap_err().raw_os_error(), Some(111));
}

#[test]
fn the_memory_of_a_receiver_has_what_nobody_has_read_and_the_buffer_that_the_socket_reads_back() {
    let options = SocketOptions { rcv_buf: Some(100_000), ..SocketOptions::default() };
    let (mut client, server) = pair(&options);
    let memory = || sockopt::receive_memory(&server).unwrap();
    assert_eq!((memory().taken, u64::from(memory().buffer)), (0, sockopt::rcv_buf(&server).unwrap()));
    client.stream.write_all(&[0; 5000]).unwrap();
    assert!(wait_for(&server, Interest::READ, clock::now() + Duration::from_secs(10)).unwrap());
    assert!(memory().taken > 5000, "{:?}", memory());
}
