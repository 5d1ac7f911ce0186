//! All system calls, socket options and clocks of linerate.
//!
//! Only this crate may use `unsafe`, read a clock or depend on the operating system. It contains no protocol,
//! metric or policy: it executes requests and reports what the kernel granted.
//!
//! Sockets are the standard library's types; functions take anything that lends a descriptor (`&impl AsFd`).
//! Deadlines are [`clock::Mono`], durations are [`std::time::Duration`]. A value that the kernel does not report is
//! `None`, never 0.
//!
//! What depends on the system is in one of two modules with the same functions: `linux`, which has everything, and
//! `portable`, which has what clients need on macOS and Windows and reports the rest as absent or unsupported. `unix`
//! has what Linux and macOS share.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(not(target_os = "linux"))]
use portable as system;
#[cfg(unix)]
mod unix;

pub mod batch;
pub mod clock;
pub mod cost;
mod datagram;
pub mod departure;
mod error;
pub mod errqueue;
pub mod features;
pub mod handle;
pub mod iface;
pub mod inherited;
pub mod memcopy;
pub mod multicast;
pub mod open;
pub mod options;
pub mod poll;
pub mod proc;
pub mod queues;
pub mod reply;
pub mod sockopt;
pub mod stream;
pub mod tcp_info;
pub mod thread;

pub use system::{affinity, files, limits, netns, priority, process, splice};

/// Only on Linux: settings of a host, emulated networks, and what both are made of.
#[cfg(target_os = "linux")]
pub use linux::{cmsg, discipline, host_setting, journal, local, mount, routing, tap, userns};

pub use clock::Mono;
pub use error::SockError;
pub use handle::AsFd;
pub use options::{Granted, KeepAlive, SocketOptions};
pub use stream::Moved;
pub use tcp_info::{TcpInfo, tcp_info};
