//! The internet checksum: the ones' complement of a ones' complement sum of 16-bit words.

/// The ones' complement sum, folded to 16 bits, not complemented.
///
/// # Source
/// RFC 1071
pub(super) fn sum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    let last = rest.first().map_or(0, |&byte| u64::from(byte) << 8);
    fold(words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum::<u64>() + last)
}

/// The sum after one word changes.
pub(super) fn replace(sum: u16, old: u16, new: u16) -> u16 {
    fold(u64::from(sum) + u64::from(!old) + u64::from(new))
}

/// Changes the 16-bit word at `at` and updates the checksum at `checksum`.
///
/// # Source
/// RFC 1624 §3, eqn. 3
pub(super) fn rewrite(bytes: &mut [u8], at: usize, new: u16, checksum: usize) {
    let (old, sum) = (read_u16(bytes, at), !read_u16(bytes, checksum));
    set_word(bytes, at, new);
    set_word(bytes, checksum, !replace(sum, old, new));
}

/// The 16-bit word at `at`.
pub(super) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes the 16-bit word at `at`.
pub(super) fn set_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // §3: bytes 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn an_odd_byte_is_the_upper_half_of_a_word() {
        assert_eq!(sum(&[0x12, 0x34, 0x56]), 0x1234 + 0x5600);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // §4: checksum dd2f, a word 5555 becomes 3285, the new checksum is 0000.
        let mut bytes = [0x55, 0x55, 0xdd, 0x2f];
        rewrite(&mut bytes, 0, 0x3285, 2);
        assert_eq!(bytes, [0x32, 0x85, 0x00, 0x00]);
    }
}
