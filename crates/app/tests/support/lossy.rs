//! A path that drops and reorders datagrams, and reports exactly which.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::relay::{MessageTrigger, join};
use super::{Netns, pause};

/// How often a reader checks whether it should end.
const GLANCE: Duration = Duration::from_millis(20);
/// Datagrams with a number divisible by this are dropped, in each direction of each flow.
const DROPPED: u64 = 25;
/// Datagrams with a number divisible by this arrive after their successor.
const SWAPPED: u64 = 40;
/// Shorter datagrams are not payload but iperf3's greeting of a flow.
const PAYLOAD: usize = 16;

/// A path from 127.0.0.2 to the same port of 127.0.0.1. TCP passes unchanged.
pub(crate) struct Lossy {
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
    books: PacketLog,
}

type PacketLog = Arc<Mutex<BTreeMap<(SocketAddr, bool), ExpectedCounts>>>;

/// What the receiver of one flow must report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExpectedCounts {
    /// Datagrams that the sender sent.
    pub(crate) sent: u64,
    /// Datagrams that passed.
    pub(crate) arrived: u64,
    /// Datagrams that passed after one with a higher number.
    pub(crate) disordered: u64,
    /// Highest number that passed.
    pub(crate) highest: u64,
}

impl ExpectedCounts {
    /// Datagrams that a receiver must report as lost; losses after the last received one are invisible.
    pub(crate) fn lost(self) -> u64 {
        self.highest - self.arrived
    }
}

impl Lossy {
    /// Opens the path on a host, for one port of iperf3.
    pub(crate) fn open(netns: &Netns, port: u16) -> Self {
        Self::numbered(netns, port, 8)
    }

    /// The same for datagrams with their number at another offset, 4 bytes in network byte order. Negative
    /// numbers mark the end of a test; these datagrams pass unchanged.
    pub(crate) fn numbered(netns: &Netns, port: u16, number_at: usize) -> Self {
        netns.inside(|| {
            let near = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), port));
            let stop = Arc::new(AtomicBool::new(false));
            let books = PacketLog::default();
            let listener = TcpListener::bind(near).unwrap();
            listener.set_nonblocking(true).unwrap();
            let socket = UdpSocket::bind(near).unwrap();
            socket.set_read_timeout(Some(GLANCE)).unwrap();
            let stopped = Arc::clone(&stop);
            let streams = std::thread::spawn(move || {
                let watch = Arc::new(MessageTrigger::nothing());
                while !stopped.load(Ordering::Relaxed) {
                    match listener.accept() {
                        Ok((near, _)) => join(&near, port, &watch),
                        Err(_) => pause(Duration::from_millis(2)),
                    }
                }
            });
            let (stopped, noted) = (Arc::clone(&stop), Arc::clone(&books));
            let datagrams =
                std::thread::spawn(move || forward(&Arc::new(socket), (port, number_at), &stopped, &noted));
            Self { stop, workers: vec![streams, datagrams], books }
        })
    }

    /// Closes it; returns what passed, by flow in order of appearance: towards the server, or from it.
    pub(crate) fn close(mut self, to_server: bool) -> Vec<ExpectedCounts> {
        self.end();
        let books = self.books.lock().unwrap();
        books.iter().filter(|((_, forth), _)| *forth == to_server).map(|(_, passed)| *passed).collect()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers.drain(..) {
            worker.join().unwrap();
        }
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.end();
    }
}

/// Receives the datagrams of all clients, and opens the return path for each.
fn forward(
    near: &Arc<UdpSocket>,
    (port, number_at): (u16, usize),
    stop: &Arc<AtomicBool>,
    books: &PacketLog,
) {
    let mut clients: BTreeMap<SocketAddr, (Arc<UdpSocket>, Spoiler)> = BTreeMap::new();
    let mut back = Vec::new();
    let mut datagram = [0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, client)) = near.recv_from(&mut datagram) else { continue };
        let (far, spoiler) = clients.entry(client).or_insert_with(|| {
            let far = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
            far.connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            far.set_read_timeout(Some(GLANCE)).unwrap();
            let (near, from, stop, books) =
                (Arc::clone(near), Arc::clone(&far), Arc::clone(stop), Arc::clone(books));
            back.push(std::thread::spawn(move || {
                let mut spoiler = Spoiler::new(number_at);
                let mut datagram = [0; 1 << 16];
                while !stop.load(Ordering::Relaxed) {
                    let Ok(length) = from.recv(&mut datagram) else { continue };
                    spoiler.forward(&datagram[..length], |datagram| {
                        let _ = near.send_to(datagram, client);
                    });
                    books.lock().unwrap().insert((client, false), spoiler.passed);
                }
            }));
            (far, Spoiler::new(number_at))
        });
        spoiler.forward(&datagram[..length], |datagram| {
            let _ = far.send(datagram);
        });
        books.lock().unwrap().insert((client, true), spoiler.passed);
    }
    for worker in back {
        worker.join().unwrap();
    }
}

/// Drops and swaps datagrams, and counts them.
struct Spoiler {
    number_at: usize,
    passed: ExpectedCounts,
    held: Option<Vec<u8>>,
    arrived: BTreeSet<u64>,
}

impl Spoiler {
    fn new(number_at: usize) -> Self {
        Self { number_at, passed: ExpectedCounts::default(), held: None, arrived: BTreeSet::new() }
    }

    fn number(&self, datagram: &[u8]) -> u32 {
        u32::from_be_bytes(datagram[self.number_at..self.number_at + 4].try_into().unwrap())
    }

    fn forward(&mut self, datagram: &[u8], mut send: impl FnMut(&[u8])) {
        if datagram.len() < PAYLOAD || self.number(datagram).cast_signed() < 0 {
            return send(datagram);
        }
        self.passed.sent += 1;
        if self.passed.sent.is_multiple_of(DROPPED) {
            return;
        }
        if self.passed.sent.is_multiple_of(SWAPPED) {
            self.held = Some(datagram.to_vec());
            return;
        }
        let held = self.held.take();
        for datagram in [Some(datagram), held.as_deref()].into_iter().flatten() {
            self.note(datagram);
            send(datagram);
        }
    }

    fn note(&mut self, datagram: &[u8]) {
        let number = self.number(datagram).into();
        self.arrived.insert(number);
        self.passed.arrived = self.arrived.len() as u64;
        self.passed.disordered += u64::from(number < self.passed.highest);
        self.passed.highest = self.passed.highest.max(number);
    }
}
