//! Owners and permissions of files.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};

const ONLY_OWNER: u32 = 0o600;

/// Makes a file that these options create readable and writable for its owner only.
pub fn only_for_owner(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(ONLY_OWNER)
}

/// The permissions of a file: nine bits, of which the lower six are those of other users.
#[must_use]
pub fn permission_bits(file: &Metadata) -> Option<u32> {
    Some(file.mode() & 0o777)
}

/// Whether both describe the same file.
#[must_use]
pub fn are_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Gives a file to the owner of another one, if this user may do that.
pub fn give_to_owner_of(file: &File, other: &Metadata) {
    // Only root may give a file away; for others it is theirs already.
    let _ = fchown(file, Some(other.uid()), Some(other.gid()));
}

/// What changes when a file is replaced, written, or given other permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl FileState {
    /// The state of a file.
    #[must_use]
    pub fn of(file: &Metadata) -> Self {
        Self { inode: file.ino(), size: file.size(), changed: (file.ctime(), file.ctime_nsec()) }
    }
}
