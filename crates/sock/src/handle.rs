//! Descriptors of sockets: those of the standard library on Unix, and the same names for the handles of Windows.

#[cfg(unix)]
pub use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
#[cfg(windows)]
pub use std::os::windows::io::{BorrowedSocket as BorrowedFd, OwnedSocket as OwnedFd};

/// The number of a socket, as other programs print it. On Windows the lower half of its handle.
#[must_use]
pub fn number(socket: &impl AsFd) -> i32 {
    #[cfg(unix)]
    return std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd());
    #[cfg(windows)]
    return std::os::windows::io::AsRawSocket::as_raw_socket(&socket.as_fd()) as i32;
}

/// Anything that lends a socket.
#[cfg(windows)]
pub trait AsFd {
    /// Lends the socket.
    fn as_fd(&self) -> BorrowedFd<'_>;
}

#[cfg(windows)]
impl<T: std::os::windows::io::AsSocket> AsFd for T {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.as_socket()
    }
}
