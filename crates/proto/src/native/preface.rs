//! The first 32 bytes of every TCP connection, in both directions on the control connection.

use super::{MAGIC, VERSION};
use crate::PeerError;
use linerate_model::flow::FlowId;

/// Size of a preface.
pub const PREFACE_BYTES: usize = 32;

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPurpose {
    /// Control messages.
    Control,
    /// Payload of one stream.
    Data,
    /// Latency probes, if UDP does not get through.
    Probe,
    /// One request and its response.
    Transaction,
}

/// The first bytes of a peer.
///
/// # Shape
/// magic 8, version 1, connection 1, flow 2, stream 4, cookie 16; big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preface {
    /// Purpose of the connection.
    pub connection: ConnectionPurpose,
    /// Number of the flow, on data connections.
    pub flow: FlowId,
    /// Number of the stream in its flow, on data connections.
    pub stream: u32,
    /// Cookie of the run; zero on control connections.
    pub cookie: [u8; 16],
}

impl Preface {
    /// The preface of a control connection.
    pub const CONTROL: Self =
        Self { connection: ConnectionPurpose::Control, flow: FlowId(0), stream: 0, cookie: [0; 16] };

    /// Encodes the preface.
    #[must_use]
    pub fn encode(&self) -> [u8; PREFACE_BYTES] {
        let mut bytes = [0; PREFACE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = VERSION;
        bytes[9] = match self.connection {
            ConnectionPurpose::Control => 1,
            ConnectionPurpose::Data => 2,
            ConnectionPurpose::Probe => 3,
            ConnectionPurpose::Transaction => 4,
        };
        bytes[10..12].copy_from_slice(&self.flow.0.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.stream.to_be_bytes());
        bytes[16..].copy_from_slice(&self.cookie);
        bytes
    }

    /// Decodes a preface; absent until all 32 bytes have arrived.
    ///
    /// # Errors
    /// The bytes are not from linerate, from another version, or of an unknown kind.
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
            1 => ConnectionPurpose::Control,
            2 => ConnectionPurpose::Data,
            3 => ConnectionPurpose::Probe,
            4 => ConnectionPurpose::Transaction,
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
            flow: FlowId(u16::from_be_bytes([bytes[10], bytes[11]])),
            stream: u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            cookie,
        }))
    }
}

/// Guesses the service from its first bytes, to help a user who gave the wrong port.
#[must_use]
pub fn looks_like(start: &[u8]) -> String {
    let known: [(&[u8], &str); 10] = [
        (b"SSH-", "an SSH server"),
        (b"HTTP/", "an HTTP server"),
        // The answer of an HTTP server to a line without a version: only the page, as in HTTP/0.9.
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
        // iperf3 answers a cookie with one state byte: 9 requests the parameters, -1 means busy.
        Some(9 | 255) if start.len() == 1 => "an iperf3 server".to_owned(),
        _ => "an unknown service".to_owned(),
    }
}
