//! What both ends say beside the messages that are measured.

/// Each end writes it, then reads it.
pub(super) const SYNC: &[u8] = b"SyncMe";

/// The transmitter writes it and reads it back; then the connection is closed.
pub(super) const QUIT: &[u8] = b"QUIT\0";

/// What goes before the measured time of streams: how it counts.
const TICKS_PER_SECOND: f64 = 1e8;

/// A time as the receiver of a stream tells it: steps of 10 ns, at most 42.9 s.
#[must_use]
pub fn encode_time(seconds: f64) -> [u8; 4] {
    // A cast from a float stays within the bounds of the integer.
    ((seconds * TICKS_PER_SECOND).round() as u32).to_be_bytes()
}

/// The time that a receiver has told, in seconds; absent when it is not 4 bytes.
#[must_use]
pub fn decode_time(bytes: &[u8]) -> Option<f64> {
    let ticks = u32::from_be_bytes(bytes.try_into().ok()?);
    Some(f64::from(ticks) / TICKS_PER_SECOND)
}

/// How often a message is sent in each trial; absent when it is not 4 bytes or none at all.
pub(super) fn decode_repeats(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?)).filter(|repeats| *repeats > 0)
}

/// A message of an integrity check: 32-bit integers from 0 on in this machine's byte order, as many as fit.
#[must_use]
pub fn integrity(length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..(length / 4) as u32).flat_map(u32::to_ne_bytes).collect();
    bytes.resize(length, 0);
    bytes
}

/// Compares a message with what [`integrity`] makes.
///
/// # Errors
/// The first integer that differs: what it should be and what it is.
pub fn check_integrity(bytes: &[u8]) -> Result<(), (i32, i32)> {
    let words = bytes.chunks_exact(4).filter_map(|word| Some(i32::from_ne_bytes(word.try_into().ok()?)));
    match (0_i32..).zip(words).find(|(expected, found)| expected != found) {
        Some(wrong) => Err(wrong),
        None => Ok(()),
    }
}
