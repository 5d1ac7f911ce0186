//! Real datagrams over loopback.
use std::net::UdpSocket;
use std::time::Duration;

use linerate_sock::batch::{RecvBatch, send_segments};
use linerate_sock::errqueue::{self, Notice, TimestampPoint};
use linerate_sock::open::{bind_udp, connect_udp, source_towards, udp_connected_on_same_port};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::sockopt::{self, Timestamping};
use linerate_sock::{Mono, Moved, SocketOptions, clock, stream};

/// A connected sender, and its receiver.
fn pair() -> (UdpSocket, UdpSocket) {
    let server = bind_udp("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
    let client = connect_udp(server.local, &SocketOptions::default()).unwrap();
    stream::set_recv_timeout(&server.socket, Some(Duration::from_secs(10))).unwrap();
    (client.socket, server.socket)
}

/// Repeats only after 251 bytes, so that a shifted or swapped segment is detected.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

fn soon() -> Mono {
    clock::now() + Duration::from_secs(10)
}

#[test]
fn segments_that_the_kernel_cut_arrive_joined_with_their_size() {
    let (client, server) = pair();
    sockopt::set_udp_gro(&server, true).unwrap();
    let sent = pattern(10 * 1000 + 300);
    assert_eq!(send_segments(&client, &sent, 1000).unwrap(), Moved::Bytes(sent.len()));
    let mut batch = RecvBatch::new(2, 65_536);
    let (mut received, mut datagrams) = (Vec::new(), 0);
    while received.len() < sent.len() {
        assert!(batch.recv(&server).unwrap() > 0);
        for datagram in batch.iter() {
            assert_eq!(datagram.source, client.local_addr().ok());
            datagrams += datagram.segments();
            datagram.split().for_each(|segment| received.extend_from_slice(segment));
        }
    }
    assert_eq!(received, sent);
    assert_eq!(datagrams, 11);
}

#[test]
fn without_joining_each_segment_is_a_datagram_of_its_own() {
    let (client, server) = pair();
    let sent = pattern(2500);
    send_segments(&client, &sent, 1000).unwrap();
    let mut received = RecvBatch::new(1, 2048);
    let mut lengths = Vec::new();
    for start in [0, 1000, 2000] {
        received.recv(&server).unwrap();
        let datagram = received.get(0).unwrap();
        assert_eq!(datagram.bytes, &sent[start..start + datagram.length]);
        assert_eq!(datagram.ancillary.segment_size, None);
        lengths.push(datagram.length);
    }
    assert_eq!(lengths, [1000, 1000, 500]);
}

#[test]
fn a_batch_keeps_order_contents_and_lengths() {
    let (client, server) = pair();
    for index in 2..8 {
        stream::send(&client, &vec![index as u8; 10 + index]).unwrap();
    }
    let mut received = RecvBatch::new(8, 12);
    let mut seen = Vec::new();
    while seen.len() < 6 {
        received.recv(&server).unwrap();
        seen.extend(received.iter().map(|datagram| (datagram.length, datagram.bytes.to_vec())));
    }
    let expected: Vec<(usize, Vec<u8>)> =
        (2..8).map(|index| (10 + index, vec![index as u8; (10 + index).min(12)])).collect();
    assert_eq!(seen, expected, "the true length is reported although only 12 bytes fit");
}

#[test]
fn an_empty_socket_is_no_message_and_no_error() {
    let (_client, server) = pair();
    stream::set_nonblocking(&server, true).unwrap();
    let mut batch = RecvBatch::new(4, 100);
    assert_eq!(batch.recv(&server).unwrap(), 0);
    assert!(batch.get(0).is_none());
}

#[test]
fn packets_are_stamped_between_sending_and_receiving() {
    let (client, server) = pair();
    sockopt::set_timestamping(&server, Timestamping { receive: true, ..Timestamping::default() }).unwrap();
    let mut batch = RecvBatch::new(1, 100);
    // The kernel enables receive timestamps asynchronously; packets before that have none.
    let (mut stamped, deadline) = (false, soon());
    while !stamped {
        assert!(!deadline.has_passed(), "no packet was ever stamped");
        stream::send(&client, b"stamped yet?").unwrap();
        assert_eq!(batch.recv(&server).unwrap(), 1);
        stamped = batch.get(0).unwrap().ancillary.arrived_at_ns.is_some();
    }
    sockopt::set_timestamping(&client, Timestamping { send: true, ..Timestamping::default() }).unwrap();
    for number in 0..3 {
        stream::send(&client, b"stamp me").unwrap();
        assert_eq!(batch.recv(&server).unwrap(), 1);
        let arrived = batch.get(0).unwrap().ancillary.arrived_at_ns.unwrap();
        assert!(wait_for(&client, Interest::ERROR, soon()).unwrap());
        let Some(Notice::Timestamp { id, at_ns, stage }) = errqueue::take(&client).unwrap() else {
            panic!("no stamp of datagram {number}");
        };
        assert_eq!((id, stage), (number, TimestampPoint::Sent));
        assert!(at_ns <= arrived, "sent {at_ns}, arrived {arrived}");
        assert!(arrived.abs_diff(clock::wall_ns()) < 3_600_000_000_000, "realtime, not monotonic");
    }
    assert_eq!(errqueue::take(&client).unwrap(), None);
}

#[test]
fn dropped_datagrams_are_counted() {
    let (client, server) = pair();
    sockopt::set_drop_counter(&server, true).unwrap();
    sockopt::set_rcv_buf(&server, 4096).unwrap();
    for _ in 0..100 {
        stream::send(&client, &[0; 1000]).unwrap();
    }
    stream::set_nonblocking(&server, true).unwrap();
    let mut batch = RecvBatch::new(100, 1000);
    let queued = batch.recv(&server).unwrap();
    assert!(queued < 100);
    // A datagram carries the counter's value at the time it was queued, so the next one reports the drops
    // before it.
    stream::send(&client, &[0; 1000]).unwrap();
    assert_eq!(batch.recv(&server).unwrap(), 1);
    let dropped = (100 - queued) as u32;
    assert_eq!(batch.get(0).unwrap().ancillary.dropped, Some(dropped));
}

#[test]
fn the_traffic_class_arrives_with_the_datagram() {
    let server = bind_udp("[::1]:0".parse().unwrap(), &SocketOptions::default()).unwrap();
    let options = SocketOptions { tos: Some(0xb9), ..SocketOptions::default() };
    let client = connect_udp(server.local, &options).unwrap();
    assert_eq!(client.granted.tos, Some(0xb9));
    sockopt::set_receive_tclass(&server.socket, true).unwrap();
    stream::send(&client.socket, b"x").unwrap();
    let mut batch = RecvBatch::new(1, 10);
    batch.recv(&server.socket).unwrap();
    assert_eq!(batch.get(0).unwrap().ancillary.tos, Some(0xb9));
    assert_eq!(batch.get(0).unwrap().source, Some(client.local));
}

#[test]
fn a_connected_socket_on_the_same_port_takes_its_peer_and_leaves_the_others() {
    let options = SocketOptions { reuse_port: true, ..SocketOptions::default() };
    let server = bind_udp("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let mine = connect_udp(server.local, &SocketOptions::default()).unwrap();
    let other = connect_udp(server.local, &SocketOptions::default()).unwrap();
    let taken = udp_connected_on_same_port(server.local, mine.local, &SocketOptions::default()).unwrap();
    assert_eq!(taken.local, server.local);
    for (sender, receiver, text) in [(&mine, &taken, b"mine "), (&other, &server, b"other")] {
        stream::send(&sender.socket, text).unwrap();
        let mut buffer = [0; 16];
        stream::set_recv_timeout(&receiver.socket, Some(Duration::from_secs(10))).unwrap();
        assert_eq!(stream::recv(&receiver.socket, &mut buffer).unwrap(), Moved::Bytes(5));
        assert_eq!(&buffer[..5], text);
    }
}

#[test]
fn a_port_that_is_not_shared_is_refused_with_the_remedy() {
    let server = bind_udp("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
    let peer = "127.0.0.1:9".parse().unwrap();
    let error = udp_connected_on_same_port(server.local, peer, &SocketOptions::default()).unwrap_err();
    assert_eq!(error.addr, Some(server.local));
    assert!(error.remedy().unwrap().contains("holds this port"));
}

#[test]
fn the_source_address_of_a_route_is_known_without_sending() {
    assert_eq!(
        source_towards("127.0.0.1:9".parse().unwrap()).unwrap(),
        "127.0.0.1".parse::<std::net::IpAddr>().unwrap()
    );
}
