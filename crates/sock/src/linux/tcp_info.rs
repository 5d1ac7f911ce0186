//! Reads the state of a TCP connection.

use std::os::fd::AsFd;

use super::call;
use crate::{SockError, TcpInfo};

/// Buffer for the structure of current kernels, with a margin for later ones.
const MAX_TCP_INFO_BYTES: usize = 512;

/// Reads `TCP_INFO` of a connection. An MPTCP socket reports its first subflow.
///
/// # Errors
/// The descriptor is not a TCP socket, or is an MPTCP socket whose kernel does not forward the query to a
/// subflow.
pub fn tcp_info(fd: &impl AsFd) -> Result<TcpInfo, SockError> {
    let mut buffer = [0; MAX_TCP_INFO_BYTES];
    let filled = call::get_bytes("read TCP_INFO", fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut buffer)?;
    Ok(TcpInfo::decode(filled))
}
