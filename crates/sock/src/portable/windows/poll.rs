//! `WSAPoll`. Windows before version 10 2004 does not report a failed connection by it.

use std::io;
use std::os::windows::io::{AsRawSocket, BorrowedSocket};

use windows_sys::Win32::Networking::WinSock::{SOCKET, SOCKET_ERROR, WSAGetLastError, WSAPoll};

use crate::SockError;

pub(crate) use windows_sys::Win32::Networking::WinSock::{
    POLLIN as IN, POLLNVAL as INVALID, POLLOUT as OUT, WSAPOLLFD as PollSlot,
};

/// What stands for a socket in a call.
pub(crate) type RawSocket = SOCKET;

pub(crate) fn number(socket: BorrowedSocket<'_>) -> RawSocket {
    socket.as_raw_socket() as RawSocket
}

/// Waits for one of the sockets, at most `timeout_ms`, or without limit if it is negative.
pub(crate) fn wait_once(slots: &mut [PollSlot], timeout_ms: i32) -> Result<(), SockError> {
    slots.iter_mut().for_each(|slot| slot.revents = 0);
    // SAFETY: the system reads and writes `slots.len()` entries of `slots`.
    let ret = unsafe { WSAPoll(slots.as_mut_ptr(), slots.len() as u32, timeout_ms) };
    if ret == SOCKET_ERROR {
        // SAFETY: takes nothing.
        let code = unsafe { WSAGetLastError() };
        return Err(SockError::new("poll", io::Error::from_raw_os_error(code)));
    }
    Ok(())
}
