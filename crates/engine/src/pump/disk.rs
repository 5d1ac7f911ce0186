//! Files whose content streams send, and files to which they write what they receive.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use linerate_sock::{SockError, files};

use super::payload;

/// The content of a file, block by block.
pub(crate) struct FileSource {
    file: File,
    block: Vec<u8>,
    /// Bytes of the block that were read.
    length: usize,
}

impl FileSource {
    /// Opens a file that is read in blocks of `block` bytes.
    ///
    /// # Errors
    /// It cannot be opened, or there is not enough memory for a block.
    pub(crate) fn open(path: &Path, block: usize) -> Result<Self, SockError> {
        let file = File::open(path).map_err(|source| SockError::new("open the file to send", source))?;
        Ok(Self { file, block: payload::allocate(block)?, length: 0 })
    }

    /// Reads the next block; false at the end of the file.
    pub(crate) fn load(&mut self) -> Result<bool, SockError> {
        self.length = 0;
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
