//! Where a datagram carries its sequence number and time: data, so that one pump serves every protocol.

/// Places of the fields in a datagram's payload.
///
/// # Units
/// byte offsets from the start of the payload
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampLayout {
    /// 8 bytes that tell this test's datagrams from strays; absent where the protocol has none.
    pub tag_at: Option<usize>,
    /// Sequence number.
    pub seq: SeqField,
    /// Send time; absent where the protocol has none, and then there is no jitter.
    pub time: Option<TimeField>,
    /// Stream number, 4 bytes, big-endian; absent where the protocol has none.
    pub stream_at: Option<usize>,
    /// Bytes that the stamp needs; a datagram may not be smaller.
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
        /// Where.
        at: usize,
        /// Number of the first datagram.
        first: u64,
    },
    /// 4 bytes, big-endian; it wraps.
    Narrow {
        /// Where.
        at: usize,
        /// Number of the first datagram.
        first: u64,
    },
    /// A signed number of 8 bytes in two halves, each big-endian; a negative one ends the stream (iperf 2.0.10 and later).
    Halves {
        /// Where the low half is.
        low_at: usize,
        /// Where the high half is.
        high_at: usize,
        /// Number of the first datagram.
        first: u64,
    },
    /// A signed number of 4 bytes, big-endian; a negative one ends the stream (iperf 2.0.9 and earlier).
    Signed {
        /// Where.
        at: usize,
        /// Number of the first datagram.
        first: u64,
    },
    /// Bytes sent so far, this datagram included, 8 bytes in the sender's own order: written little-endian, read in
    /// either order (nuttcp).
    Bytes {
        /// Where.
        at: usize,
    },
    /// Not numbered: losses cannot be seen.
    Absent,
}

/// How a datagram says when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeField {
    /// Where.
    pub at: usize,
    /// How.
    pub form: TimeForm,
}

/// A form of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeForm {
    /// Nanoseconds of the monotonic clock, 8 bytes, big-endian.
    Nanoseconds,
    /// Seconds and microseconds of the monotonic clock, 4 bytes each, big-endian.
    Monotonic,
    /// Seconds and microseconds of the wall clock, 4 bytes each, big-endian.
    Wall,
}
