//! The error type of this crate: which call failed, on which address, and what may help.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::system::error_codes as codes;

/// An error of a system call.
#[derive(Debug, thiserror::Error)]
pub struct SockError {
    /// What was attempted, as a lower-case fragment: "connect", "set TCP_MAXSEG".
    pub op: &'static str,
    /// The address of the call, if it has one.
    pub addr: Option<SocketAddr>,
    /// The error of the operating system.
    #[source]
    pub source: io::Error,
}

impl fmt::Display for SockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.addr {
            Some(addr) => write!(f, "{} {addr} failed", self.op),
            None => write!(f, "{} failed", self.op),
        }
    }
}

impl SockError {
    /// An error with the cause `source`.
    #[must_use]
    pub fn new(op: &'static str, source: io::Error) -> Self {
        Self { op, addr: None, source }
    }

    /// The error for a known `errno` value.
    #[must_use]
    pub(crate) fn errno(op: &'static str, errno: i32) -> Self {
        Self::new(op, io::Error::from_raw_os_error(errno))
    }

    /// The same error with the address of the call.
    #[must_use]
    pub fn at(mut self, addr: SocketAddr) -> Self {
        self.addr = Some(addr);
        self
    }

    /// The `errno` value, if the operating system provided one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// Whether the kernel was temporarily out of buffers; a later attempt may succeed.
    #[must_use]
    pub fn is_out_of_buffers(&self) -> bool {
        codes::is_out_of_buffers(&self.source)
    }

    /// Whether the path does not support GSO; whole datagrams may pass.
    #[must_use]
    pub fn refuses_segments(&self) -> bool {
        codes::refuses_segments(&self.source)
    }

    /// Whether this host has no such address or address family, as for `::` on a host without IPv6.
    #[must_use]
    pub fn lacks_address(&self) -> bool {
        codes::lacks_address(&self.source)
    }

    /// What the user can do about it, if there is a known remedy.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        codes::remedy(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn names_the_call_and_the_address_and_keeps_the_cause_as_source() {
        let addr: SocketAddr = "192.0.2.1:5201".parse().unwrap();
        let error = SockError::errno("connect", libc::ECONNREFUSED).at(addr);
        assert_eq!(error.to_string(), "connect 192.0.2.1:5201 failed");
        assert!(error.source().unwrap().to_string().contains("refused"));
        assert!(error.remedy().unwrap().contains("linerate serve"));
    }

    #[test]
    fn errors_that_may_be_retried_are_distinguished() {
        let errno = |errno| SockError::errno("send", errno);
        assert!(errno(libc::ENOBUFS).is_out_of_buffers() && !errno(libc::EIO).is_out_of_buffers());
        assert!(errno(libc::EIO).refuses_segments() && !errno(libc::ECONNREFUSED).refuses_segments());
        assert!(errno(libc::EAFNOSUPPORT).lacks_address() && !errno(libc::EADDRINUSE).lacks_address());
    }

    #[test]
    fn an_unknown_errno_has_no_remedy() {
        assert_eq!(SockError::errno("bind", libc::EDOM).remedy(), None);
    }
}
