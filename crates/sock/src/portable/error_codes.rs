//! Errors of systems other than Linux, by the kinds of the standard library, and what helps against them.

use std::io::{self, ErrorKind};

use crate::SockError;

#[cfg(unix)]
pub(crate) use libc::{EDESTADDRREQ as NO_DESTINATION, ENOENT as NOT_FOUND, ETIMEDOUT as TIMED_OUT};
#[cfg(windows)]
pub(crate) use windows_sys::Win32::Networking::WinSock::{
    WSAEDESTADDRREQ as NO_DESTINATION, WSAETIMEDOUT as TIMED_OUT,
};

/// There is no such file.
#[cfg(windows)]
pub(crate) const NOT_FOUND: i32 = windows_sys::Win32::Foundation::ERROR_FILE_NOT_FOUND.cast_signed();

#[cfg(unix)]
use libc::{EMSGSIZE as TOO_LONG, ENOBUFS as NO_BUFFERS};
#[cfg(windows)]
use windows_sys::Win32::Networking::WinSock::{WSAEMSGSIZE as TOO_LONG, WSAENOBUFS as NO_BUFFERS};

/// The error of a call that this system does not have.
pub(crate) fn unsupported(op: &'static str) -> SockError {
    SockError::new(op, io::Error::new(ErrorKind::Unsupported, "this system does not have that feature"))
}

/// Whether a call would have had to wait. On Windows a receive whose timeout has expired reports a timeout.
pub(crate) fn is_pending(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || (cfg!(windows) && error.kind() == ErrorKind::TimedOut)
}

/// Whether a connection that does not wait has begun its handshake.
pub(crate) fn is_connecting(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(libc::EINPROGRESS);
    #[cfg(not(unix))]
    return error.kind() == ErrorKind::WouldBlock;
}

/// Whether a datagram did not fit.
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(TOO_LONG)
}

pub(crate) fn is_out_of_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(NO_BUFFERS) || error.kind() == ErrorKind::OutOfMemory
}

pub(crate) fn refuses_segments(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Unsupported
}

pub(crate) fn lacks_address(error: &io::Error) -> bool {
    #[cfg(unix)]
    const NO_FAMILY: i32 = libc::EAFNOSUPPORT;
    #[cfg(windows)]
    const NO_FAMILY: i32 = windows_sys::Win32::Networking::WinSock::WSAEAFNOSUPPORT;
    error.kind() == ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(NO_FAMILY)
}

pub(crate) fn remedy(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::AddrInUse => "another program holds this port; choose another one or stop that program",
        ErrorKind::AddrNotAvailable => {
            "no interface of this host has that address, or all local ports to the peer are in use"
        }
        ErrorKind::PermissionDenied => "run as an administrator, or leave out what needs that permission",
        ErrorKind::ConnectionRefused => {
            "nothing listens there: is `linerate serve` running on that host, and on this port?"
        }
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            "the peer closed the connection; see the peer's log for the reason"
        }
        ErrorKind::NetworkUnreachable => {
            "this host has no route to the destination; check its default route and address family"
        }
        ErrorKind::HostUnreachable => "a router or neighbour on the path could not reach the host",
        ErrorKind::TimedOut => "no answer; a firewall may drop the packets, or the host is down",
        ErrorKind::Unsupported => "leave out the option that needs it, or measure from a host with Linux",
        _ if is_out_of_buffers(error) => {
            "the system is out of buffer memory; use fewer streams or smaller windows"
        }
        _ if is_too_long(error) => {
            "the datagram is larger than the path MTU or the maximum of UDP; send shorter ones"
        }
        _ => return None,
    })
}
