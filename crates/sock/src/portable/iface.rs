//! Network interfaces, about which this module knows nothing yet.

use std::net::IpAddr;

use super::error_codes::unsupported;
use crate::SockError;
use crate::iface::{InterfaceAddress, InterfaceInfo, QueueCounts};

/// Queries an interface by name.
///
/// # Errors
/// Always: it is not implemented for this system.
pub fn link(_name: &str) -> Result<InterfaceInfo, SockError> {
    Err(unsupported("read the state of the interface"))
}

/// Counters of the queueing discipline at the root of an interface: always absent.
///
/// # Errors
/// None.
pub const fn root_queue(_index: u32) -> Result<Option<QueueCounts>, SockError> {
    Ok(None)
}

/// Kinds of the queueing disciplines of an interface: always none.
///
/// # Errors
/// None.
pub const fn queue_kinds(_index: u32) -> Result<Vec<String>, SockError> {
    Ok(Vec::new())
}

/// Index of the interface of a route.
///
/// # Errors
/// Always: it is not implemented for this system.
pub(crate) fn outgoing_interface(
    _local: IpAddr,
    _peer: IpAddr,
    _device: Option<u32>,
) -> Result<u32, SockError> {
    Err(unsupported("look up the route"))
}

/// Current name of the interface with that index: always absent.
#[must_use]
pub const fn name_of(_index: u32) -> Option<String> {
    None
}

/// All addresses of all interfaces.
///
/// # Errors
/// Always: it is not implemented for this system.
pub fn addresses() -> Result<Vec<InterfaceAddress>, SockError> {
    Err(unsupported("list the interfaces"))
}
