//! The kernel's calling conventions in one place: errno, EINTR, and socket options as plain values.

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
// SAFETY: two 64-bit integers on this platform, C layout.
unsafe impl Plain for libc::timeval {}

/// Converts a negative return value to the error in `errno`.
pub(crate) fn check(op: &'static str, ret: i32) -> Result<i32, SockError> {
    if ret < 0 { Err(SockError::last(op)) } else { Ok(ret) }
}

/// Repeats a call that a signal interrupted, and converts a negative return value to an error.
pub(crate) fn retry(op: &'static str, mut call: impl FnMut() -> isize) -> Result<usize, SockError> {
    loop {
        let ret = call();
        if ret >= 0 {
            return Ok(ret.unsigned_abs());
        }
        let error = SockError::last(op);
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(error);
        }
    }
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

/// Sets a socket option to a string, without a terminating zero.
pub(crate) fn set_text(
    op: &'static str,
    fd: &impl AsFd,
    level: i32,
    name: i32,
    value: &str,
) -> Result<(), SockError> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`, which outlives the call; the kernel only reads it.
    let ret = unsafe { libc::setsockopt(fd.as_fd().as_raw_fd(), level, name, value.as_ptr().cast(), length) };
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

/// Reads a socket option into `buffer`; returns the part that the kernel wrote.
pub(crate) fn get_bytes<'b>(
    op: &'static str,
    fd: &impl AsFd,
    level: i32,
    name: i32,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], SockError> {
    let mut length = buffer.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `buffer`, which is that large.
    let ret = unsafe {
        libc::getsockopt(fd.as_fd().as_raw_fd(), level, name, buffer.as_mut_ptr().cast(), &raw mut length)
    };
    check(op, ret)?;
    Ok(buffer.get(..length as usize).unwrap_or_default())
}
