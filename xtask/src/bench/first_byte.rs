//! The time from the start of the program to the first byte of data, as a relay between client and server sees it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_sock::{Mono, clock, thread};

use super::BenchContext;
use super::alone::loopback;
use super::figure::FigureReadings;
use super::tools::{BenchTool, wall_seconds};

/// Every connection begins with a preface (reference/native-protocol.md, section 2).
const PREFACE_BYTES: u64 = 32;
/// Where it says what the connection is for, and what it says of data.
const PURPOSE_AT: usize = 9;
const DATA: u8 = 2;

/// How often the relay checks whether it should end.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Starts of `linerate test --upload --no-latency`, each until the first byte of data leaves.
pub(super) fn start_to_data(bed: &BenchContext) -> Result<FigureReadings, String> {
    let place = loopback()?;
    let server = BenchTool::Linerate.serve(bed, &place)?;
    let times = if bed.pairs > 1 { 20 } else { 5 };
    let mut all = Vec::new();
    for _ in 0..times {
        let relay = DataRelay::open(server.port).map_err(|e| format!("cannot open a relay: {e}"))?;
        let archive = bed.folder.join("archive.sqlite").display().to_string();
        let port = relay.port.to_string();
        let words = ["test", "127.0.0.1", "-p", &port, "--upload", "--no-latency", "-n", "1M", "--json"];
        let mut command = vec![bed.linerate.display().to_string()];
        command.extend(words.into_iter().chain(["--archive", &archive]).map(str::to_owned));
        let start = clock::now();
        wall_seconds(bed, &command)?;
        let first = relay.close().ok_or("no data passed the relay")?;
        all.push(first.since(start).as_secs_f64() * 1e3);
    }
    let note = format!("{times} starts of test --upload --no-latency, through a relay on loopback");
    Ok(FigureReadings { all, note: Some(note) })
}

/// Passes connections on to a server.
struct DataRelay {
    port: u16,
    /// When the first data passed, on the monotonic clock; 0 before.
    first: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl DataRelay {
    fn open(server: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let (first, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (noted, stopped) = (Arc::clone(&first), Arc::clone(&stop));
        let accepting = thread::spawn("accept", move || {
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    // A connection that fails is missed by the client, which says so.
                    Ok((client, _)) => {
                        drop(join(client, SocketAddr::from((Ipv4Addr::LOCALHOST, server)), &noted))
                    }
                    Err(_) => clock::sleep_until(clock::now() + POLL_INTERVAL),
                }
            }
        });
        let accepting = accepting.map_err(|error| error.source)?;
        Ok(Self { port, first, stop, accepting: Some(accepting) })
    }

    /// When the first data passed; absent if none did.
    fn close(mut self) -> Option<Mono> {
        self.end();
        Some(self.first.load(Ordering::Relaxed)).filter(|at| *at > 0).map(Mono)
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

impl Drop for DataRelay {
    fn drop(&mut self) {
        self.end();
    }
}

fn join(client: TcpStream, server: SocketAddr, first: &Arc<AtomicU64>) -> std::io::Result<()> {
    client.set_nonblocking(false)?;
    let server = TcpStream::connect(server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (from_client, to_client) = (client.try_clone()?, client);
    let (from_server, to_server) = (server.try_clone()?, server);
    let first = Arc::clone(first);
    let there =
        thread::spawn("there", move || carry(from_client, to_server, &|data| note_data(data, &first)));
    let back = thread::spawn("back", move || carry(from_server, to_client, &|_| ()));
    there.and(back).map(drop).map_err(|error| error.source)
}

/// What a direction of a connection has carried so far.
#[derive(Debug, Default)]
struct Carried {
    preface: Vec<u8>,
    bytes: u64,
}

impl Carried {
    fn is_data(&self) -> bool {
        self.preface.get(PURPOSE_AT) == Some(&DATA) && self.bytes > PREFACE_BYTES
    }
}

fn note_data(carried: &Carried, first: &AtomicU64) {
    if carried.is_data() {
        let _ = first.compare_exchange(0, clock::now().as_ns(), Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, look: &dyn Fn(&Carried)) {
    let (mut bytes, mut carried) = (vec![0; 64 << 10], Carried::default());
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let missing = (PREFACE_BYTES as usize).saturating_sub(carried.preface.len()).min(count);
        carried.preface.extend_from_slice(&bytes[..missing]);
        carried.bytes += count as u64;
        look(&carried);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_what_follows_the_preface_of_a_data_connection() {
        let carried = |purpose: u8, bytes: u64| {
            let mut preface = vec![0; 32];
            preface[PURPOSE_AT] = purpose;
            Carried { preface, bytes }.is_data()
        };
        assert!(carried(DATA, 33));
        assert!(!carried(DATA, 32), "the preface alone");
        assert!(!carried(1, 500), "a control connection");
        assert!(!Carried { preface: vec![0; 5], bytes: 5 }.is_data());
    }

    #[test]
    fn a_relay_passes_both_directions_and_notes_the_first_data() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = DataRelay::open(listener.local_addr().unwrap().port()).unwrap();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut preface = [0; 32];
        preface[PURPOSE_AT] = DATA;
        client.write_all(&preface).unwrap();
        server.read_exact(&mut [0; 32]).unwrap();
        assert_eq!(relay.first.load(Ordering::Relaxed), 0);
        let before = clock::now();
        client.write_all(b"data").unwrap();
        server.read_exact(&mut [0; 4]).unwrap();
        server.write_all(b"back").unwrap();
        let mut back = [0; 4];
        client.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"back");
        assert!(relay.close().unwrap() >= before);
    }
}
