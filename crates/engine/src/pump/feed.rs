//! Ways of handing bytes to the kernel, and of taking them from it.

use linerate_model::ZeroCopy;
use linerate_sock::errqueue::{self, Notice};
use linerate_sock::splice::{FileSender, HugeBuffer, Splicer};
use linerate_sock::{Moved, SockError, sockopt, stream};
use std::os::fd::AsFd;

use crate::flow::Flow;

/// Bytes that one zero-copy call refers to: large enough to be cheap, small enough for the caches.
const REFERENCES: usize = 256 << 10;
/// Zero-copy sends after which the kernel's notices are collected.
const SENDS_PER_LOOK: u32 = 16;

/// Bytes that no link and no middle box can compress: a fixed pseudo-random sequence (xorshift64, Marsaglia 2003).
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill(&mut bytes);
    bytes
}

fn fill(bytes: &mut [u8]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for chunk in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}

/// A way of handing bytes to the kernel.
pub(crate) struct Feed {
    block: Vec<u8>,
    method: Method,
}

enum Method {
    Copy,
    Splice(Splicer),
    File(FileSender),
    Notify(Notices),
}

/// What the kernel said about zero-copy sends.
#[derive(Default)]
struct Notices {
    sends: u32,
    copied: bool,
}

impl Feed {
    /// The way that the flow asks for.
    ///
    /// # Errors
    /// When this host cannot do it; [`Feed::copying`] always works.
    pub(crate) fn prepare(flow: &Flow) -> Result<Self, SockError> {
        let mut feed = Self::copying(flow.plan.block);
        feed.method = match flow.setup.socket.zerocopy {
            None => Method::Copy,
            Some(ZeroCopy::Splice) => {
                let mut buffer = HugeBuffer::new(REFERENCES)?;
                fill(&mut buffer);
                Method::Splice(Splicer::new(buffer)?)
            }
            Some(ZeroCopy::Sendfile) => Method::File(FileSender::new(&pattern(REFERENCES))?),
            Some(ZeroCopy::Msg) => {
                for socket in flow.sockets.iter() {
                    sockopt::set_zerocopy(&socket, true)?;
                }
                Method::Notify(Notices::default())
            }
        };
        Ok(feed)
    }

    /// The ordinary way: the kernel copies.
    pub(crate) fn copying(block: usize) -> Self {
        Self { block: pattern(block), method: Method::Copy }
    }

    /// Hands over at most `most` bytes.
    #[inline]
    pub(crate) fn send(&mut self, fd: &impl AsFd, most: u64) -> Result<Moved, SockError> {
        let length = self.block.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        let block = &self.block[..length];
        match &mut self.method {
            Method::Copy => stream::send(fd, block),
            // References go out a whole pattern at a time; the rest of a limit in bytes is copied.
            Method::Splice(_) | Method::File(_) if most < REFERENCES as u64 => stream::send(fd, block),
            Method::Splice(splicer) => splicer.send(fd),
            Method::File(file) => file.send(fd),
            Method::Notify(notices) => notices.send(fd, block),
        }
    }

    /// Whether the kernel copied although it was asked not to. Looks at the notices that are left.
    pub(crate) fn copied(&mut self, fd: &impl AsFd) -> bool {
        match &mut self.method {
            Method::Notify(notices) => {
                notices.collect(fd);
                notices.copied
            }
            _ => false,
        }
    }
}

impl Notices {
    fn send(&mut self, fd: &impl AsFd, block: &[u8]) -> Result<Moved, SockError> {
        self.sends += 1;
        if self.sends.is_multiple_of(SENDS_PER_LOOK) {
            self.collect(fd);
        }
        match stream::send_zerocopy(fd, block) {
            // Too many notices are waiting, which the ordinary way does not need.
            Err(error) if error.is_out_of_buffers() => {
                self.collect(fd);
                stream::send(fd, block)
            }
            other => other,
        }
    }

    fn collect(&mut self, fd: &impl AsFd) {
        while let Ok(Some(notice)) = errqueue::take(fd) {
            self.copied |= matches!(notice, Notice::ZeroCopy { copied: true, .. });
        }
    }
}

/// A way of taking bytes from the kernel.
pub(crate) struct Drain {
    buffer: Vec<u8>,
    discard: bool,
}

impl Drain {
    pub(crate) fn new(discard: bool, block: usize) -> Self {
        Self { buffer: vec![0; block], discard }
    }

    /// Takes at most `most` bytes.
    #[inline]
    pub(crate) fn recv(&mut self, fd: &impl AsFd, most: usize) -> Result<Moved, SockError> {
        let length = self.buffer.len().min(most);
        if self.discard { stream::discard(fd, length) } else { stream::recv(fd, &mut self.buffer[..length]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_pattern_is_fixed_and_does_not_repeat_soon() {
        let bytes = pattern(1 << 16);
        assert_eq!(bytes, pattern(1 << 16));
        let words: BTreeSet<&[u8]> = bytes.chunks(8).collect();
        assert_eq!(words.len(), (1 << 16) / 8);
        assert_eq!(pattern(3), bytes[..3]);
    }
}
