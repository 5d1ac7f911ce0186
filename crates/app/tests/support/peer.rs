//! A client of the native protocol that sends whatever a test needs, over real sockets.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use linerate_model::flow::FlowId;
use linerate_proto::native::{ConnectionPurpose, PREFACE_BYTES, Preface};
use linerate_sock::clock;
use serde_json::{Value, json};

/// Timeout for an answer.
const ANSWER: Duration = Duration::from_secs(20);

/// A control connection.
pub(crate) struct Peer {
    stream: TcpStream,
    port: u16,
    held: Vec<u8>,
    /// Assigned by its server.
    pub(crate) cookie: [u8; 16],
}

/// Encodes a message.
pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body].concat()
}

/// A hello with this specification.
pub(crate) fn hello(spec: &Value) -> Value {
    let can = ["tcp", "udp", "mptcp", "probe_udp", "probe_tcp", "sweep"];
    json!({"type": "hello", "versions": [2, 2], "capabilities": can, "host": {"name": "peer"}, "spec": spec})
}

/// A message that requests one flow.
pub(crate) fn prepare(flow: FlowId, direction: &str, length_bytes: u64) -> Value {
    json!({"type": "prepare", "flows": [{"flow": flow, "direction": direction, "length_bytes": length_bytes}]})
}

impl Peer {
    /// Connects and sends the preface.
    pub(crate) fn connect(port: u16) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        stream.set_write_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(&Preface::CONTROL.encode())?;
        Ok(Self { stream, port, held: Vec::new(), cookie: [0; 16] })
    }

    /// Sends a hello with this specification; absent if the server does not welcome it.
    pub(crate) fn welcomed(port: u16, spec: &Value) -> Option<Self> {
        let mut peer = Self::connect(port).ok()?;
        peer.send(&hello(spec)).ok()?;
        let welcome = peer.receive("welcome")?;
        let cookie = u128::from_str_radix(welcome["cookie"].as_str()?, 16).ok()?;
        peer.cookie = cookie.to_be_bytes();
        Some(peer)
    }

    /// Sends these bytes again and again, each time from where it was interrupted, until there is such an error. Panics if
    /// there is none for a long time.
    pub(crate) fn write_until(&mut self, bytes: &[u8], is_end: impl Fn(&std::io::Error) -> bool) {
        let (mut sent, until) = (0, clock::now() + super::TIMEOUT);
        loop {
            assert!(!until.has_passed(), "the other end takes everything");
            match self.stream.write(&bytes[sent..]) {
                Ok(count) => sent = (sent + count) % bytes.len(),
                Err(error) if is_end(&error) => return,
                Err(_) => {}
            }
        }
    }

    pub(crate) fn send(&mut self, message: &Value) -> std::io::Result<()> {
        self.stream.write_all(&framed(message.to_string().as_bytes()))
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next message of this type, skipping others; absent if the connection ends first.
    pub(crate) fn receive(&mut self, kind: &str) -> Option<Value> {
        let deadline = clock::now() + ANSWER;
        while !deadline.has_passed() {
            match self.next() {
                Some(message) if message["type"] == kind => return Some(message),
                Some(_) => {}
                None if !self.fill() => return None,
                None => {}
            }
        }
        None
    }

    /// The next complete message that has arrived.
    fn next(&mut self) -> Option<Value> {
        if self.held.starts_with(b"LINERATE") && self.held.len() >= PREFACE_BYTES {
            self.held.drain(..PREFACE_BYTES);
        }
        let length = u32::from_be_bytes(*self.held.first_chunk::<4>()?) as usize;
        let body = self.held.get(4..4 + length)?;
        let message = serde_json::from_slice(body).unwrap_or_default();
        self.held.drain(..4 + length);
        Some(message)
    }

    /// Reads once; false at the end of the connection.
    fn fill(&mut self) -> bool {
        let mut bytes = [0; 16 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                self.held.extend_from_slice(&bytes[..count]);
                true
            }
            Err(error) => matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock
                    | std::io::ErrorKind::TimedOut
                    | std::io::ErrorKind::Interrupted
            ),
        }
    }

    /// A connection for data or probes of the run.
    pub(crate) fn side(
        &self,
        connection: ConnectionPurpose,
        flow: FlowId,
        stream: u32,
    ) -> std::io::Result<TcpStream> {
        let mut side = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        side.set_write_timeout(Some(Duration::from_secs(2)))?;
        side.write_all(&Preface { connection, flow, stream, cookie: self.cookie }.encode())?;
        Ok(side)
    }
}
