//! Contents of blocks and datagrams.

use std::io::ErrorKind;

use linerate_model::flow::{Pattern, Payload};
use linerate_sock::SockError;

/// Zeroed memory of `length` bytes. Fails if there is not enough, where an ordinary allocation would end the
/// program.
pub(crate) fn allocate(length: usize) -> Result<Vec<u8>, SockError> {
    let mut bytes = Vec::new();
    let refused = |_| SockError::new("allocate memory for blocks", ErrorKind::OutOfMemory.into());
    bytes.try_reserve_exact(length).map_err(refused)?;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// One block or datagram of `length` bytes.
pub(crate) fn block(payload: &Payload, length: usize) -> Result<Vec<u8>, SockError> {
    let mut bytes = allocate(length)?;
    fill(payload, &mut bytes);
    Ok(bytes)
}

/// The first block or datagram of a stream, if it is longer than the others.
pub(crate) fn first(payload: &Payload, length: usize, longest: usize) -> Result<Option<Vec<u8>>, SockError> {
    let Some(asked) = first_length(payload, length, longest) else { return Ok(None) };
    block(payload, asked).map(Some)
}

/// Bytes of the first block or datagram, if it is longer than the others.
pub(crate) fn first_length(payload: &Payload, length: usize, longest: usize) -> Option<usize> {
    let asked = usize::try_from(payload.first_length?.get()).unwrap_or(longest).min(longest);
    (asked > length).then_some(asked)
}

/// `count` consecutive datagrams; a random pattern continues through all of them.
pub(crate) fn datagrams(payload: &Payload, length: usize, count: usize) -> Result<Vec<u8>, SockError> {
    let mut bytes = block(payload, length.saturating_mul(count))?;
    for datagram in bytes.chunks_mut(length) {
        match payload.pattern {
            Pattern::Random => put_head(payload, datagram),
            _ => fill(payload, datagram),
        }
    }
    Ok(bytes)
}

/// Fills one block or datagram.
pub(crate) fn fill(payload: &Payload, bytes: &mut [u8]) {
    match payload.pattern {
        Pattern::Random => random(bytes),
        Pattern::Digits => repeat(bytes, b'0'..=b'9'),
        Pattern::Printable => repeat(bytes, b' '..=b'~'),
        Pattern::Byte(byte) => bytes.fill(byte),
    }
    put_head(payload, bytes);
}

fn put_head(payload: &Payload, bytes: &mut [u8]) {
    for (byte, head) in bytes.iter_mut().zip(&payload.head) {
        *byte = *head;
    }
}

fn repeat(bytes: &mut [u8], values: std::ops::RangeInclusive<u8>) {
    for (byte, value) in bytes.iter_mut().zip(values.cycle()) {
        *byte = value;
    }
}

/// Bytes that no link or middlebox can compress: a fixed pseudo-random sequence (xorshift64, Marsaglia 2003).
fn random(bytes: &mut [u8]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for chunk in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Bytes;
    use std::collections::BTreeSet;

    fn block(payload: &Payload, length: usize) -> Vec<u8> {
        super::block(payload, length).unwrap()
    }

    fn of(pattern: Pattern, head: &[u8]) -> Payload {
        Payload { pattern, head: head.to_vec(), first_length: None }
    }

    #[test]
    fn random_bytes_are_fixed_and_do_not_repeat_soon() {
        let payload = Payload::default();
        let bytes = block(&payload, 1 << 16);
        assert_eq!(bytes, block(&payload, 1 << 16));
        let words: BTreeSet<&[u8]> = bytes.chunks(8).collect();
        assert_eq!(words.len(), (1 << 16) / 8);
        assert_eq!(block(&payload, 3), bytes[..3]);
    }

    #[test]
    fn patterns_run_through_their_characters_from_the_start_of_the_block() {
        assert_eq!(block(&of(Pattern::Digits, b""), 13), b"0123456789012");
        let printable = block(&of(Pattern::Printable, b""), 97);
        assert_eq!((&printable[..4], &printable[93..]), (&b" !\"#"[..], &b"}~ !"[..]));
        assert_eq!(block(&of(Pattern::Byte(0x41), b""), 3), b"AAA");
    }

    #[test]
    fn the_head_lies_over_the_pattern_and_is_cut_with_the_block() {
        let payload = of(Pattern::Digits, b"head");
        assert_eq!(block(&payload, 8), b"head4567");
        assert_eq!(block(&payload, 2), b"he");
    }

    #[test]
    fn every_datagram_has_the_head_and_random_ones_differ_after_it() {
        assert_eq!(datagrams(&of(Pattern::Digits, b"h"), 4, 2).unwrap(), b"h123h123");
        let random = datagrams(&of(Pattern::Random, b"h"), 16, 2).unwrap();
        assert_eq!((random[0], random[16]), (b'h', b'h'));
        assert_ne!(random[1..16], random[17..]);
    }

    #[test]
    fn a_first_block_is_made_only_where_it_is_longer() {
        let longer =
            |length| Payload { first_length: Some(Bytes::new(length)), ..of(Pattern::Digits, b"head") };
        assert_eq!(first(&longer(6), 2, 100).unwrap().as_deref(), Some(&b"head45"[..]));
        assert_eq!(first(&longer(2), 2, 100).unwrap(), None);
        assert_eq!(first(&longer(u64::MAX), 2, 3).unwrap().map(|first| first.len()), Some(3));
        assert_eq!(first(&Payload::default(), 2, 100).unwrap(), None);
    }

    #[test]
    fn memory_that_nobody_has_is_an_error_and_not_the_end_of_the_program() {
        let error = allocate(isize::MAX as usize - 4096).unwrap_err();
        assert_eq!(error.source.kind(), ErrorKind::OutOfMemory);
    }
}
