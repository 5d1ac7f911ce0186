//! The header that a TAP device prepends to each frame: what the kernel offloaded to the NIC.

use super::{FrameError, checksum};

/// Length of `struct virtio_net_hdr_v1`.
pub(super) const LENGTH: usize = 12;

/// The transport checksum is not complete: its field holds the sum of the pseudo header.
const NEEDS_CSUM: u8 = 1;

/// Offsets of the fields.
mod at {
    pub(super) const FLAGS: usize = 0;
    pub(super) const GSO_TYPE: usize = 1;
    pub(super) const HDR_LEN: usize = 2;
    pub(super) const GSO_SIZE: usize = 4;
    pub(super) const CSUM_START: usize = 6;
    pub(super) const CSUM_OFFSET: usize = 8;
}

/// Values of the field `gso_type`.
mod gso {
    pub(super) const NONE: u8 = 0;
    pub(super) const TCPV4: u8 = 1;
    pub(super) const TCPV6: u8 = 4;
    pub(super) const UDP_L4: u8 = 5;
    /// Combined with a TCP type: the first packet has CWR set.
    pub(super) const ECN: u8 = 0x80;
}

/// The type of a GSO frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segmentation {
    Tcp4,
    Tcp6,
    /// UDP over either IP version, one datagram per packet.
    Udp,
}

/// Where a checksum has to be computed: over everything from `start`, written at `field`. Counted from the
/// start of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Partial {
    pub(super) start: usize,
    pub(super) field: usize,
}

/// The fields of the header that are used.
///
/// # Source
/// Virtio 1.2 §5.1.6; fields in host byte order, the default of TAP devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vnet {
    pub(super) segmentation: Option<Segmentation>,
    /// Payload of each packet but the last, in bytes.
    pub(super) gso_size: usize,
    pub(super) partial: Option<Partial>,
}

impl Vnet {
    /// Reads the first [`LENGTH`] bytes of `buffer`, which must be at least that long.
    pub(super) fn read(buffer: &[u8]) -> Result<Self, FrameError> {
        let field = |at: usize| usize::from(u16::from_ne_bytes([buffer[at], buffer[at + 1]]));
        let segmentation = match buffer[at::GSO_TYPE] & !gso::ECN {
            gso::NONE => None,
            gso::TCPV4 => Some(Segmentation::Tcp4),
            gso::TCPV6 => Some(Segmentation::Tcp6),
            gso::UDP_L4 => Some(Segmentation::Udp),
            kind => return Err(FrameError::UnknownSegmentation { kind }),
        };
        let start = field(at::CSUM_START);
        let partial = (buffer[at::FLAGS] & NEEDS_CSUM != 0)
            .then(|| Partial { start, field: start + field(at::CSUM_OFFSET) });
        Ok(Self { segmentation, gso_size: field(at::GSO_SIZE), partial })
    }
}

/// Computes the checksum that was offloaded, if there is one and its offsets are valid. It is never written as
/// 0, which would mean no checksum in UDP; the other zero is equivalent (RFC 768).
pub(super) fn complete_checksum(buffer: &mut [u8]) {
    let (header, frame) = buffer.split_at_mut(LENGTH);
    let Ok(Vnet { partial: Some(partial), .. }) = Vnet::read(header) else { return };
    if partial.start <= partial.field && partial.field + 2 <= frame.len() {
        let checksum = !checksum::sum(&frame[partial.start..]);
        checksum::set_word(frame, partial.field, if checksum == 0 { 0xffff } else { checksum });
        header[at::FLAGS] &= !NEEDS_CSUM;
    }
}

/// Makes it a single packet.
pub(super) fn make_single(buffer: &mut [u8]) {
    buffer[at::GSO_TYPE] = gso::NONE;
    write(buffer, at::GSO_SIZE, 0);
}

/// Clears the CWR flag for all packets.
pub(super) fn clear_ecn(buffer: &mut [u8]) {
    buffer[at::GSO_TYPE] &= !gso::ECN;
}

/// Sets the number of header bytes, a hint for the kernel's linear buffer.
pub(super) fn set_header_length(buffer: &mut [u8], length: u16) {
    write(buffer, at::HDR_LEN, length);
}

fn write(buffer: &mut [u8], at: usize, value: u16) {
    buffer[at..at + 2].copy_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_made_once_and_never_zero() {
        // From byte 2 on, written at byte 4, over 1234 and the sum so far.
        let [start, offset] = [2_u16, 2].map(u16::to_ne_bytes);
        let header = [&[1, 0, 0, 0, 0, 0][..], &start, &offset, &[0, 0]].concat();
        for (so_far, made) in [([0x00, 0x01], [0xed, 0xca]), ([0xed, 0xcb], [0xff, 0xff])] {
            let mut buffer = [&header[..], &[9, 9, 0x12, 0x34], &so_far].concat();
            complete_checksum(&mut buffer);
            assert_eq!((buffer[0], &buffer[16..]), (0, &made[..]));
            let done = buffer.clone();
            complete_checksum(&mut buffer);
            assert_eq!(buffer, done);
        }
    }

    #[test]
    fn a_checksum_outside_the_frame_is_left_alone() {
        for (start, offset) in [(2_u16, 3_u16), (20, 0), (0xffff, 0xffff)] {
            let words = [start, offset, 0].map(u16::to_ne_bytes).concat();
            let mut buffer = [&[1, 0, 0, 0, 0, 0][..], &words, &[9; 6]].concat();
            let before = buffer.clone();
            complete_checksum(&mut buffer);
            assert_eq!(buffer, before);
        }
    }
}
