//! Error numbers of Linux that tools treat in a special way, print, or send to their peers.

/// Another client is being served.
pub(crate) const EBUSY: i32 = 16;

/// A request or a call is invalid.
pub(crate) const EINVAL: i32 = 22;

/// The port is in use.
pub(crate) const EADDRINUSE: i32 = 98;

/// Nobody listens on the port.
pub(crate) const ECONNREFUSED: i32 = 111;
