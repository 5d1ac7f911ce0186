//! Owners and permissions of files.

use std::ffi::CString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use crate::SockError;

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

/// Whether it is a file or a disk, which have a size and are read again and again.
#[must_use]
pub fn has_size(file: &Metadata) -> bool {
    file.is_file() || file.file_type().is_block_device()
}

/// Gives a file to the owner of another one, if this user may do that.
pub fn give_to_owner_of(file: &File, other: &Metadata) {
    // Only root may give a file away; for others it is theirs already.
    let _ = fchown(file, Some(other.uid()), Some(other.gid()));
}

/// The number of the file system on which a file is. Those of most disks are a part of their UUID and last for ever; it is 0
/// where a system has none. C libraries agree on these 32 bits of it.
///
/// # Errors
/// There is no such file, or its file system does not answer.
pub fn file_system_id(path: &Path) -> Result<u32, SockError> {
    let fail = |source| SockError::new("identify a file system", source);
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| fail(error.into()))?;
    // SAFETY: all zero is a valid statvfs, which consists of integers.
    let mut about: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero, and the kernel writes one statvfs to `about`.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut about) } < 0 {
        return Err(fail(io::Error::last_os_error()));
    }
    Ok((about.f_fsid & 0xffff_ffff) as u32)
}

/// Writes what was not written yet to the disk, and asks the kernel to forget the file's content, so that it is read from the
/// disk again. A system without such a request (macOS) keeps it.
///
/// # Errors
/// The disk failed.
pub fn forget_content(file: &File) -> io::Result<()> {
    file.sync_data()?;
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor is open; the call takes no memory.
        let error = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_file_system_have_its_number_and_those_of_another_have_not() {
        let number = |path: &str| file_system_id(Path::new(path)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let here = number(folder.path().to_str().unwrap());
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(number(folder.path().join("file").to_str().unwrap()), here);
        assert_ne!(number("/proc"), here);
        assert!(file_system_id(&folder.path().join("none")).is_err());
    }
}
