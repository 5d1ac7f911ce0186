//! Clients of iperf 2.0.10 to 2.0.13 at the ports of older tools. No package has them any more, so their bytes are
//! sent here with sockets; the recorded ones are in `fixtures/transcripts/iperf2/headers.txt`.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

use crate::support::{Netns, ServeProcess, TIMEOUT, pause};

const PORT: u16 = 5001;
const LENGTH: usize = 1470;

/// Bytes from number and time to the last word of a report's transit times; a client reads nothing shorter.
const SHORTEST_REPORT: usize = 16 + 11 * 4 + 15 * 4;

fn classic_server(netns: &Netns) -> ServeProcess {
    let serve = ["serve", "-p", "0", "--classic", "--json"];
    ServeProcess::from(netns.exec(env!("CARGO_BIN_EXE_linerate"), &serve))
}

/// The pattern of every buffer.
fn pattern() -> Vec<u8> {
    (0..LENGTH).map(|at| b'0' + (at % 10) as u8).collect()
}

/// A datagram of a plain test: the low half of its number, the time, the high half only if it is `wide`, no flags.
fn datagram(number: u32, wide: bool, last: bool) -> Vec<u8> {
    let now = Duration::from_nanos(clock::wall_ns());
    let mut bytes = pattern();
    let sign = if last { 0x8000_0000 } else { 0 };
    let low = if wide { number } else { number | sign };
    bytes[..4].copy_from_slice(&low.to_be_bytes());
    bytes[4..8].copy_from_slice(&(now.as_secs() as u32).to_be_bytes());
    bytes[8..12].copy_from_slice(&now.subsec_micros().to_be_bytes());
    if wide {
        bytes[12..16].copy_from_slice(&sign.to_be_bytes());
    }
    bytes[16..20].fill(0);
    bytes
}

/// The words of a report after number and time: flags, bytes (high, low), seconds, microseconds, lost, out of
/// order, datagrams (low, high), jitter (seconds, microseconds).
fn report(client: &UdpSocket) -> Vec<u32> {
    let mut bytes = [0; 2000];
    let count = client.recv(&mut bytes).unwrap();
    assert!(count >= SHORTEST_REPORT, "{count} bytes");
    bytes[16..60].chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect()
}

fn client() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect((Ipv4Addr::LOCALHOST, PORT)).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

fn losses_and_order_are_counted(wide: bool) {
    let netns = Netns::new();
    let server = classic_server(&netns);
    let words = netns.inside(|| {
        let client = client();
        // 200 datagrams: two are lost, and two change places.
        let mut numbers: Vec<u32> = (0..200).filter(|number| ![100, 101].contains(number)).collect();
        numbers.swap(150, 151);
        for number in numbers {
            client.send(&datagram(number, wide, false)).unwrap();
            pause(Duration::from_millis(3));
        }
        client.send(&datagram(200, wide, true)).unwrap();
        report(&client)
    });
    assert_eq!((words[0], words[1], words[2]), (0x8000_0000, 0, 198 * LENGTH as u32), "{words:?}");
    assert_eq!((words[5], words[6]), (2, 1), "lost and out of order: {words:?}");
    assert_eq!((words[7], words[8]), (200, 0), "{words:?}");
    assert_eq!(words[9], 0, "the jitter is below a second: {words:?}");
    assert_eq!(server.await_events("ended", 1)["error"], Value::Null, "{}", server.stderr());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_client_of_2_0_13_has_its_losses_counted_and_not_3617292327946551295_of_them() {
    losses_and_order_are_counted(false);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_client_of_2_0_13_with_wide_counters_is_counted_alike() {
    losses_and_order_are_counted(true);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn two_streams_of_a_client_that_does_not_tell_their_number_are_one_test() {
    let netns = Netns::new();
    let server = classic_server(&netns);
    netns.inside(|| {
        let clients = [client(), client()];
        for number in 0..100 {
            for client in &clients {
                client.send(&datagram(number, false, false)).unwrap();
            }
            pause(Duration::from_millis(3));
        }
        for client in &clients {
            client.send(&datagram(100, false, true)).unwrap();
        }
        for client in &clients {
            let words = report(client);
            assert_eq!((words[5], words[7]), (0, 100), "{words:?}");
        }
    });
    server.await_events("ended", 1);
    assert_eq!(server.events("begun").len(), 1);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_tcp_test_of_2_0_13_is_served() {
    let netns = Netns::new();
    let server = classic_server(&netns);
    netns.inside(|| {
        let mut streams = [(); 2].map(|()| TcpStream::connect((Ipv4Addr::LOCALHOST, PORT)).unwrap());
        let mut block = pattern();
        block[..4].fill(0);
        for _ in 0..100 {
            for stream in &mut streams {
                stream.write_all(&block).unwrap();
            }
            pause(Duration::from_millis(1));
        }
        for stream in &streams {
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        }
        for stream in &mut streams {
            // The end, and nothing before it: these versions expect no answer.
            assert_eq!(stream.read(&mut [0; 100]).unwrap(), 0);
        }
    });
    assert_eq!(server.await_events("ended", 1)["error"], Value::Null, "{}", server.stderr());
    assert_eq!((server.events("begun").len(), server.events("foreign").len()), (1, 0));
}
