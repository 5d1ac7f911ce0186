//! The state of a TCP connection, which this module does not read yet.

use super::error_codes::unsupported;
use crate::handle::AsFd;
use crate::{SockError, TcpInfo};

/// Reads `TCP_INFO` of a connection.
///
/// # Errors
/// Always: this system has another structure, or none.
pub fn tcp_info(_fd: &impl AsFd) -> Result<TcpInfo, SockError> {
    Err(unsupported("read TCP_INFO"))
}
