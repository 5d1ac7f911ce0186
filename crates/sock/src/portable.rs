//! What clients need on systems other than Linux, from the standard library, socket2 and a few calls of the system.
//!
//! What a system cannot do is refused with [`std::io::ErrorKind::Unsupported`], and what it cannot tell is absent.

#[cfg(unix)]
pub(crate) use crate::unix::{cost, kernel};
#[cfg(unix)]
pub use crate::unix::{files, limits};
#[cfg(windows)]
pub(crate) use windows::{cost, kernel};
#[cfg(windows)]
pub use windows::{files, limits};

pub mod affinity;
pub(crate) mod batch;
pub(crate) mod clock;
pub(crate) mod departure;
pub(crate) mod error_codes;
pub(crate) mod errqueue;
pub(crate) mod features;
pub(crate) mod iface;
mod inherited;
pub(crate) mod multicast;
pub(crate) mod multipath;
pub mod netns;
pub(crate) mod poll;
pub mod priority;
pub mod process;
pub(crate) mod queues;
pub(crate) mod reply;
pub(crate) mod sockopt;
pub mod splice;
pub(crate) mod stream;
pub(crate) mod tcp_info;
#[cfg(windows)]
mod windows;
