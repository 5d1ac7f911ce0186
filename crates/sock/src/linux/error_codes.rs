//! The error numbers of Linux, and what helps against them.

use std::io;

/// A call needed an address and got none.
pub(crate) const NO_DESTINATION: i32 = libc::EDESTADDRREQ;
/// Nothing answered in time.
pub(crate) const TIMED_OUT: i32 = libc::ETIMEDOUT;

/// There is no such file.
pub(crate) const NOT_FOUND: i32 = libc::ENOENT;

/// Whether a call would have had to wait.
pub(crate) fn is_pending(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAGAIN)
}

/// Whether a connection that does not wait has begun its handshake.
pub(crate) fn is_connecting(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINPROGRESS)
}

pub(crate) fn is_out_of_buffers(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

pub(crate) fn refuses_segments(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

pub(crate) fn lacks_address(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
}

pub(crate) fn remedy(error: &io::Error) -> Option<&'static str> {
    Some(match error.raw_os_error()? {
        libc::EMFILE => "raise the limit of open files (ulimit -n) or use fewer streams",
        libc::ENFILE => "the whole system is out of open files; raise fs.file-max",
        libc::EADDRINUSE => "another program holds this port; choose another one or stop that program",
        libc::EADDRNOTAVAIL => {
            "no interface of this host has that address, or all local ports to the peer are in use"
        }
        libc::EACCES | libc::EPERM => "run as root, or give the program the capability this setting needs",
        libc::ECONNREFUSED => {
            "nothing listens there: is `linerate serve` running on that host, and on this port?"
        }
        libc::ECONNRESET | libc::EPIPE => {
            "the peer closed the connection; see the peer's log for the \
                                           reason"
        }
        libc::ENETUNREACH => {
            "this host has no route to the destination; check its default route and \
                              address family"
        }
        libc::EHOSTUNREACH => "a router or neighbour on the path could not reach the host",
        libc::ETIMEDOUT => "no answer; a firewall may drop the packets, or the host is down",
        libc::EMSGSIZE => "the datagram is larger than the path MTU or the maximum of UDP; send shorter ones",
        libc::ENODEV => "there is no interface of that name; `ip link` lists them",
        libc::ENOBUFS | libc::ENOMEM => {
            "the kernel is out of buffer memory; use fewer streams or smaller windows"
        }
        libc::ENOPROTOOPT | libc::EOPNOTSUPP | libc::EPROTONOSUPPORT => {
            "this kernel does not have that feature"
        }
        _ => return None,
    })
}
