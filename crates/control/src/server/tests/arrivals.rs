//! When the kernel notes the arrival of datagrams for a server.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_sock::batch::RecvBatch;
use linerate_sock::clock;

use super::{Server, ServerConfig, Serving, TIMEOUT};

/// Whether the kernel notes when datagrams arrive at a port, which the test and the server may read both.
fn arrivals_are_noted(port: &UdpSocket) -> bool {
    let mut batch = RecvBatch::new(1, 64);
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    loop {
        near.send_to(b"the server does not know this", port.local_addr().unwrap()).unwrap();
        // The server may be faster.
        if batch.recv(port).is_ok()
            && let Some(datagram) = batch.iter().next()
        {
            return datagram.ancillary.arrived_at_ns.is_some();
        }
    }
}

#[test]
fn the_kernel_reads_its_clock_for_a_server_only_while_there_are_probes() {
    let config = ServerConfig { addresses: vec!["127.0.0.1:0".parse().unwrap()], ..ServerConfig::default() };
    let server = Server::bind(config).unwrap();
    let port = server.ports.ports.first().unwrap().socket.try_clone().unwrap();
    let serving = Serving::serve(server, |_| ());
    let is_noted_during = |no_latency| {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let look = || {
                    // Most probes are left to the server.
                    clock::sleep_until(clock::now() + Duration::from_millis(1));
                    arrivals_are_noted(&port)
                };
                std::iter::from_fn(|| (!is_over.load(Ordering::Relaxed)).then(look)).any(|noted| noted)
            });
            let measured = serving.try_to_measure_with(|spec| spec.traffic.no_latency = no_latency);
            is_over.store(true, Ordering::Relaxed);
            measured.unwrap();
            looks.join().unwrap()
        })
    };
    assert!(!is_noted_during(true), "a test without probes");
    assert!(is_noted_during(false), "a test with probes");
    let deadline = clock::now() + TIMEOUT;
    while arrivals_are_noted(&port) {
        assert!(clock::now() < deadline, "the kernel still reads its clock");
    }
}
