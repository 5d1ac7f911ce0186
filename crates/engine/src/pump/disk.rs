//! Files whose content streams send, and files to which they write what they receive.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;

use linerate_sock::{SockError, files};

use super::payload;

/// The content of a file, block by block.
pub(crate) struct FileSource {
    file: File,
    block: Vec<u8>,
    /// Bytes of the block that were read.
    length: usize,
    /// Bytes of them that were sent.
    sent: usize,
}

impl FileSource {
    /// Opens a file that is read in blocks of `block` bytes.
    ///
    /// # Errors
    /// It cannot be opened, or there is not enough memory for a block.
    pub(crate) fn open(path: &Path, block: usize) -> Result<Self, SockError> {
        let file = File::open(path).map_err(|source| SockError::new("open the file to send", source))?;
        Ok(Self { file, block: payload::allocate(block)?, length: 0, sent: 0 })
    }

    /// Reads the next block; false at the end of the file.
    pub(crate) fn load(&mut self) -> Result<bool, SockError> {
        (self.length, self.sent) = (0, 0);
        while self.length < self.block.len() {
            match self.file.read(&mut self.block[self.length..]) {
                Ok(0) => break,
                Ok(bytes) => self.length += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(SockError::new("read the file to send", source)),
            }
        }
        Ok(self.length > 0)
    }

    /// Up to `most` bytes that follow those [sent](Self::sent), from the beginning of the file after its end. What was
    /// sent is forgotten at the end, so that it comes from the disk again.
    ///
    /// # Errors
    /// It cannot be read, or is empty.
    pub(crate) fn next(&mut self, most: u64) -> Result<&[u8], SockError> {
        let fail = |source| SockError::new("read the file to send", source);
        if self.sent == self.length && !self.load()? {
            // A file system that cannot forget only makes the next reading faster.
            let _ = files::forget_content(&self.file);
            self.file.rewind().map_err(fail)?;
            if !self.load()? {
                return Err(fail(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "it is empty")));
            }
        }
        let rest = &self.block[self.sent..self.length];
        Ok(&rest[..rest.len().min(usize::try_from(most).unwrap_or(usize::MAX))])
    }

    /// Counts bytes of [`Self::next`] as sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent = self.length.min(self.sent + bytes);
    }

    /// The block that was read, which is shorter at the end of the file.
    pub(crate) fn block(&self) -> &[u8] {
        &self.block[..self.length]
    }
}

/// A file that takes received bytes.
pub(crate) struct FileSink(File);

impl FileSink {
    /// Creates a file, or empties an existing one.
    ///
    /// # Errors
    /// It cannot be created or written.
    pub(crate) fn create(path: &Path) -> Result<Self, SockError> {
        let mut how = OpenOptions::new();
        files::only_for_owner(how.write(true).create(true).truncate(true))
            .open(path)
            .map(Self)
            .map_err(|source| SockError::new("create the file to receive", source))
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), SockError> {
        self.0.write_all(bytes).map_err(|source| SockError::new("write the received file", source))
    }
}
