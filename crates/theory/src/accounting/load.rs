//! Traffic that explains the bytes in one direction of an interface.

use linerate_model::SocketCounts;
use linerate_units::Bytes;

use super::{CountRange, Heading};

/// Largest size of additional options in acknowledgements: three SACK blocks and padding (RFC 2018).
const SACK_BYTES: u64 = 28;
/// Frames of connection set-up and shutdown: ARP, neighbour discovery, handshakes of probes.
const EDGE_FRAMES: u64 = 16;
/// Frames at the end of each stream that may be outside the measured time.
const STREAM_FRAMES: u64 = 4;
/// Largest size of such a frame, bytes.
const EDGE_FRAME_BYTES: u64 = 100;

/// How a count includes headers.
#[derive(Debug, Clone, Copy)]
pub(super) enum HeaderCounting {
    /// Headers of the counted packets; a network card may count an FCS with each.
    Counted { packets: u64, check: u64 },
    /// Headers of every segment, with an FCS, in a frame of at least `least` bytes.
    Each { check: u64, least: u64 },
}

/// One flow, or the control connection, in one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoadPart {
    pub(super) payload: CountRange,
    /// Smallest and largest number of segments with payload.
    pub(super) segments: CountRange,
    /// Number of segments without payload.
    pub(super) bare: u64,
    /// Bytes before the payload, including the Ethernet header.
    pub(super) header: u64,
    /// Payload of a full segment.
    pub(super) segment: u64,
}

impl LoadPart {
    /// A connection whose segments are never merged.
    pub(super) fn bare(counts: &SocketCounts, heading: Heading, header: u64) -> Self {
        let (bytes, bare) = match heading {
            Heading::Out => (counts.sent_bytes, counts.segments_out),
            Heading::In => (counts.received_bytes, counts.segments_in),
        };
        Self {
            payload: CountRange { least: bytes.get(), most: bytes.get() },
            bare,
            header,
            ..Self::default()
        }
    }
}

/// Latency probes during the flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probes {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) frame: u64,
}

/// Other traffic, as measured before the load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Others {
    pub(super) bytes: u64,
}

/// Counts come from another host and may be absurd.
fn total<const N: usize>(counts: [u64; N]) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// Bytes of a flow's headers, if its share of all packets is that of its segments.
fn share(header: u64, packets: u64, own: u64, all: u64) -> u64 {
    let share = u128::from(packets) * u128::from(own) / u128::from(all.max(1));
    header.saturating_mul(u64::try_from(share).unwrap_or(u64::MAX))
}

/// Traffic in one direction.
#[derive(Debug, Clone)]
pub(super) struct DirectionLoad {
    pub(super) parts: Vec<LoadPart>,
    pub(super) probes: Option<Probes>,
    pub(super) others: Option<Others>,
    pub(super) streams: u64,
}

impl DirectionLoad {
    /// Adds the traffic of `other`.
    pub(super) fn with(mut self, mut other: Self) -> Self {
        self.parts.append(&mut other.parts);
        self.probes = match (self.probes, other.probes) {
            (Some(a), Some(b)) => Some(Probes {
                sent: a.sent.saturating_add(b.sent),
                lost: a.lost.saturating_add(b.lost),
                frame: a.frame,
            }),
            (a, b) => a.or(b),
        };
        // Both were read from the same interface.
        self.others = self.others.or(other.others);
        self
    }

    fn sum(&self, of: impl Fn(&LoadPart) -> u64) -> u64 {
        self.parts.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The longest frame of its flows, bytes.
    pub(super) fn full_frame(&self) -> u64 {
        self.parts.iter().map(|part| part.segment.saturating_add(part.header + 4)).max().unwrap_or_default()
    }

    /// The smallest and largest number of bytes explained, and a description.
    pub(super) fn explained(&self, frames: HeaderCounting) -> (CountRange, String) {
        let (segments, bare) = (self.sum(|part| part.segments.most), self.sum(|part| part.bare));
        let probes = self.probes.map_or(0, |probes| probes.sent);
        let headers = match frames {
            HeaderCounting::Counted { packets, .. } => {
                packets.saturating_sub(bare.saturating_add(probes)).min(segments)
            }
            HeaderCounting::Each { .. } => segments,
        };
        let (check, least_frame) = match frames {
            HeaderCounting::Counted { check, .. } => (check, 0),
            HeaderCounting::Each { check, least } => (check, least),
        };
        // If the FCS is certain, every frame has one. A network card may or may not count it.
        let with_check = if least_frame > 0 { check } else { 0 };
        let bytes_of_headers = self.sum(|part| share(part.header, headers, part.segments.most, segments));
        let bare_bytes =
            self.sum(|part| part.bare.saturating_mul((part.header + with_check).max(least_frame)));
        let checks = with_check.saturating_mul(headers.saturating_add(probes));
        let maybe = (check - with_check).saturating_mul(total([headers, probes, bare]));
        let edge = self.streams.saturating_mul(STREAM_FRAMES * EDGE_FRAME_BYTES);
        let (answered, probed) = self.probes.map_or((0, 0), |probes| {
            let of = |count: u64| count.saturating_mul(probes.frame);
            (of(probes.sent.saturating_sub(probes.lost)), of(probes.sent))
        });
        let fixed = total([bytes_of_headers, bare_bytes, checks]);
        // For a port only the smallest and largest number of segments is known.
        let fewer = match frames {
            HeaderCounting::Counted { .. } => 0,
            HeaderCounting::Each { .. } => self.sum(|part| {
                let missing = part.segments.most.saturating_sub(part.segments.least);
                missing.saturating_mul(part.header + with_check)
            }),
        };
        let least = total([self.sum(|part| part.payload.least), fixed, answered])
            .saturating_sub(fewer)
            .saturating_sub(edge);
        let most = total([
            self.sum(|part| part.payload.most),
            fixed,
            maybe,
            probed,
            bare.saturating_mul(SACK_BYTES),
            self.others.map_or(0, |others| others.bytes),
            edge.saturating_mul(2),
            EDGE_FRAMES * EDGE_FRAME_BYTES,
        ]);
        (CountRange { least, most }, self.words(headers, bytes_of_headers, bare))
    }

    fn words(&self, headers: u64, bytes_of_headers: u64, bare: u64) -> String {
        let payload = Bytes::new(self.sum(|part| part.payload.most));
        let mut words = vec![format!("{payload} of payload")];
        words.push(format!("{} of headers in {headers} packets", Bytes::new(bytes_of_headers)));
        words.push(format!("{bare} segments without payload or of the control connection"));
        words.extend(self.probes.map(|probes| format!("{} probes", probes.sent)));
        words.push(match self.others {
            Some(others) => {
                format!("up to {} of other traffic, as before the load", Bytes::new(others.bytes))
            }
            None => "no count of other traffic before the load".to_owned(),
        });
        words.join(", ")
    }
}
