//! Sending without copying from user memory: page references through a pipe, or a file in memory.
//!
//! Both send the same pattern repeatedly. The kernel refers to its pages until the peer has acknowledged them,
//! without a notification. The pattern is therefore owned here and never changes.

use std::fs::File;
use std::io::Write;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::stream::send_with;
use crate::SockError;
use crate::linux::call::{check, retry};
use crate::stream::{Moved, outcome};

/// Zeroed memory from the kernel, aligned and advised for huge pages.
pub struct HugeBuffer {
    map: *mut libc::c_void,
    mapped: usize,
    offset: usize,
    length: usize,
}

// SAFETY: the mapping is plain memory private to this value; moving the value to another thread moves the
// access.
unsafe impl Send for HugeBuffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for HugeBuffer {}

impl HugeBuffer {
    const HUGE_PAGE: usize = 2 << 20;

    /// `length` bytes, aligned to a huge page.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(length: usize) -> Result<Self, SockError> {
        const OP: &str = "map memory";
        let mapped = length
            .checked_next_multiple_of(Self::HUGE_PAGE)
            .and_then(|rounded| rounded.checked_add(Self::HUGE_PAGE))
            .ok_or_else(|| SockError::errno(OP, libc::ENOMEM))?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping at an address of the kernel's choice affects none of our memory.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), mapped, access, kind, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(SockError::last(OP));
        }
        let offset = map.addr().next_multiple_of(Self::HUGE_PAGE) - map.addr();
        let mut buffer = Self { map, mapped, offset, length };
        // Without huge pages it works too, only slower.
        // SAFETY: the range is inside the new mapping; the advice does not change its contents.
        let _advice = unsafe {
            libc::madvise(buffer.as_mut_ptr().cast(), mapped - Self::HUGE_PAGE, libc::MADV_HUGEPAGE)
        };
        Ok(buffer)
    }
}

impl Deref for HugeBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `offset + length` is inside the mapping, which is readable, initialised (zero) and lives as
        // long as `self`; nothing writes while the reference exists, as writing takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.map.cast::<u8>().add(self.offset), self.length) }
    }
}

impl DerefMut for HugeBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for reading, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.map.cast::<u8>().add(self.offset), self.length) }
    }
}

impl Drop for HugeBuffer {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once; the kernel keeps pages that the network stack still refers
        // to.
        unsafe { libc::munmap(self.map, self.mapped) };
    }
}

/// Sends a pattern by reference: `vmsplice` into a pipe, `splice` from there into the socket.
pub struct Splicer {
    pattern: HugeBuffer,
    /// Offset in the pattern of the next byte for the pipe.
    next: usize,
    in_pipe: usize,
    inlet: OwnedFd,
    outlet: OwnedFd,
}

impl Splicer {
    const PIPE_BYTES: i32 = 1 << 20;

    /// Takes the pattern, which never changes from then on. 256 KiB is a good size.
    ///
    /// # Errors
    /// `EINVAL` for an empty pattern; `EMFILE` if the process is out of descriptors.
    pub fn new(pattern: HugeBuffer) -> Result<Self, SockError> {
        if pattern.is_empty() {
            return Err(SockError::errno("splice an empty pattern", libc::EINVAL));
        }
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors to `ends`.
        check("create a pipe", unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        // SAFETY: the kernel has just returned both descriptors, and nothing else owns them.
        let (outlet, inlet) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        // A larger pipe is faster. The user's quota of pipe memory may forbid it; then the default size works.
        // SAFETY: takes a number and accesses none of our memory.
        unsafe { libc::fcntl(inlet.as_raw_fd(), libc::F_SETPIPE_SZ, Self::PIPE_BYTES) };
        Ok(Self { pattern, next: 0, in_pipe: 0, inlet, outlet })
    }

    /// Sends the next bytes of the repeated pattern, as many as the pipe and the socket accept at once.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn send(&mut self, fd: &impl AsFd) -> Result<Moved, SockError> {
        if self.in_pipe == 0 {
            self.fill()?;
        }
        let (outlet, socket) = (self.outlet.as_raw_fd(), fd.as_fd().as_raw_fd());
        let (in_pipe, none) = (self.in_pipe, std::ptr::null_mut());
        let moved = outcome(retry("splice to the socket", || {
            // SAFETY: moves page references between two descriptors; pipes and sockets require null offsets.
            unsafe { libc::splice(outlet, none, socket, none, in_pipe, libc::SPLICE_F_MOVE) }
        }))?;
        self.in_pipe -= moved.bytes().min(self.in_pipe);
        Ok(moved)
    }

    fn fill(&mut self) -> Result<(), SockError> {
        let rest = &self.pattern[self.next..];
        let part = libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
        let inlet = self.inlet.as_raw_fd();
        // Non-blocking, because with a pipe smaller than the pattern this thread would wait for itself as the
        // reader.
        let added = retry("vmsplice into the pipe", || {
            // SAFETY: `part` describes part of the pattern, which lives as long as `self` and never changes; the
            // kernel holds its own references to the pages beyond that.
            unsafe { libc::vmsplice(inlet, &raw const part, 1, libc::SPLICE_F_NONBLOCK) }
        })?;
        self.in_pipe = added;
        self.next = (self.next + added) % self.pattern.len();
        Ok(())
    }
}

/// Sends a block by reference (`MSG_ZEROCOPY`): the kernel refers to the pages, and notifies through
/// [`crate::errqueue`] when it has finished. The socket needs [`crate::sockopt::set_zerocopy`].
///
/// A page that changes before the notification would reach the peer changed. The block is therefore owned and
/// immutable, and has its own pages: dropping the sender unmaps them instead of returning them to an allocator,
/// and the kernel keeps those that it still refers to.
pub struct ZeroCopySender {
    block: HugeBuffer,
}

impl ZeroCopySender {
    /// Takes the block, which never changes from then on.
    #[must_use]
    pub const fn new(block: HugeBuffer) -> Self {
        Self { block }
    }

    /// Sends a range of the block; nothing if the range is out of bounds.
    ///
    /// # Errors
    /// As [`crate::stream::send`]; `ENOBUFS` if too many notifications are pending.
    #[inline]
    pub fn send(&self, fd: &impl AsFd, range: Range<usize>) -> Result<Moved, SockError> {
        send_with(fd, self.part(range), libc::MSG_ZEROCOPY)
    }

    /// A range of the block, for a send that copies; empty if the range is out of bounds.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> &[u8] {
        self.block.get(range).unwrap_or_default()
    }
}

/// Sends a pattern with `sendfile` from a file in memory.
#[derive(Debug)]
pub struct FileSender {
    file: File,
    length: usize,
    next: usize,
}

impl FileSender {
    /// Copies the pattern into a new file in memory.
    ///
    /// # Errors
    /// `EINVAL` for an empty pattern; `ENOMEM`, `EMFILE`.
    pub fn new(pattern: &[u8]) -> Result<Self, SockError> {
        if pattern.is_empty() {
            return Err(SockError::errno("send an empty pattern", libc::EINVAL));
        }
        // SAFETY: the name is a C string literal.
        let raw = unsafe { libc::memfd_create(c"pattern".as_ptr(), libc::MFD_CLOEXEC) };
        let raw = check("create a file in memory", raw)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let mut file = unsafe { File::from_raw_fd(raw) };
        file.write_all(pattern).map_err(|source| SockError::new("write a file in memory", source))?;
        Ok(Self { file, length: pattern.len(), next: 0 })
    }

    /// Sends the next bytes of the repeated pattern, at most to its end.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn send(&mut self, fd: &impl AsFd) -> Result<Moved, SockError> {
        let (socket, file) = (fd.as_fd().as_raw_fd(), self.file.as_raw_fd());
        let (next, rest) = (self.next, self.length - self.next);
        let moved = outcome(retry("sendfile", || {
            let mut offset = next as libc::off_t;
            // SAFETY: the kernel reads and writes `offset` only.
            unsafe { libc::sendfile(socket, file, &raw mut offset, rest) }
        }))?;
        self.next = (self.next + moved.bytes()) % self.length;
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_buffer_is_aligned_zero_and_writable_to_its_last_byte() {
        let mut buffer = HugeBuffer::new(3_000_001).unwrap();
        assert_eq!(buffer.as_ptr().addr() % (2 << 20), 0);
        assert_eq!(buffer.len(), 3_000_001);
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer[3_000_000] = 9;
        assert_eq!(buffer.last(), Some(&9));
        assert!(HugeBuffer::new(usize::MAX).is_err());
    }

    #[test]
    fn an_empty_pattern_is_refused() {
        assert!(Splicer::new(HugeBuffer::new(0).unwrap()).is_err());
        assert!(FileSender::new(&[]).is_err());
    }
}
