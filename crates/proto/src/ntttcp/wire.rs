//! The sync connection of the Linux tool: in both directions 32-bit numbers, big-endian, one answer to each request.

/// What a sender says first: how is it there?
pub(super) const QUERY: i32 = b'X' as i32;
/// A sender is ready; the receiver lets it begin.
pub(super) const READY: i32 = b'R' as i32;
/// A sender is ready and no other will come.
pub(super) const LAST: i32 = b'L' as i32;
/// The receiver lets a sender wait for others.
pub(super) const WAIT: i32 = b'W' as i32;
/// A sender ends the test; a receiver refuses it.
pub(super) const END: i32 = b'E' as i32;

/// A receiver that waits for a test.
pub(super) const IDLE: i32 = 11;
/// A receiver in a test.
pub(super) const RUNNING: i32 = 12;
/// A receiver after its test.
pub(super) const FINISHED: i32 = 13;

/// Whether a proposed time would be taken for another request by a receiver that decodes by value.
pub(super) fn is_mistaken(seconds: i32) -> bool {
    [QUERY, READY, LAST, END].contains(&seconds)
}

/// The bytes of a number.
pub(super) fn encode(number: i32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Cuts a stream of bytes into numbers; it holds fewer bytes than one number.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    held: Vec<u8>,
}

impl Numbers {
    /// The numbers that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<i32> {
        self.held.extend_from_slice(bytes);
        let whole = self.held.len() / 4 * 4;
        let numbers: Vec<u8> = self.held.drain(..whole).collect();
        numbers.chunks_exact(4).filter_map(|word| Some(i32::from_be_bytes(word.try_into().ok()?))).collect()
    }
}
