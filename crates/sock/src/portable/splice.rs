//! Sending without copying from user memory, which is not implemented for this system.

use std::ops::{Deref, DerefMut, Range};

use super::error_codes::unsupported;
use crate::SockError;
use crate::handle::AsFd;
use crate::stream::Moved;

/// Zeroed memory.
pub struct HugeBuffer(Vec<u8>);

impl HugeBuffer {
    /// `length` bytes.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn new(length: usize) -> Result<Self, SockError> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(length)
            .map_err(|_| SockError::new("map memory", std::io::ErrorKind::OutOfMemory.into()))?;
        bytes.resize(length, 0);
        Ok(Self(bytes))
    }
}

impl Deref for HugeBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for HugeBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Sends a pattern by reference: it has no value.
pub enum Splicer {}

impl Splicer {
    /// Takes the pattern.
    ///
    /// # Errors
    /// Always.
    pub fn new(_pattern: HugeBuffer) -> Result<Self, SockError> {
        Err(unsupported("splice"))
    }

    /// Sends the next bytes of the repeated pattern.
    ///
    /// # Errors
    /// None.
    pub fn send(&mut self, _fd: &impl AsFd) -> Result<Moved, SockError> {
        match *self {}
    }
}

/// Sends a block by reference.
pub struct ZeroCopySender {
    block: HugeBuffer,
}

impl ZeroCopySender {
    /// Takes the block.
    #[must_use]
    pub const fn new(block: HugeBuffer) -> Self {
        Self { block }
    }

    /// Sends a range of the block by reference.
    ///
    /// # Errors
    /// Always: [`crate::sockopt::set_zerocopy`] fails before.
    pub fn send(&self, _fd: &impl AsFd, _range: Range<usize>) -> Result<Moved, SockError> {
        Err(unsupported("send by reference"))
    }

    /// A range of the block, for a send that copies; empty if the range is out of bounds.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> &[u8] {
        self.block.get(range).unwrap_or_default()
    }
}

/// Sends a pattern from a file in memory: it has no value.
#[derive(Debug)]
pub enum FileSender {}

impl FileSender {
    /// Copies the pattern into a new file in memory.
    ///
    /// # Errors
    /// Always.
    pub fn new(_pattern: &[u8]) -> Result<Self, SockError> {
        Err(unsupported("create a file in memory"))
    }

    /// Sends the next bytes of the repeated pattern.
    ///
    /// # Errors
    /// None.
    pub fn send(&mut self, _fd: &impl AsFd) -> Result<Moved, SockError> {
        match *self {}
    }
}
