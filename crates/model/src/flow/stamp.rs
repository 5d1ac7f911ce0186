//! Where a datagram carries its sequence number and time. The layout is data, so one engine serves every
//! protocol.

/// Positions of the fields in a datagram's payload.
///
/// # Units
/// byte offsets from the start of the payload
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampLayout {
    /// 8 bytes that distinguish this test's datagrams from stray ones; absent if the protocol has no such
    /// field.
    pub tag_at: Option<usize>,
    /// Sequence number.
    pub seq: SeqField,
    /// Send time; absent if the protocol has none, in which case there is no jitter.
    pub time: Option<TimeField>,
    /// Stream number, 4 bytes, big-endian; absent if the protocol has none.
    pub stream_at: Option<usize>,
    /// Size of the stamp, and so the smallest possible datagram.
    pub length: usize,
}

impl StampLayout {
    /// Nothing is written into blocks or datagrams, and they are not numbered.
    pub const NONE: Self =
        Self { tag_at: None, seq: SeqField::Absent, time: None, stream_at: None, length: 0 };
}

/// How the datagrams of a stream are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeqField {
    /// 8 bytes, big-endian.
    Wide {
        /// Its offset.
        at: usize,
        /// Number of the first datagram.
        first: u64,
    },
    /// 4 bytes, big-endian; it wraps.
    Narrow {
        /// Its offset.
        at: usize,
        /// Number of the first datagram.
        first: u64,
    },
    /// A signed number of 8 bytes in two halves, each big-endian; a negative one ends the stream (iperf 2.0.10
    /// and later).
    Halves {
        /// Offset of the low half.
        low_at: usize,
        /// Offset of the high half.
        high_at: usize,
        /// Number of the first datagram.
        first: u64,
    },
    /// A signed number of 4 bytes, big-endian; a negative one ends the stream (iperf 2.0.9 and earlier).
    Signed {
        /// Its offset.
        at: usize,
        /// Number of the first datagram.
        first: u64,
    },
    /// Bytes sent so far on all streams, this datagram included, 8 bytes in the sender's byte order: written
    /// little-endian, read in either order (nuttcp). The streams take turns, so the number of the datagram within
    /// its stream follows from it.
    Bytes {
        /// Its offset.
        at: usize,
        /// Number of streams.
        streams: u32,
    },
    /// Not numbered: losses cannot be detected.
    Absent,
}

/// The send time in a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeField {
    /// Its offset.
    pub at: usize,
    /// Its format.
    pub form: TimeForm,
}

/// A time format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeForm {
    /// Nanoseconds of the monotonic clock, 8 bytes, big-endian.
    Nanoseconds,
    /// Seconds and microseconds of the monotonic clock, 4 bytes each, big-endian.
    Monotonic,
    /// Seconds and microseconds of the wall clock, 4 bytes each, big-endian.
    Wall,
}
