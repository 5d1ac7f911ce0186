//! The kernel's calling conventions that only Linux needs: EINTR, and socket options that are texts or structures.

use std::os::fd::{AsFd, AsRawFd};

use crate::SockError;

pub(crate) use crate::unix::call::{check, get, set};

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

/// Sets a socket option to a string, without a terminating zero.
pub(crate) fn set_text(
    op: &'static str,
    fd: &impl AsFd,
    level: i32,
    name: i32,
    value: &str,
) -> Result<(), SockError> {
    set_bytes(op, fd, level, name, value.as_bytes())
}

/// Sets a socket option to the bytes of a structure.
pub(crate) fn set_bytes(
    op: &'static str,
    fd: &impl AsFd,
    level: i32,
    name: i32,
    value: &[u8],
) -> Result<(), SockError> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`, which outlives the call; the kernel only reads it.
    let ret = unsafe { libc::setsockopt(fd.as_fd().as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    check(op, ret).map(|_| ())
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
