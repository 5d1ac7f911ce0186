//! Where a datagram carries its sequence number and time: data, so that one pump serves every protocol.

/// Places of the fields in a datagram's payload; all big-endian.
///
/// # Units
/// byte offsets from the start of the payload
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampLayout {
    /// 8 bytes that tell this test's datagrams from strays.
    pub tag_at: usize,
    /// Sequence number, 8 bytes, from 0.
    pub seq_at: usize,
    /// Send time in nanoseconds of the sender's monotonic clock, 8 bytes.
    pub time_at: usize,
    /// Stream number, 4 bytes.
    pub stream_at: usize,
    /// Bytes that the stamp needs; a datagram may not be smaller.
    pub length: usize,
}
