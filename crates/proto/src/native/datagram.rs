//! Datagrams other than data: they open UDP flows and carry latency probes.

use super::{MAGIC, VERSION};
use linerate_model::flow::FlowId;

/// Size of every such datagram in both directions, so that an answer is never larger than its request.
pub const DATAGRAM_BYTES: usize = 64;

/// What a datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramKind {
    /// Client: requests a stream for this source address.
    Open,
    /// Server: requires proof that the client receives at this address.
    Challenge,
    /// Client: returns the number of the challenge.
    Echo,
    /// Server: the stream is open.
    Ready,
    /// A latency probe.
    Probe,
    /// A reflected probe.
    Reply,
}

/// One such datagram.
///
/// # Shape
/// magic 8, version 1, kind 1, flow 2, stream 4, cookie 16, number 8, three times of 8; big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeDatagram {
    /// Kind of the datagram.
    pub kind: DatagramKind,
    /// Number of the flow; 0 for probes.
    pub flow: FlowId,
    /// Number of the stream in its flow.
    pub stream: u32,
    /// Cookie of the run.
    pub cookie: [u8; 16],
    /// The challenge, or the number of the probe.
    pub number: u64,
    /// T1, T2, T3 of RFC 5357: sent by the prober, received and sent by the reflector; nanoseconds on each
    /// one's own clock.
    pub times: [u64; 3],
}

impl ProbeDatagram {
    /// Encodes the datagram.
    #[must_use]
    pub fn encode(&self) -> [u8; DATAGRAM_BYTES] {
        let mut bytes = [0; DATAGRAM_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = VERSION;
        bytes[9] = match self.kind {
            DatagramKind::Open => 1,
            DatagramKind::Challenge => 2,
            DatagramKind::Echo => 3,
            DatagramKind::Ready => 4,
            DatagramKind::Probe => 5,
            DatagramKind::Reply => 6,
        };
        bytes[10..12].copy_from_slice(&self.flow.0.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.stream.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.cookie);
        bytes[32..40].copy_from_slice(&self.number.to_be_bytes());
        for (at, time) in self.times.iter().enumerate() {
            bytes[40 + 8 * at..48 + 8 * at].copy_from_slice(&time.to_be_bytes());
        }
        bytes
    }

    /// Decodes a datagram; absent for any other bytes. Stray datagrams are ignored without an error.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; DATAGRAM_BYTES] = bytes.try_into().ok()?;
        if bytes[..8] != MAGIC || bytes[8] != VERSION {
            return None;
        }
        let kind = match bytes[9] {
            1 => DatagramKind::Open,
            2 => DatagramKind::Challenge,
            3 => DatagramKind::Echo,
            4 => DatagramKind::Ready,
            5 => DatagramKind::Probe,
            6 => DatagramKind::Reply,
            _ => return None,
        };
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_be_bytes).ok();
        Some(Self {
            kind,
            flow: FlowId(u16::from_be_bytes([bytes[10], bytes[11]])),
            stream: u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            cookie: bytes[16..32].try_into().ok()?,
            number: number(32)?,
            times: [number(40)?, number(48)?, number(56)?],
        })
    }
}
