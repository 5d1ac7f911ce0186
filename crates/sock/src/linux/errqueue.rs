//! Reads a socket's error queue.

use std::os::fd::{AsFd, AsRawFd};

use super::call::retry;
use super::cmsg::{self, messages};
use crate::SockError;
use crate::errqueue::{Notice, TimestampPoint};

/// Takes one notice off the queue; `None` if the queue is empty or the entry is of an unknown kind.
///
/// # Errors
/// The descriptor is not a socket.
pub fn take(fd: &impl AsFd) -> Result<Option<Notice>, SockError> {
    const CONTROL_BYTES: usize = 512;
    let mut control = [0u64; CONTROL_BYTES / 8];
    // SAFETY: all zero is a valid msghdr: null pointers with length 0.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_control = control.as_mut_ptr().cast();
    let raw = fd.as_fd().as_raw_fd();
    let result = retry("read the error queue", || {
        header.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: the kernel writes at most CONTROL_BYTES bytes to `control`; there are no name and data
        // buffers.
        unsafe { libc::recvmsg(raw, &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) }
    });
    match result {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => return Ok(None),
        Err(error) => return Err(error),
    }
    let bytes: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(decode(cmsg::filled(&bytes, header.msg_controllen)))
}

/// Decodes the control messages of one entry.
#[must_use]
pub fn decode(control: &[u8]) -> Option<Notice> {
    let mut stamp = None;
    let mut report = None;
    for message in messages(control) {
        match (message.level, message.kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => stamp = cmsg::software_stamp(message.data),
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                report = ExtendedError::decode(message.data);
            }
            _ => {}
        }
    }
    report?.notice(stamp)
}

/// `struct sock_extended_err`.
struct ExtendedError {
    errno: u32,
    origin: u8,
    kind: u8,
    code: u8,
    info: u32,
    data: u32,
}

impl ExtendedError {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 16] = bytes.first_chunk()?;
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(Self {
            errno: word(0),
            origin: bytes[4],
            kind: bytes[5],
            code: bytes[6],
            info: word(8),
            data: word(12),
        })
    }

    fn notice(&self, stamp: Option<u64>) -> Option<Notice> {
        const TIMESTAMPING: u8 = 4;
        const ZEROCOPY: u8 = 5;
        const COPIED: u8 = 1;
        match self.origin {
            ZEROCOPY => {
                Some(Notice::ZeroCopy { first: self.info, last: self.data, copied: self.code & COPIED != 0 })
            }
            TIMESTAMPING => {
                let stage = match self.info {
                    0 => TimestampPoint::Sent,
                    1 => TimestampPoint::Scheduled,
                    2 => TimestampPoint::Acknowledged,
                    _ => return None,
                };
                Some(Notice::Timestamp { id: self.data, at_ns: stamp?, stage })
            }
            libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6 => Some(Notice::Icmp {
                errno: self.errno.cast_signed(),
                kind: self.kind,
                code: self.code,
                info: self.info,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmsg::ControlMessage;
    use proptest::prelude::*;

    fn entry(origin: u8, code: u8, info: u32, data: u32, stamp: Option<[i64; 2]>) -> Vec<u8> {
        let mut report = libc::ENOMSG.to_ne_bytes().to_vec();
        report.extend([origin, 3, code, 0]);
        report.extend(info.to_ne_bytes());
        report.extend(data.to_ne_bytes());
        let mut bytes = vec![0; 256];
        let mut end = 0;
        if let Some([seconds, ns]) = stamp {
            let data: Vec<u8> =
                [seconds, ns, 0, 0, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
            let message =
                ControlMessage { level: libc::SOL_SOCKET, kind: libc::SCM_TIMESTAMPING, data: &data };
            end += cmsg::write(&mut bytes, &message).unwrap();
        }
        let message = ControlMessage { level: libc::IPPROTO_IP, kind: libc::IP_RECVERR, data: &report };
        end += cmsg::write(&mut bytes[end..], &message).unwrap();
        bytes.truncate(end);
        bytes
    }

    #[test]
    fn each_origin_becomes_its_notice() {
        assert_eq!(
            decode(&entry(5, 1, 3, 9, None)),
            Some(Notice::ZeroCopy { first: 3, last: 9, copied: true })
        );
        assert_eq!(
            decode(&entry(5, 0, 3, 3, None)),
            Some(Notice::ZeroCopy { first: 3, last: 3, copied: false })
        );
        let stamped = Notice::Timestamp { id: 12, at_ns: 5_000_000_006, stage: TimestampPoint::Sent };
        assert_eq!(decode(&entry(4, 0, 0, 12, Some([5, 6]))), Some(stamped));
        assert_eq!(decode(&entry(4, 0, 0, 12, None)), None, "a stamp without a time is none");
        let icmp = Notice::Icmp { errno: libc::ENOMSG, kind: 3, code: 4, info: 1400 };
        assert_eq!(decode(&entry(2, 4, 1400, 0, None)), Some(icmp));
        assert_eq!(decode(&entry(77, 0, 0, 0, None)), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
