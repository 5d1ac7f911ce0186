//! Many datagrams in one call: `sendmmsg`, `recvmmsg`, and one large buffer that the kernel cuts (GSO) or
//! merges (GRO).
//!
//! A batch owns all memory that a call needs and allocates it once.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};

use super::call::retry;
use super::cmsg::{self, ControlMessage};
use crate::SockError;
use crate::datagram::{Ancillary, Datagram};
use crate::stream::{Moved, outcome};

#[cfg(doc)]
use crate::batch::{MAX_DATAGRAM, MAX_SEGMENTS};

/// Control messages of one datagram, aligned as the CMSG macros require.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct ControlBuffer([u8; ControlBuffer::SIZE]);

impl ControlBuffer {
    const SIZE: usize = 192;
    const EMPTY: Self = Self([0; Self::SIZE]);

    /// One control message that makes the kernel cut the buffer into datagrams of this size.
    fn segments_of(size: u16) -> (Self, usize) {
        let mut control = Self::EMPTY;
        let message =
            ControlMessage { level: libc::SOL_UDP, kind: libc::UDP_SEGMENT, data: &size.to_ne_bytes() };
        let length = cmsg::write(&mut control.0, &message).unwrap_or(0);
        (control, length)
    }
}

fn empty_header() -> libc::mmsghdr {
    // SAFETY: all zero is a valid mmsghdr: null pointers with length 0.
    unsafe { std::mem::zeroed() }
}

/// Sends `bytes` as datagrams of `segment_size` bytes each, the last one possibly shorter, cut by the kernel or
/// the NIC. The socket must be connected. At most [`MAX_SEGMENTS`] datagrams and [`MAX_DATAGRAM`] bytes.
///
/// # Errors
/// `EINVAL` above those limits or if a segment exceeds the MTU; `EIO` if the interface cannot compute
/// checksums.
pub fn send_segments(fd: &impl AsFd, bytes: &[u8], segment_size: u16) -> Result<Moved, SockError> {
    let (mut control, control_length) = ControlBuffer::segments_of(segment_size);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut header = empty_header().msg_hdr;
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control_length as _;
    let raw = fd.as_fd().as_raw_fd();
    outcome(retry("send segments", || {
        // SAFETY: the header points to locals and to `bytes`, all alive; sending only reads them.
        unsafe { libc::sendmsg(raw, &raw const header, libc::MSG_NOSIGNAL) }
    }))
}

/// Datagrams received together.
pub struct RecvBatch {
    bytes: Vec<u8>,
    room: usize,
    names: Vec<SockAddrBytes>,
    controls: Vec<ControlBuffer>,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    filled: usize,
}

// SAFETY: the pointers in `parts` and `headers` are rewritten before every use from buffers that the batch owns.
unsafe impl Send for RecvBatch {}

impl fmt::Debug for RecvBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, filled) = (self.headers.len(), self.filled);
        f.debug_struct("RecvBatch").field("most", &most).field("filled", &filled).finish_non_exhaustive()
    }
}

/// A socket address of either family, as bytes.
type SockAddrBytes = [u8; size_of::<libc::sockaddr_in6>()];

impl RecvBatch {
    /// Allocates `messages` datagrams of `bytes_each` bytes. Merged datagrams (GRO) need 64 KiB each.
    #[must_use]
    pub fn new(messages: usize, bytes_each: usize) -> Self {
        Self {
            bytes: vec![0; messages * bytes_each],
            room: bytes_each,
            names: vec![[0; size_of::<SockAddrBytes>()]; messages],
            controls: vec![ControlBuffer::EMPTY; messages],
            parts: vec![libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; messages],
            headers: vec![empty_header(); messages],
            filled: 0,
        }
    }

    /// Waits for one datagram according to the socket's mode and timeout, takes all others that are already
    /// there, and returns the number of messages; 0 if there was none.
    ///
    /// # Errors
    /// `ECONNREFUSED` if the peer of a connected socket answered "port unreachable".
    pub fn recv(&mut self, fd: &impl AsFd) -> Result<usize, SockError> {
        self.filled = 0;
        for (index, header) in self.headers.iter_mut().enumerate() {
            let base = self.bytes[index * self.room..].as_mut_ptr();
            self.parts[index] = libc::iovec { iov_base: base.cast(), iov_len: self.room };
            *header = empty_header();
            header.msg_hdr.msg_name = self.names[index].as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = size_of::<SockAddrBytes>() as libc::socklen_t;
            header.msg_hdr.msg_iov = &raw mut self.parts[index];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = self.controls[index].0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = ControlBuffer::SIZE as _;
        }
        let (raw, count) = (fd.as_fd().as_raw_fd(), self.headers.len() as u32);
        let headers = self.headers.as_mut_ptr();
        // MSG_TRUNC returns the true length of a datagram that does not fit.
        let flags = (libc::MSG_WAITFORONE | libc::MSG_TRUNC) as _; // The type differs between C libraries.
        let result = retry("receive a batch of datagrams", || {
            // SAFETY: `count` headers, each pointing to name, byte and control buffers that this batch owns and
            // does not move. With a null timeout the socket's own timeout applies.
            unsafe { libc::recvmmsg(raw, headers, count, flags, std::ptr::null_mut()) as isize }
        });
        self.filled = outcome(result)?.bytes();
        Ok(self.filled)
    }

    /// A message of the last call; `None` beyond what it returned.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Datagram<'_>> {
        if index >= self.filled {
            return None;
        }
        let header = &self.headers[index];
        let length = header.msg_len as usize;
        let start = index * self.room;
        Some(Datagram {
            bytes: &self.bytes[start..start + length.min(self.room)],
            length,
            source: decode_address(cmsg::filled(&self.names[index], header.msg_hdr.msg_namelen)),
            ancillary: Ancillary::parse(cmsg::filled(&self.controls[index].0, header.msg_hdr.msg_controllen)),
        })
    }

    /// The messages of the last call.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        (0..self.filled).filter_map(|index| self.get(index))
    }
}

/// Decodes a `sockaddr_in` or `sockaddr_in6`.
fn decode_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    match i32::from(family) {
        libc::AF_INET => {
            let ip: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
            Some(SocketAddrV4::new(Ipv4Addr::from(ip), port).into())
        }
        libc::AF_INET6 => {
            let flow = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
            let ip: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
            let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_of_both_families_are_decoded() {
        let mut v4 = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        v4.extend([0x14, 0x51, 192, 0, 2, 7]);
        assert_eq!(decode_address(&v4), Some("192.0.2.7:5201".parse().unwrap()));
        let mut v6 = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        v6.extend([0x14, 0x51, 0, 0, 0, 0]);
        v6.extend(Ipv6Addr::LOCALHOST.octets());
        v6.extend(0u32.to_ne_bytes());
        assert_eq!(decode_address(&v6), Some("[::1]:5201".parse().unwrap()));
        assert_eq!(decode_address(&v6[..20]), None);
        assert_eq!(decode_address(&[]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_address_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = decode_address(&bytes);
        }
    }
}
