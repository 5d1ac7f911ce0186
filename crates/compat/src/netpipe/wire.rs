//! The messages in addition to the measured ones.

/// Synchronization: each end writes it, then reads it.
pub(super) const SYNC: &[u8] = b"SyncMe";

/// The end: the transmitter writes it and reads it back; then the connection is closed.
pub(super) const QUIT: &[u8] = b"QUIT\0";

/// The resolution of the time that the receiver of a stream sends.
const TICKS_PER_SECOND: f64 = 1e8;

/// Encodes the time of a stream's receiver: units of 10 ns, at most 42.9 s.
#[must_use]
pub fn encode_time(seconds: f64) -> [u8; 4] {
    // A cast from a float saturates at the bounds of the integer.
    ((seconds * TICKS_PER_SECOND).round() as u32).to_be_bytes()
}

/// Decodes the receiver's time, in seconds; absent if it is not 4 bytes.
#[must_use]
pub fn decode_time(bytes: &[u8]) -> Option<f64> {
    let ticks = u32::from_be_bytes(bytes.try_into().ok()?);
    Some(f64::from(ticks) / TICKS_PER_SECOND)
}

/// Decodes the number of repeats per trial; absent if it is not 4 bytes, or 0.
pub(super) fn decode_repeats(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?)).filter(|repeats| *repeats > 0)
}

/// A message of an integrity check: as many 32-bit integers as fit, from 0 on, in this machine's byte order.
#[must_use]
pub fn integrity(length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..(length / 4) as u32).flat_map(u32::to_ne_bytes).collect();
    bytes.resize(length, 0);
    bytes
}

/// Compares a message with that of [`integrity`].
///
/// # Errors
/// The first integer that differs: the expected and the actual value.
pub fn check_integrity(bytes: &[u8]) -> Result<(), (i32, i32)> {
    let words = bytes.chunks_exact(4).filter_map(|word| Some(i32::from_ne_bytes(word.try_into().ok()?)));
    match (0_i32..).zip(words).find(|(expected, found)| expected != found) {
        Some(wrong) => Err(wrong),
        None => Ok(()),
    }
}
