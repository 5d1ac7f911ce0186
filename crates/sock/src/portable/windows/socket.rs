//! Socket calls that socket2 does not have.

use std::io;
use std::os::windows::io::AsRawSocket;

use windows_sys::Win32::Networking::WinSock::{
    FIONREAD, IP_DONTFRAGMENT, IPPROTO_IP, IPPROTO_IPV6, IPV6_DONTFRAG, SOCKET, WSAGetLastError, ioctlsocket,
    setsockopt,
};

use crate::SockError;
use crate::handle::AsFd;

/// Bytes that can be read at once (for UDP the size of the next datagram).
pub(crate) fn readable(op: &'static str, fd: &impl AsFd) -> Result<u64, SockError> {
    let mut bytes = 0;
    // SAFETY: FIONREAD writes one u_long, and `bytes` is one.
    let ret = unsafe { ioctlsocket(raw(fd), FIONREAD, &raw mut bytes) };
    check(op, ret).map(|()| u64::from(bytes))
}

/// Disables fragmentation on a socket of either family.
pub(crate) fn set_dont_fragment(op: &'static str, fd: &impl AsFd, on: bool) -> Result<(), SockError> {
    let set = |level: i32, name: i32| {
        let value = i32::from(on);
        // SAFETY: the system reads one int from `value`, whose length is given.
        check(op, unsafe {
            setsockopt(raw(fd), level, name, (&raw const value).cast(), size_of::<i32>() as i32)
        })
    };
    let v6 = set(IPPROTO_IPV6, IPV6_DONTFRAG);
    let v4 = set(IPPROTO_IP, IP_DONTFRAGMENT);
    v6.or(v4)
}

fn raw(fd: &impl AsFd) -> SOCKET {
    fd.as_fd().as_raw_socket() as SOCKET
}

fn check(op: &'static str, ret: i32) -> Result<(), SockError> {
    if ret == 0 {
        return Ok(());
    }
    // SAFETY: takes nothing.
    let code = unsafe { WSAGetLastError() };
    Err(SockError::new(op, io::Error::from_raw_os_error(code)))
}
