//! Datagrams with departure times, several per call.

use std::os::fd::{AsFd, AsRawFd};

use super::call::{retry, set};
use super::cmsg::{self, ControlMessage};
use crate::SockError;
use crate::clock::{self, Mono, read_together};
use crate::departure::DepartureClock;
use crate::stream::outcome;
use crate::unix::clock::read;

/// The control message of one datagram, aligned as the CMSG macros require.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct TimeMessage([u8; cmsg::space(size_of::<u64>())]);

/// Datagrams that are passed to the kernel together, each with its departure time.
pub struct DepartureBatch {
    clock: DepartureClock,
    times: Vec<TimeMessage>,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers in `parts` and `headers` are rewritten before every use.
unsafe impl Send for DepartureBatch {}

impl DepartureBatch {
    /// Room for `most` datagrams.
    #[must_use]
    pub fn new(clock: DepartureClock, most: usize) -> Self {
        Self {
            clock,
            times: vec![TimeMessage([0; _]); most],
            parts: vec![libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; most],
            headers: Vec::with_capacity(most),
        }
    }

    /// Lets the datagrams of a socket carry departure times.
    ///
    /// # Errors
    /// The kernel does not have the option, or `EPERM` for [`DepartureClock::Tai`] without CAP_NET_ADMIN.
    pub fn enable(fd: &impl AsFd, clock: DepartureClock) -> Result<(), SockError> {
        let clock = match clock {
            DepartureClock::Monotonic => libc::CLOCK_MONOTONIC,
            DepartureClock::Tai => libc::CLOCK_TAI,
        };
        let clock_and_flags = [clock, 0];
        set("set SO_TXTIME", fd, libc::SOL_SOCKET, libc::SO_TXTIME, clock_and_flags)
    }

    /// Sends `bytes` as datagrams of `length` bytes each, the last one possibly shorter, on a connected socket; each with
    /// its time of `departures`. Returns the number of datagrams that the kernel took, 0 if it takes none now.
    ///
    /// # Errors
    /// As [`crate::stream::send`].
    pub fn send(
        &mut self,
        fd: &impl AsFd,
        bytes: &[u8],
        length: usize,
        departures: impl Iterator<Item = Mono>,
    ) -> Result<usize, SockError> {
        let ahead = match self.clock {
            DepartureClock::Monotonic => 0,
            // Read each time: leap seconds and whoever sets the clock move it.
            // With a pause between the two readings all datagrams would be too early.
            DepartureClock::Tai => {
                let (tai, monotonic) = read_together(|| read(libc::CLOCK_TAI), clock::now);
                tai.saturating_sub(monotonic.as_ns())
            }
        };
        self.headers.clear();
        let slots = self.times.iter_mut().zip(&mut self.parts);
        for (((time, part), datagram), departure) in slots.zip(bytes.chunks(length.max(1))).zip(departures) {
            let at = departure.as_ns().saturating_add(ahead).to_ne_bytes();
            let message = ControlMessage { level: libc::SOL_SOCKET, kind: libc::SCM_TXTIME, data: &at };
            let control_length = cmsg::write(&mut time.0, &message).unwrap_or(0);
            *part = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
            // SAFETY: all zero is a valid mmsghdr: null pointers with length 0.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = time.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = control_length as _;
            self.headers.push(header);
        }
        let (raw, count) = (fd.as_fd().as_raw_fd(), self.headers.len() as u32);
        let headers = self.headers.as_mut_ptr();
        let flags = libc::MSG_NOSIGNAL as _; // The type differs between C libraries.
        let sent = outcome(retry("send datagrams with departure times", || {
            // SAFETY: `count` headers, each pointing to a part and a time that this batch owns and does not move; the parts
            // describe `bytes`, which sending only reads.
            unsafe { libc::sendmmsg(raw, headers, count, flags) as isize }
        }))?;
        Ok(sent.bytes())
    }
}
