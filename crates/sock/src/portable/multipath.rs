//! Multipath TCP, which this system does not have.

use socket2::{Domain, Socket};

/// An MPTCP socket: always absent.
pub(crate) const fn socket(_domain: Domain) -> Option<Socket> {
    None
}
