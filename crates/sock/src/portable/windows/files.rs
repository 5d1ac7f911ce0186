//! Files of a user's own folders, which Windows opens for no other user anyway.

use std::fs::{File, Metadata, OpenOptions};
use std::os::windows::fs::MetadataExt;

/// Makes a file readable and writable for its owner only: nothing to do, as it takes the permissions of its folder.
pub const fn only_for_owner(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// The permissions of a file as nine bits: absent.
#[must_use]
pub const fn permission_bits(_file: &Metadata) -> Option<u32> {
    None
}

/// Whether both describe the same file: by its times and its size, as the standard library does not tell more.
#[must_use]
pub fn are_same(one: &Metadata, other: &Metadata) -> bool {
    FileState::of(one) == FileState::of(other)
}

/// Whether it is a file, which has a size and is read again and again.
#[must_use]
pub fn has_size(file: &Metadata) -> bool {
    file.is_file()
}

/// Gives a file to the owner of another one: nothing is done.
pub const fn give_to_owner_of(_file: &File, _other: &Metadata) {}

/// Asks the kernel to forget a file's content: nothing is done, as there is no such request.
///
/// # Errors
/// Never.
pub const fn forget_content(_file: &File) -> std::io::Result<()> {
    Ok(())
}

/// What changes when a file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    created: u64,
    written: u64,
    size: u64,
}

impl FileState {
    /// The state of a file.
    #[must_use]
    pub fn of(file: &Metadata) -> Self {
        Self { created: file.creation_time(), written: file.last_write_time(), size: file.file_size() }
    }
}
