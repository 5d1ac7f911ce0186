//! A path for nuttcp that drops selected datagrams and counts them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Netns, pause};

/// Address of the control connection for the client, and port on which the server must listen.
pub(crate) const NEAR: &str = "127.0.0.2";
pub(crate) const CONTROL_PORT: u16 = 5000;
pub(crate) const SERVER_PORT: u16 = 5050;
/// The data port that the client requests, and the one that the server receives.
const CLIENT_DATA: u16 = 5101;
const SERVER_DATA: u16 = 5201;
/// Datagrams up to this length open and end a test.
const MARK: usize = 4;
/// How often a reader checks whether it should end.
const GLANCE: Duration = Duration::from_millis(20);

/// Selects the datagrams that pass, by number from 1 and by whether they are data; data and marks are numbered
/// separately.
pub(crate) type Keeps = fn(u64, bool) -> bool;

/// The path, for one test. It changes the data port in requests to the server, so that both ends can be on one
/// host.
pub(crate) struct PacketFilter {
    stop: Arc<AtomicBool>,
    data: Arc<[AtomicU64; 2]>,
    workers: Vec<JoinHandle<()>>,
}

impl PacketFilter {
    /// Opens the path; `up` if the client transmits.
    pub(crate) fn open(netns: &Netns, up: bool, keeps: Keeps) -> Self {
        netns.inside(|| {
            let stop = Arc::new(AtomicBool::new(false));
            let data = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let near = Ipv4Addr::new(127, 0, 0, 2);
            let listener = TcpListener::bind((near, CONTROL_PORT)).unwrap();
            listener.set_nonblocking(true).unwrap();
            // The client receives from the address that the server sees, which is this host's.
            let (from, to) = if up {
                ((near, CLIENT_DATA), SERVER_DATA)
            } else {
                ((Ipv4Addr::LOCALHOST, SERVER_DATA), CLIENT_DATA)
            };
            let socket = UdpSocket::bind(from).unwrap();
            socket.set_read_timeout(Some(GLANCE)).unwrap();
            let stopped = Arc::clone(&stop);
            let control = std::thread::spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    match listener.accept() {
                        Ok((client, _)) => join(client),
                        Err(_) => pause(Duration::from_millis(2)),
                    }
                }
            });
            let (stopped, noted) = (Arc::clone(&stop), Arc::clone(&data));
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, to));
            let datagrams = std::thread::spawn(move || forward(&socket, to, keeps, &stopped, &noted));
            Self { stop, data, workers: vec![control, datagrams] }
        })
    }

    /// Closes the path; returns the number of data datagrams that arrived, and of those dropped.
    pub(crate) fn close(mut self) -> (u64, u64) {
        self.end();
        (self.data[0].load(Ordering::Relaxed), self.data[1].load(Ordering::Relaxed))
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers.drain(..) {
            worker.join().unwrap();
        }
    }
}

impl Drop for PacketFilter {
    fn drop(&mut self) {
        self.end();
    }
}

fn forward(socket: &UdpSocket, to: SocketAddr, keeps: Keeps, stop: &AtomicBool, data: &[AtomicU64; 2]) {
    let mut datagram = [0; 1 << 16];
    let mut numbers = [0; 2];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, _)) = socket.recv_from(&mut datagram) else { continue };
        let is_data = length > MARK;
        let number = &mut numbers[usize::from(is_data)];
        *number += 1;
        let kept = keeps(*number, is_data);
        if is_data {
            data[0].fetch_add(1, Ordering::Relaxed);
            data[1].fetch_add(u64::from(!kept), Ordering::Relaxed);
        }
        if kept {
            let _ = socket.send_to(&datagram[..length], to);
        }
    }
}

/// Connects a control connection to the server.
fn join(client: TcpStream) {
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, SERVER_PORT)) else { return };
    client.set_nonblocking(false).unwrap();
    let (client_side, server_side) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || carry(client_side, server_side, true));
    std::thread::spawn(move || carry(server, client, false));
}

/// A request arrives in one piece: it is a single line in a single write.
fn carry(mut from: TcpStream, mut to: TcpStream, to_server: bool) {
    let mut piece = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let received = &piece[..count];
        let forwarded = match std::str::from_utf8(received) {
            Ok(text) if to_server => {
                text.replace(&format!("port = {CLIENT_DATA}"), &format!("port = {SERVER_DATA}")).into_bytes()
            }
            _ => received.to_vec(),
        };
        if to.write_all(&forwarded).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
