//! Real datagrams to groups over loopback.
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use linerate_sock::multicast::MulticastPath;
use linerate_sock::open::{bind_udp, connect_udp};
use linerate_sock::{SocketOptions, iface, stream};

fn path(group: &str, source: &str) -> MulticastPath {
    let source: IpAddr = source.parse().unwrap();
    let interface = iface::of_local_address(source).unwrap().index;
    MulticastPath { group: group.parse().unwrap(), source, interface }
}

fn received(socket: &UdpSocket) -> Vec<u8> {
    stream::set_recv_timeout(socket, Some(Duration::from_secs(10))).unwrap();
    let mut bytes = [0; 100];
    let count = socket.recv(&mut bytes).unwrap();
    bytes[..count].to_vec()
}

#[test]
fn every_receiver_of_a_group_gets_what_was_sent_once() {
    for group in ["239.7.7.7", "232.7.7.7"] {
        let path = path(group, "127.0.0.1");
        let sender = path.sender(None, Some(3), &SocketOptions::default()).unwrap();
        assert_eq!(sender.socket.multicast_ttl_v4().unwrap(), 3);
        let port = sender.local.port();
        let receivers = [0, 1].map(|_| path.receiver(port, &SocketOptions::default()).unwrap().socket);
        for datagram in [b"one", b"two"] {
            sender.socket.send(datagram).unwrap();
            for receiver in &receivers {
                assert_eq!(received(receiver), datagram, "{group}");
            }
        }
    }
}

#[test]
fn a_receiver_gets_neither_what_others_send_nor_what_others_have_joined() {
    let (path, options) = (path("239.7.7.8", "127.0.0.1"), SocketOptions::default());
    let sender = path.sender(None, None, &options).unwrap();
    let port = sender.local.port();
    let receiver = path.receiver(port, &options).unwrap().socket;
    // The same port, another address; and the same source to another group, which this host has joined too.
    let stranger = bind_udp("127.0.0.2:0".parse().unwrap(), &options).unwrap().socket;
    stranger.send_to(b"stranger", ("239.7.7.8", port)).unwrap();
    let other = MulticastPath { group: "239.7.7.9".parse().unwrap(), ..path };
    let from_there = SocketOptions {
        local: Some(path.source),
        local_port: Some(port),
        reuse_port: true,
        ..options.clone()
    };
    let other_sender = connect_udp((other.group, port).into(), &from_there).unwrap();
    let other_receiver = other.receiver(port, &options).unwrap().socket;
    other_sender.socket.send(b"other").unwrap();
    assert_eq!(received(&other_receiver), b"other");
    sender.socket.send(b"ours").unwrap();
    assert_eq!(received(&receiver), b"ours");
}

#[test]
fn two_senders_never_share_a_port() {
    let (path, options) = (path("239.7.7.7", "127.0.0.1"), SocketOptions::default());
    let sender = path.sender(None, None, &options).unwrap();
    let port = sender.local.port();
    let error = path.sender(Some(port), None, &options).unwrap_err();
    assert_eq!(error.source.kind(), std::io::ErrorKind::AddrInUse, "{error}");
    let others: Vec<_> = (0..500).map(|_| path.sender(None, None, &options).unwrap()).collect();
    let ports: std::collections::BTreeSet<u16> = others.iter().map(|other| other.local.port()).collect();
    assert_eq!(ports.len(), others.len());
    assert!(!ports.contains(&port));
}

#[test]
fn the_port_of_a_sender_can_be_used_towards_single_hosts_too() {
    let path = path("239.7.7.7", "127.0.0.1");
    let sender = path.sender(None, None, &SocketOptions::default()).unwrap();
    let server = bind_udp("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
    let options = SocketOptions {
        local: Some(path.source),
        local_port: Some(sender.local.port()),
        reuse_port: true,
        ..SocketOptions::default()
    };
    let direct = connect_udp(server.local, &options).unwrap();
    direct.socket.send(b"direct").unwrap();
    assert_eq!(received(&server.socket), b"direct");
    server.socket.send_to(b"answer", sender.local).unwrap();
    assert_eq!(received(&direct.socket), b"answer", "not the sender's socket");
}
