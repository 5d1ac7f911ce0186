//! The kernel's calling conventions in one place: errno, and socket options as plain values.

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

use crate::SockError;

/// Plain old data for the value of a socket option.
///
/// # Safety
/// Every bit pattern of the type must be a valid value, and it must contain no padding.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers have no invalid bit patterns and no padding.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: an array of the above has no padding either.
unsafe impl Plain for [i32; 2] {}
// SAFETY: bytes have no invalid bit patterns and no padding.
unsafe impl Plain for [u8; 32] {}
// SAFETY: two integers of equal size, no padding, C layout.
unsafe impl Plain for libc::linger {}
// SAFETY: two 64-bit integers on this system, C layout; others have padding.
#[cfg(target_os = "linux")]
unsafe impl Plain for libc::timeval {}

impl SockError {
    /// The error that the last failed system call of this thread left in `errno`.
    #[must_use]
    pub(crate) fn last(op: &'static str) -> Self {
        Self::new(op, std::io::Error::last_os_error())
    }
}

/// Converts a negative return value to the error in `errno`.
pub(crate) fn check(op: &'static str, ret: i32) -> Result<i32, SockError> {
    if ret < 0 { Err(SockError::last(op)) } else { Ok(ret) }
}

/// Sets a socket option to a plain value.
pub(crate) fn set<T: Plain>(
    op: &'static str,
    fd: &impl AsFd,
    level: i32,
    name: i32,
    value: T,
) -> Result<(), SockError> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`, which outlives the call; the kernel only reads it.
    let ret =
        unsafe { libc::setsockopt(fd.as_fd().as_raw_fd(), level, name, (&raw const value).cast(), length) };
    check(op, ret).map(|_| ())
}

/// Reads a socket option as a plain value.
pub(crate) fn get<T: Plain>(op: &'static str, fd: &impl AsFd, level: i32, name: i32) -> Result<T, SockError> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `value`, which is that large.
    let ret = unsafe {
        libc::getsockopt(fd.as_fd().as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    };
    check(op, ret)?;
    // SAFETY: zeroed before the call and `Plain`, so valid whichever part the kernel has written.
    Ok(unsafe { value.assume_init() })
}
