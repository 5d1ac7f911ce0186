//! Multipath TCP.

use socket2::{Domain, Protocol, Socket, Type};

/// An MPTCP socket; absent if this kernel refuses one.
pub(crate) fn socket(domain: Domain) -> Option<Socket> {
    Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP)).ok()
}
