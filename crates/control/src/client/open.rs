//! Opens the data sockets of a phase: TCP connections with their preface, or UDP flows with challenge and echo.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use linerate_engine::Sockets;
use linerate_model::flow::FlowId;
use linerate_proto::native::{ConnectionPurpose, DATAGRAM_BYTES, DatagramKind, Preface, ProbeDatagram};
use linerate_sock::open::{ConnectOptions, connect_tcp, connect_udp};
use linerate_sock::{Mono, SocketOptions, clock, limits, thread};

use crate::error::ControlError;

/// Timeout for all data connections of a phase, and its increment per connection.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
const OPEN_TIMEOUT_EACH: Duration = Duration::from_millis(1);

/// Most concurrent connects: enough for long paths, and few enough for any backlog.
const MAX_CONCURRENT_CONNECTS: usize = 128;

/// Open files that a phase needs in addition to its streams.
const EXTRA_FILES: u64 = 16;

/// Interval between retransmissions of an opening datagram.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// What to open.
pub(super) struct OpenTask {
    pub(super) server: SocketAddr,
    pub(super) options: SocketOptions,
    pub(super) cookie: [u8; 16],
    pub(super) streams: u32,
    /// Open files that the phase needs later.
    pub(super) files: u64,
    pub(super) udp: bool,
    pub(super) flows: Vec<FlowId>,
    /// The local port of each stream, if the sender to a multicast group has them already.
    pub(super) shared_ports: Vec<u16>,
    /// Set when the sockets are no longer needed.
    pub(super) give_up: AtomicBool,
}

/// Opens all streams of all flows, in the order of `task.flows`.
pub(super) fn open(task: &OpenTask) -> Result<Vec<Sockets>, ControlError> {
    let in_use = limits::files_in_use().unwrap_or(EXTRA_FILES);
    let files = u64::from(task.streams) * task.flows.len() as u64 + task.files + in_use + EXTRA_FILES;
    limits::raise_open_files(files)?;
    let deadline = clock::now() + OPEN_TIMEOUT + OPEN_TIMEOUT_EACH * task.streams;
    task.flows
        .iter()
        .enumerate()
        .map(|(at, flow)| {
            // Both flows of a phase use the same server port, so their local ports must differ.
            let first_port =
                task.options.local_port.map(|port| port.saturating_add((at as u32 * task.streams) as u16));
            if task.udp {
                open_each(task, |stream| udp(task, *flow, stream, first_port, deadline)).map(Sockets::Udp)
            } else {
                open_each(task, |stream| tcp(task, *flow, stream, first_port, deadline)).map(Sockets::Tcp)
            }
        })
        .collect()
}

/// Opens the streams of one flow, several at a time, and returns them in the order of their numbers.
fn open_each<T: Send>(
    task: &OpenTask,
    open_one: impl Fn(u32) -> Result<T, ControlError> + Sync,
) -> Result<Vec<T>, ControlError> {
    let numbers: Vec<u32> = (0..task.streams).collect();
    let each = numbers.len().div_ceil(MAX_CONCURRENT_CONNECTS).max(1);
    let open_some = &|some: &[u32]| {
        let mut opened = Vec::with_capacity(some.len());
        for stream in some {
            if task.give_up.load(Ordering::Relaxed) {
                return Err(ControlError::Stopped);
            }
            opened.push(open_one(*stream)?);
        }
        Ok(opened)
    };
    if numbers.len() == 1 {
        return open_some(&numbers);
    }
    std::thread::scope(|scope| {
        let parts = numbers.chunks(each).map(|some| {
            // If the host refuses threads, this thread opens the streams itself.
            match thread::spawn_scoped(scope, "open", move || open_some(some)) {
                Ok(thread) => OpeningPart::Thread(thread),
                Err(_) => OpeningPart::Opened(open_some(some)),
            }
        });
        let mut all = Vec::with_capacity(numbers.len());
        for part in parts.collect::<Vec<_>>() {
            all.extend(part.finish()?);
        }
        Ok(all)
    })
}

/// A part of the streams: opened by its own thread, or already opened by this one.
enum OpeningPart<'scope, T> {
    Thread(ScopedJoinHandle<'scope, Result<Vec<T>, ControlError>>),
    Opened(Result<Vec<T>, ControlError>),
}

impl<T> OpeningPart<'_, T> {
    fn finish(self) -> Result<Vec<T>, ControlError> {
        let lost = |_| Err(ControlError::Local("a connecting thread failed".to_owned()));
        match self {
            Self::Thread(thread) => thread.join().unwrap_or_else(lost),
            Self::Opened(opened) => opened,
        }
    }
}

fn port_of(first: Option<u16>, stream: u32) -> Option<u16> {
    first.map(|port| port.saturating_add(stream as u16))
}

fn tcp(
    task: &OpenTask,
    flow: FlowId,
    stream: u32,
    first_port: Option<u16>,
    deadline: Mono,
) -> Result<TcpStream, ControlError> {
    let socket = SocketOptions { local_port: port_of(first_port, stream), ..task.options.clone() };
    let mut connection =
        connect_tcp(&ConnectOptions { addresses: vec![task.server], socket, deadline })?.stream;
    let preface = Preface { connection: ConnectionPurpose::Data, flow, stream, cookie: task.cookie };
    connection
        .write_all(&preface.encode())
        .map_err(|error| ControlError::Local(format!("data connection {stream}: {error}")))?;
    Ok(connection)
}

fn udp(
    task: &OpenTask,
    flow: FlowId,
    stream: u32,
    first_port: Option<u16>,
    deadline: Mono,
) -> Result<UdpSocket, ControlError> {
    let shared_port = task.shared_ports.get(stream as usize).copied();
    let options = SocketOptions {
        local_port: shared_port.or(port_of(first_port, stream)),
        reuse_port: shared_port.is_some(),
        ..task.options.clone()
    };
    let socket = connect_udp(task.server, &options)?.socket;
    let local = |error: std::io::Error| ControlError::Local(format!("UDP flow {stream}: {error}"));
    socket.set_read_timeout(Some(RETRY_INTERVAL)).map_err(local)?;
    let mut request = ProbeDatagram {
        kind: DatagramKind::Open,
        flow,
        stream,
        cookie: task.cookie,
        number: 0,
        times: [0; 3],
    };
    // Half of the timeout: the caller needs the rest if a filter blocks UDP.
    let until = deadline.min(clock::now() + Duration::from_secs(5));
    while !until.has_passed() {
        match ask(&socket, &request) {
            Some(answer) if answer.kind == DatagramKind::Challenge => {
                request = ProbeDatagram { kind: DatagramKind::Echo, number: answer.number, ..request };
            }
            Some(answer) if answer.kind == DatagramKind::Ready => {
                socket.set_read_timeout(None).map_err(local)?;
                return Ok(socket);
            }
            _ => {}
        }
    }
    Err(ControlError::Local(format!(
        "the server's UDP port {} did not answer within 5 s; a firewall may block UDP, or test with TCP",
        task.server.port()
    )))
}

/// Sends one datagram and receives the first answer that matches it.
fn ask(socket: &UdpSocket, request: &ProbeDatagram) -> Option<ProbeDatagram> {
    // An ICMP error is reported by the next call; the next attempt decides.
    if socket.send(&request.encode()).is_err() {
        clock::sleep_until(clock::now() + RETRY_INTERVAL);
        return None;
    }
    let mut bytes = [0; 2 * DATAGRAM_BYTES];
    let count = socket.recv(&mut bytes).ok()?;
    ProbeDatagram::decode(&bytes[..count])
        .filter(|d| d.cookie == request.cookie && d.flow == request.flow && d.stream == request.stream)
}
