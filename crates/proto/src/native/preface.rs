//! The first 32 bytes of every TCP connection, in both directions on the control connection.

use super::{MAGIC, VERSION};
use crate::PeerError;

/// Size of a preface.
pub const PREFACE_BYTES: usize = 32;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// Control messages.
    Control,
    /// Payload of one stream.
    Data,
    /// Latency probes, where UDP does not come through.
    Probe,
}

/// What the peer says before anything else.
///
/// # Shape
/// magic 8, version 1, connection 1, flow 2, stream 4, cookie 16; big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preface {
    /// What the connection is for.
    pub connection: Connection,
    /// The flow, on data connections.
    pub flow: u16,
    /// Number of the stream in its flow, on data connections.
    pub stream: u32,
    /// The run; zero on control connections.
    pub cookie: [u8; 16],
}

impl Preface {
    /// The preface of a control connection.
    pub const CONTROL: Self = Self { connection: Connection::Control, flow: 0, stream: 0, cookie: [0; 16] };

    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; PREFACE_BYTES] {
        let mut bytes = [0; PREFACE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = VERSION;
        bytes[9] = match self.connection {
            Connection::Control => 1,
            Connection::Data => 2,
            Connection::Probe => 3,
        };
        bytes[10..12].copy_from_slice(&self.flow.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.stream.to_be_bytes());
        bytes[16..].copy_from_slice(&self.cookie);
        bytes
    }

    /// From bytes; absent until all 32 are there.
    ///
    /// # Errors
    /// The bytes are not ours, of another version, or of an unknown kind.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, PeerError> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(PeerError::NotOurs { what: looks_like(bytes).into() });
        }
        let Some(bytes) = bytes.first_chunk::<PREFACE_BYTES>() else { return Ok(None) };
        if bytes[8] != VERSION {
            return Err(PeerError::Version {
                theirs: bytes[8].to_string().into(),
                ours: VERSION.to_string(),
            });
        }
        let connection = match bytes[9] {
            1 => Connection::Control,
            2 => Connection::Data,
            3 => Connection::Probe,
            other => {
                return Err(PeerError::Misbehaved {
                    what: format!("unknown kind of connection {other}").into(),
                });
            }
        };
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&bytes[16..]);
        Ok(Some(Self {
            connection,
            flow: u16::from_be_bytes([bytes[10], bytes[11]]),
            stream: u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            cookie,
        }))
    }
}

/// Names the service whose first bytes these are, for the person who gave the wrong port.
#[must_use]
pub fn looks_like(start: &[u8]) -> String {
    let known: [(&[u8], &str); 10] = [
        (b"SSH-", "an SSH server"),
        (b"HTTP/", "an HTTP server"),
        // What they answer to a line without a version: the page alone, as HTTP/0.9 did.
        (b"<!DOCTYPE", "an HTTP server"),
        (b"<html", "an HTTP server"),
        (b"220", "a mail or FTP server"),
        (b"* OK", "an IMAP server"),
        (b"+OK", "a POP3 server"),
        (b"\x15\x03", "a TLS server"),
        (b"\x16\x03", "a TLS server"),
        (b"RFB ", "a VNC server"),
    ];
    if let Some((_, name)) = known.iter().find(|(mark, _)| start.starts_with(mark)) {
        return (*name).to_owned();
    }
    match start.first() {
        // iperf3 answers a cookie with one state byte: 9 asks for parameters, -1 says busy.
        Some(9 | 255) if start.len() == 1 => "an iperf3 server".to_owned(),
        _ => "an unknown service".to_owned(),
    }
}
