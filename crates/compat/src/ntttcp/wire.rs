//! The sync connection of the Linux tool: 32-bit numbers in both directions, big-endian, with one answer per
//! request.

/// The first request of a sender: queries the state of the receiver.
pub(super) const QUERY: i32 = b'X' as i32;
/// A sender is ready; the receiver answers with the same number to start it.
pub(super) const READY: i32 = b'R' as i32;
/// A sender is ready and is the last one.
pub(super) const LAST: i32 = b'L' as i32;
/// The receiver makes a sender wait for others.
pub(super) const WAIT: i32 = b'W' as i32;
/// A sender ends the test, or a receiver refuses it.
pub(super) const END: i32 = b'E' as i32;

/// State of a receiver that waits for a test.
pub(super) const IDLE: i32 = 11;
/// State of a receiver during a test.
pub(super) const RUNNING: i32 = 12;
/// State of a receiver after its test.
pub(super) const FINISHED: i32 = 13;

/// Whether a receiver that decodes by value would mistake a proposed duration for another request.
pub(super) fn is_mistaken(seconds: i32) -> bool {
    [QUERY, READY, LAST, END].contains(&seconds)
}

/// Encodes a number.
pub(super) fn encode(number: i32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Splits a byte stream into numbers; buffers fewer bytes than one number has.
#[derive(Debug, Clone, Default)]
pub struct NumberSplitter {
    held: Vec<u8>,
}

impl NumberSplitter {
    /// Adds bytes; returns the numbers that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<i32> {
        self.held.extend_from_slice(bytes);
        let whole = self.held.len() / 4 * 4;
        let numbers: Vec<u8> = self.held.drain(..whole).collect();
        numbers.chunks_exact(4).filter_map(|word| Some(i32::from_be_bytes(word.try_into().ok()?))).collect()
    }
}
